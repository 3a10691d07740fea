// Medians of docs/numbers/h200x2-2026-11-22.jsonl: latency, model channel, trigger host, commit 922b30e; of two rows of
// one size the first. Host rows of ucx from 64 KB to 1 MB are those that the automatic choice took, as programs get
// them. Of later commits are the courier, which has changed most since, and host memory that the receiver maps:
// f156726.

#include "core/paths/calibration.h"

namespace brant {
namespace {

constexpr std::size_t kKb = 1024;
constexpr std::size_t kMb = 1024 * kKb;
constexpr std::array<std::size_t, 8> kSizes = {8, kKb, 8 * kKb, 64 * kKb, 256 * kKb, kMb, 4 * kMb, 16 * kMb};

/// The first entries of `us` belong to the first sizes; 0: the path does not take so much.
struct Measured {
  Path path;
  EndPair ends;
  std::array<double, kSizes.size()> us;
};

constexpr EndPair kHost{false, false};
constexpr EndPair kDevice{true, true};
constexpr std::array<CostPoint, 6> kPulled = {{{16 * kKb, 0.73},
                                               {64 * kKb, 2.2315},
                                               {256 * kKb, 7.4305},
                                               {kMb, 34.4965},
                                               {4 * kMb, 326.2955},
                                               {16 * kMb, 1356.3525}}};
constexpr Measured kMeasured[] = {
    {Path::shm, kHost, {0.3325, 0.8635, 2.008, 8.05, 21.907, 85.202, 372.19, 1515.5}},
    {Path::ucx, kHost, {0.4265, 0.8375, 2.3665, 5.775, 15.622, 69.055, 375.24, 1651.3}},
    {Path::courier, kDevice, {3.9735, 3.888, 4.419, 5.805, 6.251, 8.5895, 17.756, 0}},
    {Path::copy_engine, kDevice, {8.6165, 8.6715, 8.9075, 8.8485, 9.5465, 11.771, 20.084, 53.086}},
    {Path::ucx, kDevice, {8.992, 9.1025, 9.191, 9.157, 9.8085, 12.13, 20.547, 52.846}},
    {Path::staged, kDevice, {14.933, 14.811, 17.666, 33.428, 65.413, 180.42, 590.66, 2265.2}},
};

Calibration make_defaults() {
  Calibration calibration;
  calibration.machine = {.brant = "0.1.0",
                         .ucx = "1.22.0",
                         .cuda = "CUDA 13.0 (driver 580.159.04)",
                         .host = "two NVIDIA H200 over NVLink",
                         .gpus = {}};
  for (const Measured& row : kMeasured) {
    for (std::size_t i = 0; i < kSizes.size() && row.us[i] != 0; ++i) {
      calibration.add(row.path, row.ends, {kSizes[i], row.us[i]});
    }
  }
  for (const CostPoint& point : kPulled) calibration.add(Path::shm, kFromMapped, point);
  return calibration;
}

}  // namespace

const Calibration& Calibration::defaults() {
  static const Calibration calibration = make_defaults();
  return calibration;
}

}  // namespace brant
