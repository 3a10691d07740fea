#pragma once

#include <vector>

namespace brant::bench {

/// The processes of one benchmark of pairs: how they meet, by whatever started them. All throw Error.
class Meeting {
 public:
  Meeting() = default;
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  virtual ~Meeting() = default;

  [[nodiscard]] virtual int ranks() const = 0;
  /// This process prints.
  [[nodiscard]] virtual bool reports() const = 0;
  /// Returns when all processes have called it.
  virtual void barrier() = 0;
  /// The samples of all leading processes at rank 0, nothing elsewhere. Collective.
  virtual std::vector<double> gather(const std::vector<double>& samples) = 0;
};

/// Throws Error invalid_argument for a number of processes that do not make pairs. `name` is the command's.
void require_pairs(const char* name, int ranks);

}  // namespace brant::bench
