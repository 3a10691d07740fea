#include "core/observe/trace.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "base/clock_offset.h"
#include "base/env.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "brant/base/status.h"

namespace brant {
namespace {

constexpr std::int64_t kDefaultEvents = 262'144;
// Readers keep times as doubles: counted from a recent day they resolve nanoseconds.
constexpr std::int64_t kEpochSeconds = 1'767'225'600;  // 2026-01-01

std::string_view kind_name(Trace::Kind kind) noexcept {
  switch (kind) {
    case Trace::Kind::entry: return "entry";
    case Trace::Kind::send: return "send";
    case Trace::Kind::transfer: return "transfer";
    case Trace::Kind::idle: return "idle";
  }
  return "";
}

/// Names of C++ methods hold no control characters; quotes and backslashes may occur in template arguments.
std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

}  // namespace

std::unique_ptr<Trace> Trace::from_environment(int rank) {
  const std::string_view path = env("BRANT_TRACE");
  if (path.empty()) return nullptr;
  constexpr std::int64_t kMostEvents = 1'000'000'000;
  const std::int64_t events = env_int_in("BRANT_TRACE_EVENTS", kDefaultEvents, {1, kMostEvents, "events"});
  return std::unique_ptr<Trace>(new Trace(std::string(path), rank, static_cast<std::size_t>(events)));
}

Trace::Trace(std::string path, int rank, std::size_t events_max)
    : path_(std::move(path)), rank_(rank), events_max_(events_max) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (rank == 0 ? O_TRUNC : 0);
  const UniqueFd file(::open(path_.c_str(), flags, 0666));
  if (!file) throw Error(Status::io_error, fmt::format("BRANT_TRACE={}: {}", path_, std::strerror(errno)));
  const auto steady = [] { return Clock::now().time_since_epoch(); };
  const auto wall = [] { return std::chrono::system_clock::now().time_since_epoch(); };
  wall_offset_ns_ = (clock_offset(steady, wall) - std::chrono::seconds(kEpochSeconds)).count();
  events_.reserve(std::min<std::size_t>(events_max_, 4096));
}

Trace::~Trace() { write(); }

void Trace::add(const Event& event) noexcept {
  if (events_.size() < events_max_) {
    try {
      events_.push_back(event);
    } catch (const std::bad_alloc&) {
      return;  // counted as dropped
    }
  } else {
    events_[added_ % events_max_] = event;
  }
  ++added_;
}

void Trace::add_transfer(std::string_view name, Path path, int peer, TimePoint posted_at,
                         std::uint64_t bytes) noexcept {
  Event event;
  event.kind = Kind::transfer;
  event.path = path;
  event.peer = peer;
  event.begin = posted_at;
  event.end = Clock::now();
  event.name = name;
  event.bytes = bytes;
  add(event);
}

double Trace::microseconds(TimePoint time) const noexcept {
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  return static_cast<double>(since + wall_offset_ns_) / 1e3;
}

void Trace::describe(std::string& text, const Event& event) const {
  const double begin = microseconds(event.begin);
  const double duration = std::max(microseconds(event.end) - begin, 0.001);
  const std::string name =
      in_quotes(event.group.empty() ? std::string(event.name) : fmt::format("{}::{}", event.group, event.name));
  // Transfers overlap one another and everything else: a track of their own, which readers lay out in lanes.
  const int track = event.kind == Kind::transfer ? 1 : 0;
  text += fmt::format(R"(,
{{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{)",
                      kind_name(event.kind), name, rank_, track, begin, duration);
  if (event.kind == Kind::send || event.kind == Kind::transfer) {
    text += fmt::format(R"("bytes":{},"path":"{}","peer":{})", event.bytes, path_name(event.path), event.peer);
  }
  text += "}}";
  if (event.flow == 0 || event.kind == Kind::idle) return;
  const bool begins = event.kind == Kind::send;
  text += fmt::format(R"(,
{{"ph":"{}","cat":"message","name":"message","id":{},"pid":{},"tid":{},"ts":{:.3f}{}}})",
                      begins ? "s" : "f", event.flow, rank_, track, begin, begins ? "" : R"(,"bp":"e")");
}

void Trace::write() noexcept {
  if (written_) return;
  written_ = true;
  try {
    const std::uint64_t dropped = added_ - std::min<std::uint64_t>(added_, events_.size());
    std::string text = fmt::format(
        R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"rank {0}"}}}},
{{"ph":"M","name":"thread_name","pid":{0},"tid":0,"args":{{"name":"scheduler"}}}},
{{"ph":"M","name":"thread_name","pid":{0},"tid":1,"args":{{"name":"transfers"}}}},
{{"ph":"M","name":"dropped_events","pid":{0},"args":{{"count":{1}}}}})",
        rank_, dropped);
    for (const Event& event : events_) describe(text, event);
    append(text);
    if (dropped != 0) {
      log::warn("the trace kept the latest {} of {} events: set BRANT_TRACE_EVENTS higher to keep more", events_.size(),
                added_);
    }
  } catch (const std::bad_alloc&) {
    log::error("no memory to write the trace of {} events", events_.size());
  }
}

/// Under a lock, so that the ranks' blocks do not mix. The first block opens the array.
void Trace::append(const std::string& text) noexcept {
  const UniqueFd file(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  bool good = static_cast<bool>(file) && ::flock(file.get(), LOCK_EX) == 0;
  if (good) {
    const bool first = ::lseek(file.get(), 0, SEEK_END) == 0;
    good = ::write(file.get(), first ? "[\n" : ",\n", 2) == 2;
  }
  for (std::size_t done = 0; good && done < text.size();) {
    const ssize_t count = ::write(file.get(), text.data() + done, text.size() - done);
    good = count > 0;
    if (good) done += static_cast<std::size_t>(count);
  }
  if (!good) log::error("BRANT_TRACE={}: the events could not be written: {}", path_, std::strerror(errno));
}

void Trace::close() noexcept {
  const UniqueFd file(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file || ::write(file.get(), "\n]\n", 3) != 3) log::error("BRANT_TRACE={}: {}", path_, std::strerror(errno));
}

}  // namespace brant
