#pragma once

#include <cstddef>
#include <exception>
#include <new>
#include <string_view>

#include "brant/base/status.h"
#include "models/mpi/tools/tool_state.h"

/// What the functions of the tools interface have in common. They work before MPI_Init and after MPI_Finalize, and what
/// goes wrong is the code that they return: no error handler hears of it.
namespace brant::mpi::tools {

/// Why a call fails: one of MPI_T_ERR_*.
class ToolError final : public std::exception {
 public:
  explicit ToolError(int code) noexcept : code_(code) {}
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

inline void demand(bool holds, int code) {
  if (!holds) [[unlikely]]
    throw ToolError(code);
}

/// Of functions whose only result goes there.
inline void demand_place(const void* place) { demand(place != nullptr, MPI_T_ERR_INVALID); }

/// Runs the body of a function with the state of the rank that calls.
template <typename Body>
int tool_call(Body&& body) noexcept {
  try {
    ToolState& state = tool_state();
    if (state.users == 0) return MPI_T_ERR_NOT_INITIALIZED;
    body(state);
    return MPI_SUCCESS;
  } catch (const ToolError& error) {
    return error.code();
  } catch (const Error&) {
    return MPI_T_ERR_INVALID;
  } catch (const std::bad_alloc&) {
    return MPI_T_ERR_MEMORY;
  }
}

/// The entry of a table that an index names.
template <typename Table>
[[nodiscard]] auto& entry_at(const Table& table, int index) {
  demand(index >= 0 && static_cast<std::size_t>(index) < table.size(), MPI_T_ERR_INVALID_INDEX);
  return table[static_cast<std::size_t>(index)];
}

/// The index of the entry that `is_wanted`.
template <typename Table, typename IsWanted>
[[nodiscard]] int index_in(const Table& table, const IsWanted& is_wanted) {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (is_wanted(table[i])) return static_cast<int>(i);
  throw ToolError(MPI_T_ERR_INVALID_NAME);
}

/// A result that the caller may not want.
template <typename T>
void give(T* place, T value) noexcept {
  if (place != nullptr) *place = value;
}

/// As much of a text as there is room for, with a zero at the end. `length`: the room, then what the whole text takes.
void give_text(std::string_view text, char* place, int* length) noexcept;

}  // namespace brant::mpi::tools
