#include "core/memory_kinds.h"

#include <fmt/format.h>

#include "base/log.h"

namespace brant {
namespace {

Status past_the_end(const void* data, std::size_t bytes, const port::PointerInfo& info) noexcept {
  log::error("{} bytes at {} reach past the end of their {} allocation of {} bytes at {}", bytes, data,
             memory_kind_name(info.kind), info.bytes, info.base);
  return Status::invalid_argument;
}

bool lies_within(const void* data, std::size_t bytes, const port::PointerInfo& info) noexcept {
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(data) - reinterpret_cast<std::uintptr_t>(info.base);
  return offset <= info.bytes && bytes <= info.bytes - offset;
}

}  // namespace

/// A buffer may lie in several allocations that were mapped side by side.
bool MemoryKinds::goes_on(const void* data, std::size_t bytes, port::PointerInfo piece) noexcept {
  const std::byte* const end = static_cast<const std::byte*>(data) + bytes;
  const std::byte* const last = static_cast<const std::byte*>(piece.base) + piece.reserved_bytes;
  const MemoryKind kind = piece.kind;
  while (end <= last) {
    const std::byte* const next = static_cast<const std::byte*>(piece.base) + piece.bytes;
    if (next >= end) return true;
    const Result<port::PointerInfo> found = device_.query(next);
    if (!found || found->kind != kind || found->base != next) return false;
    piece = *found;
  }
  return false;
}

/// Of host memory only what the device allocated has an end that is known.
Status MemoryKinds::check_host(const void* data, std::size_t bytes) noexcept {
  if (host_allocations_ == nullptr) return Status::ok;
  host_range_ = host_allocations_->around(data);
  if (host_range_.begin == 0 && host_range_.bytes != 0) {  // null is no memory, and must be found to be none again
    host_range_.begin = 1;
    --host_range_.bytes;
  }
  if (!host_range_.known || host_range_.covers(data, bytes)) return Status::ok;
  const Result<port::PointerInfo> info = host_allocations_->find(data);
  return !info || lies_within(data, bytes, *info) ? Status::ok : past_the_end(data, bytes, *info);
}

Status MemoryKinds::find(const void* data, std::size_t bytes, MemoryKind& kind, std::uint64_t& buffer_id) noexcept {
  if (bytes != 0 && (data == nullptr || reinterpret_cast<std::uintptr_t>(data) + bytes < bytes)) [[unlikely]] {
    log::error("{} bytes at {} are no memory: {}", bytes, data,
               data == nullptr ? "pass a buffer" : "the range goes around the end of the addresses");
    return Status::invalid_argument;
  }
  if (kind == MemoryKind::detect && (bytes == 0 || !device_.capabilities().streams)) kind = MemoryKind::host;
  if (bytes == 0) return Status::ok;
  if (kind == MemoryKind::host || kind == MemoryKind::pinned) return check_host(data, bytes);
  const Result<port::PointerInfo> info = device_.query(data);
  if (kind == MemoryKind::detect) {
    if (!info.ok() && info.status() != Status::not_found) return info.status();
    kind = info.ok() ? info->kind : MemoryKind::host;
    if (!info.ok()) return Status::ok;
  }
  const bool known = info.ok() && info->kind == kind;
  if (!known) {
    log::error(
        "{} bytes at {} were declared as {} memory, but the device {}{}: pass a live allocation of that kind, or "
        "declare "
        "what it is",
        bytes, data, memory_kind_name(kind), info.ok() ? "says " : "does not know the address (freed, or host memory)",
        info.ok() ? memory_kind_name(info->kind) : std::string_view());
    return Status::wrong_kind;
  }
  buffer_id = info->buffer_id;
  const bool whole = lies_within(data, bytes, *info) || goes_on(data, bytes, *info);
  return whole ? Status::ok : past_the_end(data, bytes, *info);
}

}  // namespace brant
