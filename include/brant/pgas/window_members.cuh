#pragma once

#include "brant/pgas/proxy_ring.cuh"

#if !defined(NDEBUG) && !defined(__CUDACC__)
#include <cstdio>
#include <cstdlib>
#endif

/// The window that kernels get, and its members; programs use brant/pgas/device_window.cuh.
namespace brant::pgas {

inline constexpr unsigned kWindowMembers = 16;

/// Memory of the same size at each of several processes, as a kernel of one of them reaches it. By value; made by
/// `GlobalSpace::window`.
struct DeviceWindow {
  void* bases[kWindowMembers] = {};  ///< Null: it goes by the ring.
  Word bytes = 0;                    ///< Of each.
  unsigned member = 0;               ///< Whose kernel this is.
  unsigned members = 0;
  ProxyRing ring;  ///< None where all are mapped.
};

/// The kernel itself reaches the memory of a member.
BRANT_DEVICE_CODE bool is_mapped(const DeviceWindow& window, unsigned member) {
  return window.bases[member] != nullptr;
}

/// Where a member's part lies, which must be mapped; for kernels that load and store there by themselves. Nothing looks
/// whether the place is inside.
template <typename T>
BRANT_DEVICE_CODE T* peer_pointer(const DeviceWindow& window, unsigned member, Word offset) {
  return reinterpret_cast<T*>(static_cast<unsigned char*>(window.bases[member]) + offset);
}

namespace detail {

/// In builds without NDEBUG a kernel that leaves its window says so and stops, as an assertion would stop it. What goes
/// by the ring is looked at by the worker in every build, and loses the window.
BRANT_DEVICE_CODE void check_place([[maybe_unused]] const DeviceWindow& window, [[maybe_unused]] unsigned member,
                                   [[maybe_unused]] Word offset, [[maybe_unused]] Word bytes,
                                   [[maybe_unused]] Word multiple) {
#ifndef NDEBUG
  using Number = unsigned long long;
  const bool inside = member < window.members && offset <= window.bytes && bytes <= window.bytes - offset;
  if (inside && offset % multiple == 0) return;
  const char* const text =
      "brant: a kernel of member %u reaches for %llu bytes at offset %llu of member %u: they must lie inside a window "
      "of "
      "%u members and %llu bytes, at a multiple of %llu\n";
#ifdef __CUDACC__
  printf(text, window.member, Number{bytes}, Number{offset}, member, window.members, Number{window.bytes},
         Number{multiple});
  __trap();
#else
  std::fprintf(stderr, text, window.member, Number{bytes}, Number{offset}, member, window.members, Number{window.bytes},
               Number{multiple});
  std::abort();
#endif
#endif
}

/// The same of a place that is checked.
template <typename T>
BRANT_DEVICE_CODE T* checked_pointer(const DeviceWindow& window, unsigned member, Word offset, Word bytes,
                                     Word multiple = 1) {
  check_place(window, member, offset, bytes, multiple);
  return reinterpret_cast<T*>(static_cast<unsigned char*>(window.bases[member]) + offset);
}

BRANT_DEVICE_CODE ProxyOrder order_of(ProxyAct act, unsigned member, Word place = 0, Word bytes = 0, Word flag = 0,
                                      Word epoch = 0) {
  ProxyOrder order{};
  order.act = static_cast<Word>(act);
  order.member = member;
  order.place = place;
  order.bytes = bytes;
  order.flag = flag;
  order.epoch = epoch;
  return order;
}

}  // namespace detail
}  // namespace brant::pgas
