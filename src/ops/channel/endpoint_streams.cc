// An endpoint's transfers that streams trigger.
#include <cstring>
#include <new>

#include "base/log.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/table.h"

namespace brant {

Status ChannelEndpoint::prepare_streams(std::chrono::nanoseconds patience, Op& op) noexcept {
  op.result = {Status::ok, 0};
  if (refused_ != Status::ok) return refused_;
  if (peer_.lost) return Status::peer_lost;
  if (!linked_ || mutual_kind_ == MemoryKind::detect || (forced_ != Path::automatic && forced_ != Path::kernel)) {
    log::error("channel {} to rank {}: transfers cannot be triggered by streams: {}. Use transfers of the host there",
               id_.value, peer_.rank.value,
               !linked_ ? "the two ends share no memory (another host, this process, or path ucx)"
               : mutual_kind_ == MemoryKind::detect ? "the two ends cannot map each other's device memory"
                                                    : "the channel is forced to another path");
    return Status::not_supported;
  }
  const Result<const StreamKernels*> kernels = table_.stream_kernels();
  if (!kernels) return kernels.status();
  if (stream_lane_ && stream_lane_->state() == Status::ok) return Status::ok;
  try {
    if (stream_lane_) table_.retire(std::move(stream_lane_));
    stream_lane_ = std::make_unique<StreamLane>(*this, engine(), peer_, table_.pump(peer_));
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  const Status status = stream_lane_->open(**kernels, patience, op);
  if (status != Status::in_progress) return status;
  if (streams_refused_) stream_lane_->give_up(Status::not_supported);
  if (stream_mailbox_) stream_lane_->connect(*stream_mailbox_);
  streams_refused_ = false;
  stream_mailbox_.reset();
  return status;
}

Result<StreamLane*> ChannelEndpoint::stream_lane() noexcept {
  if (refused_ != Status::ok) return refused_;
  if (!stream_lane_ || !stream_lane_->connected()) {
    log::error("channel {} to rank {}: a transfer on a stream before `prepare_streams` has ended", id_.value,
               peer_.rank.value);
    return Status::invalid_argument;
  }
  if (const Status status = stream_lane_->state(); status != Status::ok) return status;
  return stream_lane_.get();
}

void ChannelEndpoint::count_stream_send(std::size_t bytes) noexcept {
  ++counts_.sent;
  PathTally& path = engine().counters().path(Path::kernel);
  path.sends.add();
  path.bytes_sent.add(bytes);
}

void ChannelEndpoint::on_stream_record(const LinkMessage& message, std::span<const std::byte> payload) noexcept {
  const bool waits = stream_lane_ && !stream_lane_->connected() && stream_lane_->opening();
  switch (message.kind) {
    case LinkMessage::Kind::stream_mailbox: {
      port::ExportRecord record;
      std::memcpy(static_cast<void*>(&record), payload.data(), sizeof(record));
      if (!StreamLane::can_be_mailbox(record, mutual_kind_)) [[unlikely]]
        return engine().distrust(peer_, "how to map a channel's mailbox, which is too small or of another memory");
      if (waits) {
        stream_lane_->connect(record);
      } else {
        stream_mailbox_ = record;  // this end is prepared later
        streams_refused_ = false;
      }
      return;
    }
    case LinkMessage::Kind::stream_base:
      if (stream_lane_) stream_lane_->on_base(message);
      return;
    case LinkMessage::Kind::stream_unmapped:
      if (stream_lane_) stream_lane_->on_unmapped(message);
      return;
    default:
      stream_mailbox_.reset();
      if (stream_lane_ && (waits || stream_lane_->connected())) {
        stream_lane_->give_up(waits ? Status::not_supported : Status::canceled);
      } else {
        streams_refused_ = true;
      }
      return;
  }
}

}  // namespace brant
