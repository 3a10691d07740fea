#include "bindings/python/team.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "bindings/python/collecting.h"
#include "bindings/python/errors.h"
#include "bindings/python/make.h"
#include "bindings/python/prepared_collective.h"
#include "bindings/python/process.h"
#include "bindings/python/stream_handle.h"
#include "brant/device.h"

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

using Request = CollectiveRequest;

CollectiveKind kind_of(const std::string& name) {
  for (unsigned kind = 1; kind < kCollectiveKindCount; ++kind) {
    if (collective_name(static_cast<CollectiveKind>(kind)) == name) return static_cast<CollectiveKind>(kind);
  }
  throw Error(Status::invalid_argument, "'" + name + "' is no collective: use the name of a method, as 'allreduce'");
}

/// The methods, each with the arguments that its call has.
void bind_calls(nb::class_<PythonTeam>& team) {
  using enum CollectiveKind;
  const auto optional = [](const char* name) { return nb::arg(name) = nb::none(); };
  team.def(
      "barrier",
      [](PythonTeam& self, const nb::object& timeout, const nb::object& stream) {
        return self.call({.kind = barrier}, timeout, stream);
      },
      nb::kw_only(), optional("timeout"), optional("stream"));
  team.def(
      "broadcast",
      [](PythonTeam& self, const nb::object& array, int root, const nb::object& timeout, const nb::object& stream) {
        return self.call({.kind = broadcast, .array = array, .root = root}, timeout, stream);
      },
      nb::arg("array"), nb::arg("root") = 0, nb::kw_only(), optional("timeout"), optional("stream"));
  const auto combine = [&](const char* name, CollectiveKind kind) {
    team.def(
        name,
        [kind](PythonTeam& self, const nb::object& array, const nb::object& op, const nb::object& out,
               const nb::object& timeout, const nb::object& stream) {
          return self.call({.kind = kind, .array = array, .op = op, .out = out}, timeout, stream);
        },
        nb::arg("array"), nb::arg("op") = "sum", nb::kw_only(), optional("out"), optional("timeout"),
        optional("stream"));
  };
  combine("allreduce", allreduce);
  combine("scan", scan);
  combine("exscan", exscan);
  team.def(
      "reduce_scatter",
      [](PythonTeam& self, const nb::object& array, const nb::object& op, const nb::object& counts,
         const nb::object& out, const nb::object& timeout, const nb::object& stream) {
        return self.call({.kind = reduce_scatter, .array = array, .op = op, .out = out, .counts = counts}, timeout,
                         stream);
      },
      nb::arg("array"), nb::arg("op") = "sum", nb::kw_only(), optional("counts"), optional("out"), optional("timeout"),
      optional("stream"));
  team.def(
      "reduce",
      [](PythonTeam& self, const nb::object& array, const nb::object& op, int root, const nb::object& out,
         const nb::object& timeout, const nb::object& stream) {
        return self.call({.kind = reduce, .array = array, .op = op, .root = root, .out = out}, timeout, stream);
      },
      nb::arg("array"), nb::arg("op") = "sum", nb::arg("root") = 0, nb::kw_only(), optional("out"), optional("timeout"),
      optional("stream"));
  team.def(
      "allgather",
      [](PythonTeam& self, const nb::object& array, const nb::object& counts, const nb::object& out,
         const nb::object& timeout, const nb::object& stream) {
        return self.call({.kind = allgather, .array = array, .out = out, .counts = counts}, timeout, stream);
      },
      nb::arg("array"), nb::kw_only(), optional("counts"), optional("out"), optional("timeout"), optional("stream"));
  team.def(
      "alltoall",
      [](PythonTeam& self, const nb::object& array, const nb::object& counts, const nb::object& out_counts,
         const nb::object& out, const nb::object& timeout, const nb::object& stream) {
        return self.call({.kind = alltoall, .array = array, .out = out, .counts = counts, .out_counts = out_counts},
                         timeout, stream);
      },
      nb::arg("array"), nb::kw_only(), optional("counts"), optional("out_counts"), optional("out"), optional("timeout"),
      optional("stream"));
  const auto root = [&](const char* name, CollectiveKind kind) {
    team.def(
        name,
        [kind](PythonTeam& self, const nb::object& array, int at, const nb::object& counts, const nb::object& out,
               const nb::object& timeout, const nb::object& stream) {
          return self.call({.kind = kind, .array = array, .root = at, .out = out, .counts = counts}, timeout, stream);
        },
        nb::arg("array").none(), nb::arg("root") = 0, nb::kw_only(), optional("counts"), optional("out"),
        optional("timeout"), optional("stream"));
  };
  root("gather", gather);
  root("scatter", scatter);
  team.def(
      "neighbour_allgather",
      [](PythonTeam& self, const nb::object& array, const nb::object& sources, const nb::object& destinations,
         const nb::object& counts, const nb::object& out, const nb::object& timeout) {
        const Request request{.kind = neighbour_allgather,
                              .array = array,
                              .out = out,
                              .counts = counts,
                              .sources = sources,
                              .destinations = destinations};
        return self.call(request, timeout, nb::none());
      },
      nb::arg("array"), nb::arg("sources"), nb::arg("destinations"), nb::kw_only(), optional("counts"), optional("out"),
      optional("timeout"));
  team.def(
      "neighbour_alltoall",
      [](PythonTeam& self, const nb::object& array, const nb::object& sources, const nb::object& destinations,
         const nb::object& counts, const nb::object& out_counts, const nb::object& out, const nb::object& timeout) {
        const Request request{.kind = neighbour_alltoall,
                              .array = array,
                              .out = out,
                              .counts = counts,
                              .out_counts = out_counts,
                              .sources = sources,
                              .destinations = destinations};
        return self.call(request, timeout, nb::none());
      },
      nb::arg("array"), nb::arg("sources"), nb::arg("destinations"), nb::kw_only(), optional("counts"),
      optional("out_counts"), optional("out"), optional("timeout"));
}

