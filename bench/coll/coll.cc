#include "bench/coll/coll.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/runner/machine.h"
#include "bench/runner/options.h"
#include "bench/runner/row.h"
#include "bench/runner/statistics.h"
#include "bench/runner/us_since.h"
#include "brant/core/device.h"
#include "brant/core/runtime.h"
#include "brant/core/stream.h"
#include "port/memory.h"

namespace brant::bench {
namespace {

constexpr std::size_t kSmall = 8 << 10;
constexpr std::size_t kCallsOfSample = 20;  // of small ones, whose time the clock would add to

std::string_view trigger_name(CollTrigger trigger) noexcept {
  constexpr std::string_view kNames[] = {"host", "stream", "graph"};
  return kNames[static_cast<std::size_t>(trigger)];
}

/// The memory of one benchmark, and the calls in it.
class Calls {
 public:
  Calls(Runtime& runtime, const CollBench& bench, const Team& team, std::size_t largest)
      : runtime_(runtime),
        kind_(bench.kind),
        ranks_(team.size()),
        self_(team.rank()),
        in_(largest / 4 + 1),
        out_(largest / 4 + 1) {
    if (!bench.device) return;
    in_there_ = runtime.allocate(runtime.device_kind(), in_.size() * sizeof(float));
    out_there_ = runtime.allocate(runtime.device_kind(), out_.size() * sizeof(float));
  }

  /// What this size comes to: whole elements, and whole blocks of them.
  [[nodiscard]] std::size_t rounded(std::size_t bytes) const {
    const std::size_t grain = kind_ == CollectiveKind::allgather ? 4 * static_cast<std::size_t>(ranks_) : 4;
    return bytes / grain * grain;
  }

  [[nodiscard]] Collective call(std::size_t bytes) {
    const ConstBuffer in = first_of(in_, in_there_, bytes);
    const Buffer out = first_of(out_, out_there_, bytes);
    switch (kind_) {
      case CollectiveKind::barrier: return barrier();
      case CollectiveKind::broadcast: return broadcast(out, 0);
      case CollectiveKind::allgather:
        return allgather({in.data, bytes / static_cast<std::size_t>(ranks_), in.kind}, out);
      default: return allreduce(in, out, DataType::f32, ReduceOp::sum);
    }
  }

  void fill() {
    for (std::size_t i = 0; i < in_.size(); ++i) in_[i] = given(self_, i);
    const bool gives = kind_ == CollectiveKind::broadcast && self_ == 0;
    for (std::size_t i = 0; i < out_.size(); ++i) out_[i] = gives ? given(0, i) : -1.0f;
    if (in_there_.bytes() == 0) return;
    runtime_.copy(in_there_, here(in_));
    runtime_.copy(out_there_, here(out_));
  }

  /// How many elements are not what they should be.
  [[nodiscard]] std::int64_t wrong(std::size_t bytes) {
    if (out_there_.bytes() != 0) runtime_.copy(here(out_), out_there_);
    std::int64_t count = 0;
    const std::size_t all = kind_ == CollectiveKind::barrier ? 0 : bytes / 4;
    const std::size_t block = std::max<std::size_t>(1, all / static_cast<std::size_t>(ranks_));
    for (std::size_t i = 0; i < all; ++i) {
      float expected = given(0, i);
      if (kind_ == CollectiveKind::allgather) expected = given(static_cast<int>(i / block), i % block);
      for (int rank = 1; kind_ == CollectiveKind::allreduce && rank < ranks_; ++rank) expected += given(rank, i);
      if (out_[i] != expected) ++count;
    }
    return count;
  }

 private:
  static float given(int rank, std::size_t index) { return static_cast<float>(index % 251) + static_cast<float>(rank); }

  static Buffer here(std::vector<float>& values) {
    return {values.data(), values.size() * sizeof(float), MemoryKind::host};
  }
  static Buffer first_of(std::vector<float>& values, const Memory& there, std::size_t bytes) {
    if (there.bytes() == 0) return {values.data(), bytes, MemoryKind::host};
    return {there.data(), bytes, there.kind()};
  }

  Runtime& runtime_;
  const CollectiveKind kind_;
  const int ranks_;
  const int self_;
  std::vector<float> in_, out_;
  Memory in_there_, out_there_;  ///< Of the device, if that is asked for.
};

std::size_t iterations_for(std::size_t bytes) {
  constexpr std::size_t kBytesInAll = std::size_t{1} << 30;
  return std::clamp<std::size_t>(kBytesInAll / std::max<std::size_t>(bytes, 1), 20, 2000);
}

/// Throws what ended the team.
void require(const Team& team, const OpResult& result) {
  if (!result.ok()) throw Error(result.status, team.fault().empty() ? "a collective failed" : team.fault());
}

/// A call several times, one behind the other, as one of the triggers starts it.
class Sample {
 public:
  Sample(Runtime& runtime, Team& team, CollTrigger trigger, const Collective& call, std::size_t times)
      : streams_(runtime.device().inner().streams()), team_(team), trigger_(trigger), call_(call), times_(times) {
    if (trigger == CollTrigger::host) return;
    stream_ = runtime.device().create_stream();
    if (trigger == CollTrigger::stream) return;
    require(streams_->begin_capture(stream_));
    queue();
    graph_ = streams_->end_capture(stream_).or_throw("no graph was captured");
  }
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;
  ~Sample() {
    static_cast<void>(stream_.synchronize());
    if (graph_ != nullptr) streams_->destroy_graph(graph_);
  }

