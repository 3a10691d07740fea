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

std::size_t read_native(File& file, std::uint64_t position, const MemoryPieces& memory) {
  const FileLayout& layout = file.view.layout();
  const std::size_t all = memory.bytes();
  std::byte* const direct = memory.direct();
  const std::size_t most = piece_bytes(file, memory);
  const auto copy = direct == nullptr ? std::make_unique<std::byte[]>(most) : nullptr;
  for (std::size_t done = 0; done < all;) {
    const std::size_t some = std::min(all - done, most);
    const std::span<std::byte> piece(direct != nullptr ? direct + done : copy.get(), some);
    std::size_t got = 0;
    {
      const AtomicRange range(file, DiskFile::Lock::shared, position + done, some);
      got = read_runs(file.disk, layout, position + done, piece);
    }
    if (direct == nullptr) memory.store(done, piece.first(got));
    done += got;
    if (got < some) return done;
  }
  return all;
}

void write_native(File& file, std::uint64_t position, const MemoryPieces& memory) {
  const FileLayout& layout = file.view.layout();
  const std::size_t all = memory.bytes();
  std::byte* const direct = memory.direct();
  const std::size_t most = piece_bytes(file, memory);
  const auto copy = direct == nullptr ? std::make_unique<std::byte[]>(most) : nullptr;
  for (std::size_t done = 0; done < all;) {
    const std::size_t some = std::min(all - done, most);
    const std::span<std::byte> piece(direct != nullptr ? direct + done : copy.get(), some);
    if (direct == nullptr) memory.load(done, piece);
    const AtomicRange range(file, DiskFile::Lock::exclusive, position + done, some);
    write_runs(file.disk, layout, position + done, piece);
    done += some;
  }
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

/// What an ordered access wants, if this rank may make it: the others are told of nothing, and go on.
MPI_Offset wanted_etypes(File& file, const AccessPlace& place, const TypedBuffer& buffer, bool writes) {
  const auto error = error_in([&] {
    require(writes || !file.has_mode(MPI_MODE_WRONLY), MPI_ERR_ACCESS, "the file '{}' is open for writing alone",
            file.name());
    require(!writes || !file.has_mode(MPI_MODE_RDONLY), MPI_ERR_READ_ONLY, "the file '{}' is open for reading alone",
            file.name());
    static_cast<void>(file.view.etypes_in(buffer.count(), buffer.type()));
  });
  if (!error) return file.view.etypes_in(buffer.count(), buffer.type());
  if (place.by == AccessPlace::By::ordered) static_cast<void>(take_turn(file, 0));
  throw CallError(*error);
}

/// The position in the view's stream at which an access begins.
std::uint64_t begin_access(File& file, const AccessPlace& place, const TypedBuffer& buffer, bool writes) {
  const MPI_Offset etypes = wanted_etypes(file, place, buffer, writes);
  const MPI_Offset begin = begin_of(file, place, etypes);
  MPI_Offset end = 0;
  require(!__builtin_add_overflow(begin, etypes, &end), MPI_ERR_ARG, "{} etypes at offset {} are more than files have",
          etypes, begin);
  static_cast<void>(file.view.position_of(end));
  return file.view.position_of(begin);
}

}  // namespace

std::size_t read_file(File& file, const AccessPlace& place, const TypedBuffer& buffer) {
  const std::uint64_t position = begin_access(file, place, buffer, false);
  if (buffer.bytes() == 0 || file.view.layout().empty()) return 0;
  if (file.view.representation().converts()) return read_converted(file, position, buffer);
  return read_native(file, position, MemoryPieces(buffer));
}

std::size_t write_file(File& file, const AccessPlace& place, const TypedBuffer& buffer) {
  const std::uint64_t position = begin_access(file, place, buffer, true);
  if (buffer.bytes() == 0) return 0;
  require(!file.view.layout().empty(), MPI_ERR_ARG, "the view of the file '{}' has no bytes: {} cannot be written",
          file.name(), buffer.bytes());
  file.written = true;
  if (file.view.representation().converts()) {
    write_converted(file, position, buffer);
  } else {
    write_native(file, position, MemoryPieces(buffer));
  }
  return buffer.bytes();
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
