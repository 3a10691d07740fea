#include <memory>

#include "models/mpi/files/file_access.h"
#include "models/mpi/files/file_calls.h"
#include "models/mpi/files/opening.h"
#include "models/mpi/posting.h"
#include "models/mpi/statuses.h"
#include "mpi_generated/api.h"

/// Accesses of all sorts. Files are read and written in the call: what does not block, and what is split, has ended
/// when it was begun, and is told later.
namespace brant::mpi::api {

namespace {

constexpr AccessPlace kIndividual{.by = AccessPlace::By::individual};
constexpr AccessPlace kShared{.by = AccessPlace::By::shared};
constexpr AccessPlace kOrdered{.by = AccessPlace::By::ordered};
AccessPlace at_offset(MPI_Offset offset) noexcept { return {AccessPlace::By::offset, offset}; }

/// One of those of file_access.h.
using Access = std::size_t (*)(File&, const AccessPlace&, const ProgramMemory&);

void store_bytes(MPI_Status* status, std::size_t bytes) noexcept {
  store_status(status, {.source = MPI_UNDEFINED, .tag = MPI_UNDEFINED, .bytes = bytes});
}

/// What has been done already.
class FileRequest final : public Request {
 public:
  FileRequest(RankState& rank_in, std::size_t bytes) noexcept : Request(rank_in, nullptr), bytes_(bytes) {}
  void start() noexcept override {
    begin();
    outcome.source = outcome.tag = MPI_UNDEFINED;
    outcome.bytes = bytes_;
    end(MPI_SUCCESS);
  }

