#include "ops/am/message_pool.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <new>
#include <utility>

namespace brant::am {
namespace {

constexpr std::size_t kSlabBytes = 64 * 1024;
constexpr std::size_t kLargeClasses = MessagePool::kBlockBytes.size() + 1;  // what follows, as a class of the pool
constexpr std::size_t kLargeLogarithm = 12;                                 // of the largest small block
constexpr std::align_val_t kBlockAlign{64};
static_assert(MessagePool::kBlockBytes.back() == std::size_t{1} << kLargeLogarithm);

std::size_t class_for(std::size_t bytes) noexcept {
  std::size_t size_class = 0;
  while (size_class < MessagePool::kBlockBytes.size() && MessagePool::kBlockBytes[size_class] < bytes) ++size_class;
  return size_class;
}

/// Four sizes between two powers of two.
std::size_t large_class_for(std::size_t bytes) noexcept {
  const auto logarithm = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;
  const std::size_t quarter = ((bytes - 1) >> (logarithm - 2)) % 4;
  return (logarithm - kLargeLogarithm) * 4 + quarter;
}

std::size_t large_bytes(std::size_t large_class) noexcept {
  return (large_class % 4 + 5) << (large_class / 4 + kLargeLogarithm - 2);
}

}  // namespace

MessagePool::~MessagePool() {
  for (Free* block : large_free_) {
    while (block != nullptr) ::operator delete(std::exchange(block, block->next), kBlockAlign);
  }
}

void* MessagePool::take_large(std::size_t large_class) noexcept {
  const std::size_t bytes = large_bytes(large_class);
  if (void* block = take_from_region(bytes, large_class)) return block;
  Free*& kept = large_free_[large_class];
  if (kept == nullptr) return ::operator new(bytes, kBlockAlign, std::nothrow);
  kept_large_bytes_ -= bytes;
  return std::exchange(kept, kept->next);
}

bool MessagePool::in_region(const void* block) const noexcept {
  const auto* byte = static_cast<const std::byte*>(block);
  return std::greater_equal<>{}(byte, region_.data()) && std::less<>{}(byte, region_.data() + region_.size());
}

/// Blocks keep their size for good: messages of a program come in few sizes, and what finds no room goes another way.
void* MessagePool::take_from_region(std::size_t bytes, std::size_t large_class) noexcept {
  Free*& kept = region_free_[large_class];
  if (kept != nullptr) return std::exchange(kept, kept->next);
  if (bytes > region_.size() - region_used_) return nullptr;
  return region_.data() + std::exchange(region_used_, region_used_ + bytes);
}

std::optional<std::size_t> MessagePool::place_of(const Message& message) const noexcept {
  const auto* block = reinterpret_cast<const std::byte*>(&message);
  if (!in_region(block) || message.data != block + kRecordBytes) return std::nullopt;
  return static_cast<std::size_t>(block - region_.data());
}

bool MessagePool::may_begin_at(std::size_t place) noexcept {
  return place % static_cast<std::size_t>(kBlockAlign) == 0;
}

Message* MessagePool::at(std::size_t place) const noexcept {
  if (!may_begin_at(place) || place >= region_used_ || region_used_ - place < kRecordBytes) return nullptr;
  return std::launder(reinterpret_cast<Message*>(region_.data() + place));
}

void MessagePool::give_large(void* block, std::size_t large_class) noexcept {
  if (in_region(block)) {
    region_free_[large_class] = ::new (block) Free{region_free_[large_class]};
    return;
  }
  const std::size_t bytes = large_bytes(large_class);
  if (kept_large_bytes_ + bytes > kKeptLargeBytes) return ::operator delete(block, kBlockAlign);
  kept_large_bytes_ += bytes;
  large_free_[large_class] = ::new (block) Free{large_free_[large_class]};
}

Message* MessagePool::take(std::size_t payload_bytes) noexcept {
  if (payload_bytes > kPayloadMax) return nullptr;
  const std::size_t bytes = kRecordBytes + payload_bytes;
  std::size_t size_class = class_for(bytes);
  void* block = nullptr;
  if (size_class == kBlockBytes.size()) {
    const std::size_t large_class = large_class_for(bytes);
    size_class = kLargeClasses + large_class;
    block = take_large(large_class);
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
  if (size_class >= kLargeClasses) return give_large(&message, size_class - kLargeClasses);
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
