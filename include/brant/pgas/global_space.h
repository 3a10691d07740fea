#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "brant/base/api.h"
#include "brant/base/buffer.h"
#include "brant/core/operation.h"
#include "brant/core/runtime.h"
#include "brant/core/stream.h"
#include "brant/ops/atomics.h"
#include "brant/pgas/copy_options.h"
#include "brant/pgas/global_ptr.h"
#include "brant/pgas/global_segment.h"

/// A partitioned global address space: memory of all processes of a job, of any kind, named by pointers that anybody
/// may use, and copies between any two places of it that the owners take no part in.
///
///     GlobalSpace space(runtime);
///     GlobalSegment heap = space.create(runtime.device_kind(), 64 << 20);
///     GlobalPtr<double> ghost = heap.allocate<double>(n);           // sent to the neighbour by any means
///     ...
///     OpResult put = co_await space.put(ghost, face);               // visible at its owner when this resumes, if ok()
///
/// Source: "GASNet-EX Memory Kinds" (SC21) for segments and copies; the UPC++ 1.0 specification for the vocabulary.
namespace brant {

class SpaceState;
namespace pgas {
struct DeviceWindow;
}
template <typename T>
class ValueGet;

/// The part of a process in the global address space. One at a time for a runtime; not movable, of the worker's thread,
/// and gone before its runtime. Others may use pointers to this process's segments from the moment they have them,
/// whether their own space was made before or after; where a process never makes one, whoever uses its pointers waits
/// until it ends.
///
/// The first use of a segment asks its owner how it is reached, unless it was published: that takes progress of the
/// owner, once. From then on copies are one-sided. They are not ordered with one another, nor with messages, but by
/// their completions; `fence` orders later ones behind earlier ones.
///
/// Errors of all copies: invalid_argument (a null pointer, outside the segment, memory past its allocation, a flag that
/// is not aligned), not_found
/// (the segment is retired, or its space is gone), wrong_kind, not_supported (path or shapes), limit_reached (65,536
/// under way: try again after progress), no_memory, peer_lost. The log names the pointer.
class BRANT_API GlobalSpace {
 public:
  /// Throws invalid_argument if the runtime has one.
  explicit GlobalSpace(Runtime& runtime);
  /// Ends what is under way as canceled, retires the segments, and waits until nobody reaches them any more, some 20 s
  /// at most. Nothing of this process may be under way into segments of its own then.
  ~GlobalSpace();
  GlobalSpace(const GlobalSpace&) = delete;
  GlobalSpace& operator=(const GlobalSpace&) = delete;

  /// The runtime's. Throws not_found if there is none: for functions that others call here.
  static GlobalSpace& of(Runtime& runtime);
  [[nodiscard]] Runtime& runtime() const noexcept { return runtime_; }

  /// Memory of `Runtime::allocate`, as a segment. Throws what that does, and limit_reached (2^32 were made).
  [[nodiscard]] GlobalSegment create(MemoryKind kind, std::size_t bytes);
  /// Memory that the program has, of any origin: an array, a tensor, a pool's. It stays the program's, and is freed
  /// when the segment is retired and the future says so. Throws as `expose`.
  [[nodiscard]] GlobalSegment adopt(Buffer memory);

  /// Done when the segment of the pointer can be reached from here, or never will be.
  Status post_reach(GlobalPtr<const std::byte> at, Op& op) noexcept;
  Operation reach(GlobalPtr<const std::byte> at) noexcept {
    return Operation(Moment::delivered, [&](Op& op) noexcept { return post_reach(at, op); });
  }
  /// Where the CPU of this process may follow a pointer: its own memory of the host, or that of another process which
  /// is mapped here. Null elsewhere, and before the segment was reached. Valid until the segment is retired.
  template <typename T>
  [[nodiscard]] T* local(GlobalPtr<T> at) const noexcept {
    return static_cast<T*>(host_address(at, sizeof(T)));
  }
  /// The same for kernels of this process's device.
  template <typename T>
  [[nodiscard]] T* device_pointer(GlobalPtr<T> at) const noexcept {
    return static_cast<T*>(device_address(at, sizeof(T)));
  }

  /// For kernels of this process's device that copy and tell by themselves (brant/pgas/device_window.cuh): `bytes` at
  /// each of these places, in the order of the members, one of them of this process. Valid until one of the segments is
  /// retired, or the space ends. Where the device does not reach a member (another host, memory that cannot be mapped),
  /// the worker of this process performs what kernels order there: it must make progress while they run. While it
  /// waits it does not sleep until half a second after the last order, and then looks for the next one every 10 ms.
  /// That takes 17 KB of pinned memory and 1 KB of the device's, so make such windows before kernels that stay. Throws
  /// Error: invalid_argument (no members, more than 16, none of this process, two of one process, not aligned to 16
  /// bytes), not_supported (the own device does not reach this process's part; a member is not reached yet: await
  /// `reach`), and what Runtime::allocate throws.
  ///
  /// `retire` and the end of a space do not wait for kernels that use a window: end them before.
  [[nodiscard]] pgas::DeviceWindow window(std::span<const GlobalPtr<std::byte>> places, std::size_t bytes) const;
  /// Ends a window before its segments are retired, and frees what it takes as soon as nothing of it is under way and a
  /// device may be waited for (a wait, `Runtime::tidy`). Kernels that use it have ended. Nothing if all members are
  /// mapped, or it is closed.
  void close_window(const pgas::DeviceWindow& window) noexcept;
  /// Why waits of kernels in a window end as aborted: peer_lost (`lost`, if it is not null, gets who), not_found (a
  /// segment of it was retired, or it was closed), or what became of something that a kernel had ordered. ok: nothing,
  /// and always where all members are mapped.
  [[nodiscard]] Status status_of(const pgas::DeviceWindow& window, Rank* lost = nullptr) const noexcept;

