#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <type_traits>

/// What an operation costs, counted instruction by instruction. For programs that link stepped_cost.cc and
/// counted_calls.cc, on x86-64 Linux and without sanitizers.
namespace brant::test {

struct OperationCost {
  std::uint64_t instructions = 0;   ///< Without those in memcpy and memmove, which differ between processors.
  std::uint64_t calls = 0;          ///< Call instructions, and jumps by pointer in place of a last call.
  std::uint64_t pointer_calls = 0;  ///< Of these by a pointer that is data: virtual functions, sinks, handlers.
  std::uint64_t locked = 0;         ///< Atomic read-modify-writes and full fences.
  std::uint64_t system_calls = 0;
  std::uint64_t copies = 0;        ///< Calls of memcpy and memmove, and repeated string copies.
  std::uint64_t copied_bytes = 0;  ///< By these. What a few moves copy in place is not among them.
  std::uint64_t allocations = 0;
  std::uint64_t locks = 0;
};

/// Runs `function(context)` in this thread with the processor's trap flag set, so that the kernel stops it after each
/// instruction; about 1 us each. No ptrace, so it needs no rights. What an empty function costs is taken off. Other
/// threads run on, and do not count; there is one at least, since the C library spares atomics where there is none. One
/// at a time in a process; it takes SIGTRAP from then on.
OperationCost step_through(void (*function)(void*), void* context);

template <typename Body>
OperationCost cost_of(Body&& body) {
  return step_through([](void* self) { (*static_cast<std::remove_reference_t<Body>*>(self))(); }, &body);
}

/// The source files (.cc) of brant above `src/port` on the way of the last operation that was stepped through: those
/// whose functions had begun and not ended, or had ended with that call, at its last call by pointer or copy, whichever
/// came later. What they inline is theirs, and whom they only asked is not on the way. Asks addr2line; empty where
/// there is none.
std::set<std::string> files_on_the_way();

}  // namespace brant::test