  void run() {
    if (trigger_ == CollTrigger::host) {
      OpResult result;
      for (std::size_t i = 0; i < times_ && result.ok(); ++i) result = team_.run(call_);
      return bench::require(team_, result);
    }
    trigger_ == CollTrigger::graph ? require(streams_->launch(graph_, stream_)) : queue();
    require(stream_.synchronize());
    if (const std::string fault = team_.fault(); !fault.empty()) throw Error(Status::internal, fault);
  }

 private:
  void require(Status status) { bench::require(team_, {status, 0}); }
  void queue() {
    for (std::size_t i = 0; i < times_; ++i) require(team_.enqueue(call_, stream_));
  }

  port::Streams* const streams_;
  Team& team_;
  const CollTrigger trigger_;
  const Collective call_;
  const std::size_t times_;
  Stream stream_;
  port::Graph* graph_ = nullptr;
};

/// Elements that are wrong at any member.
std::int64_t check(Runtime& runtime, Team& team, CollTrigger trigger, Calls& calls, std::size_t bytes) {
  calls.fill();
  require(team, team.run(barrier()));
  Sample(runtime, team, trigger, calls.call(bytes), 1).run();
  std::int64_t wrong = calls.wrong(bytes);
  require(team, team.run(allreduce(Buffer(&wrong, sizeof(wrong)), DataType::i64, ReduceOp::sum)));
  return wrong;
}

/// Of each sample the time of the member that took longest. Calls follow each other without a barrier between them.
std::vector<double> measure(Runtime& runtime, Team& team, CollTrigger trigger, Calls& calls, std::size_t bytes,
                            std::size_t samples) {
  const std::size_t per_sample = bytes <= kSmall || trigger != CollTrigger::host ? kCallsOfSample : 1;
  Sample sample(runtime, team, trigger, calls.call(bytes), per_sample);
  for (std::size_t i = 0; i < samples / 10 + 1; ++i) sample.run();
  std::vector<double> us(samples);
  require(team, team.run(barrier()));
  for (double& each : us) {
    const auto begin = std::chrono::steady_clock::now();
    sample.run();
    each = us_since(begin) / static_cast<double>(per_sample);
  }
  require(team, team.run(allreduce(Buffer(us.data(), us.size() * sizeof(double)), DataType::f64, ReduceOp::max)));
  return us;
}

void report(Runtime& runtime, const CollBench& bench, std::size_t bytes, std::string_view algorithm, const Summary& us,
            std::int64_t wrong) {
  const double algbw = us.p50 > 0 ? static_cast<double>(bytes) / us.p50 / 1e3 : 0;
  const double busbw = algbw * bus_factor(bench.kind, runtime.size());
  const std::string told = bench.check ? fmt::format("{}", wrong) : "-";
  fmt::print("{:>8} {:<14} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.3f} {:>10.3f} {:>7}\n", format_size(bytes), algorithm,
             us.min, us.p50, us.p99, algbw, busbw, told);
  nlohmann::ordered_json row;
  row["bench"] = collective_name(bench.kind);
  row["trigger"] = trigger_name(bench.trigger);
  row["memory"] = memory_kind_name(bench.device ? runtime.device_kind() : MemoryKind::host);
  row["path"] = algorithm;
  row["bytes"] = bytes;
  row["ranks"] = runtime.size();
  row["n"] = us.n;
  row["us"] = to_json(us);
  row["gb_s"] = rounded(algbw);
  row["bus_gb_s"] = rounded(busbw);
  if (bench.check) row["wrong"] = wrong;
  add_machine(row, {}, describe_machine(runtime));
  RowFile(bench.json).append(row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

double bus_factor(CollectiveKind kind, int ranks) noexcept {
  const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  if (kind == CollectiveKind::allreduce) return 2 * others;
  return kind == CollectiveKind::allgather ? others : 1;
}

void run_collectives(const CollBench& bench) {
  Runtime runtime;
  Team team = Team::world(runtime, {.way = bench.way});
  const bool reports = runtime.rank().value == 0;
  const bool by_host = bench.trigger == CollTrigger::host;
  if (!by_host) require(team, team.prepare_streams());
  if (reports) {
    fmt::print("# {}, {} processes, {} memory, called by the {}{}\n", collective_name(bench.kind), runtime.size(),
               memory_kind_name(bench.device ? runtime.device_kind() : MemoryKind::host), trigger_name(bench.trigger),
               bench.check ? ", checked" : "");
    fmt::print("{:>8} {:<14} {:>10} {:>10} {:>10} {:>10} {:>10} {:>7}\n", "bytes", "path", "min us", "p50 us", "p99 us",
               "algbw GB/s", "busbw GB/s", "wrong");
  }
  const std::vector<std::size_t> sizes =
      bench.kind == CollectiveKind::barrier ? std::vector<std::size_t>{0} : bench.sizes;
  Calls calls(runtime, bench, team, sizes.back());
  calls.fill();
  std::int64_t all_wrong = 0;
  for (const std::size_t asked : sizes) {
    const std::size_t bytes = calls.rounded(asked);
    std::int64_t wrong = bench.check ? check(runtime, team, bench.trigger, calls, bytes) : 0;
    std::vector<double> us = measure(runtime, team, bench.trigger, calls, bytes,
                                     bench.iterations != 0 ? bench.iterations : iterations_for(bytes));
    if (bench.check) wrong += check(runtime, team, bench.trigger, calls, bytes);
    all_wrong += wrong;
    const Collective call = calls.call(bytes);
    const std::string_view algorithm = by_host ? team.explain(call) : team.explain_on_stream(call);
    if (reports) report(runtime, bench, bytes, algorithm, summarize(us), wrong);
  }
  if (all_wrong != 0) throw Error(Status::internal, fmt::format("{} elements are wrong", all_wrong));
}

}  // namespace brant::bench
