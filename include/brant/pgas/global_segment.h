#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "brant/base/api.h"
#include "brant/base/buffer.h"
#include "brant/base/ids.h"
#include "brant/core/future.h"
#include "brant/pgas/global_ptr.h"

namespace brant {

class OwnedSegment;
class Team;

/// Memory of this process that global pointers point into, of one kind and one device, of any size, and an allocator of
/// objects in it. Made by a GlobalSpace, by this process alone: nobody else takes part. Movable; the worker's thread;
/// goes before its space, or is retired by its end.
class BRANT_API GlobalSegment {
 public:
  GlobalSegment() noexcept = default;
  GlobalSegment(GlobalSegment&& other) noexcept : owned_(std::move(other.owned_)) {}
  GlobalSegment& operator=(GlobalSegment&& other) noexcept;
  /// Retires it without waiting. Memory that the space allocated is kept until nobody uses it any more; of memory that
  /// was adopted, wait for `retire` before it is freed.
  ~GlobalSegment();

  [[nodiscard]] bool is_open() const noexcept { return owned_ != nullptr; }
  [[nodiscard]] Buffer memory() const noexcept;
  [[nodiscard]] GlobalPtr<std::byte> begin() const noexcept;

  /// `count` objects in a row, of undefined content, aligned to their type, or to more; on devices to 256 bytes at
  /// least. Throws Error: no_memory (says how much is used), invalid_argument (closed, an alignment that is no power of
  /// two). Cost: logarithmic in the pieces that are free.
  template <typename T>
  [[nodiscard]] GlobalPtr<T> allocate(std::size_t count = 1, std::size_t alignment = alignof(T)) {
    return allocate_bytes(count, sizeof(T), alignment).as<T>();
  }
  /// What `allocate` gave, not yet given back. A null pointer is fine. Throws invalid_argument for any other: another
  /// segment's, a place inside an allocation, one that was given back. Who still uses it may read or write what comes
  /// to lie there.
  void deallocate(GlobalPtr<const std::byte> at);
  [[nodiscard]] std::size_t bytes_used() const noexcept;

  /// The pointer of this process to a place, which the CPU may follow for memory of the host, and kernels of the device
  /// for others. Null for a place outside the segment.
  template <typename T>
  [[nodiscard]] T* local(GlobalPtr<T> at) const noexcept {
    return static_cast<T*>(local_bytes(at, sizeof(T)));
  }
  /// The other way. Null for memory outside the segment.
  template <typename T>
  [[nodiscard]] GlobalPtr<T> global(T* object) const noexcept {
    return global_bytes(object).template as<T>();
  }

  /// Tells a process, or several, how the segment is reached, before they ask: their first use then takes no answer of
  /// this process. Costs a message each. Errors: invalid_argument (closed, no such rank), peer_lost, no_memory.
  Status publish(Rank to) noexcept;
  Status publish(std::span<const Rank> to) noexcept;
  /// To the members of a team.
  Status publish(const Team& to) noexcept;
  Status publish_to_all() noexcept;

  /// No use that begins from now on finds it. The future is ready when those under way have ended and nobody reaches
  /// the memory any more, which takes progress of those that used it; memory of the space is freed then, which may wait
  /// for the device: so this process must come to a wait, to `Worker::arm` or to `Runtime::tidy`. The object is closed
  /// at once. Throws invalid_argument if it is closed. Nobody counts what streams have still to do
  /// (`GlobalSpace::enqueue_put` and its like, also in graphs) and what kernels do in windows: all who queued or
  /// launched such work await its end before the segment is retired.
  Future<void> retire();

 private:
  friend class GlobalSpace;
  explicit GlobalSegment(std::shared_ptr<OwnedSegment> owned) noexcept : owned_(std::move(owned)) {}
  [[nodiscard]] GlobalPtr<std::byte> allocate_bytes(std::size_t count, std::size_t each, std::size_t alignment);
  [[nodiscard]] void* local_bytes(GlobalPtr<const std::byte> at, std::size_t bytes) const noexcept;
  [[nodiscard]] GlobalPtr<std::byte> global_bytes(const void* object) const noexcept;

  std::shared_ptr<OwnedSegment> owned_;
};

}  // namespace brant
