#include <algorithm>

#include "host_kernels.h"
#include "stencil.h"

namespace jacobi {
namespace {

constexpr std::int64_t kSliceCells = 64 * 1024;  // about 100 us of work between two looks at the network

class HostStencil final : public Stencil {
 public:
  HostStencil(brant::Worker& worker, Block& block) noexcept : worker_(worker), block_(block) {}

  void fill() override {
    for (double* field : {block_.current(), block_.next()}) host::fill(field, block_.layout(), block_.place());
  }

  void start(Step step) override {
    if (step == Step::pack) host::pack(block_.send_buffer(), block_.current(), block_.outgoing());
    if (step == Step::unpack) host::unpack(block_.current(), block_.receive_buffer(), block_.incoming());
  }

  brant::Task<void> finish(Step step) override {
    if (step == Step::whole) co_await sweep(block_.whole());
    if (step == Step::interior) co_await sweep(block_.split().interior);
    const Shell& shell = block_.split().shell;
    for (int index = 0; step == Step::shell && index < shell.count; ++index) co_await sweep(shell.box[index]);
  }

  brant::Task<double> largest_change() override {
    double largest = 0;
    host::largest_change(&largest, block_.next(), block_.current(), block_.layout(), block_.whole());
    co_return largest;
  }

 private:
  /// In slices, and the network moves in between.
  brant::Task<void> sweep(Box box) {
    if (is_empty(box)) co_return;
    const Extent extent = extent_of(box);
    const std::int64_t planes = std::max<std::int64_t>(kSliceCells / (extent.x * extent.y), 1);
    for (Box slice = box; slice.low.z < box.high.z; slice.low.z = slice.high.z) {
      slice.high.z = std::min(slice.low.z + planes, box.high.z);
      host::sweep(block_.next(), block_.current(), block_.layout(), slice);
      co_await brant::yield(worker_);
    }
  }

  brant::Worker& worker_;
  Block& block_;
};

}  // namespace

std::unique_ptr<Stencil> make_host_stencil(brant::Runtime& runtime, Block& block) {
  return std::make_unique<HostStencil>(runtime.worker(), block);
}

}  // namespace jacobi
