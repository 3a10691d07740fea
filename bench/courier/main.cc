// Measures the courier by itself, between two GPUs: what a message costs from the CPU that posts the order to the CPU
// that sees the flag, and what the courier costs the program beside it.
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "coexistence.h"
#include "litmus.h"
#include "ops/courier/courier.h"
#include "pair.h"
#include "port/memory/adapters.h"
#include "rows.h"
#include "transfers.h"

namespace {

using namespace brant;
using namespace brant::bench;

struct Arguments {
  std::string json;
  std::string memory = "cuda";
  std::string only = "latency,bandwidth,coexistence";
  std::vector<std::size_t> latency_sizes{8, 64, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144};
  std::vector<std::size_t> bandwidth_sizes{8, 1024, 8192, 65536, 262144};
  std::size_t window = 64;
  std::size_t times = 2000;
  std::size_t litmus_rounds = 20'000;
  unsigned limit_s = 60;
  CourierOptions courier = CourierOptions::from_environment(MemoryKind::cuda);  // asked for, whatever the memory
};

int measure(Pair& pair, const Arguments& arguments) {
  const bool cuda = arguments.memory == "cuda";
  const MemoryKind kind = cuda ? MemoryKind::cuda : MemoryKind::emulated;
  const auto device = cuda ? port::memory::open_cuda_device(0) : port::memory::open_emulated_device();
  Rows rows(arguments.json, *device, arguments.memory, pair.rank() != 0);
  Buffers buffers(pair, *device, kind);
  const auto wanted = [&](const char* what) { return arguments.only.find(what) != std::string::npos; };
  const auto& set = arguments.courier;
  rows.say(fmt::format(
      "# {}, {} blocks of {} warps, {} dispatchers, alone {} B, parts {} B, looks {}/{}, idle {} us, lease {} us",
      device->capabilities().name, set.blocks, set.warps, set.dispatchers, set.alone_bytes, set.part_bytes,
      set.look_idle, set.look_busy, set.idle_us, set.lease_us));
  int status = 0;
  if (wanted("litmus") || wanted("latency") || wanted("bandwidth")) {
    Courier courier(*device, set);
    if (!courier.usable()) throw Error(Status::not_supported, "there is no courier here; BRANT_LOG=info says why");
    if (wanted("litmus") && !measure_litmus(pair, courier, buffers, arguments.litmus_rounds, rows)) status = 1;
    if (wanted("latency") || wanted("bandwidth"))
      rows.say(fmt::format("{:<10} {:>8} {:>7} {:>10} {:>10} {:>10} {:>10}", "bench", "bytes", "window", "min us",
                           "p50 us", "p99 us", "GB/s"));
    for (const std::size_t bytes : wanted("latency") ? arguments.latency_sizes : std::vector<std::size_t>{}) {
      rows.transfer("latency", bytes, 1, one_way(pair, courier, buffers, bytes, arguments.times));
    }
    for (const std::size_t bytes : wanted("bandwidth") ? arguments.bandwidth_sizes : std::vector<std::size_t>{}) {
      const std::size_t times = arguments.times / 4 + 1;
      rows.transfer("bandwidth", bytes, arguments.window,
                    stream_of(pair, courier, buffers, bytes, arguments.window, times));
    }
  }
  pair.meet();
  if (wanted("coexistence") && pair.rank() == 0) {
    measure_coexistence(*device, kind, set, buffers, &pair.shared().flags[0][0], rows);
  }
  pair.meet();
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  auto& courier = arguments.courier;
  CLI::App app("Measures the courier between two processes, each with a GPU of its own.");
  app.add_option("--json", arguments.json, "append rows to this file");
  app.add_option("--memory", arguments.memory, "cuda or emulated")->check(CLI::IsMember({"cuda", "emulated"}));
  app.add_option("--only", arguments.only, "latency,bandwidth,coexistence,litmus");
  app.add_option("--latency-sizes", arguments.latency_sizes)->delimiter(',');
  app.add_option("--bandwidth-sizes", arguments.bandwidth_sizes)->delimiter(',');
  app.add_option("--window", arguments.window, "orders under way")->check(CLI::Range(1, 256));
  app.add_option("--times", arguments.times, "round trips of a size");
  app.add_option("--litmus-rounds", arguments.litmus_rounds, "rounds of a litmus test");
  app.add_option("--limit", arguments.limit_s, "seconds after which the program is ended");
  app.add_option("--blocks", courier.blocks);
  app.add_option("--warps", courier.warps);
  app.add_option("--dispatchers", courier.dispatchers);
  app.add_option("--alone", courier.alone_bytes);
  app.add_option("--part", courier.part_bytes);
  app.add_option("--look-idle", courier.look_idle);
  app.add_option("--look-busy", courier.look_busy);
  app.add_option("--idle-us", courier.idle_us);
  app.add_option("--lease-us", courier.lease_us);
  CLI11_PARSE(app, argc, argv);
  try {
    Pair pair = Pair::split(arguments.limit_s);
    int status = 1;
    try {
      status = measure(pair, arguments);
    } catch (const Error& error) {
      std::fprintf(stderr, "courier_bench[%d]: %s\n", pair.rank(), error.what());
      std::fflush(nullptr);
      std::_Exit(1);  // the other process waits for us, and ends when it sees this
    }
    return pair.finish(status);
  } catch (const Error& error) {
    std::fprintf(stderr, "courier_bench: %s\n", error.what());
    return 1;
  }
}
