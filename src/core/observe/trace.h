#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "brant/base/clock.h"
#include "brant/core/path.h"

namespace brant {

/// What a process did and when, kept in memory and written at the end as a timeline that Perfetto and chrome://tracing
/// read: BRANT_TRACE=FILE. All ranks append to the one file, each as a process of the timeline.
///
/// Bounded: the latest BRANT_TRACE_EVENTS events (262144) are kept, older ones are counted. Costs two looks at the
/// clock per event; nothing when off, since then there is no object. One thread: the worker's.
class Trace {
 public:
  /// Null if BRANT_TRACE is unset. Rank 0 empties the file. Throws io_error if the file cannot be written.
  static std::unique_ptr<Trace> from_environment(int rank);
  /// Writes what was not written, for runs that end early.
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  enum class Kind : std::uint8_t {
    entry,     ///< An entry method ran. `flow` ends here.
    send,      ///< A message left. `flow` begins here.
    transfer,  ///< A buffer went or came; may overlap others.
    idle,      ///< Nothing to do.
  };

  /// Texts must outlive the trace: literals, or names of registered classes and methods.
  struct Event {
    Kind kind = Kind::entry;
    Path path = Path::automatic;
    std::int32_t peer = -1;  ///< Rank at the other end; -1: none.
    TimePoint begin;
    TimePoint end;
    std::string_view group;  ///< For an entry, its class.
    std::string_view name;
    std::uint64_t flow = 0;  ///< The same number at both ends of a message; 0: none.
    std::uint64_t bytes = 0;
  };
  void add(const Event& event) noexcept;
  /// A transfer that was posted then and is done now.
  void add_transfer(std::string_view name, Path path, int peer, TimePoint posted_at, std::uint64_t bytes) noexcept;

  /// Appends this rank's events to the file, once.
  void write() noexcept;
  /// Ends the file; rank 0, when all have written. Readers also take a file without its end.
  void close() noexcept;

  /// A number that no other message of the job has: sender, receiver and the number of the message between them.
  static std::uint64_t flow_of(int sender, int receiver, std::uint32_t number) noexcept {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(sender) & 0xffffu) << 48) |
           (static_cast<std::uint64_t>(static_cast<std::uint32_t>(receiver) & 0xffffu) << 32) | number;
  }

 private:
  Trace(std::string path, int rank, std::size_t events_max);

  void append(const std::string& text) noexcept;
  [[nodiscard]] double microseconds(TimePoint time) const noexcept;
  void describe(std::string& text, const Event& event) const;

  const std::string path_;
  const int rank_;
  const std::size_t events_max_;
  std::vector<Event> events_;
  std::uint64_t added_ = 0;
  bool written_ = false;
  std::int64_t wall_offset_ns_ = 0;  ///< From the steady clock to the wall clock, less the epoch of traces.
};

}  // namespace brant
