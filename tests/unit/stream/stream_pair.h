#pragma once

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "brant/core/device.h"
#include "brant/core/runtime.h"
#include "brant/ops/stream_channel.h"
#include "port/memory.h"
#include "support/grounds.h"
#include "support/in_process_job.h"

namespace brant::test {

inline constexpr ChannelId kStreamId{7};

inline JobOptions with_devices() {
  JobOptions options;
  options.links = true;
  options.gpu = GpuChoice::emulated;
  return options;
}

/// One end: a rank, its channel, and a stream of its device.
struct End {
  End(Runtime& of, Rank peer, std::chrono::nanoseconds patience = std::chrono::seconds(20))
      : runtime(of), channel(StreamChannel::open(of, peer, kStreamId, {.patience = patience})) {
    if (of.device().inner().streams() != nullptr) {
      stream = of.device().inner().streams()->create_stream(port::StreamPriority::normal).value();
    }
  }
  ~End() {
    channel.close();
    if (stream != nullptr) runtime.device().inner().streams()->destroy_stream(stream);
  }
  Memory device(std::span<const std::byte> bytes) {
    Memory memory = runtime.allocate(MemoryKind::emulated, std::max<std::size_t>(bytes.size(), 1));
    if (!bytes.empty()) runtime.copy(memory, bytes);
    return memory;
  }
  Memory device(std::size_t bytes) { return runtime.allocate(MemoryKind::emulated, std::max<std::size_t>(bytes, 1)); }
  std::vector<std::byte> bytes_of(const Memory& memory, std::size_t bytes) {
    std::vector<std::byte> host(bytes);
    if (bytes != 0) runtime.copy(std::span(host), memory.part(0, bytes));
    return host;
  }
  Status send(ConstBuffer source) { return channel.send(source, {.stream = stream}); }
  Status recv(Buffer landing) { return channel.recv(landing, {.stream = stream}); }
  Operation observed_send(ConstBuffer source) {
    return Operation(Moment::source_free,
                     [&](Op& op) noexcept { return channel.send(source, {.stream = stream, .op = &op}); });
  }
  Operation observed_recv(Buffer landing) {
    return Operation(Moment::delivered,
                     [&](Op& op) noexcept { return channel.recv(landing, {.stream = stream, .op = &op}); });
  }

  Runtime& runtime;
  StreamChannel channel;
  port::Stream* stream = nullptr;
};

struct Pair {
  explicit Pair(const JobOptions& options = with_devices(),
                std::chrono::nanoseconds patience = std::chrono::seconds(20))
      : job(options), left(job.rank(0), Rank{1}, patience), right(job.rank(1), Rank{0}, patience) {
    Operation first = left.channel.prepare();
    job.run(50);
    Operation second = right.channel.prepare();
    prepared = {outcome(first).status, outcome(second).status};
  }
  OpResult outcome(const Operation& operation) { return job.outcome(operation); }

  InProcessJob job;
  End left;
  End right;
  std::pair<Status, Status> prepared;
};

}  // namespace brant::test
