#include "port/wire/loopback/fabric.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::port::loopback {
namespace {

constexpr std::uint32_t kHostKinds = 1u << static_cast<unsigned>(MemoryKind::host) |
                                     1u << static_cast<unsigned>(MemoryKind::pinned) |
                                     1u << static_cast<unsigned>(MemoryKind::cuda_managed);

std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

void check(const LoopbackOptions& options) {
  const auto refuse = [](std::string_view what) {
    throw Error(Status::invalid_argument, fmt::format("wire loopback: {}", what));
  };
  if (options.delay_min > options.delay_max)
    refuse(fmt::format("delay_min {} is above delay_max {}", options.delay_min, options.delay_max));
  if (options.requests_max == 0) refuse("requests_max is 0; at least 1 operation must fit");
  if (options.messages_max == 0) refuse("messages_max is 0; at least 1 message must fit");
  if ((options.extra_kinds & ~kHostKinds) != 0 && options.copy == nullptr)
    refuse("extra_kinds names memory the CPU may not touch, and `copy` is not set");
}

}  // namespace

Fabric::Fabric(const LoopbackOptions& options)
    : options_(options),
      id_(next_id()),
      random_state_(options.seed),
      immediate_(options.delay_max == 0 && !options.shuffle_pairs && !options.shuffle_tags),
      messages_(std::size_t{1} << 20),
      storage_bytes_(std::max(options.eager_bytes_max, options.am_header_bytes_max + options.am_eager_bytes_max) + 16) {
  check(options);
}

Fabric::~Fabric() = default;

std::size_t Fabric::add(LoopbackWire& wire) {
  wires_.push_back(&wire);
  return wires_.size() - 1;
}

void Fabric::remove(std::size_t index) noexcept { wires_[index] = nullptr; }

/// SplitMix64: small, and every seed is a good one.
std::uint64_t Fabric::random() noexcept {
  std::uint64_t z = random_state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t Fabric::random_delay() noexcept {
  return options_.delay_min + random() % (options_.delay_max - options_.delay_min + std::uint64_t{1});
}

bool Fabric::give_storage(Message& message, std::size_t bytes) noexcept {
  if (bytes <= Message::kInlineBytes) {
    message.storage = message.inline_storage.data();
    return true;
  }
  if (free_storage_ == nullptr) {
    try {
      storage_blocks_.push_back(std::unique_ptr<std::byte[]>(new std::byte[storage_bytes_]));
    } catch (const std::bad_alloc&) {
      return false;
    }
    free_storage_ = new (storage_blocks_.back().get()) StorageBuffer;
  }
  message.storage = reinterpret_cast<std::byte*>(free_storage_);
  free_storage_ = free_storage_->next;
  return true;
}

void Fabric::give(Message& message) noexcept {
  if (message.storage != nullptr && message.storage != message.inline_storage.data()) {
    auto* buffer = new (message.storage) StorageBuffer;
    buffer->next = free_storage_;
    free_storage_ = buffer;
  }
  message.storage = nullptr;
  message.op = nullptr;
  message.endpoint = nullptr;
  message.source_gone = false;
  message.where = Place::none;
  messages_.give(message);
}

bool Fabric::copy(Buffer to, ConstBuffer from) const noexcept {
  if (from.bytes == 0) return true;
  if (host_accessible(to.kind) && host_accessible(from.kind)) {
    std::uint64_t word = 0;
    if (from.bytes == sizeof(word) && reinterpret_cast<std::uintptr_t>(to.data) % sizeof(word) == 0) {
      // One access, behind what was copied before, as networks do: a thread of the owner may look at a flag.
      std::memcpy(&word, from.data, sizeof(word));
      std::atomic_ref(*static_cast<std::uint64_t*>(to.data)).store(word, std::memory_order_release);
    } else {
      std::memmove(to.data, from.data, from.bytes);
    }
    return true;
  }
  return options_.copy != nullptr && options_.copy(options_.copy_context, {to.data, from.bytes, to.kind}, from);
}

}  // namespace brant::port::loopback
