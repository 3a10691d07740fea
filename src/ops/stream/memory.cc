#include "ops/stream/memory.h"

#include <atomic>
#include <new>

namespace brant {

StreamMemory::~StreamMemory() {
  if (stream_ != nullptr) device_.streams()->destroy_stream(stream_);
  for (void* memory : {static_cast<void*>(mailbox_), static_cast<void*>(control_)}) {
    if (memory != nullptr) static_cast<void>(device_.free(memory));
  }
}

/// Blocks of its own: a shared one could not be mapped while somebody (UCX's cache, say) has a piece mapped that was
/// freed (docs/gotchas/shared-memory-and-copies.md).
std::size_t StreamMemory::mailbox_bytes() const noexcept {
  const std::size_t block = device_.capabilities().export_block_bytes;
  return (sizeof(StreamMailbox) + block - 1) / block * block;
}

Status StreamMemory::make(MemoryKind kind, std::chrono::nanoseconds patience) noexcept {
  const Result<void*> mailbox = device_.allocate(kind, mailbox_bytes());
  if (!mailbox) return mailbox.status();
  mailbox_ = static_cast<StreamMailbox*>(*mailbox);
  const Result<void*> control = device_.allocate(MemoryKind::pinned, sizeof(StreamControl));
  if (!control) return control.status();
  control_ = new (*control) StreamControl{};
  control_->patience_ns = static_cast<std::uint64_t>(patience.count());
  const Result<port::Stream*> stream = device_.streams()->create_stream(port::StreamPriority::high);
  if (!stream) return stream.status();
  stream_ = *stream;
  const Status filled = device_.streams()->fill(mailbox_, std::byte{0}, sizeof(StreamMailbox), stream_);
  return filled == Status::ok ? device_.streams()->synchronize(stream_) : filled;
}

void StreamMemory::abort(Status why) noexcept {
  if (control_ == nullptr) return;
  std::atomic_ref<std::uint64_t>(control_->abort).store(static_cast<std::uint64_t>(why), std::memory_order_release);
}

Status StreamMemory::fault() const noexcept {
  if (control_ == nullptr) return Status::ok;
  return static_cast<Status>(std::atomic_ref<std::uint64_t>(control_->fault).load(std::memory_order_acquire));
}

Status StreamMemory::write_base(unsigned number, std::uint64_t base) noexcept {
  return device_.streams()->write_value(&mailbox_->bases[number], base, stream_);
}

}  // namespace brant