  /// Copies into the global space. `op.source_free`: the source may be reused. `op.delivered`: the bytes are visible at
  /// the destination, and what `at_target` tells has been sent behind them. ok: both have happened. Costs what
  /// RemoteSegment::post_put does, and some nanoseconds to find the segment; with `at_target` a record of 384 bytes
  /// from a pool.
  Status post_put(GlobalPtr<std::byte> to, ConstBuffer from, Op& op, CopyOptions options = {}) noexcept;
  /// Copies out of it. `at_target` is about this process then.
  Status post_get(GlobalPtr<const std::byte> from, Buffer to, Op& op, CopyOptions options = {}) noexcept;
  /// Copies between any two places of it: of this process, another one, or two others. What this process can map of
  /// both is copied by it; else the owner of the source copies, which takes its progress.
  Status post_copy(GlobalPtr<const std::byte> from, GlobalPtr<std::byte> to, std::size_t bytes, Op& op,
                   CopyOptions options = {}) noexcept;
  /// A value of 16 bytes at most, which is taken over by the call.
  Status post_put_value(GlobalPtr<std::byte> to, ConstBuffer value, Op& op, CopyOptions options = {}) noexcept;
  /// The other way. `to` is written when the operation ends, and not at all once nobody observes it any more.
  Status post_get_value(GlobalPtr<const std::byte> from, Buffer to, Op& op, CopyOptions options = {}) noexcept;
  /// An atomic on a word: see RemoteSegment::post_atomic, who performs it, and what it is ordered with. Not a store
  /// where `before` is not null.
  Status post_atomic(GlobalPtr<std::byte> at, const Atomic& what, Op& op, void* before = nullptr) noexcept;
  /// Done when all puts, copies and atomics that this process has posted to segments of a process are visible there:
  /// those that come behind it come behind them. Errors: invalid_argument, peer_lost.
  /// What streams do (`enqueue_put`) and kernels in windows is none of them: those order it by themselves.
  Status post_fence(Rank rank, Op& op) noexcept;

  /// The same as objects to await.
  template <typename T>
  Operation put(GlobalPtr<T> to, std::type_identity_t<std::span<const T>> from, CopyOptions options = {},
                Moment until = Moment::delivered) noexcept {
    static_assert(std::is_trivially_copyable_v<T>, "brant: copies move bytes");
    return Operation(until, [&](Op& op) noexcept { return post_put(to, from, op, std::move(options)); });
  }
  /// From memory of a kind that is declared, or that shapes are laid on.
  template <typename T>
  Operation put(GlobalPtr<T> to, ConstBuffer from, CopyOptions options = {},
                Moment until = Moment::delivered) noexcept {
    return Operation(until, [&](Op& op) noexcept { return post_put(to, from, op, std::move(options)); });
  }
  template <typename T>
  Operation get(GlobalPtr<T> from, std::type_identity_t<std::span<std::remove_const_t<T>>> to,
                CopyOptions options = {}) noexcept {
    static_assert(std::is_trivially_copyable_v<T>, "brant: copies move bytes");
    return Operation(Moment::delivered, [&](Op& op) noexcept { return post_get(from, to, op, std::move(options)); });
  }
  template <typename T>
  Operation get(GlobalPtr<T> from, Buffer to, CopyOptions options = {}) noexcept {
    return Operation(Moment::delivered, [&](Op& op) noexcept { return post_get(from, to, op, std::move(options)); });
  }
  template <typename T>
  Operation copy(std::type_identity_t<GlobalPtr<const T>> from, GlobalPtr<T> to, std::size_t count,
                 CopyOptions options = {}) noexcept {
    static_assert(std::is_trivially_copyable_v<T>, "brant: copies move bytes");
    // What no memory has is refused as what lies outside a segment.
    constexpr std::size_t kMost = ~std::size_t{0};
    const std::size_t bytes = count > kMost / sizeof(T) ? kMost : count * sizeof(T);
    return Operation(Moment::delivered,
                     [&](Op& op) noexcept { return post_copy(from, to, bytes, op, std::move(options)); });
  }
  /// One value. The object that is awaited need not outlive the call.
  template <typename T>
  Operation put_value(GlobalPtr<T> to, const std::type_identity_t<T>& value, CopyOptions options = {}) noexcept {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16, "brant: put what is larger as a span");
    return Operation(Moment::delivered, [&](Op& op) noexcept {
      return post_put_value(to, ConstBuffer(&value, sizeof(T), MemoryKind::host), op, std::move(options));
    });
  }
  /// `T value = co_await space.get_value(pointer)`: throws an Error where that fails.
  template <typename T>
  ValueGet<T> get_value(GlobalPtr<T> from) noexcept {
    return ValueGet<T>(*this, from);
  }
  /// An atomic whose value before nobody asks for.
  template <AtomicValue T>
  Operation atomic(GlobalPtr<T> at, AtomicOp operation, std::type_identity_t<T> operand) noexcept {
    return Operation(Moment::delivered,
                     [&](Op& op) noexcept { return post_atomic(at, Atomic::of<T>(operation, operand), op); });
  }
  /// `Fetched<int> ticket = co_await space.fetch(next, AtomicOp::add, 1)` tells it.
  template <AtomicValue T>
  FetchOperation<T> fetch(GlobalPtr<T> at, AtomicOp operation, std::type_identity_t<T> operand = {},
                          std::type_identity_t<T> expected = {}) noexcept {
    return FetchOperation<T>([&](Op& op, T* before) noexcept {
      return post_atomic(at, Atomic::of<T>(operation, operand, expected), op, before);
    });
  }
  template <AtomicValue T>
  FetchOperation<T> fetch_add(GlobalPtr<T> at, std::type_identity_t<T> value) noexcept {
    return fetch(at, AtomicOp::add, value);
  }
  /// Stores `desired` if the word is `expected`: it was if that is the value before.
  template <AtomicValue T>
  FetchOperation<T> compare_swap(GlobalPtr<T> at, std::type_identity_t<T> expected,
                                 std::type_identity_t<T> desired) noexcept {
    return fetch(at, AtomicOp::compare_swap, desired, expected);
  }
  Operation fence(Rank rank) noexcept {
    return Operation(Moment::delivered, [&](Op& op) noexcept { return post_fence(rank, op); });
  }

