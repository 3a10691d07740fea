#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "brant/base/result.h"
#include "brant/base/shape.h"

namespace brant {

/// The shapes of a copy as they travel to the process that makes it, and as that keeps them, with their lists of runs.
class KeptShapes {
 public:
  /// Of both together, as they travel: some 16,000 runs.
  static constexpr std::size_t kBytesMost = std::size_t{256} << 10;

  /// So many bytes `pack` takes.
  [[nodiscard]] static std::size_t packed_bytes(const TransferShapes& shapes) noexcept;
  /// Behind what is in `to`. Throws bad_alloc.
  static void pack(const TransferShapes& shapes, std::vector<std::byte>& to);
  /// invalid_argument: these are no shapes. Throws bad_alloc.
  Status unpack(std::span<const std::byte> packed);

  [[nodiscard]] const TransferShapes& shapes() const noexcept { return shapes_; }

 private:
  static Status unpack_one(std::span<const std::byte>& packed, Shape& shape, std::vector<ByteRun>& runs);

  TransferShapes shapes_;
  std::vector<ByteRun> from_runs_;
  std::vector<ByteRun> to_runs_;
};

}  // namespace brant
