#include <cstring>
#include <memory>

#include "models/mpi/calls.h"
#include "models/mpi/typed_buffer.h"
#include "models/mpi/types/external.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

/// Throws MPI_ERR_ARG, MPI_ERR_TRUNCATE.
void require_room(MPI_Count position, std::size_t bytes, MPI_Count size) {
  require(position >= 0 && size >= 0 && position <= size, MPI_ERR_ARG,
          "the position {} is outside a buffer of {} bytes", position, size);
  require(static_cast<std::size_t>(size - position) >= bytes, MPI_ERR_TRUNCATE,
          "{} bytes at position {} do not fit into a buffer of {} bytes", bytes, position, size);
}

void require_external(const char* datarep) {
  require(datarep != nullptr && std::strcmp(datarep, "external32") == 0, MPI_ERR_UNSUPPORTED_DATAREP,
          "the only data representation is external32");
}

}  // namespace

int pack(const void* inbuf, MPI_Count incount, MPI_Datatype datatype, void* outbuf, MPI_Count outsize,
         MPI_Count* position, MPI_Comm comm) noexcept {
  return on_communicator("MPI_Pack", comm, [&](const Communicator&) {
    const TypedBuffer source(inbuf, incount, datatype);
    require_room(*position, source.bytes(), outsize);
    source.pack_any(static_cast<std::byte*>(outbuf) + *position);
    *position += static_cast<MPI_Count>(source.bytes());
  });
}

int unpack(const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf, MPI_Count outcount,
           MPI_Datatype datatype, MPI_Comm comm) noexcept {
  return on_communicator("MPI_Unpack", comm, [&](const Communicator&) {
    const TypedBuffer landing(outbuf, outcount, datatype);
    require_room(*position, landing.bytes(), insize);
    landing.unpack_any(static_cast<const std::byte*>(inbuf) + *position, landing.bytes());
    *position += static_cast<MPI_Count>(landing.bytes());
  });
}

int pack_size(MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count* size) noexcept {
  return on_communicator("MPI_Pack_size", comm, [&](const Communicator&) {
    const Count bytes = datatype_of(datatype).bytes_of(incount);
    require(bytes >= 0, MPI_ERR_COUNT, "{} elements are negative, or more than memory has", incount);
    *size = bytes;
  });
}

int pack_external_size(const char* datarep, MPI_Count incount, MPI_Datatype datatype, MPI_Count* size) noexcept {
  return call("MPI_Pack_external_size", [&] {
    require_external(datarep);
    *size = external_bytes(datatype_of(datatype), incount);
    require(*size >= 0, MPI_ERR_COUNT, "{} elements are negative, or more than memory has", incount);
  });
}

int pack_external(const char* datarep, const void* inbuf, MPI_Count incount, MPI_Datatype datatype, void* outbuf,
                  MPI_Count outsize, MPI_Count* position) noexcept {
  return call("MPI_Pack_external", [&] {
    require_external(datarep);
    const Datatype& type = datatype_of(datatype);
    const Count bytes = external_bytes(type, incount);
    require(bytes >= 0, MPI_ERR_COUNT, "{} elements are negative, or more than memory has", incount);
    require_room(*position, static_cast<std::size_t>(bytes), outsize);
    const bool fits = mpi::pack_external(
        inbuf, incount, type, {static_cast<std::byte*>(outbuf) + *position, static_cast<std::size_t>(bytes)});
    require(fits, MPI_ERR_CONVERSION, "a number is too large for its size in external32");
    *position += bytes;
  });
}

int unpack_external(const char datarep[], const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf,
                    MPI_Count outcount, MPI_Datatype datatype) noexcept {
  return call("MPI_Unpack_external", [&] {
    require_external(datarep);
    const Datatype& type = datatype_of(datatype);
    const Count bytes = external_bytes(type, outcount);
    require(bytes >= 0, MPI_ERR_COUNT, "{} elements are negative, or more than memory has", outcount);
    require_room(*position, static_cast<std::size_t>(bytes), insize);
    mpi::unpack_external({static_cast<const std::byte*>(inbuf) + *position, static_cast<std::size_t>(bytes)}, outbuf,
                         outcount, type);
    *position += bytes;
  });
}

}  // namespace brant::mpi::api
