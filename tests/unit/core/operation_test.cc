// Outcomes, one and several: what is waited for together, and what becomes an exception.
#include "brant/core/operation.h"

#include <string>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using namespace std::chrono_literals;

/// What `call` throws; empty if nothing.
template <typename Call>
std::string thrown(Call&& call, Status status) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), status);
    return error.what();
  }
  return "";
}

TEST(OpResult, that_is_ok_throws_nothing_and_else_says_what_failed) {
  const OpResult fine{Status::ok, 8};
  EXPECT_EQ(fine.or_throw("the halo").bytes, 8u);
  const OpResult bad{Status::peer_lost, 0};
  EXPECT_EQ(thrown([&] { bad.or_throw("the ghost cells did not come"); }, Status::peer_lost),
            "the ghost cells did not come: the peer process has ended, died or become unreachable (peer_lost)");
}

TEST(OpResult, of_several_is_the_first_failure_and_the_sum_of_the_bytes) {
  OpResult total{Status::ok, 5};
  total.join({Status::truncated, 7});
  total.join({Status::peer_lost, 1});
  EXPECT_EQ(total.status, Status::truncated);
  EXPECT_EQ(total.bytes, 13u);
}

TEST(Result, gives_its_value_or_throws) {
  EXPECT_EQ(Result<int>(7).or_throw("a number"), 7);
  EXPECT_EQ(thrown([] { static_cast<void>(Result<int>(Status::not_found).or_throw("a number")); }, Status::not_found),
            "a number: no such name, key or file (not_found)");
}

/// Two ends in one process.
class Operations : public ::testing::Test {
 protected:
  Runtime& runtime() { return job_.rank(0); }
  Operation send(int& value) { return left_.send(ConstBuffer(&value, sizeof(value))); }
  Operation receive(int& value) { return right_.recv(Buffer(&value, sizeof(value))); }

  test::InProcessJob job_{test::ranks(1)};
  Channel left_ = Channel::open(job_.rank(0), Rank{0}, ChannelId{1});
  Channel right_ = Channel::open(job_.rank(0), Rank{0}, ChannelId{1});
  int values_[2] = {3, 4};
  int got_[2] = {};
};

TEST_F(Operations, are_awaited_together) {
  const auto exchange = [&]() -> Task<OpResult> {
    Operation first = receive(got_[0]), second = receive(got_[1]);
    Operation third = send(values_[0]), fourth = send(values_[1]);
    co_return co_await when_all(first, second, third, fourth);
  };
  const OpResult result = runtime().run(exchange());
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.bytes, 4 * sizeof(int));
  EXPECT_EQ(got_[1], values_[1]);
}

TEST_F(Operations, have_all_ended_when_one_has_failed) {
  const auto exchange = [&]() -> Task<void> {
    char small = 0;
    Operation first = right_.recv(Buffer(&small, 1)), second = receive(got_[1]);
    Operation third = send(values_[0]), fourth = send(values_[1]);
    const OpResult result = co_await when_all(first, second, third, fourth);
    EXPECT_EQ(result.status, Status::truncated);
    EXPECT_TRUE(second.done() && third.done() && fourth.done());
  };
  runtime().run(exchange());
  EXPECT_EQ(got_[1], values_[1]);
}

TEST_F(Operations, are_waited_for_in_plain_code) {
  Operation in = receive(got_[0]);
  EXPECT_EQ(runtime().wait_for(5ms, in).status, Status::timed_out);
  EXPECT_FALSE(in.done()) << "it goes on";
  Operation out = send(values_[0]);
  const OpResult result = runtime().wait(in, out);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.bytes, 2 * sizeof(int));
  EXPECT_EQ(got_[0], values_[0]);
}

TEST_F(Operations, and_futures_too) {
  Promise<int> promise;
  Future<int> future = promise.future();
  EXPECT_EQ(runtime().worker().post([](void* to) noexcept { static_cast<Promise<int>*>(to)->deliver(6); }, &promise),
            Status::ok);
  EXPECT_EQ(runtime().wait(future), 6);
}

}  // namespace
}  // namespace brant
