#include "bench/mpi/mpi_library.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "base/dynamic_library.h"
#include "bench/runner/self_start.h"
#include "brant/base/status.h"

namespace brant::bench::mpi {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwnFile = "libmpi_abi.so.1";

/// The library stays loaded: it has threads of its own.
const DynamicLibrary& open(const std::string& file) {
  static const auto* const library = new DynamicLibrary(file);
  return *library;
}

Handle number(std::uint32_t value) noexcept { return reinterpret_cast<Handle>(std::uintptr_t{value}); }

/// The standard ABI's handles are numbers too, but as wide as addresses.
void name_handles_of_standard(Library& lib) {
  lib.world = number(0x101);
  lib.float_type = number(0x210);
  lib.double_type = number(0x214);
  lib.byte_type = number(0x247);
  lib.no_info = number(0x130);
  lib.sum = number(0x21);
  lib.max = number(0x23);
}

/// Open MPI's handles are addresses of objects with these names; MPICH's are numbers that its ABI fixes.
void name_handles(const DynamicLibrary& mpi, Library& lib) {
  const auto is_there = [&](Handle& handle, const char* name) { return mpi.find(handle, name); };
  if (is_there(lib.world, "ompi_mpi_comm_world")) {
    const bool all = is_there(lib.float_type, "ompi_mpi_float") && is_there(lib.double_type, "ompi_mpi_double") &&
                     is_there(lib.sum, "ompi_mpi_op_sum") && is_there(lib.max, "ompi_mpi_op_max") &&
                     is_there(lib.byte_type, "ompi_mpi_byte") && is_there(lib.no_info, "ompi_mpi_info_null");
    if (!all) throw Error(Status::version_mismatch, "this Open MPI lacks names that every other one has");
    return;
  }
  lib.request_bytes = sizeof(std::uint32_t);
  lib.world = number(0x4400'0000);
  lib.float_type = number(0x4c00'040a);
  lib.double_type = number(0x4c00'080b);
  lib.byte_type = number(0x4c00'010d);
  lib.no_info = number(0x1c00'0000);
  lib.max = number(0x5800'0001);
  lib.sum = number(0x5800'0003);
}

/// "MPICH 5.0.2" of "MPICH Version:      5.0.2\n...", "Open MPI v5.0.11" of "Open MPI v5.0.11, package: ...".
std::string short_version(std::string_view text) {
  std::string words;
  for (const char c : text.substr(0, text.find_first_of(",\n"))) {
    const bool space = c == ' ' || c == '\t';
    if (!space) words += c;
    if (space && !words.empty() && words.back() != ' ') words += ' ';
  }
  constexpr std::string_view kLabel = "Version: ";
  if (const std::size_t at = words.find(kLabel); at != std::string::npos) words.erase(at, kLabel.size());
  return words;
}

}  // namespace

Library load(const std::string& file) {
  const DynamicLibrary& mpi = open(file);
  if (!mpi) throw Error(Status::not_found, fmt::format("no MPI was loaded: {}", mpi.why_not()));
  FunctionFinder functions(mpi);
  Library lib;
  functions.need(lib.init, "MPI_Init");
  functions.need(lib.finalize, "MPI_Finalize");
  functions.need(lib.get_library_version, "MPI_Get_library_version");
  functions.need(lib.comm_rank, "MPI_Comm_rank");
  functions.need(lib.comm_size, "MPI_Comm_size");
  functions.need(lib.barrier, "MPI_Barrier");
  functions.need(lib.bcast, "MPI_Bcast");
  functions.need(lib.allreduce, "MPI_Allreduce");
  functions.need(lib.allgather, "MPI_Allgather");
  functions.need(lib.reduce_scatter_block, "MPI_Reduce_scatter_block");
  functions.need(lib.alltoall, "MPI_Alltoall");
  functions.need(lib.send, "MPI_Send");
  functions.need(lib.recv, "MPI_Recv");
  functions.need(lib.sendrecv, "MPI_Sendrecv");
  functions.need(lib.isend, "MPI_Isend");
  functions.need(lib.irecv, "MPI_Irecv");
  functions.need(lib.waitall, "MPI_Waitall");
  functions.need(lib.info_create, "MPI_Info_create");
  functions.need(lib.info_set, "MPI_Info_set");
  functions.need(lib.info_free, "MPI_Info_free");
  functions.need(lib.win_allocate, "MPI_Win_allocate");
  functions.need(lib.win_free, "MPI_Win_free");
  functions.need(lib.win_lock_all, "MPI_Win_lock_all");
  functions.need(lib.win_unlock_all, "MPI_Win_unlock_all");
  functions.need(lib.win_flush, "MPI_Win_flush");
  functions.need(lib.put, "MPI_Put");
  functions.need(lib.get, "MPI_Get");
  if (functions.missing() != nullptr)
    throw Error(Status::version_mismatch, fmt::format("{} has no {}", file, functions.missing()));
  const bool standard = fs::path(file).filename() == kOwnFile;
  standard ? name_handles_of_standard(lib) : name_handles(mpi, lib);
  std::array<char, 8192> text{};
  int length = 0;
  if (lib.get_library_version(text.data(), &length) == 0) lib.version = short_version(text.data());
  return lib;
}

std::string own_library() {
  const fs::path folder = fs::path(own_command().front()).parent_path();
  const fs::path here[] = {folder / BRANT_LIBRARIES_OF_TREE / kOwnFile, folder / BRANT_LIBRARIES_INSTALLED / kOwnFile};
  for (const fs::path& file : here) {
    std::error_code error;
    if (fs::exists(file, error)) return file.lexically_normal().string();
  }
  throw Error(
      Status::not_found,
      fmt::format("brant's own MPI is not beside this program: there is no {} and no {}. Builds with sanitizers "
                  "and packages of Python have none. Cure: build the target brant_mpi_abi of another tree, or "
                  "use the brant of an installation by CMake",
                  here[0].lexically_normal().string(), here[1].lexically_normal().string()));
}

void require(int outcome, const char* function) {
  if (outcome != 0) throw Error(Status::internal, fmt::format("{} returned {}", function, outcome));
}

}  // namespace brant::bench::mpi
