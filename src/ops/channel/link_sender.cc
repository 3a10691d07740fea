#include "ops/channel/link_sender.h"

#include <new>
#include <utility>

#include "base/log.h"
#include "core/paths/path_choice.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/shaped.h"
#include "ops/channel/table.h"

namespace brant {

using Kind = LinkMessage::Kind;

Status LinkSender::send(Transfer& transfer) noexcept {
  const Buffer& bytes = transfer.here;
  const std::optional<Landing> landing = take_landing(transfer.number);
  if (offer(transfer, landing)) return Status::in_progress;
  // A staged message takes the way that its pinned copy would take by itself.
  const bool staged = transfer.path == Path::staged && !shm_is_faster(bytes.bytes);
  // The own device reads pinned memory, and writes into a landing that is mapped.
  const bool direct =
      landing && landing->place == LinkMessage::Place::mapped && bytes.kind == MemoryKind::pinned && !staged;
  if (!direct && (transfer.path == Path::ucx || staged)) return send_elsewhere(transfer);
  if (bytes.bytes == 0 || (bytes.bytes <= kEagerBytes && host_accessible(bytes.kind))) {
    transfer.become(TransferState::eager);
    transfer.moved = 0;
    return pump_.send(transfer) ? Status::ok : Status::in_progress;
  }
  if (landing) return start(transfer, *landing);
  await_landing(transfer);
  if (told_unasked_) {
    pump_.put_off(transfer);
  } else {
    ask(transfer, question(transfer));
  }
  return Status::in_progress;
}

/// A device also writes into host memory that it can be told of.
LinkMessage LinkSender::question(Transfer& transfer) noexcept {
  LinkMessage message = endpoint_.link_message(Kind::ask, transfer);
  if (!may_go_direct(transfer)) return message;
  transfer.by_device = not_direct_ == 0;
  if (transfer.by_device) {
    message.place = LinkMessage::Place::other;
  } else {
    --not_direct_;
  }
  return message;
}

bool LinkSender::may_go_direct(const Transfer& transfer) const noexcept {
  const bool forced = transfer.path == Path::ucx || transfer.path == Path::staged;
  return !forced && !transfer.here_is_shaped() && transfer.here.kind == endpoint_.mutual_kind();
}

bool LinkSender::send_at_once(std::uint64_t number, ConstBuffer bytes) noexcept {
  LinkMessage message = endpoint_.link_message(Kind::eager);
  message.number = number;
  message.bytes = bytes.bytes;
  if (!pump_.send_at_once(message, bytes)) return false;
  static_cast<void>(take_landing(number));  // it is not needed
  return true;
}

/// A message in host memory that the receiver can map: one copy by its CPU, which beats two, and the network.
bool LinkSender::offer(Transfer& transfer, const std::optional<Landing>& landing) noexcept {
  const Buffer& bytes = transfer.here;
  if (bytes.bytes < kOfferedBytes || !host_accessible(bytes.kind) || transfer.path == Path::staged) return false;
  if (transfer.here_is_shaped()) return false;  // the receiver knows nothing of it
  if (landing && landing->place != LinkMessage::Place::host) return false;
  LinkMessage message = endpoint_.link_message(Kind::ask, transfer);
  if (!locate(bytes, message)) return false;
  await_landing(transfer);
  transfer.offered = true;
  ask(transfer, message);
  return true;
}

bool LinkSender::can_offer(ConstBuffer bytes) noexcept {
  LinkMessage unused;
  return pump_.describe(bytes.data, unused) == Status::ok;
}

/// Fills in where the receiver can map a message. Asking what an unknown address is costs more than a small message, so
/// that is done for some of them.
bool LinkSender::locate(ConstBuffer bytes, LinkMessage& message) noexcept {
  const bool small = bytes.bytes <= kEagerBytes;
  if (small && not_asked_ != 0) {
    --not_asked_;
    return false;
  }
  const bool located = pump_.describe(bytes.data, message) == Status::ok;
  if (small && !located) not_asked_ = tuned::kAskEvery - 1;
  return located;
}

void LinkSender::await_landing(Transfer& transfer) noexcept {
  if (host_accessible(transfer.here.kind)) transfer.buffer_id = 0;  // it was staged
  transfer.asked = transfer.offered = false;
  transfer.become(TransferState::asking);
  asking_.push_back(transfer);
}

void LinkSender::ask(Transfer& transfer, const LinkMessage& message) noexcept {
  pump_.control(message);
  transfer.asked = true;
  const bool by_device = transfer.path == Path::courier || transfer.path == Path::copy_engine;
  if (by_device && transfer.buffer_id != 0 && transfer.here.bytes <= kEagerBytes) {
    pump_.slots().await(transfer);
  }
}

void LinkSender::ask_late(Transfer& transfer) noexcept {
  told_unasked_ = false;
  ask(transfer, question(transfer));
}

void LinkSender::end_asking(Transfer& transfer) noexcept {
  asking_.remove(transfer);
  transfer.asked ? pump_.slots().forget(transfer) : pump_.forget(transfer);
}

bool LinkSender::send_early(Transfer& transfer, std::uint16_t slot) noexcept {
  if (endpoint_.moves().source_is_gone(transfer)) return false;  // said when the receive is there
  end_asking(transfer);
  transfer.slot = slot;
  const Status status =
      start_copy(transfer, {pump_.slots().there(slot), {}}, endpoint_.mutual_kind(), LandingFlags::kNone);
  if (status == Status::in_progress) return true;
  transfer.slot = DeviceSlots::kNone;
  endpoint_.carried(transfer, status);
  return false;
}

std::optional<LinkSender::Landing> LinkSender::take_landing(std::uint64_t number) noexcept {
  if (!knows_landing(number)) return std::nullopt;
  --landings_known_;
  return std::exchange(landings_[number % landings_.size()], {});
}

void LinkSender::look_for_landing(std::uint64_t number) noexcept {
  if (told_unasked_ && !knows_landing(number)) pump_.look();
}

Status LinkSender::start(Transfer& transfer, const Landing& landing) noexcept {
  if (transfer.here.bytes > landing.bytes) {
    pump_.control(endpoint_.link_message(Kind::truncated, transfer));
    endpoint_.sends().note_truncated(transfer.number);
    return Status::truncated;
  }
  if (landing.place == LinkMessage::Place::host) return start_to_host(transfer, landing);
  MappedMemory target;
  if (landing.place == LinkMessage::Place::mapped) {
    target = pump_.mappings().imports.take(landing.buffer_id, landing.offset, transfer.here.bytes, Reach::device);
  }
  // From pageable host memory the device's copy would make the caller wait: the network is asked first.
  const bool network_takes = endpoint_.engine().wire().capabilities().takes(endpoint_.mutual_kind());
  const bool pageable = transfer.here.kind == MemoryKind::host;
  // What a host packs is one run before it goes any further.
  const bool packs = transfer.here_is_shaped() && host_accessible(transfer.here.kind);
  const bool by_device = target.address != nullptr && !packs && (!pageable || !network_takes);
  const bool on_host = target.lease && host_accessible(target.lease.kind());
  const MemoryKind to = on_host ? MemoryKind::pinned : endpoint_.mutual_kind();
  if (by_device) return start_copy(transfer, std::move(target), to, landing.flag);
  return send_over_network(transfer, landing);
}

/// Memory that the network does not take is copied to the host first.
Status LinkSender::send_over_network(Transfer& transfer, const Landing& landing) noexcept {
  if (!transfer.here_is_shaped() && endpoint_.network().takes(transfer.here, transfer.buffer_id)) {
    if (transfer.path != Path::staged) transfer.path = Path::ucx;
    return send_elsewhere(transfer);
  }
  remember(landing);  // for the copy, which comes here again
  transfer.path = Path::staged;
  const Status staged = endpoint_.moves().stage_out(transfer);
  if (staged != Status::ok) return staged;
  transfer.here = transfer.staged(transfer.buffer.bytes);
  return send(transfer);
}

/// The receiver's memory is the host's: pieces of a host source, and of device memory what the network takes. A landing
/// that was told unasked does not say where it is: the device may reach it.
Status LinkSender::start_to_host(Transfer& transfer, const Landing& landing) noexcept {
  if (!transfer.asked && may_go_direct(transfer) && not_direct_ == 0) {
    await_landing(transfer);
    ask(transfer, question(transfer));
    return Status::in_progress;
  }
  if (transfer.by_device) {
    transfer.by_device = false;
    not_direct_ = tuned::kAskEvery - 1;
  } else if (!transfer.asked && may_go_direct(transfer)) {
    --not_direct_;
  }
  if (host_accessible(transfer.here.kind) && transfer.path != Path::ucx) {
    transfer.become(TransferState::pieces);
    transfer.moved = 0;
    return pump_.send(transfer) ? Status::ok : Status::in_progress;
  }
  return send_over_network(transfer, landing);
}

Status LinkSender::start_copy(Transfer& transfer, MappedMemory target, MemoryKind to, std::uint16_t flag) noexcept {
  transfer.flag = flag;
  const Buffer& bytes = transfer.here;
  ChannelMoves::Copy copy{
      MoveEnd(target.address, to), MoveEnd(bytes.data, bytes.kind), bytes.bytes, transfer.shape_here(),
      Path::copy_engine,           std::move(target.lease)};
  if (transfer.path == Path::courier) copy.path = Path::courier;
  const bool sets_words = transfer.path == Path::courier || endpoint_.table().mover().sets_words();
  if (sets_words && bytes.bytes <= LandingFlags::Word::kBytesMax) {
    copy.signal = {pump_.flags().there(flag), LandingFlags::Word::pack(bytes.bytes, transfer.acknowledged)};
  }
  transfer.path = copy.path;
  return endpoint_.moves().start(transfer, TransferState::copying, std::move(copy));
}

void LinkSender::copied(Transfer& transfer, Status status) noexcept {
  transfer.path = transfer.move->path;
  if (status == Status::ok) {
    tell_copied(transfer);
  } else if (transfer.slot != DeviceSlots::kNone) {
    pump_.slots().give_back(std::exchange(transfer.slot, DeviceSlots::kNone));
  }
  endpoint_.carried(transfer, status);
}

void LinkSender::tell_copied(Transfer& transfer) noexcept {
  if (transfer.move->signaled) return pump_.flags().was_set();
  LinkMessage message = endpoint_.link_message(Kind::landed, transfer);
  message.flag = transfer.flag;
  if (transfer.slot != DeviceSlots::kNone) {
    message.kind = Kind::stored;
    message.flag = transfer.slot;
  }
  pump_.control(message);
}

void LinkSender::tell_not_sent(Transfer& transfer, Status why) noexcept {
  LinkMessage message = endpoint_.link_message(Kind::failed, transfer);
  message.bytes = transfer.buffer.bytes;
  message.offset = static_cast<std::uint64_t>(why) & LinkMessage::kOffsetMask;
  message.flag = transfer.flag;
  pump_.control(message);
}

Status LinkSender::send_elsewhere(Transfer& transfer) noexcept {
  const Status status = endpoint_.network().send(transfer);
  // Announced only now: a message that the network refused must not be waited for.
  if (status == Status::ok || status == Status::in_progress) {
    pump_.control(endpoint_.link_message(Kind::elsewhere, transfer));
  }
  return status;
}

void LinkSender::on_landing(const LinkMessage& landing) noexcept {
  pump_.heard();
  Transfer* transfer = find_number(asking_, landing.number);
  if (transfer != nullptr && (landing.kind == Kind::declined || !transfer->offered)) {
    end_asking(*transfer);
    if (endpoint_.moves().source_is_gone(*transfer)) return endpoint_.moves().end_without_source(*transfer);
    return endpoint_.carried(*transfer, start(*transfer, landing));
  }
  told_unasked_ = true;  // what was asked for has had its answer, if this is none
  if (endpoint_.sends().has_begun(landing.number))
    return;  // it went without waiting, or was offered and will be answered
  remember(landing);
}

void LinkSender::remember(const Landing& landing) noexcept {
  const auto is_taken = [&] {
    const Landing& place = landings_[landing.number % landings_.size()];
    return is_known(place) && place.number != landing.number;
  };
  while ((landings_.empty() || is_taken()) && grow_landings()) {
  }
  if (landings_.empty()) return;
  Landing& place = landings_[landing.number % landings_.size()];
  if (is_known(place) && landing.number >= place.number) return;
  landings_known_ += is_known(place) ? 0 : 1;
  place = landing;
}

/// False: there are as many as there may be, or there is no memory for more.
bool LinkSender::grow_landings() noexcept {
  constexpr std::size_t kFirst = 8;
  if (landings_.size() >= tuned::kAnnouncedMax) return false;
  try {
    std::vector<Landing> grown(landings_.empty() ? kFirst : 2 * landings_.size());
    for (const Landing& landing : landings_) {
      if (is_known(landing)) grown[landing.number % grown.size()] = landing;
    }
    landings_ = std::move(grown);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void LinkSender::on_taken(const LinkMessage& message) noexcept {
  Transfer* transfer = find_number(asking_, message.number);
  if (transfer == nullptr) return;  // given up meanwhile
  if (!transfer->offered) [[unlikely]] {
    return endpoint_.engine().peers().distrust(endpoint_.peer(),
                                               "word of having taken a channel's message that was not offered");
  }
  end_asking(*transfer);
  transfer->path = Path::shm;
  endpoint_.carried(*transfer, Status::ok);
}

void LinkSender::on_retract(const LinkMessage& message) noexcept {
  const bool known = take_landing(message.number).has_value();
  if (!known && endpoint_.sends().has_begun(message.number)) return;  // too late: the message is on its way
  LinkMessage answer = message;
  answer.kind = Kind::retracted;
  answer.from_side = static_cast<std::uint8_t>(endpoint_.side());
  pump_.control(answer);
}

void LinkSender::let_go(Transfer& transfer) noexcept {
  switch (transfer.state()) {
    case TransferState::asking:
      if (transfer.offered) return pump_.control(endpoint_.link_message(Kind::abandoned, transfer));
      end_asking(transfer);
      return endpoint_.sends().fail(transfer, Status::canceled);
    case TransferState::network: return pump_.control(endpoint_.link_message(Kind::abandoned, transfer));
    case TransferState::eager: return keep_copy(transfer);
    default: return;  // goes on by itself
  }
}

/// A small message that waits for room.
void LinkSender::keep_copy(Transfer& transfer) noexcept {
  const Buffer& bytes = transfer.here;
  if (endpoint_.moves().lease_stage(transfer, bytes.bytes) != Status::ok) {
    pump_.withdraw(transfer);
    return endpoint_.sends().fail(transfer, Status::canceled);
  }
  const Buffer copy = transfer.staged(bytes.bytes);
  copy_out(transfer, 0, {static_cast<std::byte*>(copy.data), bytes.bytes});
  transfer.here = copy;
}

bool LinkSender::withdraw(Transfer& transfer) noexcept {
  switch (transfer.state()) {
    case TransferState::asking: end_asking(transfer); break;
    case TransferState::eager:
    case TransferState::pieces: pump_.withdraw(transfer); break;
    default: return false;
  }
  transfer.become(TransferState::carried);
  return true;
}

}  // namespace brant
