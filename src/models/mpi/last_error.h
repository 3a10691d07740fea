#pragma once

#include <string_view>

namespace brant::mpi {

class CallError;

/// What the last error that the program was given was about. The standard has it get a number alone, which says nothing
/// of the rank, the file or the port: MPI_Error_string tells it, as long as it is asked for the same class.
void note_last_error(const CallError& error) noexcept;
/// Empty: the last one was of another class.
[[nodiscard]] std::string_view last_error_text(int error_class) noexcept;

}  // namespace brant::mpi
