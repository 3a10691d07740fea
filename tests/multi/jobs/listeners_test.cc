// Runs as every rank of a job of one host: what of this process can be reached from the network.
#include "cli/doctor/listeners.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/env.h"
#include "brant/brant.h"

namespace brant {
namespace {

bool user_wants_tcp() { return !env("UCX_TLS").empty(); }

/// One message in each direction, large enough for UCX's bulk transports.
void exchange(Runtime& runtime, MemoryKind kind) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  Memory out = runtime.allocate(kind, kBytes);
  Memory in = runtime.allocate(kind, kBytes);
  std::vector<std::uint8_t> text(kBytes, static_cast<std::uint8_t>(17 + runtime.rank().value));
  runtime.copy(out, ConstBuffer(text.data(), kBytes, MemoryKind::host));
  const int peer = 1 - runtime.rank().value;
  Channel channel = Channel::open(runtime, Rank{peer}, ChannelId{1});
  Operation receiving = channel.recv(in);
  Operation sending = channel.send(out);
  ASSERT_EQ(runtime.worker().wait_until([&] { return receiving.done() && sending.done(); }, std::chrono::seconds(20)),
            Status::ok);
  ASSERT_TRUE(receiving.result().ok());
  runtime.copy(Buffer(text.data(), kBytes, MemoryKind::host), in);
  EXPECT_EQ(text, std::vector<std::uint8_t>(kBytes, static_cast<std::uint8_t>(17 + peer)));
}

TEST(Listeners, a_job_of_one_host_listens_on_no_network_port_unless_the_user_asks_for_tcp) {
  Runtime runtime;
  if (!runtime.network().starts_with("UCX")) GTEST_SKIP() << "no UCX here: " << runtime.network();
  if (runtime.size() > 1) exchange(runtime, MemoryKind::host);
  if (runtime.size() > 1 && runtime.device_kind() != MemoryKind::host) exchange(runtime, runtime.device_kind());
  const std::vector<std::string> listeners = cli::doctor::own_listeners();
  // The other half proves that the search finds what there is.
  if (user_wants_tcp()) {
    EXPECT_FALSE(listeners.empty());
  } else {
    EXPECT_EQ(listeners, std::vector<std::string>());
  }
}

}  // namespace
}  // namespace brant
