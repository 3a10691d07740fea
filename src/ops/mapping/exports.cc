#include "ops/mapping/exports.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/log.h"
#include "core/link_services.h"

namespace brant {
namespace {

bool share_a_block(std::size_t block, const port::PointerInfo& a, const port::PointerInfo& b) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(a.base), second = reinterpret_cast<std::uintptr_t>(b.base);
  return first / block <= (second + b.bytes - 1) / block && second / block <= (first + a.bytes - 1) / block;
}

}  // namespace

Result<ExportedPlace> Exports::describe(const void* data, std::uint64_t buffer_id) noexcept {
  if (buffer_id != 0) {
    const auto told = exported_.find(buffer_id);
    if (told != exported_.end()) return place_of(data, told->second);
  }
  const Result<port::PointerInfo> info = engine_.device().query(data);
  if (!info) return info.status();
  const auto known = exported_.find(info->buffer_id);
  const Result<Exported*> exported = known != exported_.end() ? &known->second : export_once(*info);
  if (!exported) return exported.status();
  return place_of(data, **exported);
}

ExportedPlace Exports::place_of(const void* data, Exported& exported) noexcept {
  exported.used_at = engine_.clock().recently();
  const auto offset =
      static_cast<std::uint64_t>(static_cast<const std::byte*>(data) - static_cast<std::byte*>(exported.info.base));
  return {exported.info.buffer_id, offset, exported.info.bytes - offset};
}

bool Exports::is_refused(std::uint64_t buffer_id) const noexcept {
  return std::find(refused_.begin(), refused_.end(), buffer_id) != refused_.end();
}

void Exports::remember_refused(std::uint64_t buffer_id) noexcept {
  refused_[next_refused_] = buffer_id;
  next_refused_ = (next_refused_ + 1) % refused_.size();
}

Result<port::ExportRecord> Exports::record_of(port::Device& device, const void* pointer) noexcept {
  const Result<port::ExportRecord> record = device.export_allocation(pointer);
  if (record.status() != Status::not_supported || !device.capabilities().file_exports) return record;
  const Result<port::ExportedFile> file = device.export_file(pointer);
  if (file) return file->record;  // the file is made once more for each who asks for it: none is kept open
  return file.status() == Status::not_found ? Status::not_supported : file.status();
}

Result<port::ExportRecord> Exports::lend(const void* pointer) noexcept {
  const Result<port::PointerInfo> info = engine_.device().query(pointer);
  if (!info) return info.status();
  make_way(*info);
  const Result<port::ExportRecord> record = record_of(engine_.device(), pointer);
  if (!record || record->means == port::ExportRecord::Means::handle) return record;
  if (!has_room()) return Status::limit_reached;
  return remember(*info) != nullptr ? record : Status::no_memory;
}

Result<Exports::Exported*> Exports::export_once(const port::PointerInfo& info) noexcept {
  if (info.buffer_id == 0) return Status::not_supported;  // nobody could tell it from what comes after it
  if (is_refused(info.buffer_id)) return Status::not_supported;
  make_way(info);
  if (!has_room()) return Status::limit_reached;
  const Result<port::ExportRecord> record = record_of(engine_.device(), info.base);
  if (!record) {
    const bool for_good = record.status() == Status::not_supported || record.status() == Status::wrong_kind;
    if (for_good) remember_refused(info.buffer_id);
    return record.status();
  }
  Exported* exported = remember(info);
  if (exported == nullptr) return Status::no_memory;
  if (const Status told = tell(*record); told != Status::ok) {
    exported_.erase(info.buffer_id);
    return told;
  }
  return exported;
}

