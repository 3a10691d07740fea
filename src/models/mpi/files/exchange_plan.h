#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace brant::mpi {

/// What a member of a file says of its part in a collective access, before anybody begins.
struct AccessPart {
  std::int64_t begin = 0;  ///< Of its bytes in the file, and where they end.
  std::int64_t end = 0;
  std::uint64_t bytes = 0;
  std::uint64_t run_bytes = 0;    ///< How many of them lie together, on average.
  std::int64_t file_bytes = 0;    ///< Up to where it can be read.
  std::int32_t can_exchange = 0;  ///< 0: it does its part by itself, or cannot do it.
  std::int32_t unused = 0;
};

/// Whether members should exchange their data, so that each reads or writes one stretch of the file: where many small
/// runs of several of them lie among each other. All find the same.
[[nodiscard]] bool exchange_pays(std::span<const AccessPart> parts) noexcept;

/// Who takes care of which bytes: the file goes by in rounds, in each of which every member has a stretch.
class Stretches {
 public:
  /// `parts`: of all members, some of which have bytes.
  explicit Stretches(std::span<const AccessPart> parts) noexcept;

  [[nodiscard]] std::size_t members() const noexcept { return members_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t rounds() const noexcept;
  /// Where the stretch of a member begins in the file.
  [[nodiscard]] std::int64_t begin(std::uint64_t round, std::size_t member) const noexcept {
    return begin_ + static_cast<std::int64_t>((round * members_ + member) * bytes_);
  }

 private:
  const std::size_t members_;
  const std::size_t bytes_;  ///< Of a stretch.
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
};

}  // namespace brant::mpi
