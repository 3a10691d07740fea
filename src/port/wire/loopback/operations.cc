#include "port/wire/loopback/operations.h"

#include <cstdint>

#include "port/wire/loopback/records.h"

namespace brant::port::loopback {
namespace {

/// Stands in WireOp::request between completion and `deliver`, so that a second post of the op is noticed.
Record g_done_marker;

}  // namespace

Status Operations::check(const void* data, std::size_t bytes, MemoryKind kind, const WireOp& op) const noexcept {
  if (ended_) return Status::shutting_down;
  if (op.request != nullptr) return Status::invalid_argument;  // still pending, or not delivered yet
  if (bytes == 0) return Status::ok;
  if (data == nullptr || reinterpret_cast<std::uintptr_t>(data) + bytes < bytes) return Status::invalid_argument;
  return capabilities_.takes(kind) ? Status::ok : Status::wrong_kind;
}

void Operations::complete(WireOp& op, Status status) noexcept {
  op.status = status;
  op.request = &g_done_marker;
  done_.push(op);
  alarm_.ring();
}

bool Operations::deliver_one() noexcept {
  WireOp* op = done_.pop();
  if (op == nullptr) return false;
  op->request = nullptr;
  if (op->on_complete != nullptr) op->on_complete(*op);
  return true;
}

void Operations::end() noexcept {
  ended_ = true;
  while (done_.pop() != nullptr) {
  }
}

}  // namespace brant::port::loopback
