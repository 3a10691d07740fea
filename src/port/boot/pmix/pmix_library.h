#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

/// The part of the PMIx client library that brant uses, declared here so that neither building nor running brant needs
/// PMIx. Names and layouts are those of the PMIx standard's C binding, the same in OpenPMIx 3.2 to 6. Why each call is
/// used the way it is: docs/gotchas/pmix.md.
namespace brant::port::pmix {

using Code = int;  ///< pmix_status_t
inline constexpr Code kSuccess = 0;
inline constexpr Code kErrTimeout = -24;
inline constexpr Code kErrUnreachable = -25;
inline constexpr Code kErrNotFound = -46;
inline constexpr Code kErrLostConnection = -61;
inline constexpr Code kOperationSucceeded = -157;  ///< Done at once, the callback will not come.

using Rank = std::uint32_t;
inline constexpr Rank kRankWildcard = UINT32_MAX - 1;

inline constexpr std::uint16_t kTypeBool = 1;
inline constexpr std::uint16_t kTypeUint16 = 13;
inline constexpr std::uint16_t kTypeUint32 = 14;
inline constexpr std::uint16_t kTypeByteObject = 27;
inline constexpr std::uint8_t kScopeGlobal = 3;

inline constexpr const char* kJobSize = "pmix.job.size";
inline constexpr const char* kLocalRank = "pmix.lrank";
inline constexpr const char* kLocalSize = "pmix.local.size";
inline constexpr const char* kCollectData = "pmix.collect";
inline constexpr const char* kImmediate = "pmix.immediate";
inline constexpr const char* kRefreshCache = "pmix.get.refresh";

struct Proc {
  char job[256];  // pmix_nspace_t
  Rank rank;
};

struct ByteObject {
  char* bytes;
  std::size_t size;
};

struct Value {
  std::uint16_t type;
  union Data {
    bool flag;
    std::uint16_t uint16;
    std::uint32_t uint32;
    ByteObject bytes;
    void* reserved[3];  // the largest member of PMIx's union has three words
  } data;
};

struct Info {
  char key[512];  // pmix_key_t
  std::uint32_t flags;
  Value value;
};

static_assert(sizeof(Proc) == 260 && sizeof(Value) == 32 && sizeof(Info) == 552, "PMIx's layout on 64-bit Linux");

using OpCallback = void (*)(Code status, void* context);
using ValueCallback = void (*)(Code status, Value* value, void* context);

struct Library {
  const char* (*error_string)(Code);
  Code (*init)(Proc*, Info*, std::size_t);
  Code (*finalize)(const Info*, std::size_t);
  Code (*abort)(int, const char*, Proc*, std::size_t);
  Code (*put)(std::uint8_t scope, const char* key, Value*);
  Code (*commit)();
  Code (*fence_nb)(const Proc*, std::size_t, const Info*, std::size_t, OpCallback, void*);
  Code (*get)(const Proc*, const char* key, const Info*, std::size_t, Value**);
  Code (*get_nb)(const Proc*, const char* key, const Info*, std::size_t, ValueCallback, void*);
  std::string file;  ///< Where it was loaded from.
};

/// Loads libpmix on the first call; it stays loaded. BRANT_PMIX_LIBRARY names the file; otherwise it is looked for
/// where the launcher says (PMIX_PREFIX), where the loader looks, and where Debian keeps it. Throws Error not_found
/// with the whole list. Thread safe.
const Library& library();

/// {key: true}, for the directives of get and fence.
Info directive(const char* key) noexcept;

}  // namespace brant::port::pmix