 private:
  const std::size_t bytes_;
};

int access_now(const char* function, MPI_File fh, Access access, const AccessPlace& place, const ProgramMemory& memory,
               MPI_Status* status) noexcept {
  return on_file(function, fh, [&](File& file) { store_bytes(status, access(file, place, memory)); });
}

int access_later(const char* function, MPI_File fh, Access access, const AccessPlace& place,
                 const ProgramMemory& memory, MPI_Request* request) noexcept {
  return on_file(function, fh, [&](File& file) {
    require_place(static_cast<const void*>(request), "request");
    *request = MPI_REQUEST_NULL;
    const std::size_t bytes = access(file, place, memory);
    hand_out(std::make_unique<FileRequest>(current_rank(), bytes), false, request);
  });
}

int begin_split(const char* function, MPI_File fh, Access access, SplitKind kind, const AccessPlace& place,
                const ProgramMemory& memory) noexcept {
  return on_file(function, fh, [&](File& file) {
    require_closable(file);
    file.split = File::Split{kind, memory.address, access(file, place, memory)};
  });
}

int end_split(const char* function, MPI_File fh, SplitKind kind, const void* address, MPI_Status* status) noexcept {
  return on_file(function, fh, [&](File& file) {
    require(file.split && file.split->kind == kind, MPI_ERR_OTHER,
            "no split collective on the file '{}' was begun by the function that belongs to this one", file.name());
    require(file.split->buffer == address, MPI_ERR_BUFFER,
            "the split collective on the file '{}' was begun with the buffer {}, and not {}", file.name(),
            file.split->buffer, address);
    store_bytes(status, file.split->bytes);
    file.split.reset();
  });
}

}  // namespace

// Blocking
// -------------------------------------------------------------------------------------------------------------------

int file_read_at(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
                 MPI_Status* status) noexcept {
  return access_now("MPI_File_read_at", fh, read_file, at_offset(offset), {buf, count, datatype}, status);
}

int file_read_at_all(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
                     MPI_Status* status) noexcept {
  return access_now("MPI_File_read_at_all", fh, read_file_together, at_offset(offset), {buf, count, datatype}, status);
}

int file_read(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) noexcept {
  return access_now("MPI_File_read", fh, read_file, kIndividual, {buf, count, datatype}, status);
}

int file_read_all(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) noexcept {
  return access_now("MPI_File_read_all", fh, read_file_together, kIndividual, {buf, count, datatype}, status);
}

int file_read_shared(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) noexcept {
  return access_now("MPI_File_read_shared", fh, read_file, kShared, {buf, count, datatype}, status);
}

int file_read_ordered(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) noexcept {
  return access_now("MPI_File_read_ordered", fh, read_file, kOrdered, {buf, count, datatype}, status);
}

int file_write_at(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
                  MPI_Status* status) noexcept {
  return access_now("MPI_File_write_at", fh, write_file, at_offset(offset), {buf, count, datatype}, status);
}

int file_write_at_all(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
                      MPI_Status* status) noexcept {
  return access_now("MPI_File_write_at_all", fh, write_file_together, at_offset(offset), {buf, count, datatype},
                    status);
}

int file_write(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) noexcept {
  return access_now("MPI_File_write", fh, write_file, kIndividual, {buf, count, datatype}, status);
}

int file_write_all(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) noexcept {
  return access_now("MPI_File_write_all", fh, write_file_together, kIndividual, {buf, count, datatype}, status);
}

int file_write_shared(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype,
                      MPI_Status* status) noexcept {
  return access_now("MPI_File_write_shared", fh, write_file, kShared, {buf, count, datatype}, status);
}

int file_write_ordered(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype,
                       MPI_Status* status) noexcept {
  return access_now("MPI_File_write_ordered", fh, write_file, kOrdered, {buf, count, datatype}, status);
}

// Non-blocking
// -------------------------------------------------------------------------------------------------------------------

int file_iread_at(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
                  MPI_Request* request) noexcept {
  return access_later("MPI_File_iread_at", fh, read_file, at_offset(offset), {buf, count, datatype}, request);
}

int file_iread_at_all(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
                      MPI_Request* request) noexcept {
  return access_later("MPI_File_iread_at_all", fh, read_file, at_offset(offset), {buf, count, datatype}, request);
}

int file_iread(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) noexcept {
  return access_later("MPI_File_iread", fh, read_file, kIndividual, {buf, count, datatype}, request);
}

int file_iread_all(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) noexcept {
  return access_later("MPI_File_iread_all", fh, read_file, kIndividual, {buf, count, datatype}, request);
}

int file_iread_shared(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) noexcept {
  return access_later("MPI_File_iread_shared", fh, read_file, kShared, {buf, count, datatype}, request);
}

int file_iwrite_at(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
                   MPI_Request* request) noexcept {
  return access_later("MPI_File_iwrite_at", fh, write_file, at_offset(offset), {buf, count, datatype}, request);
}

int file_iwrite_at_all(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
                       MPI_Request* request) noexcept {
  return access_later("MPI_File_iwrite_at_all", fh, write_file, at_offset(offset), {buf, count, datatype}, request);
}

int file_iwrite(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) noexcept {
  return access_later("MPI_File_iwrite", fh, write_file, kIndividual, {buf, count, datatype}, request);
}

int file_iwrite_all(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype,
                    MPI_Request* request) noexcept {
  return access_later("MPI_File_iwrite_all", fh, write_file, kIndividual, {buf, count, datatype}, request);
}

int file_iwrite_shared(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype,
                       MPI_Request* request) noexcept {
  return access_later("MPI_File_iwrite_shared", fh, write_file, kShared, {buf, count, datatype}, request);
}

// Split collectives
// -------------------------------------------------------------------------------------------------------------------

int file_read_at_all_begin(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype) noexcept {
  return begin_split("MPI_File_read_at_all_begin", fh, read_file_together, SplitKind::read_at_all, at_offset(offset),
                     {buf, count, datatype});
}

int file_read_at_all_end(MPI_File fh, void* buf, MPI_Status* status) noexcept {
  return end_split("MPI_File_read_at_all_end", fh, SplitKind::read_at_all, buf, status);
}

int file_read_all_begin(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype) noexcept {
  return begin_split("MPI_File_read_all_begin", fh, read_file_together, SplitKind::read_all, kIndividual,
                     {buf, count, datatype});
}

int file_read_all_end(MPI_File fh, void* buf, MPI_Status* status) noexcept {
  return end_split("MPI_File_read_all_end", fh, SplitKind::read_all, buf, status);
}

int file_read_ordered_begin(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype) noexcept {
  return begin_split("MPI_File_read_ordered_begin", fh, read_file, SplitKind::read_ordered, kOrdered,
                     {buf, count, datatype});
}

int file_read_ordered_end(MPI_File fh, void* buf, MPI_Status* status) noexcept {
  return end_split("MPI_File_read_ordered_end", fh, SplitKind::read_ordered, buf, status);
}

int file_write_at_all_begin(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count,
                            MPI_Datatype datatype) noexcept {
  return begin_split("MPI_File_write_at_all_begin", fh, write_file_together, SplitKind::write_at_all, at_offset(offset),
                     {buf, count, datatype});
}

int file_write_at_all_end(MPI_File fh, const void* buf, MPI_Status* status) noexcept {
  return end_split("MPI_File_write_at_all_end", fh, SplitKind::write_at_all, buf, status);
}

int file_write_all_begin(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype) noexcept {
  return begin_split("MPI_File_write_all_begin", fh, write_file_together, SplitKind::write_all, kIndividual,
                     {buf, count, datatype});
}

int file_write_all_end(MPI_File fh, const void* buf, MPI_Status* status) noexcept {
  return end_split("MPI_File_write_all_end", fh, SplitKind::write_all, buf, status);
}

int file_write_ordered_begin(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype) noexcept {
  return begin_split("MPI_File_write_ordered_begin", fh, write_file, SplitKind::write_ordered, kOrdered,
                     {buf, count, datatype});
}

int file_write_ordered_end(MPI_File fh, const void* buf, MPI_Status* status) noexcept {
  return end_split("MPI_File_write_ordered_end", fh, SplitKind::write_ordered, buf, status);
}

}  // namespace brant::mpi::api
