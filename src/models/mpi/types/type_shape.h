#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "brant/base/shape.h"
#include "models/mpi/types/datatype.h"

namespace brant::mpi {

/// Items of a type as a brant Shape, which transfers take: the mover and its kernels then pack and unpack, on the host
/// and on devices. What is laid out regularly, up to eight dimensions with that of the items, is a strided shape; the
/// rest becomes a list of runs, which this object owns and which costs 16 bytes a run.
///
/// Shapes have no bytes before their address; types do. So lay the shape `first()` bytes behind the program's buffer.
class TypeShape {
 public:
  /// Runs of a list, at most: 16 MB of them.
  static constexpr std::size_t kRunsMost = std::size_t{1} << 20;

  /// Of the bytes `begin` to `end` of what `count` items pack to. If these have more than kRunsMost runs, the shape is
  /// of the first ones alone: see its `bytes()`, and go on behind them. Strided shapes come out for all the items
  /// together, from 0 to `type.bytes_of(count)`. None: offsets that 63 bits do not hold.
  static std::optional<TypeShape> of(const Datatype& type, Count count, Count begin, Count end);
  static std::optional<TypeShape> of(const Datatype& type, Count count) {
    return of(type, count, 0, type.bytes_of(count));
  }

  TypeShape(TypeShape&&) noexcept = default;
  TypeShape& operator=(TypeShape&&) noexcept = default;
  TypeShape(const TypeShape&) = delete;
  TypeShape& operator=(const TypeShape&) = delete;

  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::ptrdiff_t first() const noexcept { return first_; }

 private:
  TypeShape() = default;
  [[nodiscard]] bool be_strided(const Datatype& type, Count count);
  [[nodiscard]] bool be_list(const Datatype& type, Count begin, Count end);

  Shape shape_;
  std::ptrdiff_t first_ = 0;
  std::vector<ByteRun> runs_;
};

}  // namespace brant::mpi