  /// When a stream comes there, for kernels that come behind, and in graphs: a copy of bytes, by the device; and a word
  /// that is written behind all that the stream did before, or waited for until it is at least so large. No CPU takes
  /// part. Segments must have been reached, and be mapped for this process's device (`device_pointer`), else
  /// not_supported. `from` and `to` are memory of the device, or pinned.
  ///
  /// Only the stream knows of them: the space counts no copy, no process is told, and a graph may run again. So `fence`
  /// does not come behind them, and neither `retire` nor the end of a space waits for them, be the segment this
  /// process's or another's: it may be freed, or not be mapped here any more, and the stream then fails or writes into
  /// what lies there by then. Whoever retires a segment first awaits what comes behind the last use of it: the stream
  /// itself (`Stream::synchronize`, `stream_done`), or a flag that it sets behind its copies.
  Status enqueue_put(StreamHandle stream, GlobalPtr<std::byte> to, ConstBuffer from) noexcept;
  Status enqueue_get(StreamHandle stream, GlobalPtr<const std::byte> from, Buffer to) noexcept;
  Status enqueue_set(StreamHandle stream, GlobalPtr<std::uint64_t> flag, std::uint64_t value) noexcept;
  Status enqueue_wait(StreamHandle stream, GlobalPtr<std::uint64_t> flag, std::uint64_t value) noexcept;

 private:
  friend class GlobalSegment;
  [[nodiscard]] void* host_address(GlobalPtr<const std::byte> at, std::size_t bytes) const noexcept;
  [[nodiscard]] void* device_address(GlobalPtr<const std::byte> at, std::size_t bytes) const noexcept;

  Runtime& runtime_;
  std::unique_ptr<SpaceState> state_;
};

/// A value on its way here. Stays where it was made, as an Operation does.
template <typename T>
class [[nodiscard]] ValueGet {
 public:
  ValueGet(GlobalSpace& space, GlobalPtr<T> from) noexcept
      : operation_(Moment::delivered, [&](Op& op) noexcept {
          return space.post_get_value(from, Buffer(&value_, sizeof(T), MemoryKind::host), op);
        }) {}

  /// For `Runtime::wait`.
  [[nodiscard]] Operation& operation() noexcept { return operation_; }
  /// Of one that is done. Throws an Error where it failed.
  [[nodiscard]] std::remove_const_t<T> value() const {
    operation_.result().or_throw("a value of the global space did not come");
    return value_;
  }
  auto operator co_await() noexcept { return Awaiter{*this, operation_.operator co_await()}; }

 private:
  static_assert(std::is_trivially_copyable_v<T> && std::default_initializable<std::remove_const_t<T>> &&
                    sizeof(T) <= 16,
                "brant: get what is larger into a span");
  struct Awaiter {
    ValueGet& get;
    decltype(std::declval<Operation&>().operator co_await()) inner;
    bool await_ready() const noexcept { return inner.await_ready(); }
    void await_suspend(std::coroutine_handle<> waiter) { inner.await_suspend(waiter); }
    std::remove_const_t<T> await_resume() const { return get.value(); }
  };

  std::remove_const_t<T> value_{};
  Operation operation_;
};

}  // namespace brant
