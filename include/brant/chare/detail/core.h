#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "brant/base/api.h"
#include "brant/base/archive.h"
#include "brant/chare/detail/registry.h"
#include "brant/chare/index.h"
#include "brant/core/reply.h"

/// The seam between the typed surface (templates) and the untyped engine of chares (src/models/chare): plain functions.
namespace brant {

class Chares;
class Placement;

/// How one call is to be treated.
struct CallOptions {
  int priority = 0;                ///< Higher runs first; equal ones in the order of arrival.
  bool expedited = false;          ///< Before everything that has a priority.
  bool inline_when_local = false;  ///< `call` of one element that is here and idle: the method runs inside the call.
};

namespace detail {

class Core;

/// An element of a collection.
struct Target {
  std::uint32_t collection = 0;
  ElementKey key;
};

/// A message being packed: `args` has room for as many bytes as were asked for.
struct Outgoing {
  void* message = nullptr;
  std::byte* args = nullptr;
};

/// One entry method at work, and what is needed to answer or to blame. Copied into coroutines.
struct Invocation {
  Core* core = nullptr;
  ChareBase* chare = nullptr;
  const EntryInfo* entry = nullptr;
  void* message = nullptr;  ///< Holds the arguments that are read in place.
  std::int32_t source = -1;
  std::uint32_t reply = 0;  ///< 0: nobody waits.

  [[nodiscard]] bool is_asked() const noexcept { return reply != 0; }
};

BRANT_API Core& core_of(Chares& chares) noexcept;
BRANT_API Chares& chares_of(Core& core) noexcept;

// --- calling. All throw Error (limit_reached, no_memory, invalid_argument); a message that was opened must be posted.
BRANT_API Outgoing open_call(Core& core, const Target& target, const EntryInfo& entry, const CallOptions& options,
                             std::uint32_t reply, std::size_t bytes);
BRANT_API Outgoing open_broadcast(Core& core, std::uint32_t collection, const EntryInfo& entry,
                                  const CallOptions& options, std::size_t bytes);
BRANT_API void post(Core& core, Outgoing& outgoing);
/// The element, if it is here, exists and runs nothing at the moment.
BRANT_API ChareBase* idle_local(Core& core, const Target& target) noexcept;
/// As `idle_local`, whether it runs or not.
BRANT_API ChareBase* local(Core& core, const Target& target) noexcept;
/// Runs `call(context)` as an entry of `chare`: exceptions are reported as those of entries are.
BRANT_API void run_inline(Core& core, ChareBase& chare, const EntryInfo& entry, void (*call)(void*), void* context);

// --- collections
struct CollectionShape {
  const ClassInfo* chare_class = nullptr;
  const ConstructorInfo* constructor = nullptr;  ///< Null for sparse arrays.
  const Placement* placement = nullptr;
  ElementKey extent;  ///< Of a dense array.
  bool dense = false;
};
BRANT_API Outgoing open_create(Core& core, const CollectionShape& shape, std::size_t bytes, std::uint32_t& collection);
BRANT_API Outgoing open_insert(Core& core, const Target& target, const ConstructorInfo& constructor, std::size_t bytes);
/// A new single chare on `rank`.
BRANT_API Target single_target(Core& core, const ClassInfo& chare_class, std::int32_t rank);
BRANT_API void post_destroy(Core& core, const Target& target);
BRANT_API void post_destroy_all(Core& core, std::uint32_t collection);
/// From one end of a channel that is to be, to the other.
BRANT_API Outgoing open_hello(Core& core, const Target& target, std::size_t bytes);
BRANT_API [[noreturn]] void throw_outside(Core& core, const ClassInfo& chare_class, const ElementKey& index,
                                          const ElementKey& extent);

// --- answering
/// A number for the reply; 0 never.
BRANT_API std::uint32_t expect_reply(Core& core, const Waiting& waiting, const Target& target, const EntryInfo& entry);
BRANT_API Outgoing open_reply(const Invocation& invocation, std::size_t bytes);
/// Tells whoever waits, or ends the job with an error.
BRANT_API void fail_invocation(const Invocation& invocation, std::exception_ptr error) noexcept;
/// Of a chare that is destroyed while a coroutine of it has not answered.
BRANT_API void fail_unanswered(const Invocation& invocation) noexcept;
/// Keeps a message while a coroutine reads its arguments in place.
BRANT_API void retain_message(const Invocation& invocation) noexcept;
BRANT_API void drop_message(const Invocation& invocation) noexcept;

}  // namespace detail
}  // namespace brant
