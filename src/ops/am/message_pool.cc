#include "ops/am/message_pool.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace brant::am {
namespace {

constexpr std::size_t kRecordBytes = (sizeof(Message) + 15) / 16 * 16;
constexpr std::size_t kSlabBytes = 64 * 1024;
constexpr std::size_t kLargeClasses = 64;  // from here on: plus the logarithm of the size
constexpr std::align_val_t kBlockAlign{64};
static_assert(MessagePool::kBlockBytes.size() < kLargeClasses);

std::size_t class_for(std::size_t bytes) noexcept {
  std::size_t size_class = 0;
  while (size_class < MessagePool::kBlockBytes.size() && MessagePool::kBlockBytes[size_class] < bytes) ++size_class;
  return size_class;
}

}  // namespace

MessagePool::~MessagePool() {
  for (Free* block : large_free_) {
    while (block != nullptr) ::operator delete(std::exchange(block, block->next), kBlockAlign);
  }
}

void* MessagePool::take_large(std::size_t bytes, std::size_t& size_class) noexcept {
  const std::size_t capacity = std::bit_ceil(bytes);
  const auto logarithm = static_cast<std::size_t>(std::countr_zero(capacity));
  size_class = kLargeClasses + logarithm;
  Free*& kept = large_free_[logarithm];
  if (kept == nullptr) return ::operator new(capacity, kBlockAlign, std::nothrow);
  kept_large_bytes_ -= capacity;
  return std::exchange(kept, kept->next);
}

void MessagePool::give_large(void* block, std::size_t size_class) noexcept {
  const std::size_t logarithm = size_class - kLargeClasses;
  const std::size_t capacity = std::size_t{1} << logarithm;
  if (kept_large_bytes_ + capacity > kKeptLargeBytes) return ::operator delete(block, kBlockAlign);
  kept_large_bytes_ += capacity;
  large_free_[logarithm] = ::new (block) Free{large_free_[logarithm]};
}

Message* MessagePool::take(std::size_t payload_bytes) noexcept {
  const std::size_t bytes = kRecordBytes + payload_bytes;
  std::size_t size_class = class_for(bytes);
  void* block = nullptr;
  if (size_class == kBlockBytes.size()) {
    block = take_large(bytes, size_class);
  } else if (free_[size_class] != nullptr || grow(size_class)) {
    block = free_[size_class];
    free_[size_class] = free_[size_class]->next;
  }
  if (block == nullptr) return nullptr;
  ++lent_;
  auto* message = ::new (block) Message;
  message->size_class = static_cast<std::uint8_t>(size_class);
  message->data = static_cast<std::byte*>(block) + kRecordBytes;
  message->bytes = payload_bytes;
  return message;
}

void MessagePool::give(Message& message) noexcept {
  --lent_;
  const std::uint8_t size_class = message.size_class;
  message.~Message();
  if (size_class >= kLargeClasses) return give_large(&message, size_class);
  free_[size_class] = ::new (&message) Free{free_[size_class]};
}

bool MessagePool::grow(std::size_t size_class) noexcept {
  const std::size_t block = kBlockBytes[size_class];
  const std::size_t count = std::max<std::size_t>(4, kSlabBytes / block);
  auto* slab = static_cast<std::byte*>(::operator new(block * count, std::align_val_t{64}, std::nothrow));
  if (slab == nullptr) return false;
  std::unique_ptr<std::byte, Slab> owned(slab);
  try {
    slabs_.push_back(std::move(owned));
  } catch (const std::bad_alloc&) {
    return false;
  }
  for (std::size_t i = count; i-- > 0;) free_[size_class] = ::new (slab + i * block) Free{free_[size_class]};
  return true;
}

}  // namespace brant::am
