#pragma once

#include <new>

#include "port/wire/loopback/list.h"

namespace brant::port::loopback {

template <typename T, Link<T> T::* kLink, std::size_t kPerBlock>
bool Pool<T, kLink, kPerBlock>::grow() noexcept {
  auto* block = new (std::nothrow) Block;
  if (block == nullptr) return false;
  block->next = blocks_;
  blocks_ = block;
  for (T& item : block->items) free_.push(item);
  return true;
}

}  // namespace brant::port::loopback
