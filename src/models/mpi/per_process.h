#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "brant/base/ids.h"
#include "core/joined_rank.h"

namespace brant::mpi {

/// A T for each process: an index away for those of the job, a look-up for those of other jobs, which get one when they
/// are first asked for.
template <typename T>
class PerProcess {
 public:
  explicit PerProcess(int processes) : of_job_(static_cast<std::size_t>(processes)) {}

  [[nodiscard]] T& operator[](Rank process) {
    if (!joined_rank::is_one(process.value)) [[likely]]
      return of_job_[static_cast<std::size_t>(process.value)];
    return joined_[process.value];
  }
  /// Nobody has the rank any more.
  void forget(Rank process) noexcept { joined_.erase(process.value); }

  template <typename Visit>
  void for_each(Visit&& visit) {
    for (std::size_t i = 0; i < of_job_.size(); ++i) visit(Rank{static_cast<std::int32_t>(i)}, of_job_[i]);
    for (auto& [rank, each] : joined_) visit(Rank{rank}, each);
  }

 private:
  std::vector<T> of_job_;
  std::map<std::int32_t, T> joined_;  ///< Its places stay when others are added.
};

}  // namespace brant::mpi
