#include "cli/calibrate/packs.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "bench/runner/statistics.h"
#include "bench/runner/us_since.h"
#include "brant/core/stream_done.h"
#include "models/halo/copies.h"

namespace brant::cli::calibrate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kCell = 8;
constexpr std::size_t kRowMax = 2048;
constexpr std::size_t kSmallPack = std::size_t{1} << 10;
constexpr std::size_t kLargePack = std::size_t{16} << 20;
constexpr std::size_t kRowStep = kRowMax + 128;  ///< Of an array with ghosts, which are not packed.
constexpr int kSamples = 15;
constexpr int kInARow = 8;

/// Faces of an array of several sizes, and a buffer that each is packed into.
class Faces {
 public:
  explicit Faces(Runtime& runtime)
      : runtime_(runtime),
        field_(runtime.allocate(runtime.device_kind(), kLargePack / kRowMax * kRowStep)),
        buffer_(runtime.allocate(runtime.device_kind(), kLargePack)),
        stream_(runtime.device().create_stream(StreamPriority::high)) {
    for (std::size_t bytes = kSmallPack; bytes <= kLargePack; bytes *= 2) add(bytes);
    const std::array bases = {static_cast<std::byte*>(field_.data()), static_cast<std::byte*>(buffer_.data())};
    copies_.upload(runtime, bases.size());
    require(copies_.set_bases(bases, stream_));
    require(stream_.synchronize());
  }

  [[nodiscard]] const std::vector<std::size_t>& sizes() const noexcept { return sizes_; }
  /// Microseconds of so many launches of the kernel, until the CPU sees the end of the last one.
  double pack(std::size_t face, int times) {
    const auto begin = Clock::now();
    for (int i = 0; i < times; ++i) require(copies_.launch(phases_[face], stream_));
    runtime_.run(ended());
    return bench::us_since(begin);
  }

 private:
  static void require(Status status) {
    if (status != Status::ok) throw_error(status, "calibrate: the kernel that packs");
  }
  void add(std::size_t bytes) {
    const std::size_t row = std::min(bytes, kRowMax);
    halo::Box box;
    box.high = {static_cast<std::int64_t>(row / kCell), static_cast<std::int64_t>(bytes / row), 1};
    halo::FieldStrides strides;
    strides.cell = kCell;
    strides.row = kRowStep;
    copies_.add(halo::Copies::end_in_field(strides, box, 0), halo::Copies::end_packed(strides, box, 1, 0), box, kCell,
                1);
    phases_.push_back(copies_.end_phase());
    sizes_.push_back(bytes);
  }
  Task<void> ended() { co_await stream_done(runtime_, stream_); }

  Runtime& runtime_;
  Memory field_;
  Memory buffer_;
  halo::Copies copies_;
  std::vector<std::size_t> sizes_;
  std::vector<halo::Phase> phases_;
  Stream stream_;
};

}  // namespace

bench::model::PackParameters measure_packs(Runtime& runtime) {
  Faces faces(runtime);
  bench::model::PackParameters found;
  std::vector<bench::model::Point> points;
  for (std::size_t face = 0; face < faces.sizes().size(); ++face) {
    const auto bytes = static_cast<double>(faces.sizes()[face]);
    faces.pack(face, 1);
    std::vector<double> one(kSamples), several(kSamples);
    for (double& us : one) us = faces.pack(face, 1);
    for (double& us : several) us = faces.pack(face, kInARow) / kInARow;  // launches are hidden behind kernels
    const double fastest = std::min(bench::summarize(one).min, bench::summarize(several).min);
    points.push_back({bytes, bench::summarize(one).p50});
    found.best_gb_s = std::max(found.best_gb_s, bytes / fastest / 1e3);
  }
  found.postal = bench::model::fit_postal(points);
  return found;
}

}  // namespace brant::cli::calibrate
