#include "bindings/python/meeting.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "bindings/python/errors.h"
#include "bindings/python/make.h"
#include "bindings/python/process.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

Meeting::WaitingList* const g_meetings = new Meeting::WaitingList;  // never destroyed, as Process

JoinSteps steps() { return JoinSteps(Process::get().runtime()); }

nb::object join(const std::string& address, const nb::object& timeout) {
  auto [object, meeting] = make<Meeting>(Meeting::What::join);
  meeting->start_join(address, seconds_of(timeout));
  return std::move(object);
}

nb::object accept(const nb::object& timeout) {
  auto [object, meeting] = make<Meeting>(Meeting::What::accept);
  meeting->start_accept(seconds_of(timeout));
  return std::move(object);
}

nb::object leave(int peer, const nb::object& timeout) {
  auto [object, meeting] = make<Meeting>(Meeting::What::leave);
  meeting->start_leave(peer, seconds_of(timeout));
  return std::move(object);
}

}  // namespace

Meeting::~Meeting() {
  if (hook_.linked()) g_meetings->remove(*this);
  Py_XDECREF(error_);
}

void Meeting::wait(double seconds) {
  hold();
  g_meetings->push_back(*this);
  if (seconds < 0) return;
  limit_ = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(std::min(seconds, 1e9)));
  set_deadline(seconds);
}

void Meeting::start_join(const std::string& address, double seconds) {
  rank_ = steps().begin_join(address);
  wait(seconds);
  if (is_decided()) conclude();
}

void Meeting::start_accept(double seconds) {
  static_cast<void>(Process::get().runtime());
  const bool first = g_meetings->empty();
  wait(seconds);
  if (first && is_decided()) conclude();
}

void Meeting::start_leave(int peer, double seconds) {
  rank_ = Rank{peer};
  if (!steps().begin_leave(rank_)) return answer();
  wait(seconds);
}

bool Meeting::is_decided() const noexcept {
  JoinSteps joining = steps();
  switch (what_) {
    case What::join: return joining.is_join_decided(rank_);
    case What::accept: return joining.has_accepted();
    case What::leave: return joining.is_leave_decided(rank_);
  }
  return false;
}

/// It is decided, or its time is over.
void Meeting::conclude() {
  const bool went_well = guarded(
      [&] {
        Runtime& runtime = Process::get().runtime();
        if (what_ == What::join) {
          steps().end_join(rank_, limit_);
        } else if (what_ == What::leave) {
          steps().end_leave(rank_, limit_);
        } else if (const auto next = runtime.accept(std::chrono::nanoseconds(0))) {
          rank_ = *next;
        } else {
          throw Error(Status::timed_out, "no process has joined rank " + std::to_string(runtime.rank().value) +
                                             " in time: brant.address() gives what it needs for that");
        }
        return true;
      },
      false);
  if (!went_well) error_ = take_exception();
  end();
}

void Meeting::end() noexcept {
  if (hook_.linked()) g_meetings->remove(*this);
  answer();
  release();
}

void Meeting::advance() {
  if (has_answer() || !is_overdue()) return;
  const nb::object keeps = nb::borrow(self());
  conclude();
}

/// A join that is given up is as one that took too long; a farewell that was said is said.
void Meeting::give_up(Status status) {
  if (has_answer()) return;
  const nb::object keeps = nb::borrow(self());
  if (what_ == What::join) {
    guarded([&] { return steps().end_join(rank_, limit_), true; }, false);
    PyErr_Clear();
  } else if (what_ == What::leave) {
    steps().end_leave(rank_, limit_);
  }
  set_python_error(Error(status, what_ == What::leave ? "the answer to a farewell was not waited for"
                                                      : "a meeting with another process was not waited for"));
  error_ = take_exception();
  end();
}

PyObject* Meeting::take() {
  if (error_ == nullptr) return what_ == What::leave ? Py_NewRef(Py_None) : PyLong_FromLong(rank_.value);
  raise_to_awaiter(error_);
  return nullptr;
}

bool Meeting::any_waits() noexcept { return !g_meetings->empty(); }

bool Meeting::any_decided() noexcept {
  for (Meeting* meeting = g_meetings->front(); meeting != nullptr; meeting = g_meetings->next(*meeting)) {
    if (meeting->is_decided()) return true;
  }
  return false;
}

bool Meeting::look_at_all() {
  bool any = false;
  std::vector<nb::object> waiting;
  for (Meeting* meeting = g_meetings->front(); meeting != nullptr; meeting = g_meetings->next(*meeting))
    waiting.push_back(nb::borrow(meeting->self()));
  for (const nb::object& object : waiting) {
    auto& meeting = static_cast<Meeting&>(*nb::inst_ptr<Awaitable>(object));
    if (meeting.has_answer() || !meeting.is_decided()) continue;
    meeting.conclude();
    any = true;
  }
  return any;
}

void Meeting::give_up_all() noexcept {
  while (Meeting* meeting = g_meetings->front()) meeting->give_up(Status::canceled);
}

void bind_meetings(nb::module_& module) {
  const nb::class_<Meeting, Awaitable> meeting(module, "Meeting");
  module.def("join_address", [] { return Process::get().runtime().address(); });
  module.def("stop_accepting", [] { Process::get().runtime().stop_accepting(); });
  module.def("join", &join, nb::arg("address"), nb::kw_only(), nb::arg("timeout").none() = 10.0,
             "Joins the process that has this address: its rank.");
  module.def("accept", &accept, nb::kw_only(), nb::arg("timeout") = nb::none(),
             "The next process that has joined this one: its rank.");
  module.def("leave", &leave, nb::arg("peer"), nb::kw_only(), nb::arg("timeout").none() = 5.0,
             "Parts from a process that has joined, or was joined.");
}

}  // namespace brant::python
