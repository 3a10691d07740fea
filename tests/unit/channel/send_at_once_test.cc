// Small messages of host memory between processes that share memory: they leave within their post, without a record.
#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine.h"
#include "ops/channel/delivery_window.h"
#include "ops/channel/table.h"
#include "unit/channel/linked_pair.h"

namespace brant {
namespace {

using test::Pair;
using test::pattern;

class SendAtOnce : public ::testing::Test {
 protected:
  Engine& engine(int rank) { return pair_.job.rank(rank).worker().engine(); }
  std::size_t live(int rank) { return engine(rank).service<ChannelTable>().live(); }

  Pair pair_;
};

TEST_F(SendAtOnce, leaves_no_record_and_frees_the_source_within_the_post) {
  int value = 6, got = 0;
  Op op;
  op.source_free = {[](void*, const OpResult&) noexcept { FAIL() << "the post said all"; }, nullptr};
  EXPECT_EQ(pair_.left.post_send(ConstBuffer(&value, sizeof(value)), op), Status::ok);
  EXPECT_EQ(op.result.bytes, sizeof(value));
  EXPECT_FALSE(op.pending());
  EXPECT_EQ(live(0), 0u);
  value = 7;  // free
  Operation receive = pair_.right.recv(Buffer(&got, sizeof(got)));
  EXPECT_TRUE(pair_.outcome(receive).ok());
  EXPECT_EQ(got, 6);
  EXPECT_EQ(engine(0).counters().path(Path::shm).sends.read(), 1u);
  EXPECT_EQ(engine(0).counters().path(Path::shm).bytes_sent.read(), sizeof(value));
}

TEST_F(SendAtOnce, keeps_a_record_of_what_is_to_be_acknowledged) {
  int value = 6, got = 0;
  Operation send = pair_.left.send(ConstBuffer(&value, sizeof(value)), Moment::delivered);
  EXPECT_FALSE(send.done());
  EXPECT_EQ(live(0), 1u);
  Operation receive = pair_.right.recv(Buffer(&got, sizeof(got)));
  EXPECT_TRUE(pair_.outcome(receive).ok());
  EXPECT_TRUE(pair_.outcome(send).ok());
}

/// What has no room waits, and what is posted behind it does not pass it.
TEST_F(SendAtOnce, keeps_the_order_beyond_the_window) {
  constexpr std::size_t kMany = kWindowMessages + 100;
  std::vector<int> values(kMany), got(kMany);
  std::iota(values.begin(), values.end(), 1);
  pair_.job.run(5);  // the ring has room for a whole window once what is said of the open ends was read
  std::vector<std::unique_ptr<Operation>> sends, receives;
  for (int& value : values) sends.emplace_back(new Operation(pair_.left.send(ConstBuffer(&value, sizeof(value)))));
  EXPECT_TRUE(sends[kWindowMessages - 1]->done());
  EXPECT_FALSE(sends[kWindowMessages]->done());
  for (int& value : got) receives.emplace_back(new Operation(pair_.right.recv(Buffer(&value, sizeof(value)))));
  for (const auto& receive : receives) EXPECT_TRUE(pair_.outcome(*receive).ok());
  for (const auto& send : sends) EXPECT_TRUE(pair_.outcome(*send).ok());
  EXPECT_EQ(got, values);
}

TEST_F(SendAtOnce, tells_of_a_message_that_was_longer_than_its_landing) {
  const std::vector<std::byte> long_one = pattern(100, 1);
  std::vector<std::byte> small(10);
  Operation send = pair_.left.send(std::span(long_one));
  EXPECT_TRUE(send.done());
  Operation receive = pair_.right.recv(std::span(small));
  EXPECT_EQ(pair_.outcome(receive).status, Status::truncated);
  EXPECT_TRUE(pair_.job.run_until([&] { return pair_.left.counts().truncated == 1; }));
}

}  // namespace
}  // namespace brant
