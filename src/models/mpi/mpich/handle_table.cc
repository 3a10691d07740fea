#include "models/mpi/mpich/handle_table.h"

#include <new>

#include "models/mpi/export_forms.h"

namespace brant::mpi::mpich {

std::uint32_t HandleTable::take_slot() {
  if (free_ != kNone) {
    const std::uint32_t index = free_;
    free_ = slot(index).next;
    return index;
  }
  if (used_ == 1u << kIndexBits) throw std::bad_alloc();
  Slot*& chunk = chunks_[used_ / kChunk];
  if (chunk == nullptr) chunk = new Slot[kChunk];
  return used_++;
}

int HandleTable::add_new(void* object) {
  const std::uint32_t index = take_slot();
  slot(index) = {object, 1, kNone};
  if (counted_) numbers_->emplace(object, index);
  return handle_of(index);
}

int HandleTable::add_slowly(void* object) noexcept {
  try {
    if (!counted_) return add_new(object);
    if (numbers_ == nullptr) numbers_ = new std::unordered_map<void*, std::uint32_t>;
    const auto known = numbers_->find(object);
    if (known == numbers_->end()) return add_new(object);
    ++slot(known->second).users;
    return handle_of(known->second);
  } catch (const std::bad_alloc&) {
    api::end_without_memory();
  }
}

}  // namespace brant::mpi::mpich
