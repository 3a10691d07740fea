#pragma once

#include <cstdint>
#include <utility>

#include "brant/base/api.h"
#include "brant/base/intrusive_list.h"
#include "brant/base/status.h"

namespace brant {

class Completions;
class OpOwner;

/// What became of an operation. Trivially copyable.
struct [[nodiscard]] OpResult {
  Status status = Status::ok;
  std::uint64_t bytes =
      0;  ///< Bytes moved; for a receive, the size of the message (its full size when truncated, if known).

  [[nodiscard]] bool ok() const noexcept { return status == Status::ok; }

  /// Itself, if it is ok; else throws an Error, whose text begins with `what` was attempted: `(co_await
  /// channel.recv(ghost)).or_throw("the ghost cells did not come")`.
  const OpResult& or_throw(std::string_view what = "an operation failed") const {  // NOLINT(modernize-use-nodiscard)
    if (!ok()) throw_error(status, what);
    return *this;
  }
  /// Becomes the outcome of both: the first failure, and the sum of the bytes.
  void join(const OpResult& other) noexcept {
    if (status == Status::ok) status = other.status;
    bytes += other.bytes;
  }
};

/// The two moments an operation reports, each at most once.
enum class Moment : std::uint8_t {
  source_free = 0,  ///< The source buffer may be reused.
  delivered = 1,    ///< The bytes are visible at the destination.
};

/// Whom to tell. The only type-erased form in brant: every sink (flag, counter, future, coroutine, mailbox, doorbell)
/// is one of these. `fire` runs on the worker's thread, from `Worker::progress`, never inside a post and never inside
/// the network engine. It may post, it must not block and cannot throw.
struct Completion {
  void (*fire)(void* self, const OpResult& result) noexcept = nullptr;
  void* self = nullptr;
};

/// The record of one operation. The caller owns it and keeps it in place until every moment it asked for was reported;
/// destroying it earlier detaches it.
///
/// Set the sinks, then hand it to a post. A post that returns `in_progress` reports each moment that has a sink exactly
/// once, also on cancel, peer loss and the end of the peer's program; any other return value is the outcome itself, and
/// nothing will be reported. The end of this process's own Runtime fires nothing, since what a sink would use is going:
/// a record that is pending then has ended as `canceled`, or with the outcome that was known already, for its owner to
/// look at (`pending`, `result`). A post refuses a record that is pending with invalid_argument and a line in the log,
/// and what the record is about goes on. All of it belongs to the worker's thread. It allocates nothing.
class BRANT_API Op {
 public:
  Op() noexcept = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;
  ~Op() {
    if (pending()) detach();
  }

  /// Sinks are used up, by the firing or by an outcome that the post returned: a record that is posted again needs them
  /// set again.
  Completion source_free;  ///< For sends and puts.
  Completion delivered;    ///< For receives and gets; for sends it costs an acknowledgement by the peer.

  /// The outcome: of the post if it did not return `in_progress`, otherwise of the latest moment reported.
  OpResult result;

  [[nodiscard]] bool pending() const noexcept { return completions_ != nullptr; }
  /// A moment that was asked for has come, and will be fired next.
  [[nodiscard]] bool due() const noexcept { return pending() && due_ != 0; }

  /// Withdraws a pending operation: it completes with `canceled`, unless it matched first. A send that the network
  /// already works on cannot be withdrawn; then nothing happens.
  void cancel() noexcept;

  /// Withdraws it as far as possible and takes the record back at once: nothing will be fired any more, not even the
  /// other sink of one that is being fired. A send that cannot be
  /// withdrawn goes on unobserved, and its source must stay valid until the channel closes.
  void detach() noexcept;

 private:
  friend class Completions;
  friend class OpOwner;

  ListHook<Op> completions_hook_;  ///< While pending: in the list of those to be fired if any are due, else of all.
  Completions* completions_ = nullptr;  ///< Set while pending.
  OpOwner* owner_ = nullptr;            ///< The layer that works on it; null once only the firing is left.
  std::uint8_t due_ = 0;                ///< Moments that happened and wait to be fired; bit (1 << Moment).
};

}  // namespace brant
