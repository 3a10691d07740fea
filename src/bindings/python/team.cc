#include "bindings/python/team.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "bindings/python/collecting.h"
#include "bindings/python/errors.h"
#include "bindings/python/make.h"
#include "bindings/python/process.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

/// Those to be closed when the program ends.
std::set<PythonTeam*>& open_teams() {
  static auto* const teams = new std::set<PythonTeam*>;  // never destroyed, as Process
  return *teams;
}

TeamOptions options_of(const nb::object& patience, const std::string& way) {
  TeamOptions options;
  if (!patience.is_none())
    options.patience = std::chrono::milliseconds(static_cast<std::int64_t>(std::min(seconds_of(patience), 1e9) * 1000));
  if (way == "messages") {
    options.way = TeamWay::messages;
  } else if (way != "automatic") {
    throw Error(Status::invalid_argument, "way='" + way + "': use 'automatic' or 'messages'");
  }
  return options;
}

Team make_team(const std::vector<int>& ranks, const TeamOptions& options) {
  Runtime& runtime = Process::get().runtime();
  std::vector<Rank> members;
  members.reserve(ranks.size());
  for (const int rank : ranks) members.push_back(Rank{rank});
  const nb::gil_scoped_release others_run;
  return Team(runtime, members, options);
}

}  // namespace

PythonTeam::PythonTeam(const std::vector<int>& ranks, const nb::object& patience, const std::string& way)
    : team_(make_team(ranks, options_of(patience, way))) {
  note();
}

PythonTeam::PythonTeam(Team team) : team_(std::move(team)) { note(); }

void PythonTeam::note() {
  rank_ = team_.rank();
  for (int rank = 0; rank < team_.size(); ++rank) ranks_.push_back(team_.member(rank).value);
  name_ = "team " + team_.name();
  open_teams().insert(this);
}

PythonTeam::~PythonTeam() {
  open_teams().erase(this);
  if (!team_.is_open()) return;
  Process& process = Process::get();
  if (process.has_ended() || !process.is_owner()) process.bury(std::make_shared<Team>(std::move(team_)));
}

void PythonTeam::check_usable() const {
  static_cast<void>(Process::get().runtime());  // this thread's
  if (!team_.is_open()) throw Failure(Status::invalid_argument, name_ + " is closed: make another one", name_);
}

template <typename Make>
Team PythonTeam::without_gil(Make&& make) const {
  check_usable();
  try {
    const nb::gil_scoped_release others_run;
    return make();
  } catch (const Error& error) {
    throw Failure(error.status(), error.what(), name_);
  }
}

nb::object PythonTeam::split(int color, int key) {
  Team part = without_gil([&] { return team_.split(color, key); });
  if (!part.is_open()) return nb::none();
  return nb::cast(new PythonTeam(std::move(part)), nb::rv_policy::take_ownership);
}

nb::object PythonTeam::shrink() {
  Team rest = without_gil([&] { return team_.shrink(); });
  return nb::cast(new PythonTeam(std::move(rest)), nb::rv_policy::take_ownership);
}

void PythonTeam::close() {
  if (!team_.is_open() || Process::get().has_ended()) return;
  static_cast<void>(Process::get().runtime());
  open_teams().erase(this);
  team_.close();
}

nb::object PythonTeam::call(CollectiveKind kind, const nb::object& array, const nb::object& op, int root,
                            const nb::object& out, const nb::object& timeout) {
  check_usable();
  auto [result, collecting] = make<Collecting>(*this, nb::find(*this), kind);
  collecting->start(array, op, root, out, timeout);
  return std::move(result);
}

std::string PythonTeam::fault() const { return team_.is_open() ? team_.fault() : std::string(); }

nb::list PythonTeam::journal() const {
  check_usable();
  nb::list calls;
  const auto text = [](std::string_view name) { return nb::str(name.data(), name.size()); };
  for (const TeamCall& call : team_.journal()) {
    nb::dict said;
    said["number"] = call.number;
    said["kind"] = text(collective_name(call.kind));
    said["type"] = text(data_type_name(call.type));
    said["op"] = text(reduce_op_name(call.op));
    said["root"] = call.root;
    said["nbytes"] = call.bytes;
    said["status"] = text(status_name(call.status));
    said["begun_ns"] = call.begun_ns;
    said["ended_ns"] = call.ended_ns;
    said["algorithm"] = text(call.algorithm);
    calls.append(said);
  }
  return calls;
}

