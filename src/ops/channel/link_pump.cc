#include "ops/channel/link_pump.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "core/link_services.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/shaped.h"

namespace brant {
namespace {

/// Both ends copy, one piece behind the other: many small pieces overlap better, few large ones cost fewer records.
constexpr std::size_t piece_bytes(std::size_t message_bytes) noexcept {
  return std::clamp((message_bytes / 8 + 4095) / 4096 * 4096, std::size_t{4096}, port::kLinkPayloadMax);
}

std::span<const std::byte> header_of(const LinkMessage& message) noexcept {
  return std::as_bytes(std::span(&message, 1));
}

}  // namespace

void LinkPump::control(const LinkMessage& message) noexcept {
  if (peer_.lost || link().post_control(link_service::kChannel, header_of(message))) return;
  log::error("channel {} to rank {}: no memory for a control record; the peer is given up", message.channel,
             peer_.rank.value);
  engine_.peers().suspect(peer_);
}

void LinkPump::look() noexcept {
  if (!peer_.lost) static_cast<void>(link().poll(link_service::kChannel));
}

Status LinkPump::describe(const void* data, LinkMessage& message, std::uint64_t buffer_id) noexcept {
  const Result<ExportedPlace> place = mappings_.exports.describe(data, buffer_id);
  if (!place) return place.status();
  message.place = LinkMessage::Place::mapped;
  message.buffer_id = place->buffer_id;
  message.offset = place->offset & LinkMessage::kOffsetMask;
  return Status::ok;
}

void LinkPump::on_record(const LinkMessage& message) noexcept {
  switch (message.kind) {
    case LinkMessage::Kind::slots: return slots_.on_offered(message);
    case LinkMessage::Kind::slot_emptied: return slots_.on_emptied(message.flag);
    default: return;
  }
}

/// The next bytes of a message.
std::span<const std::byte> LinkPump::piece_of(const Transfer& transfer, std::size_t bytes) noexcept {
  if (!transfer.here_is_shaped()) {
    return {static_cast<const std::byte*>(transfer.here.data) + transfer.moved, bytes};
  }
  const std::span<std::byte> packed(packed_.data(), bytes);
  copy_out(transfer, transfer.moved, packed);
  return packed;
}

LinkPump::Pushed LinkPump::push(Transfer& transfer) noexcept {
  const std::size_t bytes = transfer.here.bytes;
  const bool eager = transfer.state() == TransferState::eager;
  LinkMessage message =
      transfer.endpoint.link_message(eager ? LinkMessage::Kind::eager : LinkMessage::Kind::data, transfer);
  const std::size_t whole_piece = eager ? bytes : piece_bytes(bytes);
  for (unsigned piece = 0; piece < tuned::kTurnPieces; ++piece) {
    message.offset = transfer.moved & LinkMessage::kOffsetMask;
    const std::size_t size = std::min<std::size_t>(bytes - transfer.moved, whole_piece);
    if (!link().post(link_service::kChannel, header_of(message), piece_of(transfer, size))) {
      return piece == 0 ? Pushed::no_room : Pushed::some;
    }
    transfer.moved += size;
    if (transfer.moved == bytes) return Pushed::all;
  }
  return Pushed::some;
}

bool LinkPump::send(Transfer& transfer) noexcept {
  if (push(transfer) == Pushed::all) {
    transfer.become(TransferState::carried);
    return true;
  }
  waiting_.push_back(transfer);
  engine_.pollers().attach(*this);
  return false;
}

bool LinkPump::send_at_once(const LinkMessage& message, ConstBuffer bytes) noexcept {
  const std::span payload(static_cast<const std::byte*>(bytes.data), static_cast<std::size_t>(bytes.bytes));
  return link().post(link_service::kChannel, header_of(message), payload);
}

void LinkPump::withdraw(Transfer& transfer) noexcept {
  waiting_.remove(transfer);
  transfer.become(TransferState::carried);
  rest_if_idle();
}

void LinkPump::put_off(Transfer& transfer) noexcept {
  transfer.asked_at = Clock::now();
  put_off_.push_back(transfer);
  engine_.pollers().attach(*this);
}

void LinkPump::forget(Transfer& transfer) noexcept {
  if (!put_off_.linked(transfer)) return;
  put_off_.remove(transfer);
  rest_if_idle();
}

void LinkPump::rest_if_idle() noexcept {
  if (waiting_.empty() && put_off_.empty()) engine_.pollers().detach(*this);
}

unsigned LinkPump::poll() noexcept {
  const unsigned events = push_waiting() + (put_off_.empty() ? 0 : ask_late());
  rest_if_idle();
  return events;
}

unsigned LinkPump::push_waiting() noexcept {
  unsigned pieces = 0;
  while (pieces < tuned::kTurnPieces) {
    Transfer* transfer = waiting_.front();
    if (transfer == nullptr) break;
    const Pushed pushed = push(*transfer);
    if (pushed == Pushed::no_room) break;
    pieces += pushed == Pushed::all ? 1 : tuned::kTurnPieces;
    waiting_.remove(*transfer);
    if (pushed == Pushed::some) {
      waiting_.push_back(*transfer);
    } else {
      transfer->endpoint.carried(*transfer, Status::ok);
    }
  }
  return pieces;
}

unsigned LinkPump::ask_late() noexcept {
  unsigned asked = 0;
  const TimePoint now = Clock::now();
  if (std::exchange(heard_, false)) heard_at_ = now;
  for (Transfer* transfer = put_off_.front(); transfer != nullptr; transfer = put_off_.front()) {
    const TimePoint since = transfer->asked_at;
    if (now - std::max(since, heard_at_) < tuned::kQuiet && now - since < tuned::kQuietMost) break;
    put_off_.remove(*transfer);
    transfer->endpoint.link_sender()->ask_late(*transfer);
    ++asked;
  }
  return asked;
}

}  // namespace brant
