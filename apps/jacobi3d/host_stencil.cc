#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "host_kernels.h"
#include "stencil.h"

namespace jacobi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSliceCells = 64 * 1024;  // about 100 us of work between two looks at the network
constexpr std::size_t kCopyPiece = std::size_t{1} << 30;
constexpr auto kCopyTime = std::chrono::milliseconds(50);

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
  explicit HostStencil(Block& block) noexcept : block_(block) {}

  void fill() override {
    for (double* field : {block_.current(), block_.next()}) {
      host::fill(field, block_.layout(), block_.place(), -1, block_.layout().cells.z + 1);
    }
  }

  void start(Step step) override {
    const Box whole = block_.whole();
    switch (step) {
      case Step::pack: host::pack(block_.send_buffer(), block_.current(), block_.outgoing()); break;
      case Step::unpack: host::unpack(block_.current(), block_.receive_buffer(), block_.incoming()); break;
      case Step::whole: sweep_of(step).begin(&whole, 1); break;
      case Step::interior: sweep_of(step).begin(&block_.split().interior, 1); break;
      case Step::shell: sweep_of(step).begin(block_.split().shell.box, block_.split().shell.count); break;
    }
  }

  bool finished(Step step) override {
    Sweep& sweep = sweep_of(step);
    if (!sweep.done()) host::sweep(block_.next(), block_.current(), block_.layout(), sweep.take());
    return sweep.done();
  }

  double largest_change() override {
    return host::largest_difference(block_.current(), block_.next(), block_.layout(), block_.whole());
  }

  double copy_bandwidth() override {
    const std::size_t bytes = static_cast<std::size_t>(block_.layout().doubles) * sizeof(double);
    copy(bytes);  // the pages are there afterwards
    std::size_t copies = 0;
    const Clock::time_point begin = Clock::now();
    Clock::duration spent{};
    do {
      copy(bytes);
      ++copies;
      spent = Clock::now() - begin;
    } while (spent < kCopyTime);
    return 2.0 * static_cast<double>(bytes * copies) / std::chrono::duration<double>(spent).count();
  }

 private:
  Sweep& sweep_of(Step step) noexcept { return sweeps_[static_cast<std::size_t>(step)]; }

  void copy(std::size_t bytes) noexcept {
    auto* to = reinterpret_cast<std::byte*>(block_.next());
    const auto* from = reinterpret_cast<const std::byte*>(block_.current());
    for (std::size_t at = 0; at < bytes; at += kCopyPiece)
      std::memcpy(to + at, from + at, std::min(kCopyPiece, bytes - at));
  }

  Block& block_;
  std::array<Sweep, kSteps> sweeps_;
};

}  // namespace

std::unique_ptr<Stencil> make_host_stencil(Block& block) { return std::make_unique<HostStencil>(block); }

}  // namespace jacobi
