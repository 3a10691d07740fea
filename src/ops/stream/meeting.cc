#include "ops/stream/meeting.h"

#include <span>
#include <utility>

#include "base/log.h"
#include "core/link_services.h"
#include "ops/stream/end.h"

namespace brant {

Status StreamMeeting::begin() noexcept {
  const Result<port::ExportRecord> record = end_.mappings().exports.lend(end_.memory().mailbox());
  if (!record) return record.status();
  untold_ = *record;
  tell();
  return Status::ok;
}

void StreamMeeting::tell() noexcept {
  const StreamMessage message = end_.message(StreamMessage::Kind::mailbox);
  if (!end_.peer().link->post(link_service::kStream, std::as_bytes(std::span(&message, 1)),
                              std::as_bytes(std::span(&*untold_, 1)))) {
    return end_.poll_later();  // no room now
  }
  untold_.reset();
  lent_ = true;
}

void StreamMeeting::on_offer(const StreamOffer& offer) noexcept {
  drop_offer();
  let_go();
  offer_ = offer;
  map();
}

void StreamMeeting::map() noexcept {
  // Nobody else uses it, and its end is that of this end.
  Result<MappedMemory> mapped = end_.mappings().imports.open(offer_->record, sizeof(StreamMailbox), 0);
  if (mapped.status() == Status::in_progress) return end_.poll_later();
  if (!mapped) {
    log::error("stream channel {}: the device memory of rank {} cannot be mapped: {}", end_.id().value,
               end_.peer().rank.value, status_text(mapped.status()));
    return end_.abandon(Status::not_supported);
  }
  mailbox_ = reinterpret_cast<StreamMailbox*>(mapped->address);
  lease_ = std::move(mapped->lease);
  mapped_ = offer_->opening;
  offer_.reset();
  end_.post(end_.message(StreamMessage::Kind::ready, mapped_));
  if (met()) end_.on_met();
}

void StreamMeeting::on_ready(std::uint64_t opening) noexcept {
  if (met()) return;
  ready_ = opening;
  if (met()) end_.on_met();
}

bool StreamMeeting::on_closed(std::uint64_t opening) noexcept {
  if (offer_ && offer_->opening == opening) drop_offer();
  if (mapped_ != opening) return false;
  if (met()) return true;
  let_go();
  return false;
}

/// It will not be mapped.
void StreamMeeting::drop_offer() noexcept {
  if (offer_) end_.post(end_.message(StreamMessage::Kind::released, offer_->opening));
  offer_.reset();
}

void StreamMeeting::let_go() noexcept {
  if (mapped_ == 0) return;
  mailbox_ = nullptr;
  lease_ = {};
  end_.post(end_.message(StreamMessage::Kind::released, std::exchange(mapped_, 0)));
}

void StreamMeeting::give_up() noexcept {
  untold_.reset();
  if (offer_) end_.post(end_.message(StreamMessage::Kind::refused, offer_->opening));
  drop_offer();
}

void StreamMeeting::close() noexcept {
  untold_.reset();
  drop_offer();
  if (lent_) end_.post(end_.message(StreamMessage::Kind::closed));
}

void StreamMeeting::poll() noexcept {
  if (untold_) tell();
  if (offer_) map();
}

}  // namespace brant
