#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "brant/base/api.h"
#include "brant/base/archive.h"
#include "brant/base/type_names.h"
#include "brant/chare/index.h"

/// What a program can be asked to do by a message. Every template below that a program instantiates enters itself in a
/// list before main; `Chares` sorts the list, checks it, and gives every entry its number. All processes run the same
/// binary, so that the numbers agree; a fingerprint is compared to be sure. What a library brings along that is opened
/// later gets its numbers from rank 0, by name (`Chares::enroll_late`).
namespace brant {

class ChareBase;
struct Buffer;
struct DeviceMeta;
struct Landing;

namespace detail {

struct Invocation;

enum class RegisteredKind : std::uint8_t { chare_class, constructor, entry, placement, reducer, absent };

inline constexpr std::uint16_t kNoNumber = 0xffff;

/// One line of the list. Static storage; never removed.
struct Registered {
  RegisteredKind kind;
  std::uint64_t hash;
  std::string_view owner;   ///< The chare class ("heat::Block"), or the placement function.
  std::string_view name;    ///< The method ("halo").
  std::string_view detail;  ///< The signature.
  Registered* following = nullptr;
  std::uint16_t number = kNoNumber;  ///< Given at start, or when it was enrolled late.
};

struct PlacementScope;

struct ClassInfo : Registered {
  int dimensions;  ///< Of `Index<N>`; 0 for other index types.
  std::size_t index_bytes;
  std::size_t object_bytes;
  void (*destroy)(ChareBase& object) noexcept;
};
struct ConstructorInfo : Registered {
  ChareBase* (*construct)(ReadArchive& arguments);
};
struct EntryInfo : Registered {
  /// Unpacks the arguments, calls the method, answers. Throws what the method throws.
  void (*invoke)(ChareBase& target, ReadArchive& arguments, Invocation& invocation);
  /// Asks the post entry where data lands; null if the method has none. Throws what it throws.
  void (*post)(ChareBase& target, ReadArchive& arguments, const DeviceMeta* metas, Landing* landings) = nullptr;
  bool awaited = false;  ///< Some `when` names it: its calls wait for one.
};
struct PlacementInfo : Registered {
  std::int32_t (*rank_of)(const ElementKey& index, const PlacementScope& scope);
};

[[noreturn]] BRANT_API void throw_without_number(const Registered& line);
/// The number that travels. Throws for what was enrolled late and has none yet.
inline std::uint16_t number_of(const Registered& line) {
  if (line.number == kNoNumber) [[unlikely]]
    throw_without_number(line);
  return line.number;
}

/// Puts a line into the list; used to initialise a static.
BRANT_API bool enroll(Registered& line) noexcept;

}  // namespace detail
}  // namespace brant
