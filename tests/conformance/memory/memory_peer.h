#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "base/unique_fd.h"
#include "brant/base/result.h"
#include "port/memory.h"

namespace brant::test {

/// Another process with a device of the same sort, made by starting this program again (a fork alone would carry driver
/// state along). It allocates, fills, checks and frees on demand. Every answer is waited for at most 20 seconds.
class MemoryPeer {
 public:
  /// `device` is a subject's name; `memory` what it allocates, by default the device's own.
  explicit MemoryPeer(const std::string& device, MemoryKind memory = MemoryKind::detect);
  MemoryPeer(const MemoryPeer&) = delete;
  MemoryPeer& operator=(const MemoryPeer&) = delete;
  ~MemoryPeer();

  /// The peer allocates memory and fills it with pattern(bytes, seed); returns its record for the byte at
  /// `offset`.
  Result<port::ExportRecord> allocate(std::size_t bytes, unsigned seed, std::size_t offset = 0);
  /// The peer frees allocation `number` (0: its first).
  Status free(unsigned number);
  /// Does allocation `number` hold pattern(bytes, seed) now?
  bool holds(unsigned number, unsigned seed);
  /// The peer imports a record of ours and writes pattern(record.bytes - record.offset, seed) there.
  Status import_and_write(const port::ExportRecord& record, unsigned seed);
  /// The same by a copy of `file`.
  Status import_file_and_write(const port::ExportRecord& record, int file, unsigned seed);
  /// Ends it without a goodbye, and waits until it is gone.
  void kill();

  struct Request;
  struct Answer;

 private:
  Answer ask(const Request& request, int file = -1);

  MemoryKind memory_;
  pid_t pid_ = -1;
  UniqueFd socket_;
};

}  // namespace brant::test