/// What takes the name of a method, and its arguments.
void bind_calls_by_name(nb::class_<PythonTeam>& team) {
  const auto by_name = [&](const char* name, auto&& act) {
    team.def(
        name,
        [act](PythonTeam& self, const std::string& kind, const nb::object& array, const nb::object& op, int root,
              const nb::object& out, const nb::object& counts, const nb::object& out_counts, const nb::object& sources,
              const nb::object& destinations) {
          return act(self, Request{.kind = kind_of(kind),
                                   .array = array,
                                   .op = op,
                                   .root = root,
                                   .out = out,
                                   .counts = counts,
                                   .out_counts = out_counts,
                                   .sources = sources,
                                   .destinations = destinations});
        },
        nb::arg("kind"), nb::arg("array") = nb::none(), nb::kw_only(), nb::arg("op") = "sum", nb::arg("root") = 0,
        nb::arg("out") = nb::none(), nb::arg("counts") = nb::none(), nb::arg("out_counts") = nb::none(),
        nb::arg("sources") = nb::make_tuple(), nb::arg("destinations") = nb::make_tuple());
  };
  by_name("prepare", [](PythonTeam& self, const Request& request) { return self.prepare(request); });
  by_name("explain", [](PythonTeam& self, const Request& request) { return self.explain(request, false); });
  by_name("explain_on_stream", [](PythonTeam& self, const Request& request) { return self.explain(request, true); });
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

nb::object PythonTeam::local() {
  Team beside = without_gil([&] { return team_.local(); });
  return nb::cast(new PythonTeam(std::move(beside)), nb::rv_policy::take_ownership);
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

nb::object PythonTeam::call(const CollectiveRequest& request, const nb::object& timeout, const nb::object& stream) {
  check_usable();
  auto arrays = std::make_shared<CollectiveArrays>(*this, request.kind);
  if (!stream.is_none()) return enqueue(*arrays, stream, timeout, [&](Stream& on) { arrays->take(request, &on); });
  arrays->take(request, nullptr);
  auto [result, collecting] = make<Collecting>(*this, nb::find(*this), std::move(arrays));
  collecting->start(timeout);
  return std::move(result);
}

nb::object PythonTeam::prepare(const CollectiveRequest& request) {
  check_usable();
  auto arrays = std::make_shared<CollectiveArrays>(*this, request.kind);
  arrays->take(request, nullptr);
  try {
    return nb::cast(new PreparedCollective(*this, nb::find(*this), std::move(arrays)), nb::rv_policy::take_ownership);
  } catch (const Error& error) {
    throw Failure(error.status(), error.what(), name_);
  }
}

nb::object PythonTeam::enqueue(CollectiveArrays& arrays, const nb::object& stream, const nb::object& timeout,
                               const std::function<void(Stream&)>& take) {
  if (!timeout.is_none())
    arrays.refuse(Status::invalid_argument, "a call of a stream waits for nothing, and takes no timeout");
  if (!has_streams_)
    arrays.refuse(Status::invalid_argument, "on a stream before team.prepare_streams(), which all members call");
  StreamHandle handle = stream_of(stream);
  Stream on = Process::get().runtime().device().borrow_stream(handle);
  take(on);
  const Collective& call = arrays.call();
  if (call.op == ReduceOp::user)
    arrays.refuse(Status::not_supported, "a function of Python is the host's: leave out stream, and await the call");
  const Status status = team_.enqueue(call, handle);
  switch (status) {
    case Status::ok: return arrays.deliver();
    case Status::not_supported:
      arrays.refuse(status, "streams do not carry out blocks of different sizes: leave out stream, and await the call");
    case Status::wrong_kind:
      arrays.refuse(status,
                    "kernels reach memory of this process's device, and pinned memory (brant.empty(..., "
                    "memory='pinned')): leave out stream, and await the call");
    default:
      const std::string fault = team_.fault();
      arrays.refuse(status, "the stream did not take it: " +
                                (fault.empty() ? std::string(status_text(status)) + ", and the log says why" : fault));
  }
}

void PythonTeam::prepare_streams() {
  check_usable();
  OpResult result;
  {
    const nb::gil_scoped_release others_run;
    result = team_.prepare_streams();
  }
  if (!result.ok()) {
    const std::string fault = team_.fault();
    const std::string why = fault.empty() ? ". A member has no device with kernels that maps the others' memory, or "
                                            "there are more than 8: its log says which and why"
                                          : ". " + fault;
    throw Failure(result.status,
                  std::string(failure(result.status, name_, -1, "no collectives on streams").what()) + why, name_);
  }
  has_streams_ = true;
}

std::string PythonTeam::explain(const CollectiveRequest& request, bool on_stream) {
  check_usable();
  CollectiveArrays arrays(*this, request.kind);
  arrays.take(request, nullptr);
  return std::string(on_stream ? team_.explain_on_stream(arrays.call()) : team_.explain(arrays.call()));
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
  const nb::class_<Collecting, Awaitable> collecting(module, "Collecting");
  bind_prepared_collectives(module);
  nb::class_<PythonTeam> team(module, "Team", nb::is_weak_referenceable());
  team.def(nb::init<const std::vector<int>&, const nb::object&, const std::string&>(), nb::arg("ranks"), nb::kw_only(),
           nb::arg("patience") = nb::none(), nb::arg("way") = "automatic")
      .def("split", &PythonTeam::split, nb::arg("color"), nb::arg("key") = 0)
      .def("local", &PythonTeam::local)
      .def("shrink", &PythonTeam::shrink)
      .def("close", &PythonTeam::close)
      .def("prepare_streams", &PythonTeam::prepare_streams)
      .def("journal", &PythonTeam::journal)
      .def_prop_ro("rank", &PythonTeam::rank)
      .def_prop_ro("size", &PythonTeam::size)
      .def_prop_ro("ranks", &PythonTeam::ranks)
      .def_prop_ro("name", [](const PythonTeam& self) { return self.name().substr(5); })
      .def_prop_ro("is_open", &PythonTeam::is_open)
      .def_prop_ro("fault", &PythonTeam::fault);
  bind_calls(team);
  bind_calls_by_name(team);
}

}  // namespace brant::python
