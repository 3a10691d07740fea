#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace brant::mpi {

/// What a process of another job must know of one to reach it.
struct Contact {
  std::uint64_t name = 0;  ///< The same at all processes: a sum of its address in the network.
  std::string address;     ///< As Runtime::address gives it.
};

[[nodiscard]] std::vector<std::byte> pack(std::span<const Contact> contacts);
/// Throws MPI_ERR_INTERN where they are damaged.
[[nodiscard]] std::vector<Contact> unpack_contacts(std::span<const std::byte> packed);

}  // namespace brant::mpi
