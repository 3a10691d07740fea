#include "models/mpi/types/external.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "models/mpi/types/basic_types.h"
#include "models/mpi/types/walk.h"

namespace brant::mpi {
namespace {

std::byte* external_memory_at(std::int64_t address) noexcept {
  return std::bit_cast<std::byte*>(static_cast<std::uintptr_t>(address));
}

std::uint64_t external_bytes_of(const Layout& layout) noexcept {
  switch (layout.form) {
    case Layout::Form::run:
    case Layout::Form::runs: {
      const BasicType& basic = basic_type(layout.basic);
      return layout.bytes / basic.bytes * basic.external;
    }
    case Layout::Form::loop: return external_bytes_of(*layout.item) * layout.count;
    case Layout::Form::items: break;
  }
  std::uint64_t all = 0;
  for (const Layout::Item& item : layout.items) all += external_bytes_of(*item.layout);
  return all;
}

template <typename Word>
Word swapped(Word word) noexcept {
  if constexpr (std::endian::native == std::endian::big || sizeof(Word) == 1) return word;
  if constexpr (sizeof(Word) == 2) return __builtin_bswap16(word);
  if constexpr (sizeof(Word) == 4) return __builtin_bswap32(word);
  if constexpr (sizeof(Word) == 8) return __builtin_bswap64(word);
}

/// `count` words of one size, their bytes turned round.
template <typename Word>
void copy_swapped(std::byte* to, const std::byte* from, std::uint64_t count) noexcept {
  for (std::uint64_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, from + i * sizeof(Word), sizeof(Word));
    word = swapped(word);
    std::memcpy(to + i * sizeof(Word), &word, sizeof(Word));
  }
}

void copy_swapped_by(std::uint32_t bytes, std::byte* to, const std::byte* from, std::uint64_t count) noexcept {
  switch (bytes) {
    case 2: return copy_swapped<std::uint16_t>(to, from, count);
    case 4: return copy_swapped<std::uint32_t>(to, from, count);
    case 8: return copy_swapped<std::uint64_t>(to, from, count);
    default: break;
  }
  if (bytes == 1 || std::endian::native == std::endian::big) {
    std::memcpy(to, from, count * bytes);
    return;
  }
  for (std::uint64_t i = 0; i < count; ++i) std::reverse_copy(from + i * bytes, from + (i + 1) * bytes, to + i * bytes);
}

/// Whole numbers that are larger here than there.
template <typename Wide, typename Narrow>
bool narrow(std::byte* to, const std::byte* from, std::uint64_t count) noexcept {
  bool fits = true;
  for (std::uint64_t i = 0; i < count; ++i) {
    Wide wide;
    std::memcpy(&wide, from + i * sizeof(Wide), sizeof(Wide));
    const auto value = static_cast<Narrow>(static_cast<std::make_unsigned_t<Wide>>(wide));
    fits = fits && static_cast<Wide>(value) == wide;
    const auto word = swapped(static_cast<std::make_unsigned_t<Narrow>>(value));
    std::memcpy(to + i * sizeof(word), &word, sizeof(word));
  }
  return fits;
}
template <typename Wide, typename Narrow>
void widen(std::byte* to, const std::byte* from, std::uint64_t count) noexcept {
  for (std::uint64_t i = 0; i < count; ++i) {
    std::make_unsigned_t<Narrow> word;
    std::memcpy(&word, from + i * sizeof(word), sizeof(word));
    const auto wide = static_cast<Wide>(static_cast<Narrow>(swapped(word)));
    std::memcpy(to + i * sizeof(Wide), &wide, sizeof(Wide));
  }
}

/// The long double of x86 has a fraction of 63 bits with a leading digit of its own; sign and exponent are those of a
/// quad, whose fraction has 112 bits.
constexpr bool kExtended = std::numeric_limits<long double>::digits == 64;
constexpr std::uint64_t kLeading = std::uint64_t{1} << 63;
constexpr unsigned kShift = 112 - 63;

void extended_to_quad(std::byte* to, const std::byte* from) noexcept {
  std::uint64_t digits;
  std::uint16_t sign_and_exponent;
  std::memcpy(&digits, from, 8);
  std::memcpy(&sign_and_exponent, from + 8, 2);
  if ((sign_and_exponent & 0x7fffu) == 0 && (digits & kLeading) != 0) ++sign_and_exponent;  // the smallest normal one
  const std::uint64_t fraction = digits & ~kLeading;
  const std::uint64_t high = std::uint64_t{sign_and_exponent} << 48 | fraction >> (64 - kShift);
  const std::uint64_t words[2] = {swapped(high), swapped(fraction << kShift)};
  std::memcpy(to, words, 16);
}

void quad_to_extended(std::byte* to, const std::byte* from) noexcept {
  std::uint64_t words[2];
  std::memcpy(words, from, 16);
  const std::uint64_t high = swapped(words[0]);
  const std::uint64_t low = swapped(words[1]);
  auto sign_and_exponent = static_cast<std::uint16_t>(high >> 48);
  const unsigned exponent = sign_and_exponent & 0x7fffu;
  std::uint64_t digits = (high & 0xffff'ffff'ffffu) << (64 - kShift) | low >> kShift;
  if (exponent != 0) digits |= kLeading;
  const std::uint64_t rest = low & ((std::uint64_t{1} << kShift) - 1);
  const std::uint64_t half = std::uint64_t{1} << (kShift - 1);
  if (exponent == 0x7fff) {
    if (rest != 0) digits |= 1;  // a NaN stays one
  } else if (rest > half || (rest == half && (digits & 1u) != 0)) {
    if (++digits == 0) {  // it has become the next power of two
      digits = kLeading;
      ++sign_and_exponent;
    } else if (exponent == 0 && (digits & kLeading) != 0) {
      ++sign_and_exponent;
    }
  }
  std::memset(to, 0, 16);
  std::memcpy(to, &digits, 8);
  std::memcpy(to + 8, &sign_and_exponent, 2);
}

/// Between native runs and external32, which it goes along.
template <bool kPacks>
class ExternalCopier {
 public:
  explicit ExternalCopier(std::byte* external) noexcept : external_(external) {}
  [[nodiscard]] bool fits() const noexcept { return fits_; }

