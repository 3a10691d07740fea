#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace brant::mpi {

/// What the loader must know of a program's file before it makes an image of it for each rank. All offsets and sizes in
/// it have been compared with the size of the file and with each other.
struct ExecutableFile {
  /// Addresses are relative to the place where the image lies.
  struct Functions {
    std::uint64_t address = 0;
    std::size_t count = 0;
  };
  struct ThreadLocals {
    std::uint64_t address = 0;      ///< Of the initial bytes.
    std::size_t initial_bytes = 0;  ///< What follows them up to `bytes` is zero.
    std::size_t bytes = 0;          ///< 0: the program has none.
    std::size_t alignment = 1;
  };

  /// True for one of `needed`, exactly.
  [[nodiscard]] bool needs(std::string_view library) const noexcept;

  std::string path;
  UniqueFd fd;                   ///< To read.
  std::size_t loaded_bytes = 0;  ///< Of the file, from its start: no segment has bytes behind them.
  std::size_t memory_bytes = 0;  ///< From where the image lies.
  std::uint64_t entry = 0;       ///< An address.
  std::uint64_t headers = 0;     ///< The address of `segments` in the image; 0 if it does not hold them.
  std::vector<Elf64_Phdr> segments;
  std::uint64_t dynamic_offset = 0;  ///< Where `dynamic` stands in the file.
  std::vector<Elf64_Dyn> dynamic;
  ThreadLocals thread_locals;
  std::vector<std::string> needed;     ///< Libraries, by name.
  std::vector<std::string> run_paths;  ///< Folders where the program has them looked for, as it was linked.
  Functions preinit;
  std::uint64_t init = 0;  ///< An address, or 0.
  Functions init_array;
  Functions fini_array;
  std::uint64_t fini = 0;
};

/// The path of the program that a shell would run for `name`: of PATH if there is no slash in it. Throws Error
/// (not_found).
std::string find_program(const std::string& name);

/// Reads and checks the file. Throws Error, whose text names the file, the reason and the cure, for whatever the loader
/// cannot run: not_found, io_error, not_supported for what is sound and of another sort, invalid_argument for what is
/// damaged. Reads a few kilobytes.
ExecutableFile read_executable_file(const std::string& path);

}  // namespace brant::mpi
