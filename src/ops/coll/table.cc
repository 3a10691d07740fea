#include "ops/coll/table.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "ops/coll/mail.h"
#include "ops/coll/team_state.h"

namespace brant {

TeamTable::TeamTable(Engine& engine)
    : engine_(engine),
      messenger_(engine.service<am::Messenger>()),
      mover_(engine.service<Mover>()),
      bands_(find_bands(engine.options().calibration, engine.machine()).bands),
      pages_(engine.options().statistics) {
  messenger_.claim(am::ServiceId::coll, &TeamTable::on_message, nullptr, this);
}

coll::Staging* TeamTable::take_staging() noexcept {
  return stagings_.take(
      mover_, [](void* table, coll::CallRecord& record) noexcept { static_cast<TeamTable*>(table)->end(record); },
      this);
}

Status TeamTable::stage(const coll::Members& members, const coll::Sides& sides, const std::string& team,
                        coll::CallRecord& record) noexcept {
  if (!sides.any()) return Status::ok;
  record.staging = take_staging();
  const Status status =
      record.staging == nullptr ? Status::no_memory : record.staging->prepare(members, sides, record.work);
  if (status == Status::ok) return status;
  drop(record);
  log::error("team {}: no pinned memory for the {} bytes of device memory of a collective: {}", team,
             record.work.in_bytes + record.work.out_bytes, status_text(status));
  return status;
}

void TeamTable::drop(coll::CallRecord& record) noexcept {
  if (record.staging != nullptr) stagings_.give_back(std::exchange(record.staging, nullptr));
}

void TeamTable::end(coll::CallRecord& record) noexcept {
  if (record.staging != nullptr && record.staging->is_busy()) return record.staging->end_later(record);
  drop(record);
  record.ended = true;
  if (!record.pooled) return;
  engine_.completions().finish(record, record.result);
  calls_.give_back(&record);
}

Result<const coll::StreamKernels*> TeamTable::stream_kernels() noexcept {
  if (stream_kernels_.is_loaded()) return &stream_kernels_;
  if (const Status status = stream_kernels_.load(engine_.device()); status != Status::ok) return status;
  return &stream_kernels_;
}

bool TeamTable::enter(std::uint64_t key, TeamState& team) {
  if (!teams_.emplace(key, &team).second) return false;
  am::MessageList others;
  while (am::Message* message = early_.pop_front()) {
    message->header<coll::MailHeader>().team == key ? team.on_mail(*message) : others.push_back(*message);
  }
  early_ = others;
  return true;
}

void TeamTable::leave(std::uint64_t key) noexcept {
  teams_.erase(key);
  closed_[next_closed_++ % kClosedKept] = key;
}

void TeamTable::on_message(void* context, am::Message& message) noexcept {
  auto& self = *static_cast<TeamTable*>(context);
  if (message.wire.header_bytes != sizeof(coll::MailHeader)) [[unlikely]] {
    self.engine_.peers().distrust(message.peer, "a collective's message with a damaged header");
    return self.messenger_.release(message);
  }
  const std::uint64_t key = message.header<coll::MailHeader>().team;
  const auto team = self.teams_.find(key);
  if (team != self.teams_.end()) return team->second->on_mail(message);
  if (std::find(self.closed_.begin(), self.closed_.end(), key) != self.closed_.end())
    return self.messenger_.release(message);
  self.early_.push_back(message);
}

void TeamTable::peer_ended(Peer& peer) noexcept {
  for (const auto& [key, team] : teams_) team->on_left(peer.rank);
}

bool TeamTable::stalled(std::chrono::nanoseconds, bool) noexcept {
  bool told = false;
  for (const auto& [key, team] : teams_) told = team->say_what_it_waits_for() || told;
  return told;
}

void TeamTable::look_around() noexcept {
  for (const auto& [key, team] : teams_) team->look_around();
}

}  // namespace brant
