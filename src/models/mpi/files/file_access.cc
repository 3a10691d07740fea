#include "models/mpi/files/file_access.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "models/mpi/call_error.h"
#include "models/mpi/communicators.h"
#include "models/mpi/files/agreement.h"
#include "models/mpi/files/atomic_range.h"
#include "models/mpi/files/converted_access.h"
#include "models/mpi/files/exchange_plan.h"
#include "models/mpi/files/exchanged_access.h"
#include "models/mpi/files/memory_pieces.h"
#include "models/mpi/files/run_access.h"

namespace brant::mpi {

namespace {

/// What is copied on its way is copied in pieces of that size.
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

/// What lies together at both ends goes at once. An atomic access is one piece, since it waits for no device while it
/// has the lock.
std::size_t piece_bytes(const File& file, const MemoryPieces& memory) noexcept {
  const bool at_once = file.atomic || (memory.direct() != nullptr && file.view.layout().in_one_run());
  return at_once ? memory.bytes() : std::min(memory.bytes(), kPieceBytes);
}

/// Calls `move(done, piece)` for one piece after the other, of the program's own memory where that lies in one run,
/// else of a copy. Ends behind one of which less than all was moved. How many bytes were moved.
template <typename Move>
std::size_t move_in_pieces(const File& file, const MemoryPieces& memory, const Move& move) {
  const std::size_t all = memory.bytes();
  std::byte* const direct = memory.direct();
  const std::size_t most = piece_bytes(file, memory);
  const auto copy = direct == nullptr ? std::make_unique<std::byte[]>(most) : nullptr;
  for (std::size_t done = 0; done < all;) {
    const std::size_t some = std::min(all - done, most);
    const std::size_t moved = move(done, std::span(direct != nullptr ? direct + done : copy.get(), some));
    done += moved;
    if (moved < some) return done;
  }
  return all;
}

std::size_t read_native(File& file, std::uint64_t position, const MemoryPieces& memory) {
  return move_in_pieces(file, memory, [&](std::size_t done, std::span<std::byte> piece) {
    std::size_t got = 0;
    {
      const AtomicRange range(file, DiskFile::Lock::shared, position + done, piece.size());
      got = read_runs(file.disk, file.view.layout(), position + done, piece);
    }
    if (memory.direct() == nullptr) memory.store(done, piece.first(got));
    return got;
  });
}

void write_native(File& file, std::uint64_t position, const MemoryPieces& memory) {
  move_in_pieces(file, memory, [&](std::size_t done, std::span<std::byte> piece) {
    if (memory.direct() == nullptr) memory.load(done, piece);
    const AtomicRange range(file, DiskFile::Lock::exclusive, position + done, piece.size());
    write_runs(file.disk, file.view.layout(), position + done, piece);
    return piece.size();
  });
}

/// The pointer that all share goes on by what all want: this rank's part of it.
MPI_Offset take_turn(File& file, MPI_Offset etypes) {
  Communicator& members = file.communicator;
  struct Part {
    MPI_Offset etypes;
    MPI_Offset begin;  ///< Of the first member: where the first part begins.
    std::int32_t error;
  };
  std::vector<Part> parts(static_cast<std::size_t>(members.size()));
  Part own{etypes, 0, MPI_SUCCESS};
  gather_from_all(members, &own, parts.data(), sizeof own);
  const auto sum_to = [&](std::size_t end) {
    return std::transform_reduce(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(end), MPI_Offset{0},
                                 std::plus<>(), [](const Part& part) { return part.etypes; });
  };
  const auto error = error_in([&] {
    if (members.rank == 0) own.begin = file.shared_pointer.advance(sum_to(parts.size()));
  });
  own.error = error ? error->error_class() : kSuccess;
  const MPI_Offset before = sum_to(static_cast<std::size_t>(members.rank));
  gather_from_all(members, &own, parts.data(), sizeof own);
  if (error) throw CallError(*error);
  require(parts[0].error == MPI_SUCCESS, parts[0].error, "rank 0 could not move the shared file pointer of '{}'",
          file.name());
  return parts[0].begin + before;
}

/// Where an access begins, whose pointer it moves.
MPI_Offset begin_of(File& file, const AccessPlace& place, MPI_Offset etypes) {
  switch (place.by) {
    case AccessPlace::By::offset:
      require_random_access(file);
      require(place.offset >= 0, MPI_ERR_ARG, "the offset {} is negative", place.offset);
      return place.offset;
    case AccessPlace::By::individual: {
      require_random_access(file);
      MPI_Offset after = 0;
      require(!__builtin_add_overflow(file.pointer, etypes, &after), MPI_ERR_ARG,
              "the file pointer {} cannot go {} etypes further", file.pointer, etypes);
      return std::exchange(file.pointer, after);
    }
    case AccessPlace::By::shared: return file.shared_pointer.advance(etypes);
    case AccessPlace::By::ordered: break;
  }
  return take_turn(file, etypes);
}

enum class Direction : std::uint8_t { read, write };

/// How many etypes an access moves, if the file's mode allows it.
MPI_Offset etypes_of(const File& file, const TypedBuffer& buffer, Direction direction) {
  const bool writes = direction == Direction::write;
  require(writes || !file.has_mode(MPI_MODE_WRONLY), MPI_ERR_ACCESS, "the file '{}' is open for writing alone",
          file.name());
  require(!writes || !file.has_mode(MPI_MODE_RDONLY), MPI_ERR_READ_ONLY, "the file '{}' is open for reading alone",
          file.name());
  require(!writes || buffer.bytes() == 0 || !file.view.layout().empty(), MPI_ERR_ARG,
          "the view of the file '{}' has no bytes: {} cannot be written", file.name(), buffer.bytes());
  return file.view.etypes_in(buffer.count(), buffer.type());
}

/// What is to be moved, and where it begins in the stream of the view.
struct Accessed {
  TypedBuffer buffer;
  std::uint64_t position = 0;
};

/// Moves the pointer. In an access by turns, those behind this rank wait for it also where it fails.
Accessed begin_access(File& file, const AccessPlace& place, const ProgramMemory& memory, Direction direction) {
  Accessed accessed;
  MPI_Offset etypes = 0;
  const auto error = error_in([&] {
    accessed.buffer = memory.buffer();
    etypes = etypes_of(file, accessed.buffer, direction);
  });
  if (error && place.by == AccessPlace::By::ordered) static_cast<void>(take_turn(file, 0));
  if (error) throw CallError(*error);
  const MPI_Offset begin = begin_of(file, place, etypes);
  MPI_Offset end = 0;
  require(!__builtin_add_overflow(begin, etypes, &end), MPI_ERR_ARG, "{} etypes at offset {} are more than files have",
          etypes, begin);
  static_cast<void>(file.view.position_of(end));
  accessed.position = file.view.position_of(begin);
  return accessed;
}

std::size_t read_by_itself(File& file, const Accessed& accessed) {
  if (accessed.buffer.bytes() == 0 || file.view.layout().empty()) return 0;
  if (file.view.representation().converts()) return read_converted(file, accessed.position, accessed.buffer);
  return read_native(file, accessed.position, MemoryPieces(accessed.buffer));
}

std::size_t write_by_itself(File& file, const Accessed& accessed) {
  if (accessed.buffer.bytes() == 0) return 0;
  file.written = true;
  if (file.view.representation().converts()) {
    write_converted(file, accessed.position, accessed.buffer);
  } else {
    write_native(file, accessed.position, MemoryPieces(accessed.buffer));
  }
  return accessed.buffer.bytes();
}

/// Whether this rank would exchange data, as far as the file is concerned. An atomic access is one piece, and a
/// conversion is a rank's own affair. The ranks of a host read the same bytes from its memory, and that is quicker than
/// to hand them on. The program may say otherwise by a hint of the standard.
bool may_exchange(File& file, Direction direction) {
  if (file.atomic || file.view.representation().converts() || !file.view.layout().ascends()) return false;
  const Info::Entry* const hint = file.info.find("collective_buffering");
  if (hint != nullptr && (hint->second == "true" || hint->second == "false")) return hint->second == "true";
  return direction == Direction::write || !file.on_one_host;
}

/// What this rank tells the others.
AccessPart part_of(File& file, const Accessed& accessed, Direction direction) {
  const FileLayout& layout = file.view.layout();
  AccessPart part;
  part.can_exchange = may_exchange(file, direction) ? 1 : 0;
  if (direction == Direction::read) part.file_bytes = file.disk.size();
  if (accessed.buffer.bytes() == 0 || layout.empty()) return part;
  part.bytes = accessed.buffer.bytes();
  part.run_bytes = std::min(layout.run_bytes(), part.bytes);
  part.begin = layout.offset_of(accessed.position);
  part.end = layout.offset_of(accessed.position + part.bytes - 1) + 1;
  return part;
}

/// Calls `exchanged(access)` where members are to exchange their data, else `by_itself(accessed)`. A member whose call
/// is wrong says so before the others wait for its data.
template <typename Exchanged, typename ByItself>
std::size_t access_together(File& file, const AccessPlace& place, const ProgramMemory& memory, Direction direction,
                            const Exchanged& exchanged, const ByItself& by_itself) {
  if (file.communicator.size() == 1) return by_itself(begin_access(file, place, memory, direction));
  Accessed accessed;
  AccessPart own;
  const auto error = error_in([&] {
    accessed = begin_access(file, place, memory, direction);
    own = part_of(file, accessed, direction);
  });
  std::vector<AccessPart> parts(static_cast<std::size_t>(file.communicator.size()));
  gather_from_all(file.communicator, &own, parts.data(), sizeof own);
  if (error) throw CallError(*error);
  if (!exchange_pays(parts)) return by_itself(accessed);
  const MemoryPieces pieces(accessed.buffer);
  ExchangedAccess access(file, accessed.position, pieces, parts);
  return exchanged(access);
}

}  // namespace

std::size_t read_file(File& file, const AccessPlace& place, const ProgramMemory& memory) {
  return read_by_itself(file, begin_access(file, place, memory, Direction::read));
}

std::size_t write_file(File& file, const AccessPlace& place, const ProgramMemory& memory) {
  return write_by_itself(file, begin_access(file, place, memory, Direction::write));
}

std::size_t read_file_together(File& file, const AccessPlace& place, const ProgramMemory& memory) {
  return access_together(
      file, place, memory, Direction::read, [](ExchangedAccess& access) { return access.read(); },
      [&](const Accessed& accessed) { return read_by_itself(file, accessed); });
}

/// Any member may write what others gave.
std::size_t write_file_together(File& file, const AccessPlace& place, const ProgramMemory& memory) {
  return access_together(
      file, place, memory, Direction::write,
      [&](ExchangedAccess& access) {
        file.written = true;
        return access.write();
      },
      [&](const Accessed& accessed) { return write_by_itself(file, accessed); });
}

MPI_Offset place_of(const File& file, MPI_Offset offset, int whence, MPI_Offset current) {
  require(whence == MPI_SEEK_SET || whence == MPI_SEEK_CUR || whence == MPI_SEEK_END, MPI_ERR_ARG,
          "{} is none of MPI_SEEK_SET, MPI_SEEK_CUR and MPI_SEEK_END", whence);
  MPI_Offset from = 0;
  if (whence == MPI_SEEK_CUR) from = current;
  if (whence == MPI_SEEK_END) from = file.view.etype_at(file.disk.size());
  MPI_Offset found = 0;
  require(!__builtin_add_overflow(from, offset, &found) && found >= 0, MPI_ERR_ARG,
          "an offset of {} etypes from {} is before the start of the view", offset, from);
  return found;
}

void require_random_access(const File& file) {
  require(!file.has_mode(MPI_MODE_SEQUENTIAL), MPI_ERR_UNSUPPORTED_OPERATION,
          "the file '{}' is open with MPI_MODE_SEQUENTIAL: it is accessed by its shared file pointer alone",
          file.name());
}

}  // namespace brant::mpi
