#include "transfers.h"

#include <chrono>

#include <fmt/format.h>

#include "bench/runner/us_since.h"

namespace brant::bench {
namespace {

using Clock = std::chrono::steady_clock;

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::byte pattern(int rank, std::size_t i) { return static_cast<std::byte>(i * 31 + i / 4093 + (rank == 0 ? 1 : 77)); }

void need(Status status, const char* what) {
  if (status != Status::ok) throw Error(status, fmt::format("{}: {}", what, status_text(status)));
}

std::uint64_t value_of(const std::uint64_t& flag) {
  return std::atomic_ref(const_cast<std::uint64_t&>(flag)).load(std::memory_order_acquire);
}

}  // namespace

void wait_for(Courier& courier, const std::uint64_t& flag, std::uint64_t value) {
  for (unsigned spins = 0; value_of(flag) != value; ++spins) {
    if (spins % 256 == 255) courier.poll();
    relax();
  }
}

void post(Courier& courier, const CourierOrder& order) {
  Status status = courier.post(order);
  const auto begin = Clock::now();
  while (status == Status::limit_reached) {
    courier.start(order.bytes);
    courier.poll();
    status = courier.post(order);
    if (us_since(begin) > 5e6) throw Error(Status::timed_out, "the courier does not start");
  }
  need(status, "courier.post");
}

Buffers::Buffers(Pair& pair, port::Device& device, MemoryKind kind) : pair_(pair), device_(device) {
  const auto take = [](const Result<void*>& made) {
    need(made.status(), "device memory");
    return static_cast<std::byte*>(*made);
  };
  source = take(device.allocate(kind, kBytes));
  landing = take(device.allocate(kind, kBytes));
  const auto stream = device.streams()->create_stream(port::StreamPriority::normal);
  need(stream.status(), "a stream");
  stream_ = *stream;
  std::vector<std::byte> image(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) image[i] = pattern(pair.rank(), i);
  need(device.streams()->copy(source, image.data(), kBytes, stream_), "a copy");
  need(device.streams()->synchronize(stream_), "a copy");
  const auto exported = device.export_allocation(landing);
  need(exported.status(), "export of device memory");
  pair.shared().exports[pair.rank()] = *exported;
  need(device.streams()->register_host(pair.shared().flags, sizeof(Shared::flags)), "registering the flags");
  need(device.streams()->register_host(pair.shared().landing, sizeof(Shared::landing)), "registering the landing");
  pair.meet();
  const auto mapped = device.import_allocation(pair.shared().exports[1 - pair.rank()]);
  need(mapped.status(), "mapping the other GPU's memory");
  remote = static_cast<std::byte*>(*mapped);
  pair.meet();
}

Buffers::~Buffers() {
  static_cast<void>(device_.close_import(remote));
  pair_.meet();
  static_cast<void>(device_.streams()->unregister_host(pair_.shared().landing));
  static_cast<void>(device_.streams()->unregister_host(pair_.shared().flags));
  device_.streams()->destroy_stream(stream_);
  static_cast<void>(device_.free(landing));
  static_cast<void>(device_.free(source));
}

void Buffers::poison(std::size_t span) {
  need(device_.streams()->fill(landing, std::byte{0xa5}, span, stream_), "a fill");
  need(device_.streams()->synchronize(stream_), "a fill");
}

void Buffers::fill_source(std::size_t at, std::size_t bytes, std::uint64_t word) {
  const std::vector<std::uint64_t> image(bytes / sizeof(word), word);
  need(device_.streams()->copy(source + at, image.data(), bytes, stream_), "a copy");
  need(device_.streams()->synchronize(stream_), "a copy");
}

void Buffers::check(std::size_t span) {
  std::vector<std::byte> seen(span);
  need(device_.streams()->copy(seen.data(), landing, span, stream_), "a copy");
  need(device_.streams()->synchronize(stream_), "a copy");
  for (std::size_t i = 0; i < span; ++i) {
    if (seen[i] == pattern(1 - pair_.rank(), i)) continue;
    throw Error(Status::internal, fmt::format("byte {} of {} is wrong", i, span));
  }
}

Summary one_way(Pair& pair, Courier& courier, Buffers& buffers, std::size_t bytes, std::size_t times) {
  const int rank = pair.rank();
  std::uint64_t* to_other = &pair.shared().flags[1 - rank][0];
  const std::uint64_t& to_us = pair.shared().flags[rank][0];
  CourierOrder order{buffers.remote, buffers.source, static_cast<std::uint32_t>(bytes), 0, to_other};
  buffers.poison(bytes);
  pair.shared().flags[rank][0] = 0;
  pair.meet();
  std::vector<double> us;
  us.reserve(times);
  const std::size_t warm = times / 10 + 1;
  for (std::size_t i = 1; i <= warm + times; ++i) {
    order.value = static_cast<std::uint32_t>(i);
    const auto begin = Clock::now();
    if (rank == 0) post(courier, order);
    wait_for(courier, to_us, i);
    if (rank != 0) post(courier, order);
    if (rank == 0 && i > warm) us.push_back(us_since(begin) / 2);
    courier.poll();
  }
  pair.meet();
  buffers.check(bytes);
  pair.meet();
  return bench::summarize(us);
}

Summary stream_of(Pair& pair, Courier& courier, Buffers& buffers, std::size_t bytes, std::size_t window,
                  std::size_t times) {
  const std::size_t step = (bytes + 255) / 256 * 256;
  const std::size_t slots = std::min(Buffers::kBytes / step, std::max<std::size_t>(window, 1));
  const std::size_t total = window * times;
  for (std::uint64_t& flag : pair.shared().flags[pair.rank()]) flag = 0;
  buffers.poison(slots * step);
  pair.meet();
  std::vector<double> us;
  if (pair.rank() == 0) {
    us.reserve(times);
    const std::uint64_t base = courier.posted();
    std::size_t posted = 0;
    auto mark = Clock::now();
    for (std::size_t done = 0, next_mark = window; done < total;) {
      while (posted < total && posted - done < window) {
        const std::size_t slot = posted % slots;
        post(courier, {buffers.remote + slot * step, buffers.source + slot * step, static_cast<std::uint32_t>(bytes), 1,
                       &pair.shared().flags[1][slot % Shared::kFlags]});
        ++posted;
      }
      courier.poll();
      done = courier.done() - base;
      for (; done >= next_mark; next_mark += window) {
        us.push_back(us_since(mark));
        mark = Clock::now();
      }
    }
    // Windows end in bursts: the mean over everything is what was carried.
    double sum = 0;
    for (const double each : us) sum += each;
    const double mean = sum / static_cast<double>(us.size());
    Summary samples = bench::summarize(us);
    samples.p50 = mean;
    pair.meet();
    pair.meet();
    return samples;
  }
  pair.meet();
  for (std::size_t slot = 0; slot < slots; ++slot) {
    if (value_of(pair.shared().flags[1][slot % Shared::kFlags]) != 1)
      throw Error(Status::internal, "a flag is missing");
  }
  if (bytes == step) buffers.check(slots * step);
  pair.meet();
  return {};
}

}  // namespace brant::bench
