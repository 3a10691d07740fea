#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "models/mpi/files/file.h"

namespace brant::mpi {

/// In a file that is atomic: keeps others from the bytes of an access for as long as it lives. They wait for it, also
/// in other processes, so whoever has it waits for nobody.
class AtomicRange {
 public:
  /// `bytes` from a position of the view's stream on.
  AtomicRange(const File& file, DiskFile::Lock sort, std::uint64_t position, std::size_t bytes) {
    if (!file.atomic || bytes == 0) return;
    const FileLayout& layout = file.view.layout();
    const std::int64_t begin = layout.offset_of(position);
    lock_.emplace(file.disk, sort, begin, layout.offset_of(position + bytes - 1) + 1 - begin);
  }

 private:
  std::optional<RangeLock> lock_;
};

}  // namespace brant::mpi
