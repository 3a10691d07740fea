#pragma once

/// A memory barrier on every thread of every process that takes part, ordered by one call of one of them. Who asks
/// rarely pays for those who would have to order two accesses on every message: they need a compiler's barrier only.
namespace brant::port::peer {

/// Makes this process take part from now on. False: the kernel does not offer it (Linux before 4.16), or does not let
/// this process (seccomp); then each side has to order its accesses by itself. Any thread, as often as one likes.
bool take_part_in_process_barriers() noexcept;

/// Some microseconds. Only after `take_part_in_process_barriers` has returned true.
void process_barrier() noexcept;

}  // namespace brant::port::peer
