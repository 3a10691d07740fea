#include "port/boot/launcher/server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "port/boot/launcher/channel.h"

namespace brant::port::launcher {
namespace {

using Clock = Server::Clock;
using testing::HasSubstr;

/// A server with the processes' ends of its sockets in hand.
class ServerTest : public testing::Test {
 protected:
  static constexpr int kSize = 3;

  ServerTest() : server_(kSize, "job") {
    for (int rank = 0; rank < kSize; ++rank) {
      auto [ours, theirs] = Server::make_pair();
      server_.add(rank, std::move(ours));
      ends_.push_back(std::move(theirs));
    }
  }

  int end(int rank) { return ends_[static_cast<std::size_t>(rank)].get(); }

  void raw(int rank, std::span<const std::byte> bytes) {
    ASSERT_EQ(::send(end(rank), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    pump();
  }

  /// What the launcher's poll loop does once.
  void pump(Clock::time_point now = Clock::now()) {
    for (int rank = 0; rank < kSize; ++rank) {
      pollfd entry{.fd = server_.fd(rank), .events = server_.events(rank), .revents = 0};
      if (entry.fd >= 0 && ::poll(&entry, 1, 0) > 0) server_.on_ready(rank, entry.revents, now);
    }
  }

  std::optional<Status> answer(int rank, std::string* text = nullptr) {
    Channel channel(end(rank));
    Reply reply;
    if (channel.receive(reply, Clock::now()) != Status::ok) return std::nullopt;
    if (text != nullptr) *text = reply.text;
    return reply.status;
  }

  void greet(int rank) {
    raw(rank, encode(Hello{.rank = rank, .size = kSize, .job_id = "job"}));
    ASSERT_EQ(answer(rank), Status::ok);
  }
  void greet_all() {
    for (int rank = 0; rank < kSize; ++rank) greet(rank);
  }

  bool closed(int rank) {
    char byte = 0;
    return ::recv(end(rank), &byte, 1, MSG_DONTWAIT) == 0;
  }

  Server server_;
  std::vector<UniqueFd> ends_;
};

TEST_F(ServerTest, a_greeting_that_does_not_fit_is_refused_in_words) {
  std::string text;
  raw(0, encode(Hello{.version = 99}));
  EXPECT_EQ(answer(0, &text), Status::version_mismatch);
  EXPECT_THAT(text, HasSubstr("99"));
  raw(0, encode(Hello{.rank = 1, .size = kSize, .job_id = "job"}));
  EXPECT_EQ(answer(0, &text), Status::peer_rejected);
  raw(0, encode(Hello{.rank = 0, .size = kSize + 1, .job_id = "job"}));
  EXPECT_EQ(answer(0, &text), Status::peer_rejected);
  raw(0, encode(Hello{.rank = 0, .size = kSize, .job_id = "another"}));
  EXPECT_EQ(answer(0, &text), Status::peer_rejected);
  greet(0);
}

TEST_F(ServerTest, a_message_before_the_greeting_closes_the_connection) {
  raw(0, encode(Fence{.id = 1}));
  EXPECT_TRUE(closed(0));
  EXPECT_EQ(server_.fd(0), -1);
  const auto complaints = server_.take_complaints();
  ASSERT_EQ(complaints.size(), 1U);
  EXPECT_THAT(complaints[0], HasSubstr("rank 0"));
}

TEST_F(ServerTest, garbage_closes_the_connection_and_fails_the_fence_of_the_others) {
  greet_all();
  raw(1, encode(Fence{.id = 1}));
  const std::vector<std::byte> garbage(100, std::byte{0xee});
  raw(0, garbage);
  EXPECT_TRUE(closed(0));
  std::string text;
  EXPECT_EQ(answer(1, &text), Status::peer_lost);
  EXPECT_THAT(text, HasSubstr("rank 0"));
}

TEST_F(ServerTest, every_malformed_body_closes_the_connection) {
  for (const Type type :
       {Type::hello, Type::put, Type::fence, Type::cancel_fence, Type::get, Type::abort, Type::reply, Type::spawn}) {
    Server server(1, "job");
    auto [ours, theirs] = Server::make_pair();
    server.add(0, std::move(ours));
    std::vector<std::byte> bytes = encode(Hello{.rank = 0, .size = 1, .job_id = "job"});
    // Three bytes are too short for the body of any message.
    const std::vector<std::byte> bad = {std::byte{3}, {}, {}, {}, static_cast<std::byte>(type), {}, {}, {}, {}, {}, {}};
    bytes.insert(bytes.end(), bad.begin(), bad.end());
    ASSERT_EQ(::send(theirs.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    server.on_ready(0, POLLIN, Clock::now());
    EXPECT_EQ(server.fd(0), -1) << "type " << static_cast<int>(type);
    EXPECT_EQ(server.take_complaints().size(), 1U);
  }
}

TEST_F(ServerTest, a_wish_to_spawn_brings_two_files) {
  greet_all();
  const auto [first, second] = Server::make_pair();
  Channel channel(end(1));
  const std::array<int, 2> files = {first.get(), second.get()};
  ASSERT_EQ(channel.send(encode(Spawn{}), Clock::now(), files), Status::ok);
  pump();
  EXPECT_EQ(answer(1), Status::ok);
  std::vector<Server::SpawnRequest> requests = server_.take_spawns();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].rank, 1);
  EXPECT_EQ(::send(requests[0].plan.get(), "x", 1, 0), 1);
  char got = 0;
  EXPECT_EQ(::recv(requests[0].line.get(), &got, 1, MSG_DONTWAIT), 1);
  EXPECT_EQ(got, 'x');
  EXPECT_TRUE(server_.take_spawns().empty());
}

TEST_F(ServerTest, a_wish_to_spawn_without_files_is_refused) {
  greet_all();
  raw(1, encode(Spawn{}));
  std::string text;
  EXPECT_EQ(answer(1, &text), Status::limit_reached);
  EXPECT_THAT(text, HasSubstr("descriptors"));
  EXPECT_TRUE(server_.take_spawns().empty());
}

TEST_F(ServerTest, a_message_may_arrive_byte_by_byte_and_two_at_once) {
  const std::vector<std::byte> hello = encode(Hello{.rank = 0, .size = kSize, .job_id = "job"});
  for (const std::byte& byte : hello) raw(0, {&byte, 1});
  EXPECT_EQ(answer(0), Status::ok);
  const std::vector<std::byte> value(10);
  std::vector<std::byte> two = encode(Put{.key = "a", .value = value});
  const std::vector<std::byte> second = encode(Put{.key = "", .value = value});
  two.insert(two.end(), second.begin(), second.end());
  raw(0, two);
  Channel channel(end(0));
  Reply reply;
  ASSERT_EQ(channel.receive(reply, Clock::now()), Status::ok);
  EXPECT_EQ(reply.status, Status::ok);
  ASSERT_EQ(channel.receive(reply, Clock::now()), Status::ok);
  EXPECT_EQ(reply.status, Status::invalid_argument);
}

TEST_F(ServerTest, an_end_of_a_process_answers_those_who_wait) {
  greet_all();
  raw(0, encode(Fence{.id = 1}));
  raw(1, encode(Fence{.id = 1}));
  EXPECT_EQ(answer(0), std::nullopt);
  server_.rank_ended(2, "rank 2 (pid 5) was killed by signal 9 (Killed)");
  std::string text;
  EXPECT_EQ(answer(0, &text), Status::peer_lost);
  EXPECT_EQ(text, "rank 2 (pid 5) was killed by signal 9 (Killed)");
  EXPECT_EQ(answer(1), Status::peer_lost);
}

TEST_F(ServerTest, a_closed_socket_counts_after_a_moment_unless_the_process_ended) {
  greet_all();
  raw(0, encode(Fence{.id = 1}));
  ends_[2].reset();
  const Clock::time_point now = Clock::now();
  pump(now);
  ASSERT_TRUE(server_.deadline().has_value());
  server_.tick(now);
  EXPECT_EQ(answer(0), std::nullopt);
  server_.tick(*server_.deadline());
  std::string text;
  EXPECT_EQ(answer(0, &text), Status::peer_lost);
  EXPECT_THAT(text, HasSubstr("rank 2 closed"));
  EXPECT_FALSE(server_.deadline().has_value());
}

TEST_F(ServerTest, finalize_alone_fails_no_fence_and_the_process_may_come_back) {
  greet_all();
  raw(0, encode(Finalize{}));
  raw(1, encode(Fence{.id = 1}));
  raw(2, encode(Fence{.id = 1}));
  EXPECT_EQ(answer(1), std::nullopt);
  greet(0);
  raw(0, encode(Fence{.id = 1}));
  for (int rank = 0; rank < kSize; ++rank) EXPECT_EQ(answer(rank), Status::ok);
}

TEST_F(ServerTest, an_abort_is_reported_with_a_code_that_is_no_success) {
  greet_all();
  raw(1, encode(Abort{.exit_code = 0, .text = "why"}));
  const auto aborts = server_.take_aborts();
  ASSERT_EQ(aborts.size(), 1U);
  EXPECT_EQ(aborts[0].rank, 1);
  EXPECT_EQ(aborts[0].exit_code, 1);
  EXPECT_EQ(aborts[0].text, "why");
}

TEST(Server, a_process_that_asks_without_reading_is_cut_off) {
  const std::vector<std::byte> value(kMaxValueBytes);
  // The questions are small and the answers large: without a bound the launcher's memory would fill.
  Server server(1, "job");
  auto [ours, theirs] = Server::make_pair();
  server.add(0, std::move(ours));
  const auto tell = [&](const std::vector<std::byte>& frame) {
    std::span<const std::byte> rest(frame);
    while (!rest.empty() && server.fd(0) >= 0) {
      const ssize_t done = ::send(theirs.get(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (done > 0) rest = rest.subspan(static_cast<std::size_t>(done));
      server.on_ready(0, POLLIN, Clock::now());
    }
  };
  tell(encode(Hello{.rank = 0, .size = 1, .job_id = "job"}));
  tell(encode(Put{.key = "k", .value = value}));
  tell(encode(Fence{.id = 1}));
  for (int turn = 0; turn < 50 && server.fd(0) >= 0; ++turn) tell(encode(Get{.key = "k", .rank = 0}));
  EXPECT_EQ(server.fd(0), -1);
}

TEST(Channel, says_when_the_launcher_is_gone_or_silent_or_talks_nonsense) {
  using namespace std::chrono_literals;
  Reply reply;
  {
    auto [ours, theirs] = Server::make_pair();
    Channel channel(theirs.get());
    EXPECT_EQ(channel.receive(reply, Clock::now() + 20ms), Status::timed_out);
    ours.reset();
    EXPECT_EQ(channel.receive(reply, Clock::now() + 20ms), Status::peer_lost);
    EXPECT_THAT(channel.error(), HasSubstr("gone"));
    EXPECT_EQ(channel.send(encode(Finalize{}), Clock::now() + 20ms), Status::peer_lost);
  }
  {
    auto [ours, theirs] = Server::make_pair();
    Channel channel(theirs.get());
    const std::vector<std::byte> question = encode(Finalize{});
    ASSERT_EQ(::send(ours.get(), question.data(), question.size(), 0), static_cast<ssize_t>(question.size()));
    EXPECT_EQ(channel.receive(reply, Clock::now() + 20ms), Status::peer_rejected);
  }
  {
    auto [ours, theirs] = Server::make_pair();
    Channel channel(theirs.get());
    const std::vector<std::byte> value(kMaxValueBytes);
    Status status = Status::ok;
    for (int turn = 0; turn < 100 && status == Status::ok; ++turn) {
      status = channel.send(encode(Put{.key = "k", .value = value}), Clock::now() + 20ms);
    }
    EXPECT_EQ(status, Status::timed_out) << "a launcher that does not read";
    EXPECT_EQ(channel.receive(reply, Clock::now() + 20ms), Status::timed_out) << "the stream is out of step";
  }
}

}  // namespace
}  // namespace brant::port::launcher
