#pragma once

#include <string>
#include <string_view>

namespace brant::mpi {

/// The other end of a socket that a program has given to MPI_Comm_join is still there.
[[nodiscard]] bool is_open_socket(int fd) noexcept;
/// Gives a name and gets the other's; the network moves meanwhile. Throws MPI_ERR_ARG where it is no socket,
/// MPI_ERR_OTHER where the other end closes it or says something else.
[[nodiscard]] std::string swap_names(int fd, std::string_view given);

}  // namespace brant::mpi
