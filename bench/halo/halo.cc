#include "bench/halo/halo.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/halo/check.h"
#include "bench/halo/load.h"
#include "bench/runner/machine.h"
#include "bench/runner/row.h"
#include "bench/runner/statistics.h"
#include "bench/runner/us_since.h"
#include "brant/ops/channel.h"
#include "core/engine.h"
#include "core/paths/calibration_store.h"

namespace brant::bench {
namespace {

/// One mode, as it was measured.
struct Measured {
  HaloMode mode = HaloMode::fused;
  std::size_t messages = 0;
  std::size_t bytes = 0;
  std::vector<double> us;  ///< Of each cycle.
  HaloPhases phases;       ///< Means of this process.
};

double mean_of(const std::vector<double>& samples) {
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

template <typename Named, std::size_t Count, typename Value>
std::string_view name_of(const std::array<Named, Count>& all, Value Named::* value, Value wanted) {
  for (const Named& named : all) {
    if (named.*value == wanted) return named.name;
  }
  return "unknown";
}

double timed_cycle(Runtime& runtime, HaloExchange& exchange, const std::vector<Buffer>& fields, std::size_t batch) {
  const auto begin = std::chrono::steady_clock::now();
  runtime.run(exchange.run(fields, batch));
  return us_since(begin) / static_cast<double>(batch);
}

void add(HaloPhases& sum, const HaloPhases& phases) {
  sum.pack += phases.pack;
  sum.sync += phases.sync;
  sum.comm += phases.comm;
  sum.unpack += phases.unpack;
}

/// At rank 0, of each cycle the time of the process that took longest; elsewhere its own.
std::vector<double> slowest(Runtime& runtime, std::vector<double> own) {
  const int ranks = runtime.size();
  const auto open = [&](int peer, int name) {  // the exchange has the ids below
    return Channel::open(runtime, Rank{peer}, ChannelId{static_cast<std::uint32_t>(ranks + name)});
  };
  const std::size_t bytes = own.size() * sizeof(double);
  if (const int rank = runtime.rank().value; rank != 0) {
    Channel channel = open(0, rank);
    runtime.wait(channel.send(ConstBuffer(own.data(), bytes), Moment::delivered)).or_throw("halo: the times");
    return own;
  }
  std::vector<double> other(own.size());
  for (int rank = 1; rank < ranks; ++rank) {
    Channel channel = open(rank, rank);
    runtime.wait(channel.recv(Buffer(other.data(), bytes))).or_throw("halo: the times");
    std::transform(own.begin(), own.end(), other.begin(), own.begin(),
                   [](double a, double b) { return std::max(a, b); });
  }
  return own;
}

void print_head(Runtime& runtime, const HaloBench& bench, int blocks) {
  const auto& halo = bench.halo;
  fmt::print("# {} processes, {} blocks each, grid {} x {} x {} in {} x {} x {} blocks, {} memory{}\n", runtime.size(),
             blocks, halo.grid[0], halo.grid[1], halo.grid[2], halo.divide[0], halo.divide[1], halo.divide[2],
             memory_kind_name(bench.memory), bench.check ? ", checked" : "");
  fmt::print("{:<8} {:>9} {:>12} {:>10} {:>10} {:>10} {:>10} {:>7} {:>9} {:>9} {:>9} {:>9}\n", "mode", "messages",
             "bytes", "mean us", "min us", "p50 us", "p99 us", "faster", "pack", "sync", "comm", "unpack");
}

/// Beside the measurement: how far from what cannot be undercut it is, and what stands in the way.
void report_bound(const model::HaloBound& bound, double p50, nlohmann::ordered_json& row) {
  const double efficiency = p50 > 0 ? bound.us / p50 : 0;
  fmt::print("  model: at least {:.2f} us, {:.0f} % of p50; estimate {:.2f} us; {} binds", bound.us, 100 * efficiency,
             bound.estimate_us, bound.binds.empty() ? "nothing" : bound.binds);
  nlohmann::ordered_json resources = nlohmann::ordered_json::object();
  for (const model::Occupied& each : bound.resources) {
    fmt::print("{} {} {:.2f}", resources.empty() ? " (us:" : ",", each.resource, each.us);
    resources[each.resource] = rounded(each.us);
  }
  fmt::print("{}\n", resources.empty() ? "" : ")");
  nlohmann::ordered_json phases = nlohmann::ordered_json::object();
  for (const model::BoundPhase& each : bound.phases) {
    fmt::print("{} {} {:.2f} us ({})", phases.empty() ? "  model: in phases" : ",", each.phase, each.us, each.binds);
    phases[each.phase] = {{"us", rounded(each.us)}, {"binds", each.binds}};
  }
  if (!phases.empty()) fmt::print("\n");
  for (const std::string& each : bound.unknown) fmt::print("  model: not measured, so left out: {}\n", each);
  row["model"] = {
      {"bound_us", rounded(bound.us)}, {"efficiency", rounded(efficiency)}, {"estimate_us", rounded(bound.estimate_us)},
      {"binds", bound.binds},          {"resources_us", resources},         {"phases", phases},
      {"unknown", bound.unknown}};
}

void report(Runtime& runtime, const HaloBench& bench, int blocks, Measured& measured, double baseline_p50) {
  const double mean = mean_of(measured.us);
  const Summary us = summarize(measured.us);
  const HaloPhases& phases = measured.phases;
  const auto& halo = bench.halo;
  const double faster = us.p50 > 0 ? baseline_p50 / us.p50 : 0;
  fmt::print(
      "{:<8} {:>9} {:>12} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f} {:>7.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f}\n",
      halo_mode_name(measured.mode), measured.messages, measured.bytes, mean, us.min, us.p50, us.p99, faster,
      phases.pack, phases.sync, phases.comm, phases.unpack);
  nlohmann::ordered_json row;
  row["bench"] = "halo";
  row["mode"] = halo_mode_name(measured.mode);
  row["per"] = name_of(kHaloMessages, &NamedMessages::messages, halo.messages);
  row["memory"] = memory_kind_name(bench.memory);
  row["grid"] = halo.grid;
  row["divide"] = halo.divide;
  row["periodic"] = halo.periodic;
  row["ghost"] = halo.ghost;
  row["variables"] = halo.variables;
  row["blocks"] = blocks;
  row["messages"] = measured.messages;
  row["bytes"] = measured.bytes;
  row["ranks"] = runtime.size();
  row["batch"] = bench.batch;
  row["n"] = us.n;
  row["us"] = to_json(us);
  row["us"]["mean"] = rounded(mean);
  row["baseline"] = halo_mode_name(bench.modes.front());
  row["faster"] = rounded(faster);
  row["phases_us"] = {{"pack", rounded(phases.pack)},
                      {"sync", rounded(phases.sync)},
                      {"comm", rounded(phases.comm)},
                      {"unpack", rounded(phases.unpack)}};
  row["check"] = bench.check;
  if (bench.parameters) report_bound(bound_of(*bench.parameters, halo, bench.memory, runtime.size()), us.p50, row);
  add_machine(row, {}, describe_machine(runtime));
  RowFile(bench.json).append(row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

/// The fields of the blocks of this process, in one allocation that others can map.
struct Fields {
  Memory memory;
  std::vector<Buffer> buffers;

  void allocate(Runtime& runtime, const HaloExchange& exchange, MemoryKind kind) {
    constexpr std::size_t kMappableBytes = 16384;
    const auto room = [](std::size_t bytes) { return (bytes + 255) / 256 * 256; };
    std::size_t bytes = 0;
    for (int i = 0; i < exchange.blocks(); ++i) bytes += room(exchange.field_bytes(i));
    memory = runtime.allocate(kind, std::max(bytes, kMappableBytes));
    std::size_t offset = 0;
    for (int i = 0; i < exchange.blocks(); ++i) {
      buffers.push_back(memory.part(offset, exchange.field_bytes(i)));
      offset += room(exchange.field_bytes(i));
    }
  }
};

Measured measure(Runtime& runtime, const HaloBench& bench, HaloExchange& exchange, const std::vector<Buffer>& fields) {
  const auto checked = [&] {
    fill_fields(runtime, bench.halo, exchange, fields);
    runtime.run(exchange.run(fields));
    check_fields(runtime, bench.halo, exchange, fields);
  };
  fill_fields(runtime, bench.halo, exchange, fields);
  if (bench.check) checked();
  for (std::size_t i = 0; i < bench.warmup; ++i) runtime.run(exchange.run(fields));
  Measured measured{bench.halo.mode, exchange.messages(), exchange.message_bytes(), {}, {}};
  measured.us.reserve(bench.cycles);
  for (std::size_t i = 0; i < bench.cycles; ++i) {
    measured.us.push_back(timed_cycle(runtime, exchange, fields, bench.batch));
    add(measured.phases, exchange.phases());
  }
  const auto cycles = static_cast<double>(bench.cycles);
  for (double* phase : {&measured.phases.pack, &measured.phases.sync, &measured.phases.comm, &measured.phases.unpack}) {
    *phase /= cycles;
  }
  if (bench.check) checked();
  measured.us = slowest(runtime, std::move(measured.us));
  return measured;
}

/// Throws Error: parameters of another machine, a job of several.
void require_fit(Runtime& runtime, const model::Parameters& parameters) {
  if (runtime.local_size() != runtime.size()) {
    throw Error(Status::not_supported,
                fmt::format("--model: {} of {} processes are on this host, and the parameters are of one host: run it "
                            "without --model, or on one host",
                            runtime.local_size(), runtime.size()));
  }
  CalibratedMachine measured;
  measured.brant = parameters.brant;
  measured.ucx = parameters.ucx;
  measured.cuda = parameters.cuda;
  measured.gpus = parameters.gpus;
  const std::string unfit = why_unfit(measured, runtime.worker().engine().machine());
  if (unfit.empty()) return;
  throw Error(Status::invalid_argument,
              fmt::format("the parameters of models do not hold here: {}; run `brant calibrate --model` again", unfit));
}

}  // namespace

std::array<int, 3> divide_evenly(const std::array<std::int64_t, 3>& grid, int parts) {
  std::vector<int> factors;
  for (int factor = 2; parts > 1;) {
    if (parts % factor == 0) {
      factors.push_back(factor);
      parts /= factor;
    } else {
      ++factor;
    }
  }
  std::array<int, 3> divide{1, 1, 1};
  for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor) {
    std::size_t widest = 2;
    for (const std::size_t d : {std::size_t{1}, std::size_t{0}}) {
      if (grid[d] / divide[d] > grid[widest] / divide[widest]) widest = d;
    }
    divide[widest] *= *factor;
  }
  return divide;
}

void run_halo(HaloBench bench) {
  Runtime runtime;
  if (bench.halo.divide == std::array<int, 3>{}) {
    bench.halo.divide = divide_evenly(bench.halo.grid, runtime.size() * bench.blocks);
  }
  if (bench.parameters) require_fit(runtime, *bench.parameters);
  double baseline_p50 = 0;
  for (const HaloMode mode : bench.modes) {
    bench.halo.mode = mode;
    Fields fields;  // freed after the exchange, at once: its kernels may stay until then
    HaloExchange exchange(runtime, bench.halo);
    fields.allocate(runtime, exchange, bench.memory);
    const bool is_first = mode == bench.modes.front();
    if (is_first && runtime.rank().value == 0) print_head(runtime, bench, exchange.blocks());
    Measured measured = measure(runtime, bench, exchange, fields.buffers);
    if (is_first) baseline_p50 = summarize(measured.us).p50;
    if (runtime.rank().value == 0) report(runtime, bench, exchange.blocks(), measured, baseline_p50);
  }
}

}  // namespace brant::bench
