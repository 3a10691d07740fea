#include "ops/coll/measured_bands.h"

#include <algorithm>
#include <string_view>

namespace brant::coll {
namespace {

std::uint64_t with_as_many(std::span<const CollectiveBand> known, std::string_view name, unsigned members) noexcept {
  for (const CollectiveBand& band : known) {
    if (band.name == name && band.members == members) return band.bytes;
  }
  return 0;
}

std::uint64_t nearest(std::span<const CollectiveBand> known, std::string_view name, unsigned members) noexcept {
  const CollectiveBand *fewer = nullptr, *more = nullptr;
  for (const CollectiveBand& band : known) {
    if (band.name != name) continue;
    if (band.members <= members && (fewer == nullptr || band.members > fewer->members)) fewer = &band;
    if (band.members > members && (more == nullptr || band.members < more->members)) more = &band;
  }
  const CollectiveBand* found = fewer != nullptr ? fewer : more;
  return found == nullptr ? 0 : found->bytes;
}

}  // namespace

MeasuredBands measured_bands(std::span<const CollectiveBand> known, unsigned members) noexcept {
  return {.slices_from = nearest(known, kSlicesBand, members),
          .reads_from = nearest(known, kReadsBand, members),
          .kernel_lines_to = with_as_many(known, kKernelLinesBand, members),
          .kernel_slices_from = with_as_many(known, kKernelSlicesBand, members)};
}

MeasuredBands larger(const MeasuredBands& one, const MeasuredBands& another) noexcept {
  return {.slices_from = std::max(one.slices_from, another.slices_from),
          .reads_from = std::max(one.reads_from, another.reads_from),
          .kernel_lines_to = std::max(one.kernel_lines_to, another.kernel_lines_to),
          .kernel_slices_from = std::max(one.kernel_slices_from, another.kernel_slices_from)};
}

Bands bands_of(const MeasuredBands& measured) noexcept {
  Bands bands;
  if (measured.slices_from != 0) bands.slices_from = measured.slices_from;
  if (measured.reads_from != 0) bands.reads_from = measured.reads_from;
  return bands;
}

StreamBands stream_bands_of(const MeasuredBands& measured, unsigned members) noexcept {
  StreamBands bands;
  if (measured.kernel_lines_to != 0 && members <= kStreamMembersMax) bands.lines_to[members] = measured.kernel_lines_to;
  if (measured.kernel_slices_from != 0) bands.slices_from = measured.kernel_slices_from;
  return bands;
}

}  // namespace brant::coll
