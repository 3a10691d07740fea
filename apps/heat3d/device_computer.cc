#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "brant/device.h"
#include "computer.h"
#include "devices.h"
#include "host_kernels.h"

// Made by brant_fatbin from kernels.cu.
extern "C" const unsigned char heat_kernels_fatbin[];
extern "C" const std::size_t heat_kernels_fatbin_bytes;

namespace heat {
namespace {

using brant::host_version;
using brant::Kernel;
using brant::LaunchShape;
using brant::Status;

constexpr unsigned kThreads = 256;
constexpr std::int64_t kGridMax = 4096;  // of a grid that strides
constexpr std::int64_t kTileX = 32, kTileY = 8;

std::span<const std::byte> image() noexcept {
  return std::as_bytes(std::span(heat_kernels_fatbin, heat_kernels_fatbin_bytes));
}

/// For so many items at most in each of so many groups.
LaunchShape strides(std::int64_t items, int groups) noexcept {
  const std::int64_t blocks = std::clamp<std::int64_t>(pieces(items, kThreads), 1, kGridMax);
  return {{static_cast<unsigned>(blocks), static_cast<unsigned>(groups), 1}, {kThreads, 1, 1}};
}

LaunchShape tiles(const Box& box) noexcept {
  const Extent extent = extent_of(box);
  return {{pieces(extent.x, kTileX), pieces(extent.y, kTileY), static_cast<unsigned>(std::min(extent.z, kGridMax))},
          {kTileX, kTileY, 1}};
}

/// Two streams: packing and the surface are one sequence; the inner cells run beside it, and let it pass: others wait
/// for the faces.
class DeviceComputer final : public Computer {
 public:
  DeviceComputer(brant::Runtime& runtime, const Block& block)
      : runtime_(runtime),
        block_(block),
        pack_(runtime.device(), image(), "heat_pack", host_version<host::pack>),
        conduct_(runtime.device(), image(), "heat_conduct", host_version<host::conduct>),
        conduct_shell_(runtime.device(), image(), "heat_conduct_shell", host_version<host::conduct_shell>),
        add_(runtime.device(), image(), "heat_add", host_version<host::add>),
        sums_(runtime.allocate(block.kind(), kSums * sizeof(double))),
        sequence_(runtime.device().create_stream(brant::StreamPriority::high)),
        beside_(runtime.device().create_stream()) {
    for (int side = 0; side < kFaces; ++side) {
      if (block.neighbour(side)) largest_face_ = std::max(largest_face_, face_cells(block.body().cells, side));
    }
  }

  void begin(std::span<const double> temperatures) override {
    runtime_.copy({block_.field(0), temperatures.size_bytes(), block_.kind()},
                  brant::ConstBuffer(temperatures, brant::MemoryKind::host));
  }

  void start(Part part, std::int64_t step, double power) override {
    Body body = block_.body();
    body.power = power;
    const Split& split = block_.split();
    const double* const field = block_.field(step);
    const double* const ghosts = block_.ghosts(step);
    double* const next = block_.field(step + 1);
    Status launched = Status::ok;
    if (part == Part::pack && largest_face_ > 0) {
      launched = pack_.launch(strides(largest_face_, kFaces), sequence_, block_.faces(step), field, body);
    }
    if (part == Part::inner && !is_empty(split.interior)) {
      launched = conduct_.launch(tiles(split.interior), beside_, next, field, ghosts, body, split.interior);
    }
    if (part == Part::surface && split.shell.count > 0) {
      launched = conduct_shell_.launch(strides(largest_face_, split.shell.count), sequence_, next, field, ghosts, body,
                                       split.shell);
    }
    apps::require_device(launched, "launch a kernel");
  }

  void finish(Part part) override { wait(part == Part::inner ? beside_ : sequence_); }

  [[nodiscard]] bool works_here() const noexcept override { return false; }

  double sum(std::int64_t step) override {
    std::array<double, kSums> sums{};
    apps::require_device(add_.launch({{static_cast<unsigned>(kSums), 1, 1}, {kThreads, 1, 1}}, sequence_,
                                     sums_.as<double>(), block_.field(step), volume(block_.body().cells)),
                         "add temperatures");
    wait(sequence_);
    runtime_.copy(brant::Buffer(sums.data(), sizeof sums, brant::MemoryKind::host), sums_.part(0, sizeof sums));
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  }

 private:
  void wait(const brant::Stream& stream) {
    Status status = Status::in_progress;
    auto ended = [&] {
      status = stream.poll();
      return status != Status::in_progress;
    };
    static_cast<void>(runtime_.worker().wait_until(ended));
    apps::require_device(status, "run a kernel");
  }

  brant::Runtime& runtime_;
  const Block& block_;
  Kernel<double*, const double*, Body> pack_;
  Kernel<double*, const double*, const double*, Body, Box> conduct_;
  Kernel<double*, const double*, const double*, Body, Shell> conduct_shell_;
  Kernel<double*, const double*, std::int64_t> add_;
  brant::Memory sums_;
  std::int64_t largest_face_ = 0;
  brant::Stream sequence_;  ///< When it goes it waits for its work.
  brant::Stream beside_;
};

}  // namespace

std::unique_ptr<Computer> make_device_computer(brant::Runtime& runtime, const Block& block) {
  return std::make_unique<DeviceComputer>(runtime, block);
}

}  // namespace heat
