// A process that ends as programs should while the other still waits for it: the test starts itself under `brant run`;
// rank 1 ends, and rank 0 must get all that rank 1 has sent, then `peer_lost`, long before it would be noticed that the
// has gone. And two processes that wait for each other, or for one that is stopped, and say so; and one whose peer
// ended before they were connected.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "support/killed_process.h"

namespace brant {
namespace {

// A process waits twenty seconds for the others before it goes without them.
constexpr auto kSoon = std::chrono::seconds(5);
constexpr std::size_t kBytes = 4000;
constexpr std::size_t kLargeBytes = 1 << 20;
constexpr int kMessages = 50;

int say(const char* what) {
  std::fprintf(stderr, "rank 0: %s\n", what);
  return 3;
}

Status receive(Runtime& runtime, Channel& channel, std::vector<std::byte>& landing) {
  Operation incoming = channel.recv(std::span(landing));
  if (runtime.worker().wait_until([&] { return incoming.done(); }, kSoon) != Status::ok) return Status::timed_out;
  return incoming.result().status;
}

int wait_for_the_end(Runtime& runtime, int messages) {
  Channel channel = Channel::open(runtime, Rank{1}, ChannelId{7});
  std::vector<std::byte> landing(kBytes);
  if (messages != 0) {  // the program over there ends first
    static_cast<void>(runtime.worker().wait_until([] { return false; }, std::chrono::milliseconds(300)));
  }
  for (int i = 0; i < messages; ++i) {
    if (receive(runtime, channel, landing) != Status::ok) return say("a message that was sent did not come");
  }
  if (receive(runtime, channel, landing) != Status::peer_lost) return say("the end was not told in time");
  return 0;
}

/// To a program that never receives. What goes without being received has gone.
int send_to_the_end(Runtime& runtime) {
  Channel channel = Channel::open(runtime, Rank{1}, ChannelId{7});
  for (const std::size_t bytes : {kBytes, 5 * kBytes, kLargeBytes}) {
    const std::vector<std::byte> data(bytes, std::byte{1});
    Operation outgoing = channel.send(std::span(data));
    if (runtime.worker().wait_until([&] { return outgoing.done(); }, kSoon) != Status::ok)
      return say("a send to a program that has ended did not end in time");
    const Status status = outgoing.result().status;
    if (status != Status::peer_lost && !(status == Status::ok && bytes < kLargeBytes))
      return say("a send was no failure");
  }
  return 0;
}

int open_for_a_while(Runtime& runtime) {
  const Channel channel = Channel::open(runtime, Rank{0}, ChannelId{7});
  static_cast<void>(runtime.worker().wait_until([] { return false; }, std::chrono::milliseconds(300)));
  return 0;
}

/// A child of fork() that ends as the program does, with copies of the channel and the Runtime, ends nothing.
int fork_and_send(Runtime& runtime) {
  Channel channel = Channel::open(runtime, Rank{0}, ChannelId{7});
  const pid_t child = ::fork();
  if (child == 0) return 0;
  int status = -1;
  if (::waitpid(child, &status, 0) != child || status != 0) return 4;
  const std::vector<std::byte> data(kBytes, std::byte{1});
  Operation outgoing = channel.send(std::span(data));
  return runtime.worker().wait_until([&] { return outgoing.done(); }, kSoon) == Status::ok ? 0 : 5;
}

int receive_from_a_parent(Runtime& runtime) {
  Channel channel = Channel::open(runtime, Rank{1}, ChannelId{7});
  std::vector<std::byte> landing(kBytes);
  return receive(runtime, channel, landing) == Status::ok ? 0
                                                          : say("a message of a process that had a child did not come");
}

int wait_for_each_other() {
  RuntimeOptions options = RuntimeOptions::from_environment();
  options.stall_report = std::chrono::milliseconds(200);
  Runtime runtime(options);
  const Rank other{1 - runtime.rank().value};
  Channel channel = Channel::open(runtime, other, ChannelId{7});
  std::vector<std::byte> landing(kBytes);
  Operation incoming = channel.recv(std::span(landing));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  const Status status =
      runtime.worker().wait_until([&] { return incoming.done() || std::chrono::steady_clock::now() >= end; });
  const bool other_ended = incoming.done() && incoming.result().status == Status::peer_lost;  // it waits as long
  return status == Status::ok && (!incoming.done() || other_ended) ? 0 : 3;
}

/// Rank 1 is stopped while rank 0 waits for it, which lets it go on at the end.
int wait_for_one_that_is_stopped() {
  RuntimeOptions options = RuntimeOptions::from_environment();
  options.stall_report = std::chrono::milliseconds(300);
  Runtime runtime(options);
  Channel channel = Channel::open(runtime, Rank{1 - runtime.rank().value}, ChannelId{7});
  pid_t pid = ::getpid();
  if (runtime.rank().value == 1) {
    Operation outgoing = channel.send(ConstBuffer(&pid, sizeof(pid)));
    if (runtime.worker().wait_until([&] { return outgoing.done(); }, kSoon) != Status::ok) return 4;
    ::raise(SIGSTOP);
    return 0;
  }
  Operation incoming = channel.recv(Buffer(&pid, sizeof(pid)));
  if (runtime.worker().wait_until([&] { return incoming.done(); }, kSoon) != Status::ok) return say("no pid came");
  int never = 0;
  Operation more = channel.recv(Buffer(&never, sizeof(never)));
  static_cast<void>(runtime.worker().wait_until([&] { return more.done(); }, std::chrono::seconds(2)));
  ::kill(pid, SIGCONT);
  return 0;
}

/// Rank 1 is gone, after the start, when rank 0 connects for the first time.
int connect_to_one_that_ended() {
  auto runtime = std::make_unique<Runtime>();
  if (runtime->rank().value == 1) std::_Exit(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  try {
    Channel::open(*runtime, Rank{1}, ChannelId{7});
  } catch (const Error& error) {
    std::fprintf(stderr, "refused: %s\n", error.what());
    return error.status() == Status::peer_lost ? 0 : 3;
  }
  return 4;
}

int play(const std::string& scene) {
  if (scene == "stopped") return wait_for_one_that_is_stopped();
  if (scene == "ended") return connect_to_one_that_ended();
  if (scene == "both_receive") return wait_for_each_other();
  Runtime runtime;
  if (scene == "deaf") return runtime.rank().value == 0 ? send_to_the_end(runtime) : 0;
  if (scene == "closed") return runtime.rank().value == 0 ? send_to_the_end(runtime) : open_for_a_while(runtime);
  if (scene == "parent") return runtime.rank().value == 0 ? receive_from_a_parent(runtime) : fork_and_send(runtime);
  const int messages = scene == "silent" ? 0 : kMessages;
  if (runtime.rank().value == 0) return wait_for_the_end(runtime, messages);
  if (messages == 0) return 0;
  Channel channel = Channel::open(runtime, Rank{0}, ChannelId{7});
  const std::vector<std::byte> data(kBytes, std::byte{1});
  for (int i = 0; i < messages; ++i) {
    Operation outgoing = channel.send(std::span(data));
    if (runtime.worker().wait_until([&] { return outgoing.done(); }, kSoon) != Status::ok || !outgoing.result().ok())
      return 4;
  }
  return 0;
}

class NormalEnd : public testing::TestWithParam<const char*> {};

TEST_P(NormalEnd, is_told_to_who_waits) {
  const auto [text, code] = test::play_scene(GetParam(), 2);
  EXPECT_EQ(code, 0) << text;
}

INSTANTIATE_TEST_SUITE_P(Scenes, NormalEnd, testing::Values("silent", "talkative", "deaf", "closed", "parent"),
                         [](const auto& scene) { return std::string(scene.param); });

TEST(Deadlock, of_two_processes_is_told_by_name_at_both) {
  const auto [text, code] = test::play_scene("both_receive", 2);
  EXPECT_EQ(code, 0) << text;
  EXPECT_NE(text.find(" s for message 0 of channel 7 from rank 1 (4000 bytes of host memory)"), std::string::npos)
      << text;
  EXPECT_NE(text.find("deadlock: ranks 0 and 1 wait for each other"), std::string::npos) << text;
  EXPECT_NE(text.find("deadlock: ranks 1 and 0 wait for each other"), std::string::npos) << text;
}

TEST(Stall, names_a_process_of_the_host_that_is_stopped) {
  const auto [text, code] = test::play_scene("stopped", 2);
  EXPECT_EQ(code, 0) << text;
  EXPECT_NE(text.find(" s for message 1 of channel 7 from rank 1"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 1 (pid "), std::string::npos) << text;
  EXPECT_NE(text.find(") is stopped, by a signal or a debugger"), std::string::npos) << text;
}

TEST(Connecting, to_a_process_that_has_ended_says_just_that) {
  const auto [text, code] = test::play_scene("ended", 2);
  EXPECT_EQ(code, 0) << text;
  EXPECT_NE(text.find("refused: rank 1 (pid "), std::string::npos) << text;
  EXPECT_NE(text.find(") ended before rank 0 connected to it"), std::string::npos) << text;
  EXPECT_EQ(text.find("UCX_TLS"), std::string::npos) << text;
}

/// The child processes of the test play their scene before any test runs.
const testing::Environment* const g_environment = testing::AddGlobalTestEnvironment(new test::SceneEnvironment(play));

}  // namespace
}  // namespace brant
