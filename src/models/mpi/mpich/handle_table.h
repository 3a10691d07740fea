#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace brant::mpi::mpich {

/// The numbers that objects of one class have as handles. A number is an object's as long as the program holds a handle
/// of it, and is used again afterwards. As calls of MPI, those of a table must not overlap (MPI_THREAD_SERIALIZED).
class HandleTable {
 public:
  /// `kind`: MPICH's number of the class, in bits 26 to 29 of its handles. `counted`: an object may be handed out
  /// several times, has the same number each time, and keeps it until all these handles are gone.
  constexpr HandleTable(unsigned kind, bool counted) noexcept : head_(kMade | kind), counted_(counted) {}

  /// Whether it may be a handle of a table: the predefined ones are none.
  static bool is_made(int handle) noexcept { return static_cast<std::uint32_t>(handle) >> 30 == kMade >> 4; }
  /// Null: no object has this handle.
  [[nodiscard]] void* find(int handle) const noexcept {
    const std::uint32_t index = index_of(handle);
    if (index >= used_) return nullptr;
    return slot(index).object;
  }
  /// One handle more of an object.
  int add(void* object) noexcept {
    if (counted_ || free_ == kNone) return add_slowly(object);
    const std::uint32_t index = free_;
    Slot& taken = slot(index);
    free_ = taken.next;
    taken = {object, 1, kNone};
    return handle_of(index);
  }
  /// One handle less.
  void remove(int handle) noexcept {
    if (find(handle) == nullptr) return;
    const std::uint32_t index = index_of(handle);
    Slot& left = slot(index);
    if (--left.users != 0) return;
    if (counted_) numbers_->erase(left.object);
    left = {nullptr, 0, free_};
    free_ = index;
  }
  /// With a number, in use or free.
  [[nodiscard]] std::uint32_t size() const noexcept { return used_; }

 private:
  /// The two highest bits of its handles, which MPICH has for objects that it makes while a program runs.
  static constexpr std::uint32_t kMade = 0x30;
  static constexpr unsigned kIndexBits = 26;
  static constexpr std::uint32_t kChunk = 4096;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Slot {
    void* object;
    std::uint32_t users;
    std::uint32_t next;  ///< Of a slot that is free: the next one.
  };

  [[nodiscard]] Slot& slot(std::uint32_t index) const noexcept { return chunks_[index / kChunk][index % kChunk]; }
  [[nodiscard]] std::uint32_t index_of(int handle) const noexcept {
    return static_cast<std::uint32_t>(handle) - (head_ << kIndexBits);
  }
  [[nodiscard]] int handle_of(std::uint32_t index) const noexcept {
    return static_cast<int>((head_ << kIndexBits) + index);
  }
  std::uint32_t take_slot();
  int add_new(void* object);
  int add_slowly(void* object) noexcept;

  const std::uint32_t head_;
  const bool counted_;
  std::uint32_t used_ = 0;
  std::uint32_t free_ = kNone;
  std::array<Slot*, (1u << kIndexBits) / kChunk> chunks_{};
  std::unordered_map<void*, std::uint32_t>* numbers_ = nullptr;  ///< Of counted objects. Never goes, as handles are
                                                                 ///< given back until the process ends.
};

}  // namespace brant::mpi::mpich
