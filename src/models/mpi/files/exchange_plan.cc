#include "models/mpi/files/exchange_plan.h"

#include <limits>
#include <vector>

namespace brant::mpi {

namespace {

/// Runs of that size are written as quickly as they would be sent.
constexpr std::uint64_t kLargeRun = std::uint64_t{64} << 10;
/// Fewer of them are not worth an exchange.
constexpr std::uint64_t kRunsLeast = 64;
/// What members hold of a round together, and of a stretch alone.
constexpr std::size_t kRoundBytes = std::size_t{64} << 20;
constexpr std::size_t kStretchMost = std::size_t{4} << 20;
constexpr std::size_t kStretchLeast = std::size_t{64} << 10;

struct Hull {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;
};

Hull hull_of(std::span<const AccessPart> parts) noexcept {
  Hull hull;
  for (const AccessPart& part : parts) {
    if (part.bytes == 0) continue;
    hull.begin = std::min(hull.begin, part.begin);
    hull.end = std::max(hull.end, part.end);
  }
  return hull;
}

/// Some part begins in front of the end of another one that begins before it.
bool lie_among_each_other(std::span<const AccessPart> parts) {
  std::vector<Hull> hulls;
  for (const AccessPart& part : parts) {
    if (part.bytes != 0) hulls.push_back({part.begin, part.end});
  }
  std::ranges::sort(hulls, {}, &Hull::begin);
  for (std::size_t i = 1; i < hulls.size(); ++i) {
    if (hulls[i].begin < hulls[i - 1].end) return true;
    hulls[i].end = std::max(hulls[i].end, hulls[i - 1].end);
  }
  return false;
}

}  // namespace

bool exchange_pays(std::span<const AccessPart> parts) noexcept {
  std::uint64_t bytes = 0, runs = 0;
  for (const AccessPart& part : parts) {
    if (part.can_exchange == 0) return false;
    bytes += part.bytes;
    runs += part.bytes / std::max<std::uint64_t>(part.run_bytes, 1);
  }
  if (runs < kRunsLeast || bytes / runs >= kLargeRun) return false;
  const Hull hull = hull_of(parts);
  const bool is_dense = bytes >= static_cast<std::uint64_t>(hull.end - hull.begin) / 2;
  return is_dense && lie_among_each_other(parts);
}

/// Stretches begin at multiples of their size, as blocks of file systems do.
Stretches::Stretches(std::span<const AccessPart> parts) noexcept
    : members_(parts.size()),
      bytes_(std::clamp(kRoundBytes / parts.size(), kStretchLeast, kStretchMost) / kStretchLeast * kStretchLeast) {
  const Hull hull = hull_of(parts);
  begin_ = hull.begin - hull.begin % static_cast<std::int64_t>(bytes_);
  end_ = hull.end;
}

std::uint64_t Stretches::rounds() const noexcept {
  const std::uint64_t round = members_ * bytes_;
  return (static_cast<std::uint64_t>(end_ - begin_) + round - 1) / round;
}

}  // namespace brant::mpi