Exports::Exported* Exports::remember(const port::PointerInfo& info) noexcept {
  try {
    return &exported_.try_emplace(info.buffer_id, Exported{info, engine_.clock().recently()}).first->second;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

/// No room now: this message goes another way, and a later one tries again.
Status Exports::tell(const port::ExportRecord& record) noexcept {
  MappingMessage message;
  message.buffer_id = record.buffer_id;
  const bool told = peer_.link->post(link_service::kMapping, std::as_bytes(std::span(&message, 1)),
                                     std::as_bytes(std::span(&record, 1)));
  return told ? Status::ok : Status::limit_reached;
}

bool Exports::has_room() noexcept {
  if (exported_.size() + closing_.size() < kMax) return true;
  const TimePoint now = engine_.clock().recently();
  if (now < look_for_room_at_) return false;
  withdraw_if([&](const Exported& known) { return gone(known.info); });
  if (closing_.empty() && exported_.size() >= kMax) withdraw_idlest(now);
  if (exported_.size() + closing_.size() < kMax) return true;
  look_for_room_at_ = now + kLookAgain;
  if (!closing_.empty()) return false;  // these make room, once the peer has closed them
  if (!std::exchange(full_told_, true)) {
    log::warn(
        "rank {} has mapped {} allocations of this process, and all are in use: further ones go other ways. Use fewer "
        "and larger allocations",
        peer_.rank.value, kMax);
  }
  return false;
}

void Exports::withdraw_idlest(TimePoint now) noexcept {
  const auto idlest = std::min_element(exported_.begin(), exported_.end(), [](const auto& a, const auto& b) {
    return a.second.used_at < b.second.used_at;
  });
  if (now - idlest->second.used_at >= kIdle && withdraw(idlest->second.info)) exported_.erase(idlest);
}

bool Exports::gone(const port::PointerInfo& known) noexcept {
  const Result<port::PointerInfo> now = engine_.device().query(known.base);
  return !now || now->buffer_id != known.buffer_id;
}

void Exports::make_way(const port::PointerInfo& info) noexcept {
  const std::size_t block = engine_.device().capabilities().export_block_bytes;
  withdraw_if([&](const Exported& known) { return share_a_block(block, known.info, info) && gone(known.info); });
}

bool Exports::network_may_map(const void* data, std::uint64_t buffer_id) noexcept {
  if (exported_.empty() && closing_.empty()) return true;
  std::uint64_t& clear = clear_[buffer_id % clear_.size()];
  if (buffer_id != 0 && clear == buffer_id) return true;
  const Result<port::PointerInfo> info = engine_.device().query(data);
  if (!info) return false;
  make_way(*info);
  const std::size_t block = engine_.device().capabilities().export_block_bytes;
  // What lives there has the same block of the driver. Of the dead, `exported_` has those that there was no memory to
  // withdraw.
  const auto is_in_the_way = [&](const auto& old) {
    return old.first != info->buffer_id && share_a_block(block, old.second.info, *info) && gone(old.second.info);
  };
  if (std::any_of(closing_.begin(), closing_.end(), is_in_the_way)) return false;
  if (std::any_of(exported_.begin(), exported_.end(), is_in_the_way)) return false;
  clear = info->buffer_id;
  return true;
}

bool Exports::withdraw(const port::PointerInfo& info) noexcept {
  if (host_accessible(info.kind)) return tell_withdrawn(info.buffer_id);  // it is unmapped at once
  try {
    Withdrawn& withdrawn = closing_.try_emplace(info.buffer_id, Withdrawn{info}).first->second;
    if (tell_withdrawn(info.buffer_id)) {
      ++withdrawn.unanswered;
      return true;
    }
    if (withdrawn.unanswered == 0) closing_.erase(info.buffer_id);
  } catch (const std::bad_alloc&) {
  }
  return false;
}

void Exports::on_closed(std::uint64_t buffer_id, std::uint32_t withdrawals) noexcept {
  const auto found = closing_.find(buffer_id);
  if (found == closing_.end()) return;
  Withdrawn& withdrawn = found->second;
  withdrawn.unanswered -= std::min(withdrawn.unanswered, withdrawals);
  if (withdrawn.unanswered == 0) closing_.erase(found);
}

bool Exports::tell_withdrawn(std::uint64_t buffer_id) noexcept {
  MappingMessage message;
  message.kind = MappingMessage::Kind::withdrawn;
  message.buffer_id = buffer_id;
  return peer_.lost || post(*peer_.link, message);
}

void Exports::tell_watched(std::uint64_t buffer_id) noexcept {
  MappingMessage message;
  message.kind = MappingMessage::Kind::watched;
  message.buffer_id = buffer_id;
  static_cast<void>(post(*peer_.link, message));
}

template <typename Chosen>
void Exports::withdraw_if(Chosen&& chosen) noexcept {
  for (auto known = exported_.begin(); known != exported_.end();) {
    if (!chosen(known->second)) {
      ++known;
      continue;
    }
    if (!withdraw(known->second.info)) return;  // another time
    known = exported_.erase(known);
  }
}

void Exports::on_fetch(const MappingMessage& asked) noexcept {
  MappingMessage answer;
  answer.kind = MappingMessage::Kind::handed;
  answer.outcome = static_cast<std::uint16_t>(hand_over(asked));
  answer.buffer_id = asked.buffer_id;
  answer.number = asked.number;
  static_cast<void>(post(*peer_.link, answer));
}

Status Exports::hand_over(const MappingMessage& asked) noexcept {
  const auto known = exported_.find(asked.buffer_id);
  const bool is_known = known != exported_.end();
  const void* place = is_known ? known->second.info.base : reinterpret_cast<const void*>(asked.address);
  const Result<port::PointerInfo> now = engine_.device().query(place);
  if (!now || now->buffer_id != asked.buffer_id) return Status::not_found;
  // Its end is told to those it is remembered for.
  if (!is_known && (!has_room() || remember(*now) == nullptr)) return Status::limit_reached;
  const Result<port::ExportedFile> exported = engine_.device().export_file(place);
  if (!exported) return exported.status();
  const Status handed = FileBox::hand_over(asked.box, peer_.record.pid, asked.number, exported->file.get());
  // So it ends where the two have no sockets in common.
  return handed == Status::not_found ? Status::peer_rejected : handed;
}

void Exports::on_watch(std::uint64_t buffer_id, const void* address) noexcept {
  const Result<port::PointerInfo> now = engine_.device().query(address);
  const bool lives = now.ok() && now->buffer_id == buffer_id;
  if (lives) make_way(*now);
  const bool watched = lives && (exported_.contains(buffer_id) || (has_room() && remember(*now) != nullptr));
  if (watched) return tell_watched(buffer_id);
  // It goes other ways from now on. Of what is gone nobody knows more than where the peer uses it.
  const port::PointerInfo dead{
      .kind = MemoryKind::cuda, .base = const_cast<void*>(address), .bytes = 1, .buffer_id = buffer_id};
  static_cast<void>(withdraw(lives ? *now : dead));
}

void Exports::look_for_freed(unsigned looks) noexcept {
  const std::size_t buckets = exported_.bucket_count();
  for (std::size_t seen = 0; looks != 0 && seen < buckets && !exported_.empty(); ++seen) {
    looked_bucket_ = (looked_bucket_ + 1) % buckets;
    const Exported* freed = nullptr;
    for (auto known = exported_.begin(looked_bucket_); known != exported_.end(looked_bucket_); ++known) {
      if (looks != 0) --looks;
      if (gone(known->second.info)) freed = &known->second;
    }
    const std::uint64_t buffer_id = freed != nullptr ? freed->info.buffer_id : 0;
    if (freed != nullptr && withdraw(freed->info)) exported_.erase(buffer_id);
  }
}

}  // namespace brant
