#pragma once

#include <new>

#include "port/wire/loopback/pool.h"

namespace brant::port::loopback {

template <typename T, ListHook<T> T::* kHook, std::size_t kPerBlock>
bool Pool<T, kHook, kPerBlock>::grow() noexcept {
  auto* block = new (std::nothrow) Block;
  if (block == nullptr) return false;
  block->next = blocks_;
  blocks_ = block;
  for (T& item : block->items) free_.push_back(item);
  return true;
}

}  // namespace brant::port::loopback
