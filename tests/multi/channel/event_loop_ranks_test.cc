// Runs as every rank of a job: rank 0 waits in an event loop of its own, for a message of a rank that takes its time.
#include <poll.h>

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "support/job_runtime.h"

namespace brant {
namespace {

using namespace std::chrono_literals;
using test::job;

constexpr int kMessages = 5;
constexpr auto kPause = 40ms;

void send_now_and_then(Channel& channel) {
  for (int i = 0; i < kMessages; ++i) {
    std::this_thread::sleep_for(kPause);
    Operation send = channel.send(ConstBuffer(&i, sizeof(i)));
    EXPECT_TRUE(job().wait(send).ok());
  }
}

/// Waits for `operation` by poll(2); gives how often it had to look.
int wait_by_poll(const Operation& operation) {
  Worker& worker = job().worker();
  int looks = 0;
  while (!operation.done()) {
    ++looks;
    if (worker.progress() != 0) continue;
    const auto limit = std::chrono::ceil<std::chrono::milliseconds>(worker.arm());
    pollfd entry{worker.fd(), POLLIN, 0};
    if (limit > 0ms && !operation.done()) static_cast<void>(::poll(&entry, 1, static_cast<int>(limit.count())));
  }
  return looks;
}

TEST(EventLoopRanks, an_idle_loop_sleeps_until_the_message_comes) {
  const int rank = job().rank().value;
  Channel channel = Channel::open(job(), Rank{rank ^ 1}, ChannelId{81'000});
  if (rank % 2 != 0) return send_now_and_then(channel);
  int looks = 0;
  for (int i = 0; i < kMessages; ++i) {
    int got = -1;
    Operation receive = channel.recv(Buffer(&got, sizeof(got)));
    looks += wait_by_poll(receive);
    EXPECT_TRUE(receive.result().ok());
    EXPECT_EQ(got, i);
  }
  // A busy loop looks a hundred thousand times in a pause; this one, when something comes and every 100 ms.
  EXPECT_LT(looks, 1000);
}

}  // namespace
}  // namespace brant
