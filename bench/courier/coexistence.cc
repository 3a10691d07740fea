#include "coexistence.h"

#include <chrono>

#include <fmt/format.h>

#include "bench/runner/us_since.h"
#include "load.h"

namespace brant::bench {
namespace {

using Clock = std::chrono::steady_clock;

bool poll_for(Courier& courier, double us, bool resident) {
  for (const auto begin = Clock::now(); us_since(begin) < us;) {
    courier.poll();
    if (courier.resident() == resident) return true;
  }
  return false;
}

/// Again and again: a CPU that was stopped for longer than its idle time finds it gone already.
void start(Courier& courier, std::size_t bytes = 8) {
  for (const auto begin = Clock::now(); us_since(begin) < 5e6;) {
    courier.start(bytes);
    courier.poll();
    if (courier.resident()) return;
  }
  throw Error(Status::timed_out, "the courier does not start");
}

void leave(Courier& courier) {
  if (!poll_for(courier, 5e6, false)) throw Error(Status::timed_out, "the courier does not leave");
}

void measure_start(Courier& courier, Rows& rows) {
  std::vector<double> us;
  for (int i = 0; i < 50; ++i) {
    const auto begin = Clock::now();
    start(courier);
    us.push_back(us_since(begin));
    leave(courier);
  }
  const Summary samples = bench::summarize(us);
  rows.figure("start until resident", samples.p50, "us", samples);
}

void measure_synchronize(Courier& courier, const CourierOptions& options, Rows& rows) {
  const DeviceCall synchronize = device_synchronize();
  if (synchronize == nullptr) return;
  std::vector<double> without;
  std::vector<double> with;
  for (int i = 0; i < 100; ++i) {
    auto begin = Clock::now();
    if (synchronize() != 0) throw Error(Status::device_failed, "cuCtxSynchronize failed");
    without.push_back(us_since(begin));
    start(courier);
    begin = Clock::now();
    if (synchronize() != 0) throw Error(Status::device_failed, "cuCtxSynchronize failed");
    with.push_back(us_since(begin));
    leave(courier);
  }
  const Summary alone = bench::summarize(without);
  const Summary beside = bench::summarize(with);
  rows.figure("synchronize, none resident", alone.p50, "us", alone);
  rows.figure("synchronize, one resident", beside.max - options.idle_us, "us", beside);
  rows.say("    (the figure is the worst beyond idle_us)");
}

/// Of one that was started for orders of `bytes`.
void measure_idle_cost(port::Device& device, Load& load, CourierOptions options, std::size_t bytes, Rows& rows) {
  options.idle_us = 2e6;
  options.lease_us = 2e6;
  std::vector<double> without;
  std::vector<double> with;
  load.stream_us(20);
  for (int round = 0; round < 7; ++round) {
    without.push_back(load.stream_us(40));
    Courier courier(device, options);
    start(courier, bytes);
    with.push_back(load.stream_us(40));
    courier.poll();
    if (!courier.resident()) throw Error(Status::internal, "the courier left while its cost was measured");
  }
  const Summary alone = bench::summarize(without);
  const Summary beside = bench::summarize(with);
  rows.figure("stream kernel alone", 2.0 * 40 * 1.073741824e9 / alone.p50 / 1e3, "GB/s", alone);
  rows.figure(fmt::format("beside an idle courier for {} B", bytes), 100 * (beside.p50 / alone.p50 - 1), "% more",
              beside);
}

void check_full_gpu(port::Device& device, Load& load, const CourierOptions& options, Buffers& buffers,
                    std::uint64_t* flag, Rows& rows) {
  Courier courier(device, options);
  const CourierOrder order{buffers.landing, buffers.source, 8, 1, flag};
  load.hold(20'000);
  const auto begin = Clock::now();
  courier.start(8);
  bool refused = true;
  while (us_since(begin) < 10'000) {
    courier.poll();
    if (courier.resident()) refused = false;
    if (!courier.resident() && courier.post(order) != Status::limit_reached) refused = false;
  }
  load.wait();
  start(courier);
  const double us = us_since(begin);
  post(courier, order);
  while (courier.done() != courier.posted()) courier.poll();
  rows.say(fmt::format("every SM held for 20 ms: {}, resident after {:.0f} us",
                       refused ? "orders were refused meanwhile" : "it found a place nevertheless", us));
}

}  // namespace

void measure_coexistence(port::Device& device, MemoryKind kind, const CourierOptions& options, Buffers& buffers,
                         std::uint64_t* flag, Rows& rows) {
  Load load(device, kind);
  {
    Courier courier(device, options);
    measure_start(courier, rows);
    measure_synchronize(courier, options, rows);
  }
  if (kind == MemoryKind::cuda) {
    for (const std::size_t bytes : {std::size_t{8}, options.bytes_max}) {
      measure_idle_cost(device, load, options, bytes, rows);
    }
  }
  check_full_gpu(device, load, options, buffers, flag, rows);
}

}  // namespace brant::bench
