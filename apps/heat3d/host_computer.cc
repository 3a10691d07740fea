#include <algorithm>
#include <array>
#include <numeric>

#include "computer.h"
#include "host_kernels.h"

namespace heat {
namespace {

constexpr std::int64_t kSliceCells = std::int64_t{64} * 1024;  // about 100 us of work between two looks at the network

class HostComputer final : public Computer {
 public:
  HostComputer(brant::Runtime& runtime, const Block& block) : worker_(runtime.worker()), block_(block) {}

  void begin(std::span<const double> temperatures) override {
    std::copy(temperatures.begin(), temperatures.end(), block_.field(0));
  }

  void start(Part part, std::int64_t step, double power) override {
    body_ = block_.body();
    body_.power = power;
    step_ = step;
    if (part == Part::pack) host::pack(block_.faces(step), block_.field(step), body_);
  }

  void finish(Part part) override {
    if (part == Part::inner) conduct(block_.split().interior);
    const Shell& shell = block_.split().shell;
    for (int index = 0; part == Part::surface && index < shell.count; ++index) conduct(shell.box[index]);
  }

  [[nodiscard]] bool works_here() const noexcept override { return true; }

  double sum(std::int64_t step) override {
    std::array<double, kSums> sums{};
    host::add(sums.data(), block_.field(step), volume(block_.body().cells));
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  }

 private:
  /// In slices, and the network moves in between.
  void conduct(const Box& box) {
    if (is_empty(box)) return;
    const Extent extent = extent_of(box);
    const std::int64_t planes = std::max<std::int64_t>(kSliceCells / (extent.x * extent.y), 1);
    for (Box slice = box; slice.low.z < box.high.z; slice.low.z = slice.high.z) {
      slice.high.z = std::min(slice.low.z + planes, box.high.z);
      host::conduct(block_.field(step_ + 1), block_.field(step_), block_.ghosts(step_), body_, slice);
      worker_.progress();
    }
  }

  brant::Worker& worker_;
  const Block& block_;
  Body body_;
  std::int64_t step_ = 0;
};

}  // namespace

std::unique_ptr<Computer> make_host_computer(brant::Runtime& runtime, const Block& block) {
  return std::make_unique<HostComputer>(runtime, block);
}

std::unique_ptr<Computer> make_computer(brant::Runtime& runtime, const Block& block) {
  return brant::host_accessible(block.kind()) ? make_host_computer(runtime, block)
                                              : make_device_computer(runtime, block);
}

}  // namespace heat
