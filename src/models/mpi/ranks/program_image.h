#pragma once

#include <cstddef>
#include <cstdint>

#include "models/mpi/ranks/executable_file.h"

namespace brant::mpi {

/// A copy of what is loaded of the file, in memory: it stays what it is when the file changes. Throws Error:
/// limit_reached, no_memory, io_error.
UniqueFd copy_in_memory(const ExecutableFile& file);

/// One of the images of a program in this process: its own global variables, and code and constants that take memory
/// but once for all images (of what `file().fd` names). None of its
/// functions has run; those that a program runs at its start and end are known to `file()` alone, not to the dynamic
/// linker, so that they may wait for other ranks as all else may.
class ProgramImage {
 public:
  /// The libraries that the program needs are loaded (`load_needed_libraries`). `file` outlives the image. Throws
  /// Error: limit_reached, no_memory, or not_supported with what the dynamic linker says. Costs a copy of the file's
  /// loaded bytes and what the linker does with its relocations.
  explicit ProgramImage(const ExecutableFile& file);
  /// No thread runs its code, and nothing of it is called again.
  ~ProgramImage();
  ProgramImage(const ProgramImage&) = delete;
  ProgramImage& operator=(const ProgramImage&) = delete;

  [[nodiscard]] const ExecutableFile& file() const noexcept { return file_; }
  /// What has this address in the file.
  [[nodiscard]] std::byte* at(std::uint64_t address) const noexcept { return base_ + address; }
  [[nodiscard]] bool holds(const void* address) const noexcept {
    const auto* byte = static_cast<const std::byte*>(address);
    return byte >= base_ && byte < base_ + file_.memory_bytes;
  }
  /// Where the program's code finds a variable of the C library: in the image if the linker gave the program a copy.
  [[nodiscard]] void* variable(const char* name) const noexcept;

 private:
  /// Those of the file take the place of those in this image's copy, which gives its memory back.
  void share_constants(int copy) const;

  const ExecutableFile& file_;
  void* handle_ = nullptr;
  std::byte* base_ = nullptr;
};

}  // namespace brant::mpi
