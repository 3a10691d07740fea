#include "port/wire/ucx/ucx_inbox.h"

#include <new>

namespace brant::port::ucx {
namespace {

// Payloads start at a multiple of 16, the header of the record included.
static_assert(sizeof(InboxMessage) % 16 == 0);

InboxMessage* place(std::byte* memory, std::size_t bytes) noexcept {
  auto* message = new (memory) InboxMessage{};
  message->storage_bytes = static_cast<std::uint32_t>(bytes);
  return message;
}

}  // namespace

UcxInbox::~UcxInbox() {
  while (InboxMessage* message = pop()) give(*message);
}

InboxMessage* UcxInbox::take_from(Pool& pool) noexcept {
  if (pool.free == nullptr) {
    const std::size_t stride = sizeof(InboxMessage) + pool.bytes;
    try {
      blocks_.push_back(std::unique_ptr<std::byte[]>(new std::byte[stride * pool.batch]));
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    for (std::size_t i = 0; i < pool.batch; ++i) {
      InboxMessage* message = place(blocks_.back().get() + i * stride, pool.bytes);
      message->next = pool.free;
      pool.free = message;
    }
  }
  InboxMessage* message = pool.free;
  pool.free = message->next;
  return message;
}

InboxMessage* UcxInbox::take(std::size_t bytes) noexcept {
  if (bytes <= kSmallBytes) return take_from(small_);
  if (bytes <= kLargeBytes) return take_from(large_);
  auto* memory = new (std::nothrow) std::byte[sizeof(InboxMessage) + bytes];
  return memory != nullptr ? place(memory, bytes) : nullptr;
}

void UcxInbox::give(InboxMessage& message) noexcept {
  if (message.storage_bytes > kLargeBytes) {
    delete[] reinterpret_cast<std::byte*>(&message);
    return;
  }
  Pool& pool = message.storage_bytes > kSmallBytes ? large_ : small_;
  message.next = pool.free;
  pool.free = &message;
}

}  // namespace brant::port::ucx
