#include <array>
#include <cstring>
#include <string>

#include "models/mpi/calls.h"
#include "models/mpi/rank_life.h"
#include "mpi_generated/api.h"

/// What the ABI leaves to the library or to Fortran. brant has no bindings for Fortran: what a layer above says of its
/// compiler is kept for others that ask, if it is what brant takes the types of Fortran for.
namespace brant::mpi::api {

namespace {

FortranLayer& fortran() noexcept { return rank_life().fortran; }

struct Size {
  const char* key;
  const char* bytes;
};

constexpr std::array<Size, 4> kFortranSizes = {
    {{"mpi_logical_size", "4"}, {"mpi_integer_size", "4"}, {"mpi_real_size", "4"}, {"mpi_double_precision_size", "8"}}};

/// Whether logicals of this size have a value as their truth: 1, as 0 is the untruth, in the order of the machine.
bool has_value(const void* logical, int size, int value) {
  constexpr std::size_t kSizeMax = 16;
  const auto bytes = static_cast<std::size_t>(size);
  if (bytes > kSizeMax) return false;
  std::array<std::byte, kSizeMax> expected{};
  expected[0] = static_cast<std::byte>(value);
  return std::memcmp(logical, expected.data(), bytes) == 0;
}

}  // namespace

int abi_get_version(int* abi_major, int* abi_minor) noexcept {
  *abi_major = MPI_ABI_VERSION;
  *abi_minor = MPI_ABI_SUBVERSION;
  return MPI_SUCCESS;
}

int abi_get_info(MPI_Info* info) noexcept {
  return call_at_any_time("MPI_Abi_get_info", [&] {
    require_place(static_cast<const void*>(info), "info");
    Info made;
    made.set("mpi_aint_size", std::to_string(sizeof(MPI_Aint)));
    made.set("mpi_count_size", std::to_string(sizeof(MPI_Count)));
    made.set("mpi_offset_size", std::to_string(sizeof(MPI_Offset)));
    *info = publish_copy(made);
  });
}

int abi_set_fortran_info(MPI_Info info) noexcept {
  return call_at_any_time("MPI_Abi_set_fortran_info", [&] {
    Info& given = info_of(info);
    require(!fortran().info, MPI_ERR_ABI, "somebody has said already how Fortran is compiled");
    for (const Size& size : kFortranSizes) {
      const Info::Entry* entry = given.find(size.key);
      require(entry == nullptr || entry->second == size.bytes, MPI_ERR_ABI, "{} is {}; brant takes it for {}", size.key,
              entry != nullptr ? entry->second : "", size.bytes);
    }
    fortran().info.emplace().entries = given.entries;
  });
}

int abi_get_fortran_info(MPI_Info* info) noexcept {
  return call_at_any_time("MPI_Abi_get_fortran_info", [&] {
    require_place(static_cast<const void*>(info), "info");
    *info = fortran().info ? publish_copy(*fortran().info) : MPI_INFO_NULL;
  });
}

int abi_set_fortran_booleans(int logical_size, void* logical_true, void* logical_false) noexcept {
  return call_at_any_time("MPI_Abi_set_fortran_booleans", [&] {
    require(!fortran().has_booleans, MPI_ERR_ABI, "somebody has said already what the logicals of Fortran are");
    require(logical_size > 0 && logical_true != nullptr && logical_false != nullptr, MPI_ERR_ARG,
            "a logical of {} bytes, or one that is null, is none", logical_size);
    const bool known = has_value(logical_true, logical_size, 1) && has_value(logical_false, logical_size, 0);
    require(known, MPI_ERR_ABI, "brant combines logicals whose values are 1 and 0, and no others");
    fortran().has_booleans = true;
  });
}

int abi_get_fortran_booleans(int logical_size, void* logical_true, void* logical_false, int* is_set) noexcept {
  return call_at_any_time("MPI_Abi_get_fortran_booleans", [&] {
    require_place(is_set, "is_set");
    *is_set = fortran().has_booleans ? 1 : 0;
    if (*is_set == 0) return;
    require(logical_size > 0, MPI_ERR_ARG, "a logical of {} bytes is none", logical_size);
    require_place(logical_true, "logical_true");
    require_place(logical_false, "logical_false");
    std::memset(logical_true, 0, static_cast<std::size_t>(logical_size));
    std::memset(logical_false, 0, static_cast<std::size_t>(logical_size));
    static_cast<unsigned char*>(logical_true)[0] = 1;
  });
}

}  // namespace brant::mpi::api
