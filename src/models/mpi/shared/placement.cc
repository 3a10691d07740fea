#include "models/mpi/shared/placement.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::mpi {

Placement::Placement(std::vector<unsigned> process_of, unsigned own)
    : process_of_(std::move(process_of)), own_(own), index_of_(process_of_.size()), ranks_(process_of_.size()) {
  const unsigned last = process_of_.empty() ? own : *std::max_element(process_of_.begin(), process_of_.end());
  first_.assign(std::size_t{std::max(last, own)} + 2, 0);
  for (const unsigned process : process_of_) ++first_[process + 1];
  for (std::size_t process = 0; process + 1 < first_.size(); ++process) {
    if (first_[process + 1] == 0)
      throw Error(Status::invalid_argument,
                  fmt::format("a communicator of {} members, none of whom lives in process {} of {}: number the "
                              "processes that have members, and those alone",
                              members(), process, processes()));
    first_[process + 1] += first_[process];
  }
  std::vector<std::size_t> next(first_);
  for (unsigned rank = 0; rank < members(); ++rank) {
    const unsigned process = process_of_[rank];
    index_of_[rank] = static_cast<unsigned>(next[process] - first_[process]);
    ranks_[next[process]++] = rank;
  }
  in_order_ = std::is_sorted(process_of_.begin(), process_of_.end());
}

}  // namespace brant::mpi
