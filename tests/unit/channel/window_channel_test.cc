// Many device messages at once between processes that map each other's device memory: who tells whom of what.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "ops/channel/link_message.h"
#include "unit/channel/linked_pair.h"

namespace brant {
namespace {

using test::MappedPair;

/// Messages of 8 bytes, each its number.
struct Window {
  Window(MappedPair& pair_in, std::size_t count) : pair(pair_in), numbers(count) {
    for (std::size_t i = 0; i < count; ++i) numbers[i] = i + 1;
    source = pair.job.rank(0).allocate(MemoryKind::emulated, count * 8);
    landing = pair.job.rank(1).allocate(MemoryKind::emulated, count * 8);
    pair.job.rank(0).copy(source, std::as_bytes(std::span(numbers)));
  }
  void post_receives() {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      operations.emplace_back(new Operation(pair.right.recv(landing.part(i * 8, 8))));
  }
  void post_sends() {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      operations.emplace_back(new Operation(pair.left.send(source.part(i * 8, 8))));
  }
  void expect_arrived() {
    for (const auto& operation : operations) ASSERT_TRUE(pair.outcome(*operation).ok());
    std::vector<std::uint64_t> got(numbers.size());
    pair.job.rank(1).copy(std::as_writable_bytes(std::span(got)), landing);
    EXPECT_EQ(got, numbers);
  }

  MappedPair& pair;
  std::vector<std::uint64_t> numbers;
  Memory source, landing;
  std::vector<std::unique_ptr<Operation>> operations;
};

TEST(WindowChannel, more_receives_than_may_be_told_of_at_once_are_all_served) {
  MappedPair pair;
  for (const bool receives_first : {true, false, true}) {
    Window window(pair, 3 * tuned::kAnnouncedMax);
    receives_first ? window.post_receives() : window.post_sends();
    pair.job.run(20);
    receives_first ? window.post_sends() : window.post_receives();
    window.expect_arrived();
  }
}

TEST(WindowChannel, a_sender_that_is_told_finds_its_landings_without_a_question) {
  MappedPair pair;
  Window first(pair, 10);
  first.post_receives();
  pair.job.run(5);
  first.post_sends();
  first.expect_arrived();
  pair.job.run(5);
  Window window(pair, 10);
  window.post_receives();  // told of, but nobody has looked
  window.post_sends();
  EXPECT_EQ(pair.job.rank(1).worker().progress(), 0u) << "a question came";
  window.expect_arrived();
}

/// Receives of small messages in host memory are not told of: a sender that counts on being told has to ask in the end.
TEST(WindowChannel, a_sender_asks_a_receiver_that_no_longer_tells) {
  MappedPair pair;
  for (int round = 0; round < 10; ++round) {
    Window window(pair, 2);
    window.post_receives();
    pair.job.run(5);
    window.post_sends();
    window.expect_arrived();
    std::uint64_t got = 0;
    Operation send = pair.left.send(window.source.part(8, 8));
    Operation receive = pair.right.recv(Buffer(&got, sizeof(got), MemoryKind::host));
    ASSERT_TRUE(pair.outcome(receive).ok());
    ASSERT_TRUE(pair.outcome(send).ok());
    EXPECT_EQ(got, 2u);
  }
}

}  // namespace
}  // namespace brant
