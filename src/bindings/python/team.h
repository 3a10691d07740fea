#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <string>
#include <vector>

#include "bindings/python/collective_arrays.h"
#include "brant/brant.h"
#include "brant/coll/team.h"

namespace brant::python {

/// A team of Python.
class PythonTeam {
 public:
  /// Of these ranks, this process among them. Waits for them.
  PythonTeam(const std::vector<int>& ranks, const nanobind::object& patience, const std::string& way);
  explicit PythonTeam(Team team);
  PythonTeam(const PythonTeam&) = delete;
  PythonTeam& operator=(const PythonTeam&) = delete;
  ~PythonTeam();

  /// None for a negative colour.
  [[nodiscard]] nanobind::object split(int color, int key);
  [[nodiscard]] nanobind::object local();
  [[nodiscard]] nanobind::object shrink();
  void close();

  /// An awaitable; with a stream, the result as it will be when the stream has passed the call.
  [[nodiscard]] nanobind::object call(const CollectiveRequest& request, const nanobind::object& timeout,
                                      const nanobind::object& stream);
  [[nodiscard]] nanobind::object prepare(const CollectiveRequest& request);
  /// `take` has the arrays taken in the stream's order.
  [[nodiscard]] nanobind::object enqueue(CollectiveArrays& arrays, const nanobind::object& stream,
                                         const nanobind::object& timeout, const std::function<void(Stream&)>& take);
  void prepare_streams();
  [[nodiscard]] std::string explain(const CollectiveRequest& request, bool on_stream);

  [[nodiscard]] Team& team() noexcept { return team_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] const std::vector<int>& ranks() const noexcept { return ranks_; }
  /// "team 0.3": what errors call it.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] bool is_open() const noexcept { return team_.is_open(); }
  [[nodiscard]] std::string fault() const;
  [[nodiscard]] nanobind::list journal() const;
  void check_usable() const;

 private:
  void note();
  /// Runs what waits for other processes, and says which team it was about.
  template <typename Make>
  Team without_gil(Make&& make) const;

  Team team_;
  int rank_ = 0;
  std::vector<int> ranks_;
  std::string name_;
  bool has_streams_ = false;
};

/// Closes all that are open: at the end of the program.
void close_teams();

void bind_teams(nanobind::module_& module);

}  // namespace brant::python
