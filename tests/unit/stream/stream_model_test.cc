// The protocol of transfers that streams trigger, its own source, under every schedule with a few deviations and many
// by chance: a message is whole when its receive has ended, whichever way it went. And faults put in are found.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/stream/steps.h"
#include "support/effort.h"
#include "support/model/explore.h"
#include "support/model/stepped_thread.h"

namespace brant::test {
namespace {

using model::Scheduler;
using stream_steps::Decision;

constexpr std::uint64_t kLine = 16;      // four words that carry their turn
constexpr std::uint64_t kEager = 4104;   // beside its receive, if that is late
constexpr std::uint64_t kDirect = 8200;  // into its landing only

struct Faults {
  bool no_release = false;      ///< What tells of a message does not come behind it.
  bool no_turn_looked = false;  ///< Words of a line are taken as they are.
};

/// A kernel of one block and one thread in the model. A copy moves the first word and the last.
class ModelStream : public model::SteppedThread {
 public:
  ModelStream(Scheduler& scheduler, std::uint64_t& clock_ns, const Faults& faults)
      : SteppedThread(scheduler, clock_ns), faults_(faults) {}

  // What the steps call is found by its name, in a Machine that they are compiled for.
  // NOLINTBEGIN(bugprone-derived-method-shadowing-base-method)
  void store_release(std::uint64_t* to, std::uint64_t value) {
    faults_.no_release ? store_relaxed(to, value) : SteppedThread::store_release(to, value);
  }
  std::uint64_t load_relaxed(const std::uint64_t* from) const {
    const std::uint64_t word = SteppedThread::load_relaxed(from);
    return faults_.no_turn_looked && word == 0 ? std::uint64_t{1} << 32 : word;
  }
  // NOLINTEND(bugprone-derived-method-shadowing-base-method)
  void copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
    for (const std::uint64_t at : {std::uint64_t{0}, bytes - 8}) {
      store_relaxed(reinterpret_cast<std::uint64_t*>(to + at),
                    SteppedThread::load_relaxed(reinterpret_cast<const std::uint64_t*>(from + at)));
    }
  }

 private:
  const Faults& faults_;
};

/// One end sends messages of these sizes, the other receives them.
class World {
 public:
  World(Scheduler& scheduler, std::vector<std::uint64_t> sizes, Faults faults)
      : scheduler_(scheduler), sizes_(std::move(sizes)), faults_(faults) {}

  std::vector<std::function<void()>> make() {
    sender_ = std::make_unique<StreamMailbox>();
    receiver_ = std::make_unique<StreamMailbox>();
    control_ = {};
    control_.patience_ns = ~std::uint64_t{0};
    sender_->bases[0] = reinterpret_cast<std::uint64_t>(landings_);
    for (unsigned i = 0; i < sizes_.size(); ++i) {
      for (std::uint64_t& word : sources_[i]) word = 1000 + i;
      for (std::uint64_t& word : landings_[i]) word = 0;
    }
    done_ = 0;
    return {[this] { send_all(); }, [this] { receive_all(); }};
  }
  void check() {
    if (done_ != sizes_.size() || control_.fault != 0) wrong = "not all messages were received";
  }
  std::string wrong;

 private:
  static constexpr unsigned kMessagesMax = 3;

  void send_all() {
    ModelStream machine(scheduler_, clock_ns_, faults_);
    for (unsigned i = 0; i < sizes_.size(); ++i) {
      Decision decision{};
      stream_steps::send(machine, *sender_, *receiver_, control_, reinterpret_cast<const std::byte*>(sources_[i]),
                         sizes_[i], nullptr, decision);
    }
    static_cast<void>(machine.load_acquire(&control_.abort));  // it does not end with its last store
  }
  void receive_all() {
    ModelStream machine(scheduler_, clock_ns_, faults_);
    for (unsigned i = 0; i < sizes_.size(); ++i) {
      const auto offset = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(landings_[i]) -
                                                     reinterpret_cast<std::byte*>(landings_));
      stream_steps::start_receive(machine, *receiver_, *sender_, control_,
                                  {reinterpret_cast<std::byte*>(landings_[i]), sizes_[i], 0, offset});
    }
    for (unsigned i = 0; i < sizes_.size(); ++i) {
      Decision decision{};
      stream_steps::finish_receive(machine, *receiver_, control_, nullptr, decision);
      const std::uint64_t* landing = landings_[i];
      const bool whole = machine.load_acquire(&landing[0]) == 1000 + i &&
                         machine.load_acquire(&landing[sizes_[i] / 8 - 1]) == 1000 + i;
      scheduler_.expect(whole && decision.bytes == sizes_[i], "the word came before the bytes");
      ++done_;
    }
  }

  Scheduler& scheduler_;
  const std::vector<std::uint64_t> sizes_;
  const Faults faults_;
  std::unique_ptr<StreamMailbox> sender_;
  std::unique_ptr<StreamMailbox> receiver_;
  StreamControl control_{};
  std::uint64_t sources_[kMessagesMax][kDirect / 8];
  std::uint64_t landings_[kMessagesMax][kDirect / 8];
  std::uint64_t clock_ns_ = 0;
  std::size_t done_ = 0;
};

class StreamModel : public testing::Test {
 protected:
  void SetUp() override {
    if (test::kSanitized) GTEST_SKIP() << "sanitizers do not follow the scheduler's stacks; the other builds run this";
  }
};
class StreamModelFaults : public StreamModel {};

std::string explore(const std::vector<std::uint64_t>& sizes, Faults faults = {}) {
  return model::explore([&](Scheduler& scheduler) { return World(scheduler, sizes, faults); });
}

TEST_F(StreamModel, lines_arrive_whole) { EXPECT_EQ(explore({kLine, kLine}), ""); }
TEST_F(StreamModel, messages_that_may_be_early_arrive_whole) { EXPECT_EQ(explore({kEager, kEager}), ""); }
TEST_F(StreamModel, messages_that_wait_for_their_receive_arrive_whole) { EXPECT_EQ(explore({kDirect, kDirect}), ""); }
TEST_F(StreamModel, messages_of_all_ways_keep_their_order) { EXPECT_EQ(explore({kDirect, kLine, kEager}), ""); }

TEST_F(StreamModel, lines_need_no_order) {
  EXPECT_EQ(explore({kLine, kLine}, {.no_release = true}), "") << "each word says by itself that it is there";
}

TEST_F(StreamModelFaults, a_word_without_release_is_found) {
  EXPECT_EQ(explore({kEager}, {.no_release = true}), "the word came before the bytes");
  EXPECT_EQ(explore({kDirect}, {.no_release = true}), "the word came before the bytes");
}
TEST_F(StreamModelFaults, a_line_that_is_not_waited_for_is_found) {
  EXPECT_EQ(explore({kLine}, {.no_turn_looked = true}), "the word came before the bytes");
}

}  // namespace
}  // namespace brant::test
