#include "bench/halo/halo.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/halo/check.h"
#include "bench/runner/machine.h"
#include "bench/runner/row.h"
#include "bench/runner/statistics.h"
#include "brant/ops/channel.h"

namespace brant::bench {
namespace {

double timed_cycle(Runtime& runtime, HaloExchange& exchange, const std::vector<Buffer>& fields) {
  const auto begin = std::chrono::steady_clock::now();
  runtime.run(exchange.run(fields));
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
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

void report(Runtime& runtime, const HaloBench& bench, const HaloExchange& exchange, std::vector<double> samples) {
  double sum = 0;
  for (const double sample : samples) sum += sample;
  const double mean = sum / static_cast<double>(samples.size());
  const Summary us = summarize(samples);
  const auto& halo = bench.halo;
  fmt::print("# {} processes, {} blocks each, grid {} x {} x {} in {} x {} x {} blocks, {} memory{}\n", runtime.size(),
             exchange.blocks(), halo.grid[0], halo.grid[1], halo.grid[2], halo.divide[0], halo.divide[1],
             halo.divide[2], memory_kind_name(bench.memory), bench.check ? ", checked" : "");
  fmt::print("{:>9} {:>12} {:>10} {:>10} {:>10} {:>10}\n", "messages", "bytes", "mean us", "min us", "p50 us",
             "p99 us");
  fmt::print("{:>9} {:>12} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f}\n", exchange.messages(), exchange.message_bytes(),
             mean, us.min, us.p50, us.p99);
  nlohmann::ordered_json row;
  row["bench"] = "halo";
  row["memory"] = memory_kind_name(bench.memory);
  row["grid"] = halo.grid;
  row["divide"] = halo.divide;
  row["periodic"] = halo.periodic;
  row["ghost"] = halo.ghost;
  row["variables"] = halo.variables;
  row["blocks"] = exchange.blocks();
  row["messages"] = exchange.messages();
  row["bytes"] = exchange.message_bytes();
  row["ranks"] = runtime.size();
  row["n"] = us.n;
  row["us"] = to_json(us);
  row["us"]["mean"] = rounded(mean);
  row["check"] = bench.check;
  add_machine(row, {}, describe_machine(runtime));
  RowFile(bench.json).append(row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
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
  HaloExchange exchange(runtime, bench.halo);
  std::vector<Memory> memory;
  std::vector<Buffer> fields;
  for (int i = 0; i < exchange.blocks(); ++i) {
    memory.push_back(runtime.allocate(bench.memory, exchange.field_bytes(i)));
    fields.emplace_back(memory.back());
  }
  const auto checked = [&] {
    fill_fields(runtime, bench.halo, exchange, fields);
    runtime.run(exchange.run(fields));
    check_fields(runtime, bench.halo, exchange, fields);
  };
  fill_fields(runtime, bench.halo, exchange, fields);
  if (bench.check) checked();
  for (std::size_t i = 0; i < bench.warmup; ++i) runtime.run(exchange.run(fields));
  std::vector<double> samples;
  samples.reserve(bench.cycles);
  for (std::size_t i = 0; i < bench.cycles; ++i) samples.push_back(timed_cycle(runtime, exchange, fields));
  if (bench.check) checked();
  samples = slowest(runtime, std::move(samples));
  if (runtime.rank().value == 0) report(runtime, bench, exchange, std::move(samples));
}

}  // namespace brant::bench
