#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <variant>

#include "brant/base/shape.h"
#include "brant/core/path.h"
#include "brant/notify/bell.h"
#include "brant/ops/rpc/packed_call.h"
#include "brant/pgas/global_ptr.h"

namespace brant {

/// What happens at the destination once the bytes of a copy are visible there: *remote completion*. What it tells is
/// ordered behind the bytes of this very copy, and behind nothing else; `GlobalSpace::fence` orders it behind earlier
/// ones. Movable, used once.
class AtTarget {
 public:
  struct Ring {
    PeerBell* bell;
    std::uint64_t epoch;
  };
  struct Set {
    GlobalPtr<std::uint64_t> flag;
    std::uint64_t value;
  };
  struct Tell {
    std::function<void()> tell;
  };
  using What = std::variant<std::monostate, Ring, Set, PackedCall, Tell>;

  /// Nothing.
  AtTarget() noexcept = default;
  /// Rings a bell that the target's CPU sees. The bell stays the caller's until the copy has ended.
  static AtTarget ring(PeerBell& bell, std::uint64_t epoch) noexcept { return AtTarget(Ring{&bell, epoch}); }
  /// Writes a word: a flag that the target's CPU or a kernel of its device looks at, or a stream waits for
  /// (`GlobalSpace::enqueue_wait`). It may be of any kind of memory, and of any process.
  static AtTarget set(GlobalPtr<std::uint64_t> flag, std::uint64_t value) noexcept {
    return AtTarget(Set{flag, value});
  }
  /// Runs a function at a process, the target or any other: `AtTarget::call(rpc.pack<&arrived>(rank, step))`.
  static AtTarget call(PackedCall call) noexcept { return AtTarget(What(std::move(call))); }
  /// Calls a function in *this* process, from progress, which tells the target by any means that overtake nothing:
  /// an invocation of a chare, a message of a channel.
  ///
  ///     space.put(ghost, face, {.at_target = AtTarget::by([=] { blocks[i].call<&Block::ghost_is_there>(step); })});
  ///
  /// What it throws becomes the outcome of the copy: the status of an Error, else `internal`.
  static AtTarget by(std::function<void()> tell) { return AtTarget(Tell{std::move(tell)}); }

  [[nodiscard]] bool is_wanted() const noexcept { return what_.index() != 0; }
  [[nodiscard]] What& what() noexcept { return what_; }

 private:
  explicit AtTarget(What what) noexcept : what_(std::move(what)) {}

  What what_;
};

struct CopyOptions {
  /// Forces the path, for measuring: see RmaOptions.
  Path path = Path::automatic;
  /// How the bytes lie, if not in one run at either end: see RmaOptions. Of a copy between two places of others, not
  /// supported unless both are mapped here.
  const TransferShapes* shapes = nullptr;
  AtTarget at_target;
};

}  // namespace brant
