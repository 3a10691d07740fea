#include "models/pgas/segment_allocator.h"

namespace brant {

SegmentAllocator::SegmentAllocator(std::uint64_t bytes, std::uint64_t base) : base_(base) {
  if (bytes != 0) add_free(0, bytes);
}

void SegmentAllocator::add_free(std::uint64_t offset, std::uint64_t bytes) {
  const auto piece = free_.emplace(offset, bytes).first;
  try {
    by_size_.emplace(bytes, offset);
  } catch (...) {
    free_.erase(piece);
    throw;
  }
}

void SegmentAllocator::remove_free(std::map<std::uint64_t, std::uint64_t>::iterator piece) {
  by_size_.erase({piece->second, piece->first});
  free_.erase(piece);
}

std::optional<std::uint64_t> SegmentAllocator::take(std::uint64_t bytes, std::uint64_t alignment) {
  if (bytes == 0) bytes = 1;  // so that two of them have different places
  for (auto fit = by_size_.lower_bound({bytes, 0}); fit != by_size_.end(); ++fit) {
    const auto [size, begin] = *fit;
    const std::uint64_t at = ((base_ + begin + alignment - 1) & ~(alignment - 1)) - base_;
    if (at < begin || at - begin > size - bytes) continue;  // its aligned part is too small
    taken_.emplace(at, bytes);
    // What can throw comes before what changes: the part behind is new, the part before keeps its place.
    try {
      if (at + bytes < begin + size) add_free(at + bytes, begin + size - at - bytes);
      if (at > begin) by_size_.emplace(at - begin, begin);
    } catch (...) {
      if (const auto behind = free_.find(at + bytes); behind != free_.end()) remove_free(behind);
      taken_.erase(at);
      throw;
    }
    by_size_.erase({size, begin});
    if (at > begin) {
      free_[begin] = at - begin;
    } else {
      free_.erase(begin);
    }
    used_ += bytes;
    return at;
  }
  return std::nullopt;
}

bool SegmentAllocator::give_back(std::uint64_t offset) {
  const auto taken = taken_.find(offset);
  if (taken == taken_.end()) return false;
  const std::uint64_t bytes = taken->second;
  std::uint64_t begin = offset;
  std::uint64_t end = offset + bytes;
  const auto behind = free_.lower_bound(offset);
  const bool joins_behind = behind != free_.end() && behind->first == end;
  if (joins_behind) end += behind->second;
  auto before = behind;
  const bool joins_before = behind != free_.begin() && std::prev(before)->first + std::prev(before)->second == offset;
  if (joins_before) {
    before = std::prev(behind);
    begin = before->first;
  }
  by_size_.emplace(end - begin, begin);
  if (joins_before) {
    by_size_.erase({before->second, before->first});
    before->second = end - begin;
  } else {
    try {
      free_.emplace(begin, end - begin);
    } catch (...) {
      by_size_.erase({end - begin, begin});
      throw;
    }
  }
  if (joins_behind) remove_free(behind);
  taken_.erase(taken);
  used_ -= bytes;
  return true;
}

}  // namespace brant
