#include "bindings/python/channel.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "bindings/python/errors.h"
#include "bindings/python/frame.h"
#include "bindings/python/make.h"
#include "bindings/python/process.h"
#include "bindings/python/receiving.h"
#include "bindings/python/sending.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

constexpr double kNoLimit = -1;
/// Sends of one end that wait for arrays to be computed: as many as there can be on their way.
constexpr std::size_t kLineMax = 65536;
/// How long a close waits for arrays that are sent and not computed yet.
constexpr auto kLinePatience = std::chrono::seconds(5);

ChannelOptions options_of(const std::string& path, bool raw) {
  ChannelOptions options;
  if (!path.empty() && !path_from_name(path, options.path))
    throw Error(Status::invalid_argument, "'" + path + "' is no path: see `brant explain --help`");
  const bool for_devices = options.path == Path::copy_engine || options.path == Path::courier;
  if (for_devices && !raw)
    throw Error(Status::invalid_argument, "the path '" + path +
                                              "' carries device memory alone, and what describes an array travels from "
                                              "host memory: pass raw=True, or no path");
  return options;
}

/// Those to be closed when the program ends.
std::set<ChannelEnd*>& open_ends() {
  static auto* const ends = new std::set<ChannelEnd*>;  // never destroyed, as Process
  return *ends;
}

/// How often this process has opened a channel, and which opening this is: the n-th of one end belongs to the n-th of
/// the other. With itself a process opens both ends.
std::uint32_t count_opening(int peer, std::uint32_t id, bool self) {
  static auto* const opened =
      new std::map<std::pair<int, std::uint32_t>, std::uint32_t>;  // never destroyed, as Process
  const std::uint32_t before = (*opened)[{peer, id}]++;
  return self ? before / 2 : before;
}

nb::handle self_of(const ChannelEnd& end) { return nb::find(end); }

}  // namespace

ChannelEnd::ChannelEnd(int peer, std::uint32_t id, const std::string& path, bool raw)
    : peer_(peer), id_(id), name_("channel " + std::to_string(id) + " with rank " + std::to_string(peer)), raw_(raw) {
  Runtime& runtime = Process::get().runtime();
  try {
    channel_ = Channel::open(runtime, Rank{peer}, ChannelId{id}, options_of(path, raw));
  } catch (const Error& error) {
    throw Failure(error.status(), error.what(), name_, peer_);
  }
  joined_ = peer >= runtime.size();
  opening_ = count_opening(peer, id, peer == runtime.rank().value);
  open_ends().insert(this);
}

ChannelEnd::~ChannelEnd() {
  open_ends().erase(this);
  if (!channel_.is_open()) return;
  Process& process = Process::get();
  if (process.has_ended() || !process.is_owner()) {
    process.bury(std::make_shared<Channel>(std::move(channel_)));
  } else {
    close();
  }
}

void ChannelEnd::check_usable() const {
  static_cast<void>(Process::get().runtime());  // this thread's
  if (!channel_.is_open()) throw Failure(Status::invalid_argument, name_ + " is closed: open it again", name_, peer_);
  if (broken_)
    throw Failure(Status::peer_rejected, name_ + " is out of order after a message that failed: close it at both ends",
                  name_, peer_);
}

nb::object ChannelEnd::send(nb::handle object) {
  check_usable();
  auto [result, sending] = make<Sending>(*this, nb::borrow(self_of(*this)), Moment::source_free);
  sending->add(object);
  sending->start(kNoLimit);
  return std::move(result);
}

nb::object ChannelEnd::send_several(const nb::args& objects, const nb::object& timeout, bool delivered) {
  check_usable();
  const double seconds = seconds_of(timeout);
  if (objects.size() == 0)
    throw Failure(Status::invalid_argument, name_ + ": send takes at least one object", name_, peer_);
  auto [result, sending] =
      make<Sending>(*this, nb::borrow(self_of(*this)), delivered ? Moment::delivered : Moment::source_free);
  for (const nb::handle object : objects) sending->add(object);
  sending->start(seconds);
  return std::move(result);
}

nb::object ChannelEnd::recv(const nb::object& out, const nb::object& timeout) {
  check_usable();
  const double seconds = seconds_of(timeout);
  auto [result, receiving] = make<Receiving>(*this, nb::borrow(self_of(*this)));
  if (nb::isinstance<nb::list>(out) || nb::isinstance<nb::tuple>(out)) {
    for (const nb::handle array : out) receiving->add_landing(array);
  } else if (!out.is_none()) {
    receiving->add_landing(out);
  }
  receiving->start(seconds);
  return std::move(result);
}

nb::object ChannelEnd::next() {
  check_usable();
  auto [result, receiving] = make<Receiving>(*this, nb::borrow(self_of(*this)));
  receiving->set_iterates();
  receiving->start(kNoLimit);
  return std::move(result);
}

