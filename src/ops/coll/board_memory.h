#pragma once

#include <optional>

#include "base/mapped_file.h"

namespace brant::coll {

/// The memory under the board of a team: made by one member, mapped by the others. It stays, with its bytes, as long as
/// somebody has it mapped; pages that nobody writes to take no memory.
class BoardMemory {
 public:
  /// Zeroed memory for so many members, as the others find it.
  Result<MemoryFileRecord> make(unsigned members) noexcept;
  /// Maps what another member has made. invalid_argument: it is too small; else the errors of `MappedFile::open`.
  Status map(const MemoryFileRecord& record, unsigned members) noexcept;
  void drop() noexcept { file_.reset(); }

  [[nodiscard]] bool is_there() const noexcept { return file_.has_value(); }
  [[nodiscard]] std::byte* data() const noexcept { return file_->bytes().data(); }

 private:
  std::optional<MappedFile> file_;
};

}  // namespace brant::coll
