#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include <fmt/format.h>

#include "brant/device.h"
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
constexpr std::int64_t kGridMax = 65535;      // of a grid's y and z
constexpr std::int64_t kPlanesPerPiece = 16;  // short pieces keep neighbouring blocks, and so the caches, together
constexpr std::int64_t kRowsPerTile = 8;
constexpr std::int64_t kCellsPerTile = 64;
constexpr std::int64_t kShellGridMax = 4096;

std::span<const std::byte> image() noexcept {
  return std::as_bytes(std::span(jacobi_kernels_fatbin, jacobi_kernels_fatbin_bytes));
}

// The host versions, with the arguments of the kernels: what an emulated device runs. A kernel's grid is a matter of
// speed: here one call does all of it.

void sweep_on_host(double* next, const double* current, Layout layout, Box box, std::int64_t) noexcept {
  host::sweep(next, current, layout, box);
}
void shell_on_host(double* next, const double* current, Layout layout, Shell shell) noexcept {
  for (int index = 0; index < shell.count; ++index) host::sweep(next, current, layout, shell.box[index]);
}
void pack_on_host(double* buffer, const double* field, PackedFaces faces) noexcept { host::pack(buffer, field, faces); }
void unpack_on_host(double* field, const double* buffer, PackedFaces faces) noexcept {
  host::unpack(field, buffer, faces);
}
void fill_on_host(double* field, Layout layout, Place place) noexcept { host::fill(field, layout, place); }
void difference_on_host(std::uint64_t* largest, const double* a, const double* b, Layout layout) noexcept {
  *largest = std::bit_cast<std::uint64_t>(host::largest_difference(a, b, layout));
}

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
        sweep_(runtime.device(), image(), "jacobi_sweep", host_version<sweep_on_host>),
        sweep_shell_(runtime.device(), image(), "jacobi_sweep_shell", host_version<shell_on_host>),
        pack_(runtime.device(), image(), "jacobi_pack", host_version<pack_on_host>),
        unpack_(runtime.device(), image(), "jacobi_unpack", host_version<unpack_on_host>),
        fill_(runtime.device(), image(), "jacobi_fill", host_version<fill_on_host>),
        difference_(runtime.device(), image(), "jacobi_difference", host_version<difference_on_host>),
        largest_(runtime.allocate(block.kind(), sizeof(std::uint64_t))),
        largest_on_host_(runtime.allocate(brant::MemoryKind::pinned, sizeof(std::uint64_t))),
        sequence_(runtime.device().create_stream(brant::StreamPriority::high)),
        beside_(runtime.device().create_stream()) {}

  void fill() override {
    const Extent cells = block_.layout().cells;
    const LaunchShape shape{{pieces(cells.x + 2, kThreads), at_most_grid(cells.y + 2), at_most_grid(cells.z + 2)},
                            {kThreads, 1, 1}};
    for (double* field : {block_.current(), block_.next()}) {
      require(fill_.launch(shape, sequence_, field, block_.layout(), block_.place()), "fill the field");
    }
    require(sequence_.synchronize(), "fill the field");
  }

  void start(Step step) override {
    if (!launch(step)) return;
    ended_[static_cast<std::size_t>(step)].emplace(runtime_, step == Step::interior ? beside_ : sequence_);
  }

  brant::Task<void> finish(Step step) override {
    std::optional<brant::stream_done>* ended = &ended_[static_cast<std::size_t>(step)];
    if (*ended) co_await ended->value();
    ended->reset();
  }

  double largest_change() override {
    const Extent cells = block_.layout().cells;
    const LaunchShape shape{
        {pieces(cells.x, kThreads), std::min(at_most_grid(cells.y), 64u), std::min(at_most_grid(cells.z), 64u)},
        {kThreads, 1, 1}};
    require(sequence_.fill(largest_, std::byte{0}), "clear a word");
    require(difference_.launch(shape, sequence_, largest_.as<std::uint64_t>(), block_.current(), block_.next(),
                               block_.layout()),
            "compute the residual");
    require(sequence_.copy(largest_on_host_, largest_), "copy a word");
    require(sequence_.synchronize(), "compute the residual");
    return std::bit_cast<double>(*largest_on_host_.as<std::uint64_t>());
  }

 private:
  /// Queues a step, if it has anything to do.
  bool launch(Step step) {
    const Layout& layout = block_.layout();
    const Split& split = block_.split();
    switch (step) {
      case Step::pack:
        if (block_.outgoing().count == 0) return false;
        require(pack_.launch(faces_shape(block_.outgoing()), sequence_, block_.send_buffer(), block_.current(),
                             block_.outgoing()),
                "pack the faces");
        return true;
      case Step::unpack:
        if (block_.incoming().count == 0) return false;
        require(unpack_.launch(faces_shape(block_.incoming()), sequence_, block_.current(), block_.receive_buffer(),
                               block_.incoming()),
                "unpack the faces");
        return true;
      case Step::whole: return sweep(block_.whole(), sequence_);
      case Step::interior: return sweep(split.interior, beside_);
      case Step::shell:
        if (split.shell.count == 0) return false;
        require(sweep_shell_.launch(shell_shape(split.shell), sequence_, block_.next(), block_.current(), layout,
                                    split.shell),
                "sweep the shell");
        return true;
    }
    return false;
  }

  bool sweep(const Box& box, brant::StreamHandle stream) {
    if (is_empty(box)) return false;
    require(
        sweep_.launch(sweep_shape(box), stream, block_.next(), block_.current(), block_.layout(), box, kPlanesPerPiece),
        "sweep");
    return true;
  }

  brant::Runtime& runtime_;
  Block& block_;
  Kernel<double*, const double*, Layout, Box, std::int64_t> sweep_;
  Kernel<double*, const double*, Layout, Shell> sweep_shell_;
  Kernel<double*, const double*, PackedFaces> pack_;
  Kernel<double*, const double*, PackedFaces> unpack_;
  Kernel<double*, Layout, Place> fill_;
  Kernel<std::uint64_t*, const double*, const double*, Layout> difference_;
  brant::Memory largest_;
  brant::Memory largest_on_host_;
  // The streams go before the memory, and wait for the work that uses it.
  brant::Stream sequence_;
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
