#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/memory_file.h"

namespace brant {

/// A memory file and this process's mapping of it, which ends with this object. What others mapped stays there, with
/// its bytes, also when the process that made the file has ended. Pages that nobody has written take no memory.
class MappedFile {
 public:
  /// This process's own. The errors of `MemoryFile::create` and `map`.
  static Result<MappedFile> create(const char* name, std::size_t bytes) noexcept;
  /// A peer's. The errors of `MemoryFile::open` and `map`.
  static Result<MappedFile> open(const MemoryFileRecord& record) noexcept;

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  /// For `open` elsewhere, as long as this object lives. not_supported for a peer's.
  [[nodiscard]] Result<MemoryFileRecord> record() const noexcept;
  /// Whole pages.
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  explicit MappedFile(std::span<std::byte> bytes) noexcept : bytes_(bytes) {}
  static Result<MappedFile> map(const MemoryFile& file) noexcept;

  std::optional<MemoryFile> file_;  ///< The owner's only: a mapping needs no open file.
  std::span<std::byte> bytes_;
};

}  // namespace brant
