#include "brant/ops/rma.h"

#include <new>

#include "brant/core/runtime.h"
#include "core/told_at_once.h"
#include "ops/rma/table.h"

namespace brant {
namespace {

Status counted(RmaTarget* target, Status status, Op& op) noexcept {
  if (target != nullptr && status != Status::in_progress) target->count_outcome(status);
  return told_at_once(status, op);
}

}  // namespace

Segment expose(Runtime& runtime, Buffer memory) {
  return Segment(runtime.worker().engine().service<RmaTable>().expose(memory));
}

void Segment::close() noexcept {
  if (exposed_ == nullptr) return;
  exposed_->engine.service<RmaTable>().close(*exposed_);
  exposed_.reset();
}

SegmentTicket Segment::ticket() const noexcept { return exposed_ == nullptr ? SegmentTicket{} : exposed_->ticket; }
Buffer Segment::memory() const noexcept { return exposed_ == nullptr ? Buffer{} : exposed_->memory; }

RemoteSegment::RemoteSegment(Runtime& runtime, Rank rank, const SegmentTicket& ticket)
    : target_(&runtime.worker().engine().service<RmaTable>().open(rank, ticket)) {}

void RemoteSegment::close() noexcept {
  if (target_ != nullptr) std::exchange(target_, nullptr)->close();
}

Rank RemoteSegment::rank() const noexcept { return target_ == nullptr ? Rank{} : target_->peer().rank; }
std::size_t RemoteSegment::size() const noexcept { return target_ == nullptr ? 0 : target_->bytes(); }
MemoryKind RemoteSegment::kind() const noexcept { return target_ == nullptr ? MemoryKind::detect : target_->kind(); }
std::uint64_t RemoteSegment::owners_address() const noexcept { return target_ == nullptr ? 0 : target_->address_; }
void* RemoteSegment::host_pointer() const noexcept { return target_ == nullptr ? nullptr : target_->host_pointer(); }
void* RemoteSegment::device_pointer(std::size_t lock_at_most) const noexcept {
  return target_ == nullptr ? nullptr : target_->device_pointer(lock_at_most);
}
std::size_t RemoteSegment::pending() const noexcept { return target_ == nullptr ? 0 : target_->live(); }

Result<Path> RemoteSegment::path_of(MemoryKind kind, std::size_t bytes, RmaDirection direction,
                                    const RmaOptions& options) const noexcept {
  if (target_ == nullptr || kind == MemoryKind::detect) return Status::invalid_argument;
  const PathChoice choice = target_->choose(kind, bytes, direction, options.path);
  if (choice.status != Status::ok) return choice.status;
  return choice.path;
}

Status RemoteSegment::post_put(std::uint64_t offset, ConstBuffer source, Op& op, const RmaOptions& options) noexcept {
  if (op.pending()) [[unlikely]]
    return refuse_pending_op();
  if (target_ != nullptr &&
      target_->post_at_once(RmaDirection::put, offset, source.data, source.bytes, source.kind, op, options)) [[likely]]
    return counted(target_, Status::ok, op);
  // A put only reads it.
  const Buffer local(const_cast<void*>(source.data), source.bytes, source.kind);
  return counted(
      target_,
      target_ == nullptr ? Status::invalid_argument : target_->post(RmaDirection::put, offset, local, op, options), op);
}

Status post_fence(Runtime& runtime, Rank rank, Op& op) noexcept {
  if (op.pending()) [[unlikely]]
    return refuse_pending_op();
  try {
    return told_at_once(runtime.worker().engine().service<RmaTable>().fences().post(rank, op), op);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

Status RemoteSegment::post_atomic(std::uint64_t offset, const Atomic& what, Op& op, void* before, Path path) noexcept {
  if (op.pending()) [[unlikely]]
    return refuse_pending_op();
  return counted(target_,
                 target_ == nullptr ? Status::invalid_argument
                                    : RmaAtomics::of(*target_).post(*target_, {offset, what, before, path}, op),
                 op);
}

Status RemoteSegment::post_get(std::uint64_t offset, Buffer landing, Op& op, const RmaOptions& options) noexcept {
  if (op.pending()) [[unlikely]]
    return refuse_pending_op();
  if (target_ != nullptr && target_->post_at_once(RmaDirection::get, offset, landing.data, landing.bytes, landing.kind,
                                                  op, options)) [[likely]]
    return counted(target_, Status::ok, op);
  return counted(
      target_,
      target_ == nullptr ? Status::invalid_argument : target_->post(RmaDirection::get, offset, landing, op, options),
      op);
}

}  // namespace brant
