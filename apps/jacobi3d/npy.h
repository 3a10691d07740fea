#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "grid.h"

/// Reading and writing of NumPy's .npy files: three-dimensional arrays of little-endian doubles. Element [i, j, k] is
/// the cell x = i, y = j, z = k, whatever order the file is in. Every fault is thrown as brant::Error and names the
/// file and what is wrong with it.
namespace jacobi {

struct NpyHeader {
  Extent shape;
  bool fortran_order = false;   ///< The first index is contiguous.
  std::size_t data_offset = 0;  ///< Of the first element in the file.

  /// Where the element of a cell lies, counted in elements.
  [[nodiscard]] std::int64_t at(std::int64_t x, std::int64_t y, std::int64_t z) const noexcept {
    return fortran_order ? x + shape.x * (y + shape.y * z) : z + shape.z * (y + shape.y * x);
  }
};

/// Parses the start of a file. `name` is for error texts.
NpyHeader parse_npy_header(std::span<const std::byte> start, std::string_view name);

/// The header of a Fortran-order array, padded so that the data is aligned to 64 bytes.
std::string make_npy_header(const Extent& shape);

/// An array mapped for reading.
class NpyReader {
 public:
  explicit NpyReader(const std::string& name);
  NpyReader(const NpyReader&) = delete;
  NpyReader& operator=(const NpyReader&) = delete;
  ~NpyReader();

  [[nodiscard]] const Extent& shape() const noexcept { return header_.shape; }
  /// Copies `count` cells from (x, y, z) along x.
  void read_row(std::int64_t x, std::int64_t y, std::int64_t z, std::span<double> row) const noexcept;

 private:
  std::span<const std::byte> file_;
  NpyHeader header_;
};

/// A file under construction beside the final name: `commit` puts it in place at once; without it nothing is left.
class NpyWriter {
 public:
  /// Reserves the space on the disk.
  NpyWriter(const std::string& name, const Extent& shape);
  NpyWriter(const NpyWriter&) = delete;
  NpyWriter& operator=(const NpyWriter&) = delete;
  ~NpyWriter();

  void write_row(std::int64_t x, std::int64_t y, std::int64_t z, std::span<const double> row);
  void commit();

 private:
  [[noreturn]] void fail(const char* what, int error) const;

  std::string name_;
  std::string temporary_;
  NpyHeader header_;
  int file_ = -1;
};

}  // namespace jacobi
