#include "ops/mapping/table.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/log.h"
#include "core/link_services.h"

namespace brant {
namespace {

/// Looks after the table while somebody holds it.
struct MappingService final : Service {
  explicit MappingService(Engine& engine) : table(std::make_shared<MappingTable>(engine)) {}
  void look_around() noexcept override { table->look_around(); }
  bool forget(Peer& peer) noexcept override { return table->forget(peer); }

  std::shared_ptr<MappingTable> table;
};

}  // namespace

MappingTable::MappingTable(Engine& engine, const Bounds& bounds)
    : engine_(engine), fetches_(engine, bounds.file_patience), bounds_(bounds) {
  engine.links().claim(link_service::kMapping, &MappingTable::on_record, this);
}

MappingTable::~MappingTable() {
  engine_.links().claim(link_service::kMapping, nullptr, nullptr);
  engine_.deferrals().take_back(*this);
  for (auto& [rank, peer] : by_rank_) {
    // A peer of a table that ends before its engine may still live.
    if (Peer* of = engine_.peers().find(rank)) of->remove_outstanding(*peer);
  }
}

std::shared_ptr<MappingTable> MappingTable::of(Engine& engine) { return engine.service<MappingService>().table; }

PeerMappings& MappingTable::with(Peer& peer) {
  const auto known = by_rank_.find(peer.rank.value);
  if (known != by_rank_.end()) return *known->second;
  peers_.reserve(peers_.size() + 1);
  auto mappings = std::make_unique<PeerMappings>(*this, engine_, peer);
  PeerMappings& made = *by_rank_.emplace(peer.rank.value, std::move(mappings)).first->second;
  peers_.push_back(&made);
  made.lost = [](PeerOp& op) noexcept {
    auto& self = static_cast<PeerMappings&>(op);
    self.table.on_lost(self);
  };
  peer.add_outstanding(made);
  return made;
}

void MappingTable::on_lost(PeerMappings& peer) noexcept {
  peer.exports.forget_all();
  peer.imports.withdraw_all();
  fetches_.discard(peer.imports.peer());
  if (peer.flags.is_open()) engine_.deferrals().defer(*this);
}

bool MappingTable::forget(const Peer& peer) noexcept {
  const auto known = by_rank_.find(peer.rank.value);
  if (known == by_rank_.end()) return true;
  if (known->second->imports.known() != 0 || known->second->flags.is_open()) return false;
  std::erase(peers_, known->second.get());
  by_rank_.erase(known);
  return true;
}

void MappingTable::make_way(const port::PointerInfo& info) noexcept {
  for (PeerMappings* peer : peers_) peer->exports.make_way(info);
}

void MappingTable::look_around() noexcept {
  fetches_.look_for_late();
  for (unsigned turn = 0; turn < 2 && !peers_.empty(); ++turn) {
    looked_ = (looked_ + 1) % peers_.size();
    peers_[looked_]->exports.look_for_freed(kLooks / 2);
  }
}

bool MappingTable::has_room() noexcept {
  if (mapped_ < bounds_.mapped) return true;
  const TimePoint now = engine_.clock().recently();
  if (now < look_for_room_at_ || closing()) return false;
  Mapping* idlest = nullptr;
  TimePoint before = now - bounds_.idle;
  for (PeerMappings* peer : peers_) {
    Mapping* candidate = peer->imports.idlest(before);
    if (candidate == nullptr) continue;
    idlest = candidate;
    before = candidate->used_at;
  }
  if (idlest != nullptr) {
    close_later(*idlest);
    return false;
  }
  look_for_room_at_ = now + kLookAgain;
  if (!std::exchange(full_told_, true)) {
    log::warn(
        "{} allocations of other processes are mapped here, and all are in use: further ones go other ways. Use fewer "
        "and larger allocations",
        mapped_);
  }
  return false;
}

void MappingTable::close_later(Mapping& mapping) noexcept {
  if (!Closing::linked(mapping)) closing_.push_back(mapping);
  engine_.deferrals().defer(*this);
}

void MappingTable::run_deferred() noexcept {
  if (!closing_.empty()) ++closed_;
  while (Mapping* mapping = closing_.pop_front()) mapping->imports.close(*mapping);
  for (auto& [rank, peer] : by_rank_) {
    const Peer* of = engine_.peers().find(rank);
    if (of != nullptr && of->lost) peer->flags.close();
  }
}

void MappingTable::on_record(void* self, const port::LinkRecord& record) noexcept {
  auto& table = *static_cast<MappingTable*>(self);
  MappingMessage message;
  if (!read_mapping_message(record.header, record.payload.size(), message)) [[unlikely]] {
    return table.engine_.peers().distrust(record.rank, "a record of mapped memory that contradicts itself");
  }
  try {
    PeerMappings& peer = table.with(table.engine_.peers().linked(record.rank));
    switch (message.kind) {
      case MappingMessage::Kind::exported: return peer.imports.on_exported(record.payload);
      case MappingMessage::Kind::withdrawn: return peer.imports.on_withdrawn(message.buffer_id);
      case MappingMessage::Kind::watch:
        return peer.exports.on_watch(message.buffer_id, reinterpret_cast<const void*>(message.address));
      case MappingMessage::Kind::watched: return peer.imports.on_watched(message.buffer_id);
      case MappingMessage::Kind::fetch: return peer.exports.on_fetch(message);
      case MappingMessage::Kind::handed: return peer.imports.on_handed(message);
      case MappingMessage::Kind::closed: return peer.exports.on_closed(message.buffer_id, message.withdrawals);
    }
  } catch (const std::bad_alloc&) {
    log::error("no memory for what rank {} lets this process map: it goes other ways", record.rank);
  }
}

}  // namespace brant
