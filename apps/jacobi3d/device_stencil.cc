#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "device_kernels.h"
#include "port/memory.h"
#include "stencil.h"

namespace jacobi {
namespace {

using brant::Status;
using brant::port::LaunchShape;

constexpr unsigned kThreads = 256;
constexpr std::int64_t kGridMax = 65535;      // of a grid's y and z
constexpr std::int64_t kPlanesPerPiece = 16;  // short pieces keep neighbouring blocks, and so the caches, together
constexpr std::int64_t kRowsPerTile = 8;
constexpr std::int64_t kShellGridMax = 4096;
constexpr int kCopies = 5;

unsigned pieces(std::int64_t count, std::int64_t each) noexcept {
  return static_cast<unsigned>((count + each - 1) / each);
}

unsigned at_most_grid(std::int64_t count) noexcept {
  return static_cast<unsigned>(std::clamp<std::int64_t>(count, 1, kGridMax));
}

void require(Status status, const char* what) {
  if (status != Status::ok)
    throw brant::Error(status, fmt::format("the device failed to {}: {}", what, brant::status_text(status)));
}

template <typename T>
T require(brant::Result<T> result, const char* what) {
  require(result.ok() ? Status::ok : result.status(), what);
  return *result;
}

/// A stream that goes with its owner.
class OwnedStream {
 public:
  OwnedStream(brant::port::Streams& streams, brant::port::StreamPriority priority)
      : streams_(streams), stream_(require(streams.create_stream(priority), "create a stream")) {}
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  ~OwnedStream() { streams_.destroy_stream(stream_); }
  [[nodiscard]] brant::port::Stream* get() const noexcept { return stream_; }

 private:
  brant::port::Streams& streams_;
  brant::port::Stream* stream_;
};

class OwnedEvent {
 public:
  OwnedEvent(brant::port::Streams& streams, bool timing)
      : streams_(streams), event_(require(streams.create_event(timing), "create an event")) {}
  OwnedEvent(const OwnedEvent&) = delete;
  OwnedEvent& operator=(const OwnedEvent&) = delete;
  ~OwnedEvent() { streams_.destroy_event(event_); }
  [[nodiscard]] brant::port::Event* get() const noexcept { return event_; }

 private:
  brant::port::Streams& streams_;
  brant::port::Event* event_;
};

brant::port::Streams& streams_of(brant::Runtime& runtime) {
  brant::port::Streams* streams = runtime.device().streams();
  if (streams == nullptr) {
    throw brant::Error(Status::not_supported, "this process's device has no streams: use --memory host");
  }
  return *streams;
}

brant::port::Kernels& kernels_of(brant::Runtime& runtime) {
  brant::port::Kernels* kernels = runtime.device().kernels();
  if (kernels == nullptr) {
    throw brant::Error(Status::not_supported, "this process's device runs no kernels: use --memory host");
  }
  return *kernels;
}

LaunchShape sweep_shape(const Box& box, std::int64_t tile_x) noexcept {
  const std::int64_t aligned = box.low.x & ~std::int64_t{15};
  return {{pieces(box.high.x - aligned, tile_x), pieces(box.high.y - box.low.y, kRowsPerTile),
           pieces(box.high.z - box.low.z, kPlanesPerPiece)},
          {32, static_cast<unsigned>(kRowsPerTile), 1}};
}

LaunchShape faces_shape(const PackedFaces& faces) noexcept {
  std::int64_t longest_a = 1;
  std::int64_t longest_b = 1;
  for (int index = 0; index < faces.count; ++index) {
    longest_a = std::max(longest_a, faces.face[index].count_a);
    longest_b = std::max(longest_b, faces.face[index].count_b);
  }
  return {{pieces(longest_a, kThreads), at_most_grid(longest_b), static_cast<unsigned>(faces.count)}, {kThreads, 1, 1}};
}

LaunchShape shell_shape(const Shell& shell) noexcept {
  std::int64_t largest = 1;
  for (int index = 0; index < shell.count; ++index) largest = std::max(largest, volume(extent_of(shell.box[index])));
  return {{pieces(std::min(largest, kShellGridMax * std::int64_t{kThreads}), kThreads),
           static_cast<unsigned>(shell.count), 1},
          {kThreads, 1, 1}};
}

/// Two streams: pack, unpack and the sweeps that follow them are one sequence; the interior runs beside it, and lets it
/// pass: others wait for the faces.
class DeviceStencil final : public Stencil {
 public:
  DeviceStencil(brant::Runtime& runtime, Block& block, SweepKernel kernel)
      : block_(block),
        streams_(streams_of(runtime)),
        kernels_(kernels_of(runtime)),
        sweep_kernel_(kernel),
        sequence_(streams_, brant::port::StreamPriority::high),
        beside_(streams_, brant::port::StreamPriority::normal),
        done_{{{streams_, false}, {streams_, false}, {streams_, false}, {streams_, false}, {streams_, false}}},
        begin_(streams_, true),
        end_(streams_, true),
        largest_(runtime.allocate(block.kind(), sizeof(std::uint64_t))),
        largest_on_host_(runtime.allocate(brant::MemoryKind::pinned, sizeof(std::uint64_t))) {}

