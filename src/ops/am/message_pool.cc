#include "ops/am/message_pool.h"

#include <algorithm>
#include <new>

namespace brant::am {
namespace {

constexpr std::size_t kRecordBytes = (sizeof(Message) + 15) / 16 * 16;
constexpr std::size_t kSlabBytes = 64 * 1024;
constexpr auto kHeapClass = static_cast<std::uint8_t>(MessagePool::kBlockBytes.size());

std::size_t class_for(std::size_t bytes) noexcept {
  std::size_t size_class = 0;
  while (size_class < MessagePool::kBlockBytes.size() && MessagePool::kBlockBytes[size_class] < bytes) ++size_class;
  return size_class;
}

}  // namespace

Message* MessagePool::take(std::size_t payload_bytes) noexcept {
  const std::size_t bytes = kRecordBytes + payload_bytes;
  const std::size_t size_class = class_for(bytes);
  void* block = nullptr;
  if (size_class == kHeapClass) {
    block = ::operator new(bytes, std::align_val_t{64}, std::nothrow);
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
  if (size_class == kHeapClass) {
    ::operator delete(&message, std::align_val_t{64});
    return;
  }
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
