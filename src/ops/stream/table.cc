#include "ops/stream/table.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>

#include <fmt/format.h>

#include "base/log.h"
#include "base/seconds.h"
#include "core/link_services.h"

namespace brant {
namespace {

/// An id has an end for each peer; both in one process, for each side. `side`: of the end of this process.
constexpr std::uint64_t key_of(std::int32_t rank, std::uint32_t id, unsigned side) noexcept {
  return static_cast<std::uint64_t>(rank) << 33 | std::uint64_t{id} << 1 | side;
}

std::uint64_t key_of(const StreamEnd& end) noexcept {
  return key_of(end.peer().rank.value, end.id().value, end.side());
}

}  // namespace

StreamTable::Early::Early(StreamTable& table_in, Peer& peer_in, Key key_in, const StreamOffer& offer_in) noexcept
    : table(table_in), peer(peer_in), key(key_in), offer(offer_in) {
  lost = [](PeerOp& self) noexcept {
    auto& early = static_cast<Early&>(self);
    auto& known = early.table.early_;
    known.erase(known.find(early.key));
  };
  peer.add_outstanding(*this);
}

StreamTable::StreamTable(Engine& engine) : engine_(engine), mappings_(MappingTable::of(engine)) {
  engine.links().claim(link_service::kStream, &StreamTable::on_record, this);
  engine.peers().look_at_links(link_service::kStream);  // what was said of ends before this one is opened
}

StreamTable::~StreamTable() {
  engine_.deferrals().take_back(*this);
  for (const auto& end : ends_) end->abandon(Status::canceled);
  const bool used = std::any_of(ends_.begin(), ends_.end(), [](const auto& end) { return end->memory().made(); });
  if (used) static_cast<void>(engine_.device().streams()->synchronize_all());
  ends_.clear();
}

Result<const StreamKernels*> StreamTable::kernels() noexcept {
  if (!kernels_) {
    StreamKernels kernels;
    if (const Status status = kernels.load(engine_.device()); status != Status::ok) return status;
    kernels_ = kernels;
  }
  return &*kernels_;
}

// Open and closed
// -------------------------------------------------------------------------------------------------------------------

/// Of the end of another process.
unsigned StreamTable::side_of(const Peer& peer) const noexcept {
  return peer.rank.value < engine_.job().rank ? 0u : 1u;
}

StreamEnd* StreamTable::open_end(Key key) const noexcept {
  const auto found = open_.find(key);
  return found == open_.end() ? nullptr : found->second;
}

StreamEnd* StreamTable::end_of(std::uint64_t opening) const noexcept {
  const auto found =
      std::find_if(ends_.begin(), ends_.end(), [&](const auto& end) { return end->opening() == opening; });
  return found == ends_.end() ? nullptr : found->get();
}

StreamEnd& StreamTable::open(Rank rank, ChannelId id, const StreamChannelOptions& options) {
  if (id.value > kChannelIdMax) {
    throw Error(Status::invalid_argument,
                fmt::format("stream channel id {} is too large: use 0 to {}", id.value, kChannelIdMax));
  }
  if (options.patience <= std::chrono::nanoseconds::zero()) {
    throw Error(Status::invalid_argument,
                fmt::format("stream channel {}: a patience of {} ns lets nothing happen: use more than 0", id.value,
                            options.patience.count()));
  }
  Peer& peer = engine_.peers().connect(rank);
  unsigned side = 1 - side_of(peer);
  if (peer.same_process) side = open_end(key_of(rank.value, id.value, 0)) == nullptr ? 0 : 1;
  const Key key = key_of(rank.value, id.value, side);
  if (open_end(key) != nullptr) {
    throw Error(Status::invalid_argument,
                fmt::format("stream channel {} is open already (rank {} with rank {}): close it first, or use another "
                            "id",
                            id.value, engine_.job().rank, rank.value));
  }
  ends_.reserve(ends_.size() + 1);
  auto end = std::make_unique<StreamEnd>(*this, peer, id, side, last_opening_ + 1, options);
  open_.emplace(key, end.get());
  ++last_opening_;
  ends_.push_back(std::move(end));
  return *ends_.back();
}

void StreamTable::close(StreamEnd& end) noexcept {
  open_.erase(key_of(end));
  end.close();
  look_at_closed();
}

void StreamTable::run_deferred() noexcept {
  let_closed_go();
  std::erase_if(ends_, [](const auto& end) { return end->unused(); });
}

/// Kernels of an end may be queued behind other work, or be in a graph that was launched: only when all of the device's
/// work is done they are known to be.
void StreamTable::let_closed_go() noexcept {
  const auto lets_go = [](const auto& end) { return end->closed() && end->quiet() && end->meeting().other() != 0; };
  if (std::none_of(ends_.begin(), ends_.end(), lets_go)) return;
  if (const Status done = engine_.device().streams()->synchronize_all(); done != Status::ok) {
    log::debug("closed stream channels keep their memory for now: {}", status_text(done));
    return;
  }
  for (const auto& end : ends_) {
    if (lets_go(end)) end->let_go();
  }
}

// What the other ends say
// -------------------------------------------------------------------------------------------------------------------

void StreamTable::post(Peer& peer, const StreamMessage& message) noexcept {
  if (peer.lost || peer.link->post_control(link_service::kStream, std::as_bytes(std::span(&message, 1)))) return;
  log::error("stream channel {} to rank {}: no memory for a record; the peer is given up", message.channel,
             peer.rank.value);
  engine_.peers().suspect(peer);
}

void StreamTable::on_record(void* self, const port::LinkRecord& record) noexcept {
  auto& table = *static_cast<StreamTable*>(self);
  Peer& peer = table.engine_.peers().linked(record.rank);
  StreamMessage message;
  if (!read_stream_message(record.header, record.payload.size(), message) || message.from_side != table.side_of(peer))
      [[unlikely]] {
    return table.engine_.peers().distrust(peer, "a record of stream channels that contradicts itself");
  }
  if (message.kind != StreamMessage::Kind::mailbox) return table.take_message(peer, message);
  port::ExportRecord mailbox;
  std::memcpy(static_cast<void*>(&mailbox), record.payload.data(), sizeof(mailbox));
  if (mailbox.kind != table.engine_.peers().mutual_kind(peer) || mailbox.offset > mailbox.bytes ||
      mailbox.bytes - mailbox.offset < sizeof(StreamMailbox)) [[unlikely]] {
    return table.engine_.peers().distrust(peer, "how to map a mailbox, which is too small or of another memory");
  }
  table.take_offer(peer, message, mailbox);
}

void StreamTable::take_message(Peer& peer, const StreamMessage& message) noexcept {
  using Kind = StreamMessage::Kind;
  if (message.kind == Kind::released) {
    StreamEnd* end = end_of(message.meets);
    if (end == nullptr || &end->peer() != &peer) return;
    end->meeting().on_released();
    return look_at_closed();
  }
  const Key key = key_of(peer.rank.value, message.channel, 1u - message.from_side);
  if (StreamEnd* end = open_end(key)) end->on_message(message);
  if (message.kind != Kind::closed) return;
  const auto early = early_.find(key);
  if (early == early_.end() || early->second.offer.opening != message.opening) return;
  early_.erase(early);
  release(peer, message, message.opening);
}

void StreamTable::take_offer(Peer& peer, const StreamMessage& message, const port::ExportRecord& record) noexcept {
  const Key key = key_of(peer.rank.value, message.channel, 1u - message.from_side);
  StreamEnd* end = open_end(key);
  if (end != nullptr && (end->meets() || end->has_failed())) return end->on_offer({message.opening, record});
  const auto known = early_.find(key);
  if (known != early_.end()) {
    release(peer, message, known->second.offer.opening);
    known->second.offer = {message.opening, record};
    return;
  }
  if (early_.size() >= kEarlyMax) return refuse(peer, message);
  try {
    early_.try_emplace(key, *this, peer, key, StreamOffer{message.opening, record});
  } catch (const std::bad_alloc&) {
    refuse(peer, message);
  }
}

/// Without room for what it says the other end must not wait for an answer.
void StreamTable::refuse(Peer& peer, const StreamMessage& message) noexcept {
  if (!std::exchange(early_told_, true)) {
    log::error(
        "stream channel {} of rank {} is refused: peers have prepared {} of which this process has prepared no end, "
        "and there may be {}",
        message.channel, peer.rank.value, early_.size(), kEarlyMax);
  }
  StreamMessage answer;
  answer.kind = StreamMessage::Kind::refused;
  answer.from_side = static_cast<std::uint8_t>(1 - message.from_side);
  answer.channel = message.channel;
  answer.meets = message.opening;
  post(peer, answer);
  release(peer, message, message.opening);
}

void StreamTable::release(Peer& peer, const StreamMessage& message, std::uint64_t opening) noexcept {
  StreamMessage answer;
  answer.kind = StreamMessage::Kind::released;
  answer.from_side = static_cast<std::uint8_t>(1 - message.from_side);
  answer.channel = message.channel;
  answer.meets = opening;
  post(peer, answer);
}

StreamOffer StreamTable::take_early(const StreamEnd& end) noexcept {
  const auto known = early_.find(key_of(end));
  if (known == early_.end()) return {};
  const StreamOffer offer = known->second.offer;
  early_.erase(known);
  return offer;
}

// When nothing comes
// -------------------------------------------------------------------------------------------------------------------

void StreamTable::peer_ended(Peer& peer) noexcept {
  for (const auto& end : ends_) {
    if (&end->peer() == &peer && end->waits()) end->abandon(Status::peer_lost);
  }
}

bool StreamTable::forget(Peer& peer) noexcept {
  return std::ranges::none_of(ends_, [&](const auto& end) { return &end->peer() == &peer; });
}

bool StreamTable::stalled(std::chrono::nanoseconds idle, bool) noexcept {
  bool told = false;
  for (const auto& end : ends_) {
    if (!end->waits()) continue;
    log::warn(
        "stream channel {}: rank {} has prepared it, and waits for rank {} to do so; nothing has moved for {:.1f} s",
        end->id().value, engine_.job().rank, end->peer().rank.value, in_seconds(idle));
    told = true;
  }
  return told;
}

}  // namespace brant
