#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <variant>

#include "brant/base/shape.h"
#include "brant/core/path.h"
#include "brant/notify/bell.h"
#include "brant/ops/rpc/packed_call.h"
#include "brant/pgas/global_ptr.h"

namespace brant {

/// What happens at the destination once the bytes of a copy are visible there: *remote completion*. What it tells is
/// ordered behind the bytes of this very copy, and behind nothing else: the *weak* form. `behind_all` makes the strong
/// one of it. Movable, used once.
class AtTarget {
 public:
  struct Ring {
    PeerBell* bell;
    std::uint64_t epoch;
  };
  struct Set {
    GlobalPtr<std::uint64_t> flag;
    std::uint64_t value;
    bool adds = false;  ///< The value is added to the word.
  };
  struct Tell {
    std::function<void()> tell;
  };
  using What = std::variant<std::monostate, Ring, Set, PackedCall, Tell>;

  /// Nothing.
  AtTarget() noexcept = default;
  /// Rings a bell that the target's CPU sees. The bell stays the caller's until the copy has ended. Copies end in any
  /// order, and a bell only grows: the epoch of a copy tells of that copy, and of those that had ended when it was
  /// posted. So await one copy (or `fence`) before the next rings the same bell, or give each that is under way a bell
  /// of its own.
  static AtTarget ring(PeerBell& bell, std::uint64_t epoch) noexcept { return AtTarget(Ring{&bell, epoch}); }
  /// Writes a word: a flag that the target's CPU or a kernel of its device looks at, or a stream waits for
  /// (`GlobalSpace::enqueue_wait`). It may be of any kind of memory, and of any process. A process that sleeps in
  /// `Worker::wait_until` wakes up when the word is in memory of the host: on this host that costs a look at its alarm,
  /// elsewhere a message.
  static AtTarget set(GlobalPtr<std::uint64_t> flag, std::uint64_t value) noexcept {
    return AtTarget(Set{flag, value});
  }
  /// Adds to a word, which counts what has come: copies of any number of processes, that end in any order, may have one
  /// word in common, where each `set` would need one of its own. All else is as with `set`, but that it is an atomic of
  /// this process behind the bytes (see RemoteSegment::post_atomic): over the network the owner's progress performs it.
  static AtTarget add(GlobalPtr<std::uint64_t> counter, std::uint64_t value = 1) noexcept {
    return AtTarget(Set{counter, value, true});
  }
  /// Runs a function at a process, the target or any other: `AtTarget::call(rpc.pack<&arrived>(rank, step))`. Where too
  /// much waits for that process, the copy ends when the call has found room.
  static AtTarget call(PackedCall call) noexcept { return AtTarget(What(std::move(call))); }
  /// Invokes an entry of a chare, wherever it lives by then, or of all members of an array or a section: the bytes are
  /// visible there when it runs.
  ///
  ///     space.put(ghost, face, {.at_target = AtTarget::entry<&Block::landed>(blocks[right], step)});
  ///
  /// It is an ordinary call by this process behind the bytes, with the order and the errors of calls. The arguments are
  /// kept as they are given until then: what a view looks at stays until the copy has ended. Arguments that travel
  /// beside a call (`device`, `no_copy`) cannot be kept: use `by`.
  template <auto Method, typename Callee, typename... Arguments>
  static AtTarget entry(Callee callee, Arguments... arguments) {
    static_assert((std::is_copy_constructible_v<Arguments> && ...),
                  "brant: arguments of an entry at the target are kept");
    return by([callee = std::move(callee), ... arguments = std::move(arguments)] {
      callee.template call<Method>(arguments...);
    });
  }
  /// Calls a function in *this* process, from progress, which tells the target by any means that overtake nothing: a
  /// message of a channel, a call with data arguments.
  /// What it throws becomes the outcome of the copy: the status of an Error, else `internal`.
  static AtTarget by(std::function<void()> tell) { return AtTarget(Tell{std::move(tell)}); }

  /// The *strong* form: the target is told when all puts, copies and atomics that this process has posted to the
  /// process of the destination before are visible there too, and what those tell by `set` or `add`.
  ///
  ///     for (const Row& row : rows) space.post_put(row.there, row.here, row.op);
  ///     Operation last = space.put(there, here, {.at_target = AtTarget::set(flag, step).behind_all()});
  ///
  /// Of those that failed their own outcomes tell; it does not wait for them. What streams and kernels do is none of
  /// them (see `GlobalSpace::post_fence`). Costs a fence behind the copy, and a device that copies does not set the
  /// flag itself. Not of a get, whose bytes come to this process.
  [[nodiscard]] AtTarget behind_all() && noexcept {
    is_behind_all_ = true;
    return std::move(*this);
  }

  [[nodiscard]] bool is_behind_all() const noexcept { return is_behind_all_; }
  [[nodiscard]] bool is_wanted() const noexcept { return what_.index() != 0; }
  [[nodiscard]] What& what() noexcept { return what_; }

 private:
  explicit AtTarget(What what) noexcept : what_(std::move(what)) {}

  What what_;
  bool is_behind_all_ = false;
};

struct CopyOptions {
  /// Forces the path, for measuring: see RmaOptions.
  Path path = Path::automatic;
  /// How the bytes lie, if not in one run at either end: see RmaOptions. Of a copy between two places of others which
  /// are not both mapped here they travel to the owner of the source: lists of 16,000 runs at most, else not_supported.
  const TransferShapes* shapes = nullptr;
  AtTarget at_target{};
};

}  // namespace brant
