#include "core/paths/path_order.h"

#include <cmath>
#include <optional>

namespace brant {
namespace {

using Order = PathOrder::Order;
using Band = PathOrder::Band;

constexpr std::size_t kAnySize = std::numeric_limits<std::size_t>::max();

// Within one kind of memory.
constexpr Order kShmFirst = {Path::shm, Path::ucx, Path::staged, Path::copy_engine, Path::courier};
constexpr Order kUcxThenShm = {Path::ucx, Path::shm, Path::staged, Path::copy_engine, Path::courier};
constexpr Order kMappedFirst = {Path::courier, Path::copy_engine, Path::ucx, Path::staged, Path::shm};
// Between host and device.
constexpr Order kUcxThenMapped = {Path::ucx, Path::copy_engine, Path::courier, Path::staged, Path::shm};

/// Tables have a few points per decade: finer steps would only find noise.
constexpr int kStepsPerOctave = 8;
constexpr int kOctaves = 36;

Order order_by_time(const Calibration& calibration, EndPair ends, std::size_t bytes) {
  const Order& usual = PathOrder::defaults().at(ends, bytes);
  std::array<std::optional<double>, std::tuple_size_v<Order>> us;
  for (std::size_t i = 0; i < usual.size(); ++i) us[i] = calibration.predict(usual[i], ends, bytes);
  Order order{};
  std::array<bool, std::tuple_size_v<Order>> placed{};
  for (Path& place : order) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < usual.size(); ++i) {
      if (!placed[i] && us[i]) least = std::min(least, *us[i]);
    }
    const bool none_measured = std::isinf(least);
    for (std::size_t i = 0; i < usual.size(); ++i) {
      if (placed[i]) continue;
      if (!none_measured && (!us[i] || *us[i] > least * (1 + kPathTie))) continue;
      place = usual[i];
      placed[i] = true;
      break;
    }
  }
  return order;
}

/// The last size between the two that still has the order of the lower one.
std::size_t boundary(const Calibration& calibration, EndPair ends, std::size_t low, std::size_t high) {
  const Order first = order_by_time(calibration, ends, low);
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (order_by_time(calibration, ends, middle) == first ? low : high) = middle;
  }
  return low;
}

std::vector<Band> bands_by_time(const Calibration& calibration, EndPair ends) {
  std::vector<Band> bands;
  std::size_t last = 0;
  Order order = order_by_time(calibration, ends, last);
  for (int step = 0; step <= kOctaves * kStepsPerOctave; ++step) {
    const auto bytes = static_cast<std::size_t>(std::exp2(static_cast<double>(step) / kStepsPerOctave));
    const Order here = order_by_time(calibration, ends, bytes);
    // Several orders may follow each other between two steps.
    while (here != order) {
      last = boundary(calibration, ends, last, bytes);
      bands.push_back({last, order});
      order = order_by_time(calibration, ends, ++last);
    }
    last = bytes;
  }
  bands.push_back({kAnySize, order});
  return bands;
}

}  // namespace

const PathOrder& PathOrder::defaults() {
  static const PathOrder order = [] {
    PathOrder usual;
    usual.bands_[EndPair{false, false}.index()] = {
        {kShmSmallBytes, kShmFirst}, {kShmLargeBytes - 1, kUcxThenShm}, {kAnySize, kShmFirst}};
    usual.bands_[EndPair{false, true}.index()] = {{kShmSmallBytes, kShmFirst}, {kAnySize, kUcxThenMapped}};
    usual.bands_[EndPair{true, false}.index()] = {{kAnySize, kUcxThenMapped}};
    usual.bands_[EndPair{true, true}.index()] = {{kAnySize, kMappedFirst}};
    usual.bands_[kFromMapped.index()] = {{kAnySize, kShmFirst}};
    return usual;
  }();
  return order;
}

const PathOrder& PathOrder::one_sided() {
  static const PathOrder order = [] {
    PathOrder mapped_first;
    for (const EndPair ends : kAllEndPairs) {
      const bool of_device = ends.from_device || ends.to_device;
      mapped_first.bands_[ends.index()] = {{kAnySize, of_device ? kMappedFirst : kShmFirst}};
    }
    return mapped_first;
  }();
  return order;
}

PathOrder::PathOrder(const Calibration& calibration) : bands_(defaults().bands_) {
  for (const EndPair ends : kAllEndPairs) {
    if (calibration.knows(ends) && !ends.from_mapped) bands_[ends.index()] = bands_by_time(calibration, ends);
  }
}

PathOrder PathOrder::preferring(Path first) {
  PathOrder changed = defaults();
  for (std::vector<Band>& bands : changed.bands_) {
    for (Band& band : bands) {
      const auto place = std::find(band.order.begin(), band.order.end(), first);
      if (place != band.order.end()) std::rotate(band.order.begin(), place, place + 1);
    }
  }
  return changed;
}

}  // namespace brant
