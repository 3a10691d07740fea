#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "models/mpi/communicator.h"
#include "models/mpi/files/disk_file.h"
#include "models/mpi/files/file_view.h"
#include "models/mpi/files/shared_pointer.h"

namespace brant::mpi {

/// The split collectives: which function has begun one.
enum class SplitKind : std::uint8_t {
  read_all,
  read_at_all,
  read_ordered,
  write_all,
  write_at_all,
  write_ordered,
};

/// What a handle of a file points to. Each member has the file open by itself; their communicator is the file's own.
class File final : public Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::file;
  /// A split collective between its two functions. Its access was made by the first one.
  struct Split {
    SplitKind kind;
    const void* buffer;
    std::size_t bytes;
  };

  File(std::unique_ptr<Communicator> communicator_in, int amode_in, ErrorHandler& handler_in) noexcept
      : Object(kKind), communicator(*communicator_in.release()), amode(amode_in), handler(&handler_in) {
    ++handler->users;
  }
  ~File() {
    drop_handler(*handler);
    drop_communicator(communicator);
  }
  void set_handler(ErrorHandler& next) noexcept {
    ++next.users;
    drop_handler(*std::exchange(handler, &next));
  }

  [[nodiscard]] const std::string& name() const noexcept { return disk.name(); }
  [[nodiscard]] bool has_mode(int mode) const noexcept { return (amode & mode) != 0; }

  Communicator& communicator;
  const int amode;
  DiskFile disk;
  FileView view;
  MPI_Offset pointer = 0;  ///< Of this rank, in etypes.
  SharedPointer shared_pointer;
  std::optional<Split> split;
  bool atomic = false;
  bool on_one_host = false;  ///< All members are, and have the same memory of files.
  bool written = false;      ///< Since what was written was last brought to the disk.
  ErrorHandler* handler;
  Info info;
};

}  // namespace brant::mpi