  void run(std::int64_t at, std::uint64_t bytes, std::uint16_t basic) noexcept {
    const BasicType& type = basic_type(basic);
    const std::uint64_t count = bytes / type.bytes;
    convert(type, external_memory_at(at), count);
    external_ += count * type.external;
  }
  void loop(std::int64_t at, const Layout& item, std::uint64_t count, std::int64_t stride) noexcept {
    for (std::uint64_t i = 0; i < count; ++i) run(at + static_cast<std::int64_t>(i) * stride, item.bytes, item.basic);
  }
  void runs(std::int64_t base, const Layout& list, std::size_t first, std::size_t last) noexcept {
    std::uint64_t start = first == 0 ? 0 : list.runs[first - 1].end;
    for (std::size_t i = first; i < last; ++i) {
      run(base + list.runs[i].offset, list.runs[i].end - start, list.basic);
      start = list.runs[i].end;
    }
  }

 private:
  void convert(const BasicType& type, std::byte* native, std::uint64_t count) noexcept {
    const bool complex = type.representation == Representation::complex;
    const std::uint64_t parts = complex ? 2 * count : count;
    const std::uint32_t part = complex ? type.bytes / 2 : type.bytes;
    switch (type.representation) {
      case Representation::none: return swap(1, native, count * type.bytes);
      case Representation::wide_char: return convert_sized<wchar_t, std::uint16_t>(native, count);
      case Representation::signed_integer:
        if (type.external < type.bytes) return convert_sized<std::int64_t, std::int32_t>(native, count);
        break;
      case Representation::unsigned_integer:
        if (type.external < type.bytes) return convert_sized<std::uint64_t, std::uint32_t>(native, count);
        break;
      default: break;
    }
    if (kExtended && is_extended(type)) return convert_extended(native, parts);
    swap(part, native, parts);
  }
  /// Of the types of 16 bytes, those of C: Fortran's real(16) is a quad.
  static bool is_extended(const BasicType& type) noexcept { return type.number >= 0x220 && type.number <= 0x225; }

  void swap(std::uint32_t bytes, std::byte* native, std::uint64_t count) noexcept {
    kPacks ? copy_swapped_by(bytes, external_, native, count) : copy_swapped_by(bytes, native, external_, count);
  }
  template <typename Wide, typename Narrow>
  void convert_sized(std::byte* native, std::uint64_t count) noexcept {
    if constexpr (kPacks) {
      fits_ = narrow<Wide, Narrow>(external_, native, count) && fits_;
    } else {
      widen<Wide, Narrow>(native, external_, count);
    }
  }
  void convert_extended(std::byte* native, std::uint64_t count) noexcept {
    for (std::uint64_t i = 0; i < count; ++i) {
      kPacks ? extended_to_quad(external_ + 16 * i, native + 16 * i)
             : quad_to_extended(native + 16 * i, external_ + 16 * i);
    }
  }

  std::byte* external_;
  bool fits_ = true;
};

template <bool kPacks>
bool convert_items(std::byte* external, const void* user, Count count, const Datatype& type) noexcept {
  const Placed& placed = type.told_layout();
  if (placed.empty() || count <= 0) return true;
  ExternalCopier<kPacks> copier(external);
  const auto base = static_cast<std::int64_t>(std::bit_cast<std::uintptr_t>(user)) + placed.offset;
  walk_loop(*placed.layout, base, type.extent(), 0, static_cast<std::uint64_t>(type.bytes_of(count)), copier);
  return copier.fits();
}

}  // namespace

Count external_bytes(const Datatype& type, Count count) noexcept {
  const Placed& placed = type.told_layout();
  Count all = 0;
  if (count < 0) return -1;
  if (placed.empty()) return 0;
  // No type is larger in external32 than here, so that an item always fits.
  return __builtin_mul_overflow(static_cast<Count>(external_bytes_of(*placed.layout)), count, &all) ? -1 : all;
}

bool pack_external(const void* user, Count count, const Datatype& type, std::span<std::byte> to) noexcept {
  return convert_items<true>(to.data(), user, count, type);
}

void unpack_external(std::span<const std::byte> from, void* user, Count count, const Datatype& type) noexcept {
  // Unpacking only reads what is external.
  static_cast<void>(convert_items<false>(const_cast<std::byte*>(from.data()), user, count, type));
}

}  // namespace brant::mpi
