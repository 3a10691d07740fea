#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace brant::mpi {

/// Which process each member of a communicator lives in. Those of one process are counted by rank.
class Placement {
 public:
  /// `process_of`: by rank. `own`: this process. Throws Error: invalid_argument (nobody lives in a process below the
  /// highest, or in this one).
  Placement(std::vector<unsigned> process_of, unsigned own);

  [[nodiscard]] unsigned members() const noexcept { return static_cast<unsigned>(process_of_.size()); }
  [[nodiscard]] unsigned processes() const noexcept { return static_cast<unsigned>(first_.size()) - 1; }
  [[nodiscard]] unsigned own() const noexcept { return own_; }
  /// Nobody lives elsewhere.
  [[nodiscard]] bool alone() const noexcept { return processes() == 1; }
  /// Ranks rise from each process to the next, so that what the processes give, in their order, is in that of ranks.
  [[nodiscard]] bool in_order() const noexcept { return in_order_; }

  [[nodiscard]] unsigned process_of(std::size_t rank) const noexcept { return process_of_[rank]; }
  [[nodiscard]] bool is_here(std::size_t rank) const noexcept { return process_of_[rank] == own_; }
  /// Which of those of its process a member is.
  [[nodiscard]] unsigned index_of(std::size_t rank) const noexcept { return index_of_[rank]; }
  /// How many members live in the processes before this one.
  [[nodiscard]] std::size_t before(std::size_t process) const noexcept { return first_[process]; }
  [[nodiscard]] std::span<const unsigned> ranks_of(std::size_t process) const noexcept {
    return std::span(ranks_).subspan(first_[process], first_[process + 1] - first_[process]);
  }
  [[nodiscard]] std::span<const unsigned> ranks_here() const noexcept { return ranks_of(own_); }

 private:
  const std::vector<unsigned> process_of_;
  const unsigned own_;
  std::vector<unsigned> index_of_;  ///< By rank.
  std::vector<std::size_t> first_;  ///< By process: where its ranks begin in `ranks_`; one more for their end.
  std::vector<unsigned> ranks_;     ///< Process by process.
  bool in_order_ = true;
};

}  // namespace brant::mpi
