#include "ops/channel/link_mappings.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/log.h"
#include "core/link_services.h"

namespace brant {

namespace {

bool share_a_block(std::size_t block, const port::PointerInfo& a, const port::PointerInfo& b) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(a.base), second = reinterpret_cast<std::uintptr_t>(b.base);
  return first / block <= (second + b.bytes - 1) / block && second / block <= (first + a.bytes - 1) / block;
}

}  // namespace

LinkMappings::~LinkMappings() {
  for (const auto& [id, known] : imported_) {
    if (known.base != nullptr) static_cast<void>(engine_.device().close_import(known.base));
  }
}

Status LinkMappings::describe(const void* data, LinkMessage& message) noexcept {
  const Result<port::PointerInfo> info = engine_.device().query(data);
  if (!info) return info.status();
  if (const Status status = export_once(*info); status != Status::ok) return status;
  message.place = LinkMessage::Place::mapped;
  message.buffer_id = info->buffer_id;
  const auto offset = static_cast<const std::byte*>(data) - static_cast<std::byte*>(info->base);
  message.offset = static_cast<std::uint64_t>(offset) & LinkMessage::kOffsetMask;
  return Status::ok;
}

bool LinkMappings::is_refused(std::uint64_t buffer_id) const noexcept {
  return buffer_id != 0 && std::find(refused_.begin(), refused_.end(), buffer_id) != refused_.end();
}

void LinkMappings::remember_refused(std::uint64_t buffer_id) noexcept {
  refused_[next_refused_] = buffer_id;
  next_refused_ = (next_refused_ + 1) % refused_.size();
}

Status LinkMappings::export_once(const port::PointerInfo& info) noexcept {
  if (exported_.contains(info.buffer_id)) return Status::ok;
  if (is_refused(info.buffer_id)) return Status::not_supported;
  make_way(info);
  if (exported_.size() >= kMappingsMax) withdraw_if([&](const port::PointerInfo& known) { return gone(known); });
  if (exported_.size() >= kMappingsMax) return Status::limit_reached;
  const Result<port::ExportRecord> record = engine_.device().export_allocation(info.base);
  if (!record) {
    const bool for_good = record.status() == Status::not_supported || record.status() == Status::wrong_kind;
    if (for_good) remember_refused(info.buffer_id);
    return record.status();
  }
  try {
    exported_.emplace(info.buffer_id, info);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  LinkMessage message;
  message.kind = LinkMessage::Kind::exported;
  // No room now: this landing goes over the network, and a later one tries again.
  const bool told = peer_.link->post(link_service::kChannel, std::as_bytes(std::span(&message, 1)),
                                     std::as_bytes(std::span(&*record, 1)));
  if (!told) exported_.erase(info.buffer_id);
  if (exported_.size() == kMappingsMax) {
    log::warn(
        "rank {} has mapped {} allocations of this process: further ones go other ways. Use fewer and larger "
        "allocations",
        peer_.rank.value, kMappingsMax);
  }
  return told ? Status::ok : Status::limit_reached;
}

bool LinkMappings::gone(const port::PointerInfo& known) noexcept {
  const Result<port::PointerInfo> now = engine_.device().query(known.base);
  return !now || now->buffer_id != known.buffer_id;
}

void LinkMappings::make_way(const port::PointerInfo& info) noexcept {
  const std::size_t block = engine_.device().capabilities().export_block_bytes;
  withdraw_if([&](const port::PointerInfo& known) { return share_a_block(block, known, info) && gone(known); });
}

/// Tells the peer of exported allocations that are no more.
template <typename Freed>
void LinkMappings::withdraw_if(Freed&& freed) noexcept {
  for (auto known = exported_.begin(); known != exported_.end();) {
    if (!freed(known->second)) {
      ++known;
      continue;
    }
    LinkMessage message;
    message.kind = LinkMessage::Kind::withdrawn;
    message.buffer_id = known->first;
    const bool told = peer_.link->post_control(link_service::kChannel, std::as_bytes(std::span(&message, 1)));
    if (!told) return;  // memory is exhausted: another time
    known = exported_.erase(known);
  }
}

std::span<const std::byte> LinkMappings::mapping(std::uint64_t buffer_id) const noexcept {
  const auto found = imported_.find(buffer_id);
  if (found == imported_.end() || found->second.base == nullptr) return {};
  return {static_cast<const std::byte*>(found->second.base), static_cast<std::size_t>(found->second.bytes)};
}

void LinkMappings::on_withdrawn(std::uint64_t buffer_id) noexcept {
  const auto found = imported_.find(buffer_id);
  if (found == imported_.end()) return;
  if (found->second.base != nullptr) static_cast<void>(engine_.device().close_import(found->second.base));
  imported_.erase(found);
}

void LinkMappings::on_exported(std::span<const std::byte> packed) noexcept {
  port::ExportRecord record;
  if (packed.size() != sizeof(record) || imported_.size() >= kMappingsMax) return;
  std::memcpy(static_cast<void*>(&record), packed.data(), sizeof(record));
  const bool sound = static_cast<unsigned>(record.kind) < static_cast<unsigned>(kMemoryKindCount) &&
                     record.offset <= record.bytes && !imported_.contains(record.buffer_id);
  if (!sound) {
    return engine_.distrust(peer_, "how to map an allocation, which contradicts itself or what it told before");
  }
  const Result<void*> base = engine_.device().import_allocation(record);
  if (!base) {
    log::info("{} bytes of {} memory of rank {} cannot be mapped: {}; they go other ways", record.bytes,
              memory_kind_name(record.kind), peer_.rank.value, status_text(base.status()));
  }
  try {
    imported_[record.buffer_id] = {base.ok() ? *base : nullptr, record.bytes - record.offset, record.kind};
  } catch (const std::bad_alloc&) {
    if (base.ok()) static_cast<void>(engine_.device().close_import(*base));
  }
}

void* LinkMappings::mapped(std::uint64_t buffer_id, std::uint64_t offset, std::uint64_t bytes,
                           Reach reach) const noexcept {
  const auto found = imported_.find(buffer_id);
  if (found == imported_.end() || found->second.base == nullptr) return nullptr;
  const Imported& known = found->second;
  if (offset > known.bytes || bytes > known.bytes - offset) return nullptr;
  if (reach == Reach::cpu && !host_accessible(known.kind)) return nullptr;
  return static_cast<std::byte*>(known.base) + offset;
}

}  // namespace brant
