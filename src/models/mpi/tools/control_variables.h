#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "brant/mpi/mpi.h"
#include "models/mpi/tools/name_list.h"

namespace brant::mpi::tools {

/// Something that governs how brant works, which a tool may read: a setting in the environment, which MPI_Init reads,
/// or a number that is built in. None can be written.
struct ControlVariable {
  enum class Form : std::uint8_t { text, number, named, built_in };
  /// Texts are cut there.
  static constexpr int kTextMax = 4096;

  [[nodiscard]] MPI_Datatype datatype() const noexcept;
  /// In elements of the datatype.
  [[nodiscard]] int count() const noexcept { return form == Form::text ? kTextMax : 1; }
  [[nodiscard]] int scope() const noexcept {
    return form == Form::built_in ? MPI_T_SCOPE_CONSTANT : MPI_T_SCOPE_READONLY;
  }
  /// Stores the value, as it stands in the environment. Throws MPI_T_ERR_INVALID where MPI_Init would refuse it.
  void read(void* place) const;

  const char* name;
  int verbosity;
  Form form;
  const char* description;
  std::int64_t number = 0;          ///< Where the environment has none.
  const char* text = "";            ///< The same of texts.
  const NameList* names = nullptr;  ///< Of those whose values have names.

 private:
  [[nodiscard]] int read_named() const;
  [[nodiscard]] MPI_Count read_number() const;
};

/// All of them, by their indices.
[[nodiscard]] const std::vector<ControlVariable>& control_variables();

/// What a handle of a control variable points to.
struct ControlHandle {
  const ControlVariable* variable;
};

}  // namespace brant::mpi::tools
