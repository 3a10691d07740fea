#pragma once

#include <cstdint>
#include <span>

#include "core/paths/collective_bands.h"
#include "ops/coll/device/stream_plan.h"
#include "ops/coll/plan.h"

namespace brant::coll {

/// Where algorithms change, as `brant calibrate` has found it on a machine. Each band is a number of bytes; 0: it was
/// not measured there. Members tell each other theirs, since machines may differ, and all take the same.
struct MeasuredBands {
  std::uint64_t slices_from = 0;
  std::uint64_t reads_from = 0;
  std::uint64_t kernel_lines_to = 0;
  std::uint64_t kernel_slices_from = 0;

  bool operator==(const MeasuredBands&) const noexcept = default;
};

/// What calibrations call them: "slices", "reads", "kernel_lines", "kernel_slices".
inline constexpr const char* kSlicesBand = "slices";
inline constexpr const char* kReadsBand = "reads";
inline constexpr const char* kKernelLinesBand = "kernel_lines";
inline constexpr const char* kKernelSlicesBand = "kernel_slices";

/// Those for teams of so many members. Of the host: measured with as many, else with the next fewer, else with the next
/// more of them. Of kernels: with as many, since each sends to all others.
MeasuredBands measured_bands(std::span<const CollectiveBand> known, unsigned members) noexcept;
/// Of what two members know, for each band the larger one: the algorithm for fewer bytes costs less where it does not
/// pay.
MeasuredBands larger(const MeasuredBands& one, const MeasuredBands& another) noexcept;

/// The built-in ones where nothing was measured.
Bands bands_of(const MeasuredBands& measured) noexcept;
StreamBands stream_bands_of(const MeasuredBands& measured, unsigned members) noexcept;

}  // namespace brant::coll
