#pragma once

#include "brant/chare/detail/registry.h"
#include "core/observe/trace.h"

namespace brant::detail {

/// The slice of one entry invocation on the timeline, if there is one: from construction to destruction, with the arrow
/// from the message that caused it. What a coroutine does after it waited is not part of it.
class EntryTrace {
 public:
  EntryTrace(Trace* trace, const EntryInfo& entry, std::uint64_t flow) noexcept
      : trace_(trace), entry_(entry), flow_(flow) {
    if (trace_ != nullptr) begin_ = Clock::now();
  }
  EntryTrace(const EntryTrace&) = delete;
  EntryTrace& operator=(const EntryTrace&) = delete;
  ~EntryTrace() {
    if (trace_ == nullptr) return;
    Trace::Event event;
    event.kind = Trace::Kind::entry;
    event.group = entry_.owner;
    event.name = entry_.name;
    event.flow = flow_;
    event.begin = begin_;
    event.end = Clock::now();
    trace_->add(event);
  }

 private:
  Trace* trace_;
  const EntryInfo& entry_;
  std::uint64_t flow_;
  TimePoint begin_;
};

}  // namespace brant::detail
