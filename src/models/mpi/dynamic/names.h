#pragma once

#include <string>

namespace brant::mpi {

/// Services by name, for all programs of this user: files in the meeting folder.

/// Throws MPI_ERR_SERVICE where the name is taken by a port that is open.
void publish_service(const char* name, const std::string& port);
/// Throws MPI_ERR_SERVICE where it was not published with this port.
void unpublish_service(const char* name, const std::string& port);
/// The port. Throws MPI_ERR_NAME.
[[nodiscard]] std::string look_up_service(const char* name);

}  // namespace brant::mpi
