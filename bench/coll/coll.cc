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
#include "brant/core/runtime.h"

namespace brant::bench {
namespace {

constexpr std::size_t kSmall = 8 << 10;
constexpr std::size_t kCallsOfSample = 20;  // of small ones, whose time the clock would add to

/// The memory of one benchmark, and the calls in it.
class Calls {
 public:
  Calls(const CollBench& bench, const Team& team, std::size_t largest)
      : kind_(bench.kind), ranks_(team.size()), self_(team.rank()), in_(largest / 4 + 1), out_(largest / 4 + 1) {}

  /// What this size comes to: whole elements, and whole blocks of them.
  [[nodiscard]] std::size_t rounded(std::size_t bytes) const {
    const std::size_t grain = kind_ == CollectiveKind::allgather ? 4 * static_cast<std::size_t>(ranks_) : 4;
    return bytes / grain * grain;
  }

  [[nodiscard]] Collective call(std::size_t bytes) {
    const ConstBuffer in(in_.data(), bytes, MemoryKind::host);
    const Buffer out(out_.data(), bytes, MemoryKind::host);
    switch (kind_) {
      case CollectiveKind::barrier: return barrier();
      case CollectiveKind::broadcast: return broadcast(out, 0);
      case CollectiveKind::allgather:
        return allgather({in_.data(), bytes / static_cast<std::size_t>(ranks_), MemoryKind::host}, out);
      default: return allreduce(in, out, DataType::f32, ReduceOp::sum);
    }
  }

  void fill() {
    for (std::size_t i = 0; i < in_.size(); ++i) in_[i] = given(self_, i);
    const bool gives = kind_ == CollectiveKind::broadcast && self_ == 0;
    for (std::size_t i = 0; i < out_.size(); ++i) out_[i] = gives ? given(0, i) : -1.0f;
  }

  /// How many elements are not what they should be.
  [[nodiscard]] std::int64_t wrong(std::size_t bytes) const {
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

  const CollectiveKind kind_;
  const int ranks_;
  const int self_;
  std::vector<float> in_, out_;
};

std::size_t iterations_for(std::size_t bytes) {
  constexpr std::size_t kBytesInAll = std::size_t{1} << 30;
  return std::clamp<std::size_t>(kBytesInAll / std::max<std::size_t>(bytes, 1), 20, 2000);
}

/// Throws what ended the team.
void require(const Team& team, const OpResult& result) {
  if (!result.ok()) throw Error(result.status, team.fault().empty() ? "a collective failed" : team.fault());
}

/// Elements that are wrong at any member.
std::int64_t check(Team& team, Calls& calls, std::size_t bytes) {
  calls.fill();
  require(team, team.run(calls.call(bytes)));
  std::int64_t wrong = calls.wrong(bytes);
  require(team, team.run(allreduce(Buffer(&wrong, sizeof(wrong)), DataType::i64, ReduceOp::sum)));
  return wrong;
}

/// Of each sample the time of the member that took longest. Calls follow each other without a barrier between them.
std::vector<double> measure(Team& team, Calls& calls, std::size_t bytes, std::size_t samples) {
  const std::size_t per_sample = bytes <= kSmall ? kCallsOfSample : 1;
  const Collective call = calls.call(bytes);
  for (std::size_t i = 0; i < samples / 10 * per_sample + per_sample; ++i) require(team, team.run(call));
  std::vector<double> us(samples);
  require(team, team.run(barrier()));
  for (double& each : us) {
    const auto begin = std::chrono::steady_clock::now();
    OpResult result;
    for (std::size_t i = 0; i < per_sample && result.ok(); ++i) result = team.run(call);
    each = us_since(begin) / static_cast<double>(per_sample);
    require(team, result);
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
  row["trigger"] = "host";
  row["memory"] = "host";
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
  if (reports) {
    fmt::print("# {}, {} processes, host memory, called by the host{}\n", collective_name(bench.kind), runtime.size(),
               bench.check ? ", checked" : "");
    fmt::print("{:>8} {:<14} {:>10} {:>10} {:>10} {:>10} {:>10} {:>7}\n", "bytes", "path", "min us", "p50 us", "p99 us",
               "algbw GB/s", "busbw GB/s", "wrong");
  }
  const std::vector<std::size_t> sizes =
      bench.kind == CollectiveKind::barrier ? std::vector<std::size_t>{0} : bench.sizes;
  Calls calls(bench, team, sizes.back());
  calls.fill();
  std::int64_t all_wrong = 0;
  for (const std::size_t asked : sizes) {
    const std::size_t bytes = calls.rounded(asked);
    std::int64_t wrong = bench.check ? check(team, calls, bytes) : 0;
    std::vector<double> us =
        measure(team, calls, bytes, bench.iterations != 0 ? bench.iterations : iterations_for(bytes));
    if (bench.check) wrong += check(team, calls, bytes);
    all_wrong += wrong;
    if (reports) report(runtime, bench, bytes, team.explain(calls.call(bytes)), summarize(us), wrong);
  }
  if (all_wrong != 0) throw Error(Status::internal, fmt::format("{} elements are wrong", all_wrong));
}

}  // namespace brant::bench