void close_teams() {
  const std::set<PythonTeam*> teams = std::exchange(open_teams(), {});
  for (PythonTeam* team : teams) team->close();
}

void bind_teams(nb::module_& module) {
  using enum CollectiveKind;
  const nb::class_<Collecting, Awaitable> collecting(module, "Collecting");
  nb::class_<PythonTeam> team(module, "Team", nb::is_weak_referenceable());
  team.def(nb::init<const std::vector<int>&, const nb::object&, const std::string&>(), nb::arg("ranks"), nb::kw_only(),
           nb::arg("patience") = nb::none(), nb::arg("way") = "automatic")
      .def("split", &PythonTeam::split, nb::arg("color"), nb::arg("key") = 0)
      .def("shrink", &PythonTeam::shrink)
      .def("close", &PythonTeam::close)
      .def("journal", &PythonTeam::journal)
      .def_prop_ro("rank", &PythonTeam::rank)
      .def_prop_ro("size", &PythonTeam::size)
      .def_prop_ro("ranks", &PythonTeam::ranks)
      .def_prop_ro("name", [](const PythonTeam& self) { return self.name().substr(5); })
      .def_prop_ro("is_open", &PythonTeam::is_open)
      .def_prop_ro("fault", &PythonTeam::fault);
  team.def(
      "barrier",
      [](PythonTeam& self, const nb::object& timeout) {
        return self.call(barrier, nb::none(), nb::none(), 0, nb::none(), timeout);
      },
      nb::kw_only(), nb::arg("timeout") = nb::none());
  team.def(
      "broadcast",
      [](PythonTeam& self, const nb::object& array, int root, const nb::object& timeout) {
        return self.call(broadcast, array, nb::none(), root, nb::none(), timeout);
      },
      nb::arg("array"), nb::arg("root") = 0, nb::kw_only(), nb::arg("timeout") = nb::none());
  const auto combine = [&](const char* name, CollectiveKind kind) {
    team.def(
        name,
        [kind](PythonTeam& self, const nb::object& array, const nb::object& op, const nb::object& out,
               const nb::object& timeout) { return self.call(kind, array, op, 0, out, timeout); },
        nb::arg("array"), nb::arg("op") = "sum", nb::kw_only(), nb::arg("out") = nb::none(),
        nb::arg("timeout") = nb::none());
  };
  combine("allreduce", allreduce);
  combine("reduce_scatter", reduce_scatter);
  combine("scan", scan);
  combine("exscan", exscan);
  team.def(
      "reduce",
      [](PythonTeam& self, const nb::object& array, const nb::object& op, int root, const nb::object& out,
         const nb::object& timeout) { return self.call(reduce, array, op, root, out, timeout); },
      nb::arg("array"), nb::arg("op") = "sum", nb::arg("root") = 0, nb::kw_only(), nb::arg("out") = nb::none(),
      nb::arg("timeout") = nb::none());
  const auto move = [&](const char* name, CollectiveKind kind) {
    team.def(
        name,
        [kind](PythonTeam& self, const nb::object& array, const nb::object& out, const nb::object& timeout) {
          return self.call(kind, array, nb::none(), 0, out, timeout);
        },
        nb::arg("array"), nb::kw_only(), nb::arg("out") = nb::none(), nb::arg("timeout") = nb::none());
  };
  move("allgather", allgather);
  move("alltoall", alltoall);
  const auto root = [&](const char* name, CollectiveKind kind) {
    team.def(
        name,
        [kind](PythonTeam& self, const nb::object& array, int at, const nb::object& out, const nb::object& timeout) {
          return self.call(kind, array, nb::none(), at, out, timeout);
        },
        nb::arg("array").none(), nb::arg("root") = 0, nb::kw_only(), nb::arg("out") = nb::none(),
        nb::arg("timeout") = nb::none());
  };
  root("gather", gather);
  root("scatter", scatter);
}

}  // namespace brant::python
