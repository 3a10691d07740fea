// Device memory that was freed while the other end had it mapped, and new memory in its place: a network library that
// were to map that would end the process.
#include <optional>

#include <gtest/gtest.h>

#include "brant/core/sinks.h"
#include "core/engine.h"
#include "unit/channel/linked_pair.h"

namespace brant {
namespace {

using test::JobOptions;
using test::linked;
using test::MappedPair;
using test::pattern;

class OldMapping : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 50'000;

  JobOptions options() {
    JobOptions options = linked(GpuChoice::emulated);
    options.network_takes_device = true;
    options.device_memory_taken = [this](const void*) { ++taken_; };
    return options;
  }

  /// A message to new device memory of the right end.
  void send_into(const Memory& landing, ConstBuffer source) {
    Operation receive = pair_->right.recv(landing);
    pair_->job.run(20);
    Operation send = pair_->left.send(source);
    EXPECT_TRUE(pair_->outcome(receive).ok());
    EXPECT_TRUE(pair_->outcome(send).ok());
    EXPECT_EQ(pair_->contents(1, landing), sent_);
  }
  Memory landing() { return pair_->job.rank(1).allocate(MemoryKind::emulated, kBytes); }
  /// The left end copies into it by its device, which maps it for that.
  void have_mapped(const Memory& landing) { send_into(landing, pair_->filled(0, sent_)); }
  /// A kernel of the left end waits: nothing is unmapped there that its device may use.
  void let_a_kernel_wait(bool waits) {
    Engine& left = pair_->job.rank(0).worker().engine();
    left.deferrals().note_waiting_kernels(waits ? +1 : -1);
    pair_->job.run(20);
    left.deferrals().run_if_safe();
    pair_->job.run(20);
  }

  const std::vector<std::byte> sent_ = pattern(kBytes, 3);
  unsigned taken_ = 0;
  std::optional<MappedPair> pair_{options()};
};

TEST_F(OldMapping, keeps_landings_off_the_network_until_it_is_closed) {
  std::optional<Memory> first = landing();
  have_mapped(*first);
  EXPECT_EQ(taken_, 0u);
  send_into(*first, ConstBuffer(std::span(sent_)));
  EXPECT_EQ(taken_, 1u) << "from host memory it goes over the network, which may map what is mapped already";
  let_a_kernel_wait(true);
  first.reset();
  const Memory second = landing();
  for (unsigned message = 0; message < 3; ++message) send_into(second, ConstBuffer(std::span(sent_)));
  EXPECT_EQ(taken_, 1u);
  let_a_kernel_wait(false);
  send_into(second, ConstBuffer(std::span(sent_)));
  EXPECT_EQ(taken_, 2u);
}

TEST_F(OldMapping, keeps_sources_off_the_network_until_it_is_closed) {
  std::optional<Memory> first = landing();
  have_mapped(*first);
  let_a_kernel_wait(true);
  first.reset();
  const Memory source = pair_->filled(1, sent_);
  const auto send_to_host = [&] {
    std::vector<std::byte> landed(kBytes);
    Operation receive = pair_->left.recv(std::span(landed));
    Operation send = pair_->right.send(source);
    EXPECT_TRUE(pair_->outcome(receive).ok());
    EXPECT_TRUE(pair_->outcome(send).ok());
    EXPECT_EQ(landed, sent_);
  };
  send_to_host();
  EXPECT_EQ(taken_, 0u);
  let_a_kernel_wait(false);
  send_to_host();
  EXPECT_EQ(taken_, 1u);
}

TEST_F(OldMapping, keeps_the_memory_of_channels_that_are_told_to_use_the_network_off_it) {
  std::optional<Memory> first = landing();
  have_mapped(*first);
  let_a_kernel_wait(true);
  first.reset();
  pair_->left = Channel::open(pair_->job.rank(0), Rank{1}, ChannelId{8}, {.path = Path::ucx});
  pair_->right = Channel::open(pair_->job.rank(1), Rank{0}, ChannelId{8}, {.path = Path::ucx});
  const Memory second = landing();
  send_into(second, ConstBuffer(std::span(sent_)));
  EXPECT_EQ(taken_, 0u);
  let_a_kernel_wait(false);
  send_into(second, ConstBuffer(std::span(sent_)));
  EXPECT_EQ(taken_, 1u);
}

}  // namespace
}  // namespace brant
