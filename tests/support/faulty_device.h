#pragma once

#include <functional>
#include <memory>

#include "port/memory.h"

namespace brant::test {

/// What a device refuses from now on, with which status; `ok`: nothing.
struct DeviceFaults {
  Status pinned = Status::ok;     ///< Allocations of pinned memory.
  Status copies = Status::ok;     ///< Copies on streams, when they are asked for.
  Status events = Status::ok;     ///< Events, when they are looked at: the work before them has failed.
  Status imports = Status::ok;    ///< Mapping memory of other processes.
  Status files = Status::ok;      ///< Memory as a file.
  std::function<void()> at_free;  ///< What a call of free waits for; empty: nothing.
  /// Asked whenever a call would allocate: memory, a stream, an event, a mapping, a piece of work. True: no memory.
  bool (*scarce)() noexcept = nullptr;
  // And what it was asked for.
  unsigned allocated = 0;  ///< Less what was freed.
  unsigned imported = 0;
  unsigned closed = 0;

  [[nodiscard]] bool no_memory() const noexcept { return scarce != nullptr && scarce(); }
};

/// A device that breaks as `faults` say, which must outlive it.
std::unique_ptr<port::Device> make_faulty(std::unique_ptr<port::Device> inner, DeviceFaults& faults);

}  // namespace brant::test
