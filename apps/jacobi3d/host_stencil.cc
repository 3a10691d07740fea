#include <algorithm>
#include <array>

#include "host_kernels.h"
#include "stencil.h"

namespace jacobi {
namespace {

constexpr std::int64_t kSliceCells = 64 * 1024;  // about 100 us of work between two looks at the network

/// Boxes still to be swept, from the lowest plane upwards.
class Sweep {
 public:
  void begin(const Box* boxes, int count) noexcept {
    left_.count = 0;
    for (int index = count - 1; index >= 0; --index) {  // taken from the end
      if (!is_empty(boxes[index])) left_.box[left_.count++] = boxes[index];
    }
  }
  [[nodiscard]] bool done() const noexcept { return left_.count == 0; }

  /// The next slice; call only while not done.
  Box take() noexcept {
    Box& box = left_.box[left_.count - 1];
    const Extent extent = extent_of(box);
    const std::int64_t planes = std::clamp<std::int64_t>(kSliceCells / (extent.x * extent.y), 1, extent.z);
    Box slice = box;
    slice.high.z = box.low.z += planes;
    if (is_empty(box)) --left_.count;
    return slice;
  }

 private:
  Shell left_;
};

class HostStencil final : public Stencil {
 public:
  HostStencil(brant::Worker& worker, Block& block) noexcept : worker_(worker), block_(block) {}

  void fill() override {
    for (double* field : {block_.current(), block_.next()}) host::fill(field, block_.layout(), block_.place());
  }

  void start(Step step) override {
    const Box whole = block_.whole();
    const Split& split = block_.split();
    switch (step) {
      case Step::pack: host::pack(block_.send_buffer(), block_.current(), block_.outgoing()); break;
      case Step::unpack: host::unpack(block_.current(), block_.receive_buffer(), block_.incoming()); break;
      case Step::whole: sweep_of(step).begin(&whole, 1); break;
      case Step::interior: sweep_of(step).begin(&split.interior, 1); break;
      case Step::shell: sweep_of(step).begin(split.shell.box, split.shell.count); break;
    }
  }

  brant::Task<void> finish(Step step) override {
    for (Sweep& sweep = sweep_of(step); !sweep.done(); co_await brant::yield(worker_)) {
      host::sweep(block_.next(), block_.current(), block_.layout(), sweep.take());
    }
  }

  double largest_change() override {
    return host::largest_difference(block_.current(), block_.next(), block_.layout());
  }

 private:
  Sweep& sweep_of(Step step) noexcept { return sweeps_[static_cast<std::size_t>(step)]; }

  brant::Worker& worker_;
  Block& block_;
  std::array<Sweep, kSteps> sweeps_;
};

}  // namespace

std::unique_ptr<Stencil> make_host_stencil(brant::Runtime& runtime, Block& block) {
  return std::make_unique<HostStencil>(runtime.worker(), block);
}

}  // namespace jacobi
