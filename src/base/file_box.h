#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/unique_fd.h"
#include "brant/base/result.h"

namespace brant {

/// Open files that other processes of this host hand to this one: a socket that they find by its name, to which each
/// file comes on a connection of its own (SCM_RIGHTS). Nothing here blocks, and nobody is asked to allow it, as
/// pidfd_getfd asks for the right to trace the other process. One thread.
class FileBox {
 public:
  /// The socket's name in the kernel's abstract namespace, which goes when the box does. Network namespaces have one
  /// each: a process in another one cannot hand anything over.
  using Name = std::array<char, 8>;
  /// Files that came and nobody has taken: beyond them the oldest is closed.
  static constexpr std::size_t kKeptMax = 64;

  /// limit_reached: no more descriptors; io_error: no such sockets here.
  static Result<FileBox> open() noexcept;

  [[nodiscard]] const Name& name() const noexcept { return name_; }
  /// The file that process `from` has handed over under this number. not_found: none is there; limit_reached: it came
  /// and could not be received, since this process has no descriptor left. What other users sent is closed.
  Result<UniqueFd> take(pid_t from, std::uint64_t number) noexcept;
  /// Closes what has come from a process.
  void discard(pid_t from) noexcept;

  /// Hands a copy of `file` to the box of process `owner` under a number; what `take` gives there is closed on exec.
  /// not_found: no box of that process has the name; limit_reached: no descriptor is left here, or too much is under
  /// way to that box.
  static Status hand_over(const Name& name, pid_t owner, std::uint64_t number, int file) noexcept;

 private:
  struct Kept {
    pid_t from = 0;
    std::uint64_t number = 0;
    UniqueFd file;  ///< None: it came, and there was no descriptor for it.
  };

  FileBox(UniqueFd socket, const Name& name) noexcept : socket_(std::move(socket)), name_(name) {}
  Status receive() noexcept;
  void keep(int connection, pid_t from) noexcept;

  UniqueFd socket_;
  Name name_;
  std::vector<Kept> kept_;  ///< The oldest first.
};

}  // namespace brant
