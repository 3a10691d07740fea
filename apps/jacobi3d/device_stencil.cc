#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "brant/device.h"
#include "devices.h"
#include "host_kernels.h"
#include "stencil.h"

// Made by brant_fatbin from kernels.cu.
extern "C" const unsigned char jacobi_kernels_fatbin[];
extern "C" const std::size_t jacobi_kernels_fatbin_bytes;

namespace jacobi {
namespace {

using brant::host_version;
using brant::Kernel;
using brant::LaunchShape;
using brant::Status;

constexpr unsigned kThreads = 256;
constexpr std::int64_t kGridMax = 65535;  // of a grid's y and z
constexpr std::int64_t kShellGridMax = 4096;

std::span<const std::byte> image() noexcept {
  return std::as_bytes(std::span(jacobi_kernels_fatbin, jacobi_kernels_fatbin_bytes));
}

unsigned at_most_grid(std::int64_t count) noexcept {
  return static_cast<unsigned>(std::clamp<std::int64_t>(count, 1, kGridMax));
}

LaunchShape sweep_shape(const Box& box) noexcept {
  const std::int64_t aligned = box.low.x & ~std::int64_t{15};
  return {{pieces(box.high.x - aligned, kCellsPerTile), pieces(box.high.y - box.low.y, kRowsPerTile),
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
  DeviceStencil(brant::Runtime& runtime, Block& block)
      : runtime_(runtime),
        block_(block),
        sweep_(runtime.device(), image(), "jacobi_sweep", host_version<host::sweep>),
        sweep_shell_(runtime.device(), image(), "jacobi_sweep_shell", host_version<host::sweep_shell>),
        pack_(runtime.device(), image(), "jacobi_pack", host_version<host::pack>),
        unpack_(runtime.device(), image(), "jacobi_unpack", host_version<host::unpack>),
        fill_(runtime.device(), image(), "jacobi_fill", host_version<host::fill>),
        change_(runtime.device(), image(), "jacobi_largest_change", host_version<host::largest_change>),
        change_there_(runtime.allocate(block.kind(), sizeof(double))),
        change_here_(runtime.allocate(brant::MemoryKind::pinned, sizeof(double))),
        sequence_(runtime.device().create_stream(brant::StreamPriority::high)),
        beside_(runtime.device().create_stream()) {}

  void fill() override {
    const Extent cells = block_.layout().cells;
    const LaunchShape shape{{pieces(cells.x + 2, kThreads), at_most_grid(cells.y + 2), at_most_grid(cells.z + 2)},
                            {kThreads, 1, 1}};
    for (double* field : {block_.current(), block_.next()}) {
      apps::require_device(fill_.launch(shape, sequence_, field, block_.layout(), block_.place()), "fill the field");
    }
    apps::require_device(sequence_.synchronize(), "fill the field");
  }

  void start(Step step) override {
    const PackedFaces& out = block_.outgoing();
    const PackedFaces& in = block_.incoming();
    const Layout& layout = block_.layout();
    const Split& split = block_.split();
    double* const now = block_.current();
    double* const next = block_.next();
    Status launched = Status::in_progress;  // there is nothing to do
    switch (step) {
      case Step::pack:
        if (out.count > 0) launched = pack_.launch(faces_shape(out), sequence_, block_.send_buffer(), now, out);
        break;
      case Step::unpack:
        if (in.count > 0) launched = unpack_.launch(faces_shape(in), sequence_, now, block_.receive_buffer(), in);
        break;
      case Step::whole:
        launched = sweep_.launch(sweep_shape(block_.whole()), sequence_, next, now, layout, block_.whole());
        break;
      case Step::interior:
        if (is_empty(split.interior)) break;
        launched = sweep_.launch(sweep_shape(split.interior), beside_, next, now, layout, split.interior);
        break;
      case Step::shell:
        if (split.shell.count == 0) break;
        launched = sweep_shell_.launch(shell_shape(split.shell), sequence_, next, now, layout, split.shell);
        break;
    }
    if (launched == Status::in_progress) return;
    apps::require_device(launched, "launch a kernel");
    ended_[static_cast<std::size_t>(step)].emplace(runtime_, step == Step::interior ? beside_ : sequence_);
  }

  brant::Task<void> finish(Step step) override {
    std::optional<brant::stream_done>* ended = &ended_[static_cast<std::size_t>(step)];
    if (*ended) co_await ended->value();
    ended->reset();
  }

  brant::Task<double> largest_change() override {
    *change_here_.as<double>() = 0;
    apps::require_device(sequence_.copy(change_there_, change_here_), "clear the largest change");
    const std::int64_t cells = volume(extent_of(block_.whole()));
    const LaunchShape shape{{pieces(std::min(cells, kShellGridMax * std::int64_t{kThreads}), kThreads), 1, 1},
                            {kThreads, 1, 1}};
    apps::require_device(change_.launch(shape, sequence_, change_there_.as<double>(), block_.next(), block_.current(),
                                        block_.layout(), block_.whole()),
                         "look for the largest change");
    apps::require_device(sequence_.copy(change_here_, change_there_), "fetch the largest change");
    co_await brant::stream_done(runtime_, sequence_);
    co_return *change_here_.as<double>();
  }

 private:
  brant::Runtime& runtime_;
  Block& block_;
  Kernel<double*, const double*, Layout, Box> sweep_;
  Kernel<double*, const double*, Layout, Shell> sweep_shell_;
  Kernel<double*, const double*, PackedFaces> pack_;
  Kernel<double*, const double*, PackedFaces> unpack_;
  Kernel<double*, Layout, Place> fill_;
  Kernel<double*, const double*, const double*, Layout, Box> change_;
  brant::Memory change_there_;  ///< On the device.
  brant::Memory change_here_;
  brant::Stream sequence_;  ///< When it goes it waits for its work.
  brant::Stream beside_;
  std::array<std::optional<brant::stream_done>, kSteps> ended_;  ///< Of the steps under way.
};

}  // namespace

std::unique_ptr<Stencil> make_device_stencil(brant::Runtime& runtime, Block& block) {
  return std::make_unique<DeviceStencil>(runtime, block);
}

std::unique_ptr<Stencil> make_stencil(brant::Runtime& runtime, Block& block) {
  return brant::host_accessible(block.kind()) ? make_host_stencil(runtime, block) : make_device_stencil(runtime, block);
}

}  // namespace jacobi