  ~DeviceStencil() override {
    // The memory that queued work uses goes next.
    static_cast<void>(streams_.synchronize(sequence_.get()));
    static_cast<void>(streams_.synchronize(beside_.get()));
  }

  void fill() override {
    const Extent cells = block_.layout().cells;
    const LaunchShape shape{{pieces(cells.x + 2, kThreads), at_most_grid(cells.y + 2), at_most_grid(cells.z + 2)},
                            {kThreads, 1, 1}};
    for (double* field : {block_.current(), block_.next()}) {
      kernels_.fill.launch(shape, sequence_.get(), field, block_.layout(), block_.place());
    }
    wait("fill the field");
  }

  void start(Step step) override {
    const Split& split = block_.split();
    switch (step) {
      case Step::pack:
        if (block_.outgoing().count == 0) return;
        kernels_.pack.launch(faces_shape(block_.outgoing()), sequence_.get(), block_.send_buffer(), block_.current(),
                             block_.outgoing());
        break;
      case Step::unpack:
        if (block_.incoming().count == 0) return;
        kernels_.unpack.launch(faces_shape(block_.incoming()), sequence_.get(), block_.current(),
                               block_.receive_buffer(), block_.incoming());
        break;
      case Step::whole: sweep(block_.whole(), sequence_.get()); break;
      case Step::interior:
        if (is_empty(split.interior)) return;
        sweep(split.interior, beside_.get());
        break;
      case Step::shell:
        if (split.shell.count == 0) return;
        kernels_.sweep_shell.launch(shell_shape(split.shell), sequence_.get(), block_.next(), block_.current(),
                                    block_.layout(), split.shell);
        break;
    }
    require(streams_.record(done(step), step == Step::interior ? beside_.get() : sequence_.get()), "record an event");
    started_[index(step)] = true;
  }

  bool finished(Step step) override {
    if (!started_[index(step)]) return true;
    const Status status = streams_.poll(done(step));
    if (status == Status::in_progress) return false;
    require(status, "run a kernel");
    started_[index(step)] = false;
    return true;
  }

  double largest_change() override {
    const Extent cells = block_.layout().cells;
    const LaunchShape shape{
        {pieces(cells.x, kThreads), std::min(at_most_grid(cells.y), 64u), std::min(at_most_grid(cells.z), 64u)},
        {kThreads, 1, 1}};
    require(streams_.fill(largest_.data(), std::byte{0}, largest_.bytes(), sequence_.get()), "clear a word");
    kernels_.difference.launch(shape, sequence_.get(), largest_.as<std::uint64_t>(), block_.current(), block_.next(),
                               block_.layout());
    require(streams_.copy(largest_on_host_.data(), largest_.data(), largest_.bytes(), sequence_.get()), "copy a word");
    wait("compute the residual");
    return std::bit_cast<double>(*largest_on_host_.as<std::uint64_t>());
  }

  double copy_bandwidth() override {
    const std::size_t bytes = static_cast<std::size_t>(block_.layout().doubles) * sizeof(double);
    for (int copy = -1; copy < kCopies; ++copy) {  // the first is not timed
      if (copy == 0) require(streams_.record(begin_.get(), sequence_.get()), "record an event");
      require(streams_.copy(block_.next(), block_.current(), bytes, sequence_.get()), "copy a field");
    }
    require(streams_.record(end_.get(), sequence_.get()), "record an event");
    wait("copy a field");
    const double microseconds = require(streams_.elapsed_us(begin_.get(), end_.get()), "time a copy");
    return 2.0 * kCopies * static_cast<double>(bytes) / std::max(microseconds, 1e-3) * 1e6;
  }

 private:
  static std::size_t index(Step step) noexcept { return static_cast<std::size_t>(step); }
  [[nodiscard]] brant::port::Event* done(Step step) const noexcept { return done_[index(step)].get(); }

  void sweep(const Box& box, brant::port::Stream* stream) {
    const bool pairs = sweep_kernel_ == SweepKernel::pairs;
    const DeviceKernels::Sweep& kernel = pairs ? kernels_.sweep_pairs : kernels_.sweep_plain;
    kernel.launch(sweep_shape(box, pairs ? 64 : 32), stream, block_.next(), block_.current(), block_.layout(), box,
                  kPlanesPerPiece);
  }

  void wait(const char* what) { require(streams_.synchronize(sequence_.get()), what); }

  Block& block_;
  brant::port::Streams& streams_;
  DeviceKernels kernels_;
  SweepKernel sweep_kernel_;
  OwnedStream sequence_;
  OwnedStream beside_;
  std::array<OwnedEvent, kSteps> done_;
  std::array<bool, kSteps> started_{};
  OwnedEvent begin_;
  OwnedEvent end_;
  brant::Memory largest_;
  brant::Memory largest_on_host_;
};

}  // namespace

std::unique_ptr<Stencil> make_device_stencil(brant::Runtime& runtime, Block& block, SweepKernel kernel) {
  return std::make_unique<DeviceStencil>(runtime, block, kernel);
}

std::unique_ptr<Stencil> make_stencil(brant::Runtime& runtime, Block& block, SweepKernel kernel) {
  return brant::host_accessible(block.kind()) ? make_host_stencil(block) : make_device_stencil(runtime, block, kernel);
}

}  // namespace jacobi