void ChannelEnd::close_by(TimePoint deadline) {
  if (!channel_.is_open() || Process::get().has_ended()) return;
  static_cast<void>(Process::get().runtime());
  // Those whose turn has not come; the others are told by the channel.
  const std::deque<Receiving*> waiting = turns_;
  for (auto receiving = waiting.rbegin(); receiving != waiting.rend() && *receiving != waiting.front(); ++receiving) {
    turns_.pop_back();
    (*receiving)->abandon(Status::canceled);
  }
  if (!turns_.empty() && turns_.front()->abandon(Status::canceled)) turns_.pop_front();
  left_.clear();
  end_line_by(deadline);
  say_end();
  channel_.close();
}

void ChannelEnd::close() { close_by(deadline_after(kLinePatience)); }

/// What was sent still arrives: for that its arrays are waited for, within bounds.
void ChannelEnd::end_line_by(TimePoint deadline) {
  while (!line_.empty() && line_.front()->wait_for_arrays(deadline)) move_line();
  while (!line_.empty()) line_.front()->give_up(Status::canceled);
}

/// The other end's receives need not wait for ever. A message that finds no room in the window ends with the channel,
/// and its receive is told of that.
void ChannelEnd::say_end() noexcept {
  FrameHeader end;
  end.flags = FrameHeader::kEnd;
  end.items = opening_;
  Op unobserved;
  if (!broken_ && !raw_) static_cast<void>(channel_.post_send({&end, sizeof end, MemoryKind::host}, unobserved));
}

void close_channels() {
  const std::set<ChannelEnd*> ends = std::exchange(open_ends(), {});
  const TimePoint deadline = deadline_after(kLinePatience);
  for (ChannelEnd* end : ends) end->close_by(deadline);
}

void ChannelEnd::stand_in_line(Sending& sending) {
  if (line_.size() >= kLineMax)
    throw failure(Status::limit_reached, name_, peer_,
                  "a message was not sent, so many wait for arrays to be computed");
  line_.push_back(&sending);
}

void ChannelEnd::step_out(Sending& sending) noexcept {
  const bool first = line_.front() == &sending;
  line_.erase(std::ranges::find(line_, &sending));
  if (first && !line_.empty()) Process::get().ended(*line_.front());  // which moves the line
}

void ChannelEnd::move_line() {
  while (!line_.empty() && line_.front()->can_leave()) {
    Sending& first = *line_.front();
    line_.pop_front();
    first.leave();
  }
}

void ChannelEnd::line_up(Receiving& receiving) {
  if (!left_.empty()) {
    std::shared_ptr<LeftMessage> message = std::move(left_.front());
    left_.pop_front();
    return receiving.inherit(std::move(message));
  }
  if (!channel_.is_open() || broken_) {
    receiving.abandon(broken_ ? Status::peer_rejected : Status::canceled);
    return;
  }
  turns_.push_back(&receiving);
  if (turns_.size() == 1) receiving.post_frame();
}

void ChannelEnd::step_out(Receiving& receiving) {
  const bool first = !turns_.empty() && turns_.front() == &receiving;
  if (first) return next_turn();
  turns_.erase(std::ranges::find(turns_, &receiving));
}

void ChannelEnd::next_turn() {
  turns_.pop_front();
  if (turns_.empty()) return;
  if (channel_.is_open() && !broken_) return turns_.front()->post_frame();
  const std::deque<Receiving*> left = std::exchange(turns_, {});
  for (Receiving* receiving : left) receiving->abandon(broken_ ? Status::peer_rejected : Status::canceled);
}

void ChannelEnd::pass_on(std::shared_ptr<LeftMessage> message, const Receiving& by) {
  if (!channel_.is_open()) return;
  const auto heir = std::ranges::find_if(
      turns_, [&](const Receiving* receiving) { return receiving != &by && receiving->is_withdrawable(); });
  if (heir != turns_.end()) {
    Receiving& found = **heir;
    found.withdraw();
    return found.inherit(std::move(message));
  }
  const auto later = std::ranges::find_if(left_, [&](const auto& other) { return other->number > message->number; });
  left_.insert(later, std::move(message));
}

void bind_channel(nb::module_& module) {
  nb::class_<ChannelEnd>(module, "ChannelEnd", nb::is_weak_referenceable())
      .def(nb::init<int, std::uint32_t, const std::string&, bool>())
      .def("send", &ChannelEnd::send, "Sends one message: one object or several.")
      .def("send", &ChannelEnd::send_several, nb::arg("objects"), nb::arg("timeout") = nb::none(),
           nb::arg("delivered") = false)
      .def("recv", &ChannelEnd::recv, nb::arg("out") = nb::none(), nb::kw_only(), nb::arg("timeout") = nb::none(),
           "Receives the next message, into `out` if that is given.")
      .def("close", &ChannelEnd::close, "Ends what waits at either end.")
      .def("__aiter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__anext__", [](ChannelEnd& self) { return self.next(); })
      .def_prop_ro("is_open", &ChannelEnd::is_open)
      .def_prop_ro("peer", &ChannelEnd::peer)
      .def_prop_ro("id", &ChannelEnd::id);
  const nb::class_<Sending, Awaitable> sending(module, "Sending");
  const nb::class_<Receiving, Awaitable> receiving(module, "Receiving");
}

}  // namespace brant::python
