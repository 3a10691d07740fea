#include "ops/channel/stream_channel.h"

#include <cstring>
#include <new>
#include <utility>

#include "base/log.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/table.h"

namespace brant {

/// Why streams cannot trigger transfers; null: they can.
const char* StreamChannel::obstacle() const noexcept {
  const Path forced = end_.paths().forced();
  if (!end_.linked()) return "the two ends share no memory (another host, this process, or path ucx)";
  if (end_.mutual_kind() == MemoryKind::detect) return "the two ends cannot map each other's device memory";
  return forced == Path::automatic || forced == Path::kernel ? nullptr : "the channel is forced to another path";
}

Status StreamChannel::prepare(std::chrono::nanoseconds patience, Op& op) noexcept {
  op.result = {Status::ok, 0};
  if (end_.refused() != Status::ok) return end_.refused();
  if (end_.peer().lost) return Status::peer_lost;
  if (const char* why = obstacle()) {
    log::error("channel {} to rank {}: transfers cannot be triggered by streams: {}. Use transfers of the host there",
               end_.id().value, end_.peer().rank.value, why);
    return Status::not_supported;
  }
  const Result<const StreamKernels*> kernels = end_.table().stream_kernels();
  if (!kernels) return kernels.status();
  if (lane_ && lane_->state() == Status::ok) return Status::ok;
  try {
    if (lane_) end_.table().retire(std::move(lane_));
    lane_ = std::make_unique<StreamLane>(end_, end_.engine(), end_.peer(), end_.table().pump(end_.peer()));
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  const Status status = lane_->open(**kernels, patience, op);
  if (status != Status::in_progress) return status;
  if (refused_) lane_->give_up(Status::not_supported);
  if (mailbox_) lane_->connect(*mailbox_);
  refused_ = false;
  mailbox_.reset();
  return status;
}

Result<StreamLane*> StreamChannel::lane() noexcept {
  if (end_.refused() != Status::ok) return end_.refused();
  if (!lane_ || !lane_->connected()) {
    log::error("channel {} to rank {}: a transfer on a stream before `prepare_streams` has ended", end_.id().value,
               end_.peer().rank.value);
    return Status::invalid_argument;
  }
  if (const Status status = lane_->state(); status != Status::ok) return status;
  return lane_.get();
}

void StreamChannel::close() noexcept {
  if (lane_) lane_->close();
}

void StreamChannel::on_record(const LinkMessage& message, std::span<const std::byte> payload) noexcept {
  switch (message.kind) {
    case LinkMessage::Kind::stream_mailbox: {
      port::ExportRecord mailbox;
      std::memcpy(static_cast<void*>(&mailbox), payload.data(), sizeof(mailbox));
      return on_mailbox(mailbox);
    }
    case LinkMessage::Kind::stream_base:
      if (lane_) lane_->on_base(message);
      return;
    case LinkMessage::Kind::stream_unmapped:
      if (lane_) lane_->on_unmapped(message);
      return;
    default: return on_refused();
  }
}

void StreamChannel::on_mailbox(const port::ExportRecord& mailbox) noexcept {
  if (!StreamLane::can_be_mailbox(mailbox, end_.mutual_kind())) [[unlikely]] {
    return end_.engine().peers().distrust(end_.peer(),
                                          "how to map a channel's mailbox, which is too small or of another memory");
  }
  if (waits()) return lane_->connect(mailbox);
  mailbox_ = mailbox;  // this end is prepared later
  refused_ = false;
}

void StreamChannel::on_refused() noexcept {
  const bool waited = waits();
  mailbox_.reset();
  if (lane_ && (waited || lane_->connected())) {
    lane_->give_up(waited ? Status::not_supported : Status::canceled);
  } else {
    refused_ = true;
  }
}

}  // namespace brant
