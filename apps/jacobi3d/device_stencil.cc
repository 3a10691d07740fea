#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "device_kernels.h"
#include "stencil.h"

namespace jacobi {
namespace {

using brant::LaunchShape;
using brant::Status;

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
        kernels_(runtime.device()),
        sweep_kernel_(kernel),
        largest_(runtime.allocate(block.kind(), sizeof(std::uint64_t))),
        largest_on_host_(runtime.allocate(brant::MemoryKind::pinned, sizeof(std::uint64_t))),
        sequence_(runtime.device().create_stream(brant::StreamPriority::high)),
        beside_(runtime.device().create_stream()),
        begin_(runtime.device().create_timing_event()),
        end_(runtime.device().create_timing_event()) {
    for (brant::Event& done : done_) done = runtime.device().create_event();
  }

  void fill() override {
    const Extent cells = block_.layout().cells;
    const LaunchShape shape{{pieces(cells.x + 2, kThreads), at_most_grid(cells.y + 2), at_most_grid(cells.z + 2)},
                            {kThreads, 1, 1}};
    for (double* field : {block_.current(), block_.next()}) {
      launch(kernels_.fill, shape, sequence_, field, block_.layout(), block_.place());
    }
    wait("fill the field");
  }

  void start(Step step) override {
    const Split& split = block_.split();
    switch (step) {
      case Step::pack:
        if (block_.outgoing().count == 0) return;
        launch(kernels_.pack, faces_shape(block_.outgoing()), sequence_, block_.send_buffer(), block_.current(),
               block_.outgoing());
        break;
      case Step::unpack:
        if (block_.incoming().count == 0) return;
        launch(kernels_.unpack, faces_shape(block_.incoming()), sequence_, block_.current(), block_.receive_buffer(),
               block_.incoming());
        break;
      case Step::whole: sweep(block_.whole(), sequence_); break;
      case Step::interior:
        if (is_empty(split.interior)) return;
        sweep(split.interior, beside_);
        break;
      case Step::shell:
        if (split.shell.count == 0) return;
        launch(kernels_.sweep_shell, shell_shape(split.shell), sequence_, block_.next(), block_.current(),
               block_.layout(), split.shell);
        break;
    }
    brant::Stream& stream = step == Step::interior ? beside_ : sequence_;
    require(stream.record(done(step)), "record an event");
    started_[index(step)] = true;
  }

  bool finished(Step step) override {
    if (!started_[index(step)]) return true;
    const Status status = done(step).poll();
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
    require(sequence_.fill(largest_, std::byte{0}), "clear a word");
    launch(kernels_.difference, shape, sequence_, largest_.as<std::uint64_t>(), block_.current(), block_.next(),
           block_.layout());
    require(sequence_.copy(largest_on_host_, largest_), "copy a word");
    wait("compute the residual");
    return std::bit_cast<double>(*largest_on_host_.as<std::uint64_t>());
  }

  double copy_bandwidth() override {
    const std::size_t bytes = static_cast<std::size_t>(block_.layout().doubles) * sizeof(double);
    for (int copy = -1; copy < kCopies; ++copy) {  // the first is not timed
      if (copy == 0) require(sequence_.record(begin_), "record an event");
      require(sequence_.copy({block_.next(), bytes}, {block_.current(), bytes}), "copy a field");
    }
    require(sequence_.record(end_), "record an event");
    wait("copy a field");
    const double microseconds = end_.us_since(begin_).or_throw("a copy could not be timed");
    return 2.0 * kCopies * static_cast<double>(bytes) / std::max(microseconds, 1e-3) * 1e6;
  }

 private:
  static std::size_t index(Step step) noexcept { return static_cast<std::size_t>(step); }
  [[nodiscard]] brant::Event& done(Step step) noexcept { return done_[index(step)]; }

  template <typename... Args, typename... Given>
  void launch(const brant::Kernel<Args...>& kernel, const LaunchShape& shape, brant::StreamHandle stream,
              const Given&... arguments) {
    require(kernel.launch(shape, stream, arguments...), "launch a kernel");
  }

  void sweep(const Box& box, brant::StreamHandle stream) {
    const bool pairs = sweep_kernel_ == SweepKernel::pairs;
    const DeviceKernels::Sweep& kernel = pairs ? kernels_.sweep_pairs : kernels_.sweep_plain;
    launch(kernel, sweep_shape(box, pairs ? 64 : 32), stream, block_.next(), block_.current(), block_.layout(), box,
           kPlanesPerPiece);
  }

  void wait(const char* what) { require(sequence_.synchronize(), what); }

  Block& block_;
  DeviceKernels kernels_;
  SweepKernel sweep_kernel_;
  brant::Memory largest_;
  brant::Memory largest_on_host_;
  // The streams go before the memory, and wait for the work that uses it.
  brant::Stream sequence_;
  brant::Stream beside_;
  std::array<brant::Event, kSteps> done_;
  std::array<bool, kSteps> started_{};
  brant::Event begin_;
  brant::Event end_;
};

}  // namespace

std::unique_ptr<Stencil> make_device_stencil(brant::Runtime& runtime, Block& block, SweepKernel kernel) {
  return std::make_unique<DeviceStencil>(runtime, block, kernel);
}

std::unique_ptr<Stencil> make_stencil(brant::Runtime& runtime, Block& block, SweepKernel kernel) {
  return brant::host_accessible(block.kind()) ? make_host_stencil(block) : make_device_stencil(runtime, block, kernel);
}

}  // namespace jacobi
