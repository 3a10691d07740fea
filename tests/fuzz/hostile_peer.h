#pragma once

#include <cstddef>
#include <deque>
#include <span>

#include "core/engine.h"
#include "support/in_process_job.h"
#include "support/mutation.h"

namespace brant::test {

/// What a fuzzer posts. Most of its time goes by making processes anew, which costs the same in every build.
inline constexpr unsigned kPosted = 2000;

/// Two ranks that share memory, in one thread: rank 0 writes whatever the test makes up into the memory of rank 1,
/// whose code is the real one.
class HostilePeer {
 public:
  explicit HostilePeer(const JobOptions& options) : job_(options) {}

  InProcessJob& job() { return job_; }
  Runtime& hostile() { return job_.rank(0); }
  Runtime& victim() { return job_.rank(1); }
  Engine& hostile_engine() { return hostile().worker().engine(); }
  Engine& victim_engine() { return victim().worker().engine(); }
  [[nodiscard]] bool given_up() { return victim_engine().peers().find(0)->lost; }
  [[nodiscard]] std::uint64_t bad_records() { return victim_engine().counters().bad_records.read(); }

  /// The victim looks at it at once.
  void post(unsigned service, std::span<const std::byte> header, std::span<const std::byte> payload = {}) {
    port::Link* link = hostile_engine().peers().linked(1).link;
    if (link != nullptr) static_cast<void>(link->post(service, header, payload));  // no room: the next one
    victim().worker().progress();
  }
  /// The same over the network.
  void send(unsigned id, std::span<const std::byte> header) {
    port::WireEndpoint* endpoint = hostile_engine().peers().find(1)->endpoint;
    if (endpoint == nullptr) return;
    port::WireOp& op = sent_.emplace_back();
    op.on_complete = [](port::WireOp&) noexcept {};
    static_cast<void>(hostile_engine().wire().am_send(endpoint, id, header, {}, op));
    for (unsigned round = 0; round < Progress::kWireTurn; ++round) victim().worker().progress();
  }

 private:
  std::deque<port::WireOp> sent_;  // goes last
  InProcessJob job_;
};

inline JobOptions sharing(GpuChoice gpu = GpuChoice::none) {
  JobOptions options;
  options.links = true;
  options.gpu = gpu;
  return options;
}

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace brant::test
