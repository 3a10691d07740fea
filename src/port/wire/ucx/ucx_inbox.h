#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace brant::port::ucx {

/// An active message between its arrival (inside ucp_worker_progress) and its handler (in deliver).
struct InboxMessage {
  InboxMessage* next = nullptr;
  const std::byte* data = nullptr;  ///< Null: the payload waits at the sender.
  void* descriptor = nullptr;       ///< UCX's: of a waiting payload, or of eager data it lets us keep.
  std::size_t bytes = 0;
  std::uint32_t header_bytes = 0;
  std::uint32_t storage_bytes = 0;
  unsigned id = 0;

  std::byte* storage() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

/// Queue of arrived messages. Records come from two pools (small and large) and return to them, so that nothing is
/// allocated per message in the steady state; a message beyond the large size gets a record of its own.
class UcxInbox {
 public:
  static constexpr std::size_t kSmallBytes = 448;
  static constexpr std::size_t kLargeBytes = 16384 + 512;

  UcxInbox() = default;
  UcxInbox(const UcxInbox&) = delete;
  UcxInbox& operator=(const UcxInbox&) = delete;
  ~UcxInbox();

  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// A record with room for `bytes`, or null when memory is exhausted.
  InboxMessage* take(std::size_t bytes) noexcept;
  void give(InboxMessage& message) noexcept;

  void push(InboxMessage& message) noexcept {
    message.next = nullptr;
    (tail_ != nullptr ? tail_->next : head_) = &message;
    tail_ = &message;
    ++size_;
  }
  InboxMessage* pop() noexcept {
    InboxMessage* message = head_;
    if (message == nullptr) return nullptr;
    if ((head_ = message->next) == nullptr) tail_ = nullptr;
    --size_;
    return message;
  }

 private:
  struct Pool {
    InboxMessage* free = nullptr;
    std::size_t bytes = 0;
    std::size_t batch = 0;
  };

  InboxMessage* take_from(Pool& pool) noexcept;

  InboxMessage* head_ = nullptr;
  InboxMessage* tail_ = nullptr;
  std::size_t size_ = 0;
  Pool small_{nullptr, kSmallBytes, 64};
  Pool large_{nullptr, kLargeBytes, 4};
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

}  // namespace brant::port::ucx
