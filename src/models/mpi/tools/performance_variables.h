#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "brant/mpi/mpi.h"
#include "core/observe/counters.h"
#include "models/mpi/rank_state.h"

namespace brant::mpi::tools {

/// Which of the categories of performance variables one belongs to.
enum class Subject : std::uint8_t { messages, paths, process };

/// A number that tells how brant is doing. It is there anyway: that a tool may read it costs no message anything. All
/// of them are unsigned long long.
struct PerformanceVariable {
  /// Counters are of the process, and grow as long as that lives. All else is what it is when it is read.
  [[nodiscard]] bool is_counter() const noexcept { return variable_class == MPI_T_PVAR_CLASS_COUNTER; }
  /// 0 before MPI_Init. After MPI_Finalize counters keep what they had counted, and all else is 0.
  [[nodiscard]] std::uint64_t now() const;

  std::string name;
  std::string description;
  int verbosity;
  int variable_class;
  Subject subject;
  std::function<const Tally&(const Counters&)> tally;      ///< Of counters.
  std::function<std::uint64_t(const RankState&)> measure;  ///< Of all else.
};

/// All of them, by their indices.
[[nodiscard]] const std::vector<PerformanceVariable>& performance_variables();

/// A process of MPI ends, and its counters with it: counters of tools go on from there.
void keep_counters(const Counters& ending) noexcept;

}  // namespace brant::mpi::tools
