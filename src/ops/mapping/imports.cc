#include "ops/mapping/imports.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/log.h"
#include "ops/mapping/table.h"

namespace brant {

void MappingLease::let_go(Mapping& mapping) noexcept { mapping.imports.let_go(mapping); }
bool MappingLease::reach_by_device(Mapping& mapping) noexcept { return mapping.imports.reach_by_device(mapping); }

Imports::~Imports() {
  for (auto& [id, mapping] : known_) {
    if (mapping.is_mapped()) unmap(mapping);
  }
}

// Who uses it
// --------------------------------------------------------------------------------------------------------------

Mapping* Imports::find(std::uint64_t buffer_id) noexcept {
  if (last_ != nullptr && last_->record.buffer_id == buffer_id) return last_;
  const auto found = known_.find(buffer_id);
  if (found == known_.end()) return nullptr;
  last_ = &found->second;
  return last_;
}

MappedMemory Imports::take(std::uint64_t buffer_id, std::uint64_t offset, std::uint64_t bytes, Reach reach) noexcept {
  Mapping* mapping = find(buffer_id);
  if (mapping == nullptr || mapping->withdrawn) return {};
  const port::ExportRecord& record = mapping->record;
  if (offset > record.bytes || bytes > record.bytes - offset) return {};
  if (reach == Reach::cpu && !host_accessible(record.kind)) return {};
  if (!mapping->is_mapped() && map(*mapping) != Status::ok) return {};
  if (reach == Reach::device && !reach_by_device(*mapping)) return {};
  table_.keep(*mapping);
  mapping->used_at = engine_.clock().recently();
  return {mapping->base + offset, MappingLease(*mapping)};
}

Result<MappedMemory> Imports::open(const port::ExportRecord& record, std::uint64_t bytes,
                                   std::uint64_t address) noexcept {
  if (!is_sound(record) || bytes > record.bytes - record.offset) return Status::invalid_argument;
  Mapping* mapping = find(record.buffer_id);
  if (mapping != nullptr && !are_same(mapping->record, record)) return Status::invalid_argument;
  const bool first = mapping == nullptr;
  if (first) mapping = remember(record);
  if (mapping == nullptr) return Status::limit_reached;
  if (mapping->address == 0) mapping->address = address;
  if (mapping->withdrawn) revive(*mapping);  // its owner says otherwise soon, if it is no more
  watch(*mapping, address);
  const Status status = mapping->is_mapped() ? Status::ok : map(*mapping);
  if (status != Status::ok) {
    if (first && status != Status::in_progress && !is_hindered(*mapping)) forget(*mapping);
    return status;
  }
  table_.keep(*mapping);
  mapping->used_at = engine_.clock().recently();
  MappedMemory memory{mapping->base + record.offset, MappingLease(*mapping)};
  if (!mapping->announced && !mapping->asked) withdraw(*mapping);  // nobody will tell of its end
  return memory;
}

bool Imports::awaits(std::uint64_t buffer_id) noexcept {
  const Mapping* mapping = find(buffer_id);
  return mapping != nullptr && FileFetches::is_awaited(*mapping);
}

Mapping* Imports::remember(const port::ExportRecord& record) noexcept {
  if (known_.size() >= kKnownMax) return nullptr;
  port::ExportRecord whole = record;
  whole.offset = 0;
  try {
    return &known_.try_emplace(record.buffer_id, *this, whole).first->second;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void Imports::forget(Mapping& mapping) noexcept {
  answer(mapping);
  if (last_ == &mapping) last_ = nullptr;
  if (mapping.withdrawn) table_.note_withdrawn(-1);
  table_.keep(mapping);
  table_.fetches().forget(mapping);
  known_.erase(mapping.record.buffer_id);
}

/// in_progress: something is closed first, and then this is tried again.
Status Imports::map(Mapping& mapping) noexcept {
  if (mapping.refused) return Status::not_supported;
  if (FileFetches::is_awaited(mapping)) return Status::in_progress;
  if (mapping.tried == table_.closed()) return is_waiting(mapping) ? Status::in_progress : Status::not_supported;
  if (!table_.has_room()) return Status::limit_reached;
  if (mapping.record.means == port::ExportRecord::Means::file) {
    const Status fetched = table_.fetches().begin(mapping);
    if (fetched != Status::in_progress) mapping.tried = table_.closed();
    return fetched;
  }
  return map_at(mapping, engine_.device().import_allocation(mapping.record));
}

Status Imports::map_at(Mapping& mapping, const Result<void*>& base) noexcept {
  if (!base) return note_refused(mapping, base.status());
  mapping.base = static_cast<std::byte*>(*base);
  mapping.used_at = engine_.clock().recently();
  table_.note_mapped();
  return Status::ok;
}

/// What is in its way is about to be closed, or may not have been heard of.
bool Imports::is_waiting(const Mapping& mapping) const noexcept {
  return table_.closing() || (mapping.asked && !mapping.watched && !peer_.lost);
}

bool Imports::is_hindered(const Mapping& mapping) const noexcept {
  if (mapping.is_mapped() || mapping.tried == 0) return false;
  return is_waiting(mapping) || std::any_of(known_.begin(), known_.end(), [](const auto& known) {
           return known.second.withdrawn && known.second.is_mapped();
         });
}

void Imports::on_handed(const MappingMessage& message) noexcept {
  // Taken out of the box also if nobody wants it any more.
  const Result<UniqueFd> file = table_.fetches().receive(peer_, message);
  Mapping* mapping = find(message.buffer_id);
  if (mapping == nullptr || mapping->file_number != message.number || !table_.fetches().end(*mapping)) return;
  static_cast<void>(map_file(*mapping, file));
}

Status Imports::map_file(Mapping& mapping, const Result<UniqueFd>& file) noexcept {
  if (file && !table_.has_room()) return Status::limit_reached;
  if (file) return map_at(mapping, engine_.device().import_file(mapping.record, file->get()));
  if (file.status() != Status::not_found) table_.fetches().say_why(mapping, file.status());  // it was freed
  mapping.tried = table_.closed();
  return file.status();
}

Status Imports::note_refused(Mapping& mapping, Status why) noexcept {
  if (why == Status::in_progress || table_.may_be_in_the_way()) {
    mapping.tried = table_.closed();
    if (is_waiting(mapping)) return Status::in_progress;
    return why == Status::in_progress ? Status::not_supported : why;
  }
  mapping.refused = true;
  log::info("{} bytes of {} memory of rank {} cannot be mapped: {}; they go other ways", mapping.record.bytes,
            memory_kind_name(mapping.record.kind), peer_.rank.value, status_text(why));
  return why;
}

bool Imports::reach_by_device(Mapping& mapping) noexcept {
  if (!host_accessible(mapping.record.kind) || mapping.registered) return true;
  // Locking pages may wait for the device, as freeing does: not while a kernel may wait for this process.
  if (mapping.unregistrable || engine_.deferrals().kernels_wait()) return false;
  port::Streams* const streams = engine_.device().streams();
  const Status status = streams == nullptr
                            ? Status::not_supported
                            : streams->register_host(mapping.base, static_cast<std::size_t>(mapping.record.bytes));
  mapping.registered = status == Status::ok;
  mapping.unregistrable = !mapping.registered;
  if (!mapping.registered) {
    log::info(
        "the device does not reach {} bytes of host memory of rank {} ({}); copies between them go other ways. Raise "
        "the limit of locked memory (ulimit -l) if that is in the way",
        mapping.record.bytes, peer_.rank.value, status_text(status));
  }
  return mapping.registered;
}

// What its owner says
// ------------------------------------------------------------------------------------------------------

bool Imports::is_sound(const port::ExportRecord& record) noexcept {
  using Means = port::ExportRecord::Means;
  const bool known = static_cast<unsigned>(record.kind) < static_cast<unsigned>(kMemoryKindCount);
  const bool by_handle = record.means == Means::handle;
  const bool by_file = record.means == Means::file && known && !host_accessible(record.kind);
  return known && (by_handle || by_file) && record.offset <= record.bytes;
}

bool Imports::are_same(const port::ExportRecord& a, const port::ExportRecord& b) noexcept {
  return a.kind == b.kind && a.means == b.means && a.bytes == b.bytes;
}

void Imports::on_exported(std::span<const std::byte> packed) noexcept {
  port::ExportRecord record;
  std::memcpy(static_cast<void*>(&record), packed.data(), sizeof(record));
  const bool sound = is_sound(record);
  Mapping* mapping = sound ? find(record.buffer_id) : nullptr;
  const bool contradicts =
      mapping != nullptr && (!are_same(mapping->record, record) || (mapping->announced && !mapping->withdrawn));
  if (!sound || contradicts) {
    return engine_.peers().distrust(peer_, "how to map an allocation, which contradicts itself or what it told before");
  }
  if (mapping == nullptr) mapping = remember(record);
  if (mapping == nullptr) return;  // what lies there goes other ways
  mapping->announced = true;
  if (mapping->withdrawn) revive(*mapping);
  answer(*mapping);
  if (!mapping->is_mapped()) static_cast<void>(map(*mapping));
}

/// The same allocation, told of once more before it was unmapped.
void Imports::revive(Mapping& mapping) noexcept {
  mapping.withdrawn = false;
  table_.note_withdrawn(-1);
  table_.keep(mapping);
}

void Imports::on_withdrawn(std::uint64_t buffer_id) noexcept {
  Mapping* mapping = find(buffer_id);
  if (mapping == nullptr) return tell_closed(buffer_id, 1);
  ++mapping->unanswered;
  if (!mapping->withdrawn) withdraw(*mapping);
}

void Imports::answer(Mapping& mapping) noexcept {
  if (mapping.unanswered != 0) tell_closed(mapping.record.buffer_id, std::exchange(mapping.unanswered, 0));
}

void Imports::tell_closed(std::uint64_t buffer_id, std::uint32_t withdrawals) noexcept {
  if (peer_.lost || peer_.link == nullptr) return;
  MappingMessage message;
  message.kind = MappingMessage::Kind::closed;
  message.withdrawals = withdrawals;
  message.buffer_id = buffer_id;
  static_cast<void>(post(*peer_.link, message));
}

void Imports::on_watched(std::uint64_t buffer_id) noexcept {
  if (Mapping* mapping = find(buffer_id)) mapping->watched = true;
}

void Imports::withdraw(Mapping& mapping) noexcept {
  mapping.withdrawn = true;
  mapping.announced = mapping.asked = mapping.watched = false;
  table_.note_withdrawn(+1);
  if (mapping.users == 0) let_go(mapping);
}

void Imports::withdraw_all() noexcept {
  for (auto next = known_.begin(); next != known_.end();) {
    Mapping& mapping = (next++)->second;
    if (!mapping.withdrawn) withdraw(mapping);
  }
}

/// Its owner may not know that it is mapped here.
void Imports::watch(Mapping& mapping, std::uint64_t address) noexcept {
  if (mapping.announced || mapping.asked || peer_.link == nullptr || address == 0) return;
  MappingMessage message;
  message.kind = MappingMessage::Kind::watch;
  message.buffer_id = mapping.record.buffer_id;
  message.address = address;
  mapping.asked = post(*peer_.link, message);
}

// Its end
// -----------------------------------------------------------------------------------------------------------------

void Imports::let_go(Mapping& mapping) noexcept {
  if (!mapping.is_mapped()) return forget(mapping);
  host_accessible(mapping.record.kind) && !mapping.registered ? close(mapping) : table_.close_later(mapping);
}

void Imports::unmap(Mapping& mapping) noexcept {
  if (std::exchange(mapping.registered, false)) {
    static_cast<void>(engine_.device().streams()->unregister_host(mapping.base));
  }
  static_cast<void>(engine_.device().close_import(std::exchange(mapping.base, nullptr)));
}

void Imports::close(Mapping& mapping) noexcept {
  unmap(mapping);
  table_.note_unmapped();
  if (mapping.withdrawn) forget(mapping);
}

Mapping* Imports::idlest(TimePoint before) noexcept {
  Mapping* idlest = nullptr;
  for (auto& [id, mapping] : known_) {
    if (!mapping.is_mapped() || mapping.users != 0 || mapping.used_at > before) continue;
    before = mapping.used_at;
    idlest = &mapping;
  }
  return idlest;
}

}  // namespace brant
