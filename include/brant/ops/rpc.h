#pragma once

#include <utility>

#include "brant/base/api.h"
#include "brant/base/ids.h"
#include "brant/base/result.h"
#include "brant/base/status.h"
#include "brant/core/future.h"
#include "brant/core/reply.h"
#include "brant/core/runtime.h"
#include "brant/ops/rpc/function.h"
#include "brant/ops/rpc/packed_call.h"

namespace brant {

/// Calls of functions in other processes. A light handle: all those of a runtime are the same service, and every
/// process that is to be called makes one.
///
///     double scale(double factor, std::span<const double> values);   // runs in the process that is asked
///
///     Rpc rpc(runtime);
///     double sum = co_await rpc.call<&scale>(Rank{1}, 2.0, std::span<const double>(values));
///     rpc.tell<[](Caller who, int step) { note(who.rank, step); }>(Rank{2}, step);
///
/// A function is `R(Args...)` or `R(Caller, Args...)`. R is void, a value that travels, or a Task of one: then the
/// answer goes when the task has ended. Arguments and results travel as `brant/base/archive.h` says. A `std::span<const
/// T>` or `std::string_view` is packed by the caller, whose memory is free at the return, and looks into the message at
/// the target: it is valid while the function runs, of a Task until its end. GPU memory and large host buffers go as
/// data beside the message: `device(buffer)` for a parameter DeviceData, `no_copy(span)` for HostData (see
/// brant/ops/lane/data_arguments.h); their call runs when all is there, and others may pass it. Not to joined peers.
///
/// Functions run in `Worker::progress` of the target, where completions are fired, one at a time, also those that a
/// process calls in itself: never inside `call`, `tell` or a post. Those that one process sends to another run in the
/// order in which they were sent; answers come in any order. A function may call, tell and post; it must not wait,
/// unless it is a Task. It should be short: a long one holds up all else of its process.
///
/// All processes run the same binary with the same libraries: a function is known by a hash of its name and signature,
/// and a call of one that the target does not know fails with not_found. What a library brings along that is opened
/// later can be called as soon as it is open at both ends.
///
/// Bounded: a call counts in the window of its sender (16 MiB or 65,536 calls, see ops/am) until its function has
/// ended. What finds no room waits here, in order, up to 16 MiB or 65,536 calls for each target; then limit_reached. A
/// message larger than that waits alone.
///
/// All belongs to the worker's thread. A round trip of 8 bytes between two processes that do not sleep took 0.40 us on
/// a machine of two CPU cores (no row of docs/numbers has it); `tell` of a small message allocates
/// nothing, `call` allocates once, for the future.
class BRANT_API Rpc {
 public:
  /// Throws invalid_argument if two functions of the program cannot be told apart.
  explicit Rpc(Runtime& runtime);

  template <auto F>
  using Reply = typename remote::FunctionOf<F>::Reply;

  /// The future gets the result, or an Error: what the function threw, in words that name the function and the rank,
  /// with its status if it was an Error, else `internal`; not_found (no such function there), shutting_down (the
  /// program at the target has ended, whether or not it made an Rpc, or the runtime ends here), peer_lost. Throws
  /// invalid_argument (no such rank), limit_reached (too much waits for this target; or a million calls wait for
  /// answers), no_memory, and for data arguments wrong_kind, invalid_argument (not in one allocation), not_supported (a
  /// joined peer).
  template <auto F, typename... Args>
  Future<Reply<F>> call(Rank to, Args&&... args) const {
    Promise<Reply<F>> promise;
    Future<Reply<F>> future = promise.future();
    PackedCall packed = remote::pack<F>(*service_, to, std::forward<Args>(args)...);
    const Status status = packed.ask(detail::waiting_for(std::move(promise)), false);
    if (status != Status::ok && status != Status::peer_lost && status != Status::shutting_down)
      static_cast<void>(future.get());  // throws why
    return future;
  }

  /// Fire and forget. ok: it was taken over, and runs at the target unless one of the two processes ends first.
  /// limit_reached: too much waits for this target, try again after progress. peer_lost, invalid_argument (no such
  /// rank), no_memory, shutting_down; it throws as `call` where a data argument is no buffer. What the function throws
  /// ends the program at the target, as an uncaught exception does, with a text that names function and caller; a
  /// function that the target does not know ends this program so.
  template <auto F, typename... Args>
  Status tell(Rank to, Args&&... args) const {
    return remote::pack<F>(*service_, to, std::forward<Args>(args)...).send();
  }

  /// The immediate form of `call`: limit_reached where the message would have to wait here. Nothing was sent then.
  template <auto F, typename... Args>
  Result<Future<Reply<F>>> try_call(Rank to, Args&&... args) const {
    Promise<Reply<F>> promise;
    Future<Reply<F>> future = promise.future();
    PackedCall packed = remote::pack<F>(*service_, to, std::forward<Args>(args)...);
    const Status status = packed.ask(detail::waiting_for(std::move(promise)), true);
    if (status != Status::ok) return status;
    return future;
  }

  /// The immediate form of `tell`.
  template <auto F, typename... Args>
  Status try_tell(Rank to, Args&&... args) const {
    return remote::pack<F>(*service_, to, std::forward<Args>(args)...).try_send();
  }

  /// A `tell` that is sent later. Throws no_memory.
  template <auto F, typename... Args>
  PackedCall pack(Rank to, Args&&... args) const {
    PackedCall packed = remote::pack<F>(*service_, to, std::forward<Args>(args)...);
    if (!packed.packed()) throw_no_memory();
    return packed;
  }

  [[nodiscard]] remote::RpcService& service() const noexcept { return *service_; }

 private:
  [[noreturn]] static void throw_no_memory();

  remote::RpcService* service_;
};

}  // namespace brant
