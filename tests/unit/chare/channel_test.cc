// Channels between chares: many per process, both ends in one, ids that nobody chose.
#include <numeric>

#include "unit/chare/program.h"

namespace brant {
namespace {

using test::JobOptions;
using test::Program;

/// A ring whose members exchange with both neighbours, round after round.
class Member : public Chare<Member, Index<2>> {
 public:
  Task<int> exchange(int rounds, std::size_t count) {
    const Index<2> right(index()[0], (index()[1] + 1) % this_array().extent()[1]);
    const Index<2> left(index()[0], (index()[1] + this_array().extent()[1] - 1) % this_array().extent()[1]);
    // Two members are each other's left and right: the number tells the channels apart.
    const auto odd = static_cast<std::uint32_t>(index()[1] % 2);
    ChareChannelOptions to_right, to_left;
    to_right.number = odd;
    to_left.number = 1 - odd;
    Future<Channel> right_opening = open_channel(*this, this_array()[right], to_right);
    Future<Channel> left_opening = open_channel(*this, this_array()[left], to_left);
    right_ = co_await right_opening;
    left_ = co_await left_opening;
    const MemoryKind kind = chares().runtime().device_kind();
    Memory out = chares().runtime().allocate(kind, count * sizeof(int)),
           in = chares().runtime().allocate(kind, count * 4);
    int faults = 0;
    for (int round = 0; round < rounds; ++round) {
      std::vector<int> values(count, index()[1] * 1000 + round);
      chares().runtime().copy(out, std::span(values));
      Operation incoming = left_.recv(in);
      Operation outgoing = right_.send(out);
      Operation back = left_.send(out);
      const OpResult got = co_await incoming;
      chares().runtime().copy(std::span(values), in);
      faults += got.ok() && got.bytes == count * 4 && values[count - 1] == left[1] * 1000 + round ? 0 : 1;
      const OpResult answer = co_await right_.recv(in);
      chares().runtime().copy(std::span(values), in);
      faults += answer.ok() && values[0] == right[1] * 1000 + round ? 0 : 1;
      EXPECT_TRUE((co_await outgoing).ok());
      EXPECT_TRUE((co_await back).ok());
    }
    co_return faults;
  }
  void close() {
    right_.close();
    left_.close();
  }
  Task<void> to_itself() { co_await open_channel(*this, this_element()); }
  Task<int> wait_for(Element<Member> peer) {
    Channel channel = co_await open_channel(*this, peer);
    int got = 0;
    EXPECT_TRUE((co_await channel.recv(Buffer(&got, sizeof(got)))).ok());
    co_return got;
  }
  Task<OpResult> greet(Element<Member> peer, int value) {
    Channel channel = co_await open_channel(*this, peer);
    co_return co_await channel.send(ConstBuffer(&value, sizeof(value)), Moment::delivered);
  }
  Task<void> whisper(Element<Member> peer, int value) {
    Channel channel = co_await open_channel(*this, peer);
    static_cast<void>(co_await channel.send(ConstBuffer(&value, sizeof(value))));
  }
  int nothing() { return 1; }

 private:
  Channel left_, right_;
};

Task<void> exchange_in_rings(Chares& chares, int members) {
  const auto ring = create_array<Member>(chares, {3, members}, Placement::round_robin());
  for (const std::size_t count : std::array<std::size_t, 3>{1, 5000, 70'000}) {
    std::vector<Future<int>> done;
    for (int x = 0; x < 3; ++x) {
      for (int y = 0; y < members; ++y) done.push_back(ring[{x, y}].ask<&Member::exchange>(test::effort(4, 2), count));
    }
    for (Future<int>& one : done) {
      const int faults = co_await one;
      EXPECT_EQ(faults, 0) << count;
    }
    for (int x = 0; x < 3; ++x) {
      for (int y = 0; y < members; ++y) co_await ring[{x, y}].ask<&Member::close>();
    }
  }
}

TEST(ChareChannel, members_of_rings_exchange_within_and_between_processes) {
  for (const int ranks : {1, 3}) {
    for (const JobOptions& options : test::variants(test::reordering(7, ranks))) {
      for (const int members : {2, 4}) {
        Program program(options);
        EXPECT_EQ(program.run(exchange_in_rings, members), 0) << program.failure();
      }
    }
  }
}

Task<void> refuse_itself(Chares& chares) {
  const auto ring = create_array<Member>(chares, {1, 2}, Placement::block());
  try {
    co_await ring[{0, 0}].ask<&Member::to_itself>();
    ADD_FAILURE() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("Member[0,0] opens a channel to itself"), std::string::npos)
        << error.what();
  }
}
TEST(ChareChannel, to_itself_is_refused) {
  Program program(test::ranks(1));
  EXPECT_EQ(program.run(refuse_itself), 0) << program.failure();
}

/// Its end is closed when the coroutine ends, which may be before the other chare has opened its own.
Task<void> greet_and_leave(Chares& chares) {
  const auto members = create_array<Member>(chares, {2, 2}, Placement::round_robin());
  for (const auto& [from, to] : {std::pair(Index<2>(0, 0), Index<2>(1, 1)), std::pair(Index<2>(1, 1), Index<2>(0, 0)),
                                 std::pair(Index<2>(0, 1), Index<2>(0, 0))}) {
    auto got = members[to].ask<&Member::wait_for>(members[from]);
    members[from].call<&Member::whisper>(members[to], 17);
    const int value = co_await got;
    EXPECT_EQ(value, 17);
  }
}
TEST(ChareChannel, what_was_sent_by_an_end_that_closed_at_once_is_received) {
  for (const int ranks : {1, 2, 3}) {
    for (const JobOptions& options : test::variants(test::reordering(5, ranks))) {
      Program program(options);
      EXPECT_EQ(program.run(greet_and_leave), 0) << program.failure();
    }
  }
}

/// A chare that is destroyed while it waits, and made again: the newcomer meets the other end.
Task<void> meet_a_newcomer(Chares& chares) {
  const auto members = create_sparse<Member>(chares, Placement::round_robin());
  const Index<2> first(0, 0), second(1, 0);
  members.insert(first);
  members.insert(second);
  static_cast<void>(co_await members[second].ask<&Member::nothing>());
  auto lost = members[second].ask<&Member::wait_for>(members[first]);
  static_cast<void>(co_await members[second].ask<&Member::nothing>());
  members[second].destroy();
  members.insert(second);
  auto got = members[second].ask<&Member::wait_for>(members[first]);
  const int other = co_await members[first].ask<&Member::nothing>();
  EXPECT_EQ(other, 1);
  auto sent = members[first].ask<&Member::greet>(members[second], 42);
  const int value = co_await got;
  EXPECT_EQ(value, 42);
  const OpResult result = co_await sent;
  EXPECT_EQ(result.status, Status::ok);
  try {
    static_cast<void>(co_await lost);
    ADD_FAILURE() << "a chare that is gone has answered";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::not_found) << error.what();
  }
}
TEST(ChareChannel, a_chare_made_again_meets_the_other_end) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(meet_a_newcomer), 0) << program.failure();
}

}  // namespace
}  // namespace brant
