#pragma once

#include "brant/base/simt.h"

#ifndef __CUDACC_RTC__
#include <compare>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "brant/base/buffer.h"
#include "brant/base/ids.h"
#endif

#ifdef __CUDACC__
#define BRANT_ANY_CODE __host__ __device__ __forceinline__
#else
#define BRANT_ANY_CODE inline
#endif

namespace brant {

/// A place in a segment of some process of the job, of any kind of memory: 16 bytes that may travel in messages, lie in
/// shared memory, and be used in kernels. It says where the object is (process, segment, offset) and what memory that
/// is, and nothing of whether the segment still exists: that is found out when it is used (GlobalSpace).
///
/// It counts in objects of T as a pointer does. Arithmetic is plain: an offset before the beginning of the segment or
/// past its end is noticed where the pointer is used, and one of 2^48 bytes or more is not representable.
template <typename T>
class GlobalPtr {
 public:
  using element_type = T;
#ifdef __CUDACC_RTC__
  using difference_type = long;  ///< What std::ptrdiff_t is with the compilers of the host; NVRTC has no headers.
#else
  using difference_type = std::ptrdiff_t;
#endif
  static constexpr simt::Word kOffsetBits = 48;

  constexpr GlobalPtr() noexcept = default;
  /// For who makes segments. `kind`: of MemoryKind.
  constexpr BRANT_ANY_CODE GlobalPtr(int rank, unsigned segment, simt::Word offset, unsigned kind,
                                     unsigned device) noexcept
      : rank_(rank),
        segment_(segment),
        place_((offset & kOffsetMask) | simt::Word{kind & 0xffu} << kOffsetBits |
               simt::Word{device & 0xffu} << (kOffsetBits + 8)) {}
  /// As a pointer converts: to const, and to bytes.
#ifndef __CUDACC_RTC__
  template <typename U>
    requires((std::is_convertible_v<U*, T*> && sizeof(U) == sizeof(T)) ||
             (std::is_same_v<std::remove_const_t<T>, std::byte> && (std::is_const_v<T> || !std::is_const_v<U>)))
  constexpr BRANT_ANY_CODE GlobalPtr(GlobalPtr<U> other) noexcept  // NOLINT(google-explicit-constructor)
      : GlobalPtr(other.rank(), other.segment(), other.offset(), other.kind_number(), other.device()) {}
#endif

  [[nodiscard]] constexpr BRANT_ANY_CODE bool is_null() const noexcept { return segment_ == 0; }
  constexpr BRANT_ANY_CODE explicit operator bool() const noexcept { return segment_ != 0; }

  /// The process that owns the memory.
  [[nodiscard]] constexpr BRANT_ANY_CODE int rank() const noexcept { return rank_; }
  /// Of that process; 0 is of no segment.
  [[nodiscard]] constexpr BRANT_ANY_CODE unsigned segment() const noexcept { return segment_; }
  /// In bytes, from the beginning of the segment.
  [[nodiscard]] constexpr BRANT_ANY_CODE simt::Word offset() const noexcept { return place_ & kOffsetMask; }
  /// The ordinal that the device has in the owner's process; 0 for memory of the host.
  [[nodiscard]] constexpr BRANT_ANY_CODE unsigned device() const noexcept {
    return static_cast<unsigned>(place_ >> (kOffsetBits + 8));
  }
  [[nodiscard]] constexpr BRANT_ANY_CODE unsigned kind_number() const noexcept {
    return static_cast<unsigned>(place_ >> kOffsetBits) & 0xffu;
  }
#ifndef __CUDACC_RTC__
  [[nodiscard]] constexpr Rank where() const noexcept { return Rank{rank_}; }
  [[nodiscard]] constexpr MemoryKind kind() const noexcept { return static_cast<MemoryKind>(kind_number()); }
#endif

  /// The same place as another type; not checked for alignment.
  template <typename U>
  [[nodiscard]] constexpr BRANT_ANY_CODE GlobalPtr<U> as() const noexcept {
    return {rank_, segment_, offset(), kind_number(), device()};
  }

  constexpr BRANT_ANY_CODE GlobalPtr& operator+=(difference_type items) noexcept {
    const simt::Word moved = offset() + static_cast<simt::Word>(items) * sizeof(T);
    place_ = (place_ & ~kOffsetMask) | (moved & kOffsetMask);
    return *this;
  }
  constexpr BRANT_ANY_CODE GlobalPtr& operator-=(difference_type items) noexcept { return *this += -items; }
  constexpr BRANT_ANY_CODE GlobalPtr& operator++() noexcept { return *this += 1; }
  constexpr BRANT_ANY_CODE GlobalPtr& operator--() noexcept { return *this -= 1; }
  [[nodiscard]] friend constexpr BRANT_ANY_CODE GlobalPtr operator+(GlobalPtr at, difference_type items) noexcept {
    return at += items;
  }
  [[nodiscard]] friend constexpr BRANT_ANY_CODE GlobalPtr operator+(difference_type items, GlobalPtr at) noexcept {
    return at += items;
  }
  [[nodiscard]] friend constexpr BRANT_ANY_CODE GlobalPtr operator-(GlobalPtr at, difference_type items) noexcept {
    return at += -items;
  }
  /// Of two places in one segment, in objects.
  [[nodiscard]] friend constexpr BRANT_ANY_CODE difference_type operator-(GlobalPtr a, GlobalPtr b) noexcept {
    return (static_cast<difference_type>(a.offset()) - static_cast<difference_type>(b.offset())) /
           static_cast<difference_type>(sizeof(T));
  }
  [[nodiscard]] friend constexpr BRANT_ANY_CODE bool operator==(GlobalPtr a, GlobalPtr b) noexcept {
    return a.rank_ == b.rank_ && a.segment_ == b.segment_ && a.place_ == b.place_;
  }
#ifndef __CUDACC_RTC__
  /// By process, segment and place; within a segment as pointers are ordered.
  [[nodiscard]] friend constexpr std::strong_ordering operator<=>(GlobalPtr a, GlobalPtr b) noexcept {
    if (const auto by_rank = a.rank_ <=> b.rank_; by_rank != 0) return by_rank;
    if (const auto by_segment = a.segment_ <=> b.segment_; by_segment != 0) return by_segment;
    return a.offset() <=> b.offset();
  }
#endif

 private:
  static constexpr simt::Word kOffsetMask = (simt::Word{1} << kOffsetBits) - 1;

  int rank_ = -1;
  unsigned segment_ = 0;
  simt::Word place_ = 0;  ///< Offset (48 bits), kind (8), device (8).
};

#ifndef __CUDACC_RTC__
static_assert(sizeof(GlobalPtr<double>) == 16 && std::is_trivially_copyable_v<GlobalPtr<double>>);

/// The place of a member of the object at `at`: `member_of(particle, &Particle::mass)`. For types of standard layout.
template <typename T, typename Member>
[[nodiscard]] GlobalPtr<Member> member_of(GlobalPtr<T> at, Member T::* member) noexcept {
  static_assert(std::is_standard_layout_v<T>, "brant: only objects of standard layout have members at known places");
  alignas(T) const std::byte none[sizeof(T)]{};
  const auto* object = reinterpret_cast<const T*>(none);
  const auto offset = reinterpret_cast<const std::byte*>(&(object->*member)) - none;
  return (GlobalPtr<std::byte>(at.template as<std::byte>()) + offset).template as<Member>();
}
#endif

}  // namespace brant
