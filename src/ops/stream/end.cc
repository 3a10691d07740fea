#include "ops/stream/end.h"

#include <new>
#include <utility>

#include "base/log.h"
#include "ops/stream/table.h"

namespace brant {

StreamEnd::StreamEnd(StreamTable& table, Peer& peer, ChannelId id, unsigned side, std::uint64_t opening,
                     const StreamChannelOptions& options) noexcept
    : table_(table),
      engine_(table.engine()),
      peer_(peer),
      id_(id),
      side_(side),
      opening_(opening),
      patience_(options.patience),
      waiting_(*this),
      memory_(engine_.device()),
      meeting_(*this),
      bases_(*this),
      notices_(engine_) {
  lost = [](PeerOp& self) noexcept {
    auto& end = static_cast<StreamEnd&>(self);
    end.abandon(Status::peer_lost);
    end.table_.look_at_closed();
  };
  peer_.add_outstanding(*this);
}

StreamEnd::~StreamEnd() {
  abandon(Status::canceled);
  peer_.remove_outstanding(*this);
  engine_.pollers().detach(*this);
}

// The two ends meet
// -------------------------------------------------------------------------------------------------------------------

/// Why the two ends cannot meet; null: they can.
const char* StreamEnd::obstacle() const noexcept {
  const Path forced = engine_.options().path;
  if (forced != Path::automatic && forced != Path::kernel) return "BRANT_PATH forces another path";
  if (peer_.same_process) return "both ends are in this process";
  if (peer_.joined) return "the other end is in a process that has joined";
  if (peer_.link == nullptr) return "the two processes share no memory (another host)";
  if (engine_.peers().mutual_kind(peer_) == MemoryKind::detect) return "the two cannot map each other's device memory";
  return nullptr;
}

Status StreamEnd::prepare(Op& op) noexcept {
  if (fault_ != Status::ok) return fault_;
  if (meeting_.met()) return state();
  if (waits()) {
    log::error("stream channel {} to rank {}: `prepare` before an earlier one has ended", id_.value, peer_.rank.value);
    return Status::invalid_argument;
  }
  if (!memory_.made()) {
    if (const Status begun = begin(); begun != Status::ok) abandon(begun);
    if (const StreamOffer early = table_.take_early(*this); early.opening != 0) on_offer(early);
    if (fault_ != Status::ok) return fault_;
  }
  return waiting_.start(op, patience_);
}

Status StreamEnd::begin() noexcept {
  if (const char* why = obstacle()) {
    log::error("stream channel {} to rank {}: {}. Use a Channel there, whose transfers the host starts", id_.value,
               peer_.rank.value, why);
    return Status::not_supported;
  }
  if (table_.closed_ends() >= StreamTable::kClosedMax) {
    log::error(
        "stream channel {} to rank {}: {} closed stream channels of this process still hold device memory, which is "
        "the most there may be: their other ends have not been closed, or were never opened",
        id_.value, peer_.rank.value, table_.closed_ends());
    return Status::limit_reached;
  }
  const Result<const StreamKernels*> kernels = table_.kernels();
  if (!kernels) {
    log::error("stream channel {} to rank {}: the device '{}' cannot run its kernels: {}", id_.value, peer_.rank.value,
               engine_.device().capabilities().name, status_text(kernels.status()));
    return kernels.status();
  }
  kernels_ = *kernels;
  try {
    mappings_ = &table_.mappings(peer_);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  Status status = memory_.make(engine_.peers().mutual_kind(peer_), patience_);
  if (status == Status::ok) status = meeting_.begin();
  if (status != Status::ok) {
    log::error("stream channel {} to rank {}: no memory for its mailbox ({} bytes of {} memory, to be shared): {}",
               id_.value, peer_.rank.value, memory_.mailbox_bytes(),
               memory_kind_name(engine_.peers().mutual_kind(peer_)), status_text(status));
  }
  return status;
}

void StreamEnd::on_met() noexcept {
  note_kernels(true);
  waiting_.stop(Status::ok);
}

void StreamEnd::on_offer(const StreamOffer& offer) noexcept {
  if (fault_ == Status::ok) return meeting_.on_offer(offer);
  post(message(StreamMessage::Kind::refused, offer.opening));
  post(message(StreamMessage::Kind::released, offer.opening));
}

void StreamEnd::on_message(const StreamMessage& message) noexcept {
  using Kind = StreamMessage::Kind;
  if (message.kind == Kind::closed) {
    other_closed_ = meeting_.on_closed(message.opening) || other_closed_;
    if (other_closed_) give_up(Status::canceled);
    return;
  }
  const bool of_another = message.meets != opening_ || fault_ != Status::ok;
  if (of_another) return;
  if (message.kind == Kind::ready) return meeting_.on_ready(message.opening);
  if (message.kind == Kind::refused && !meeting_.met()) return abandon(Status::not_supported);
  if (!meeting_.met() || meeting_.other() != message.opening) return;
  switch (message.kind) {
    case Kind::base: return bases_.on_base(message);
    case Kind::unmapped: return bases_.on_unmapped(message.number);
    default: other_closed_ = true; return give_up(Status::canceled);
  }
}

StreamMessage StreamEnd::message(StreamMessage::Kind kind, std::uint64_t meets) const noexcept {
  StreamMessage message;
  message.kind = kind;
  message.from_side = static_cast<std::uint8_t>(side_);
  message.channel = id_.value;
  message.opening = opening_;
  message.meets = meets;
  return message;
}

void StreamEnd::post(const StreamMessage& message) noexcept { table_.post(peer_, message); }

// And part
// -------------------------------------------------------------------------------------------------------------------

/// They wait for those of the other end, whose CPU launches them.
void StreamEnd::note_kernels(bool may_run) noexcept {
  if (std::exchange(kernels_may_run_, may_run) != may_run) engine_.deferrals().note_waiting_kernels(may_run ? +1 : -1);
}

void StreamEnd::give_up(Status why) noexcept {
  note_kernels(false);
  memory_.abort(why);
}

void StreamEnd::abandon(Status why) noexcept {
  if (fault_ == Status::ok) fault_ = why;
  meeting_.give_up();
  bases_.give_up();
  give_up(fault_);
  waiting_.stop(fault_);
}

void StreamEnd::fail(Status why) noexcept {
  post(message(StreamMessage::Kind::refused, meeting_.other()));
  abandon(why);
}

void StreamEnd::close() noexcept {
  closed_ = true;
  meeting_.close();
  abandon(Status::canceled);
}

void StreamEnd::let_go() noexcept {
  bases_.let_go();
  meeting_.let_go();
}

Status StreamEnd::state() const noexcept {
  if (fault_ != Status::ok) return fault_;
  return meeting_.met() ? memory_.fault() : Status::in_progress;
}

// Transfers
// -------------------------------------------------------------------------------------------------------------------

Status StreamEnd::ready() const noexcept {
  const Status status = state();
  if (status != Status::in_progress) return status;
  log::error("stream channel {} to rank {}: a transfer before `prepare` has ended", id_.value, peer_.rank.value);
  return Status::invalid_argument;
}

template <typename Launch>
Status StreamEnd::queue(const OnStream& on, Launch&& launch) noexcept {
  const Result<StreamNotices::Notice*> notice = notices_.take(on);
  if (!notice) return notice.status();
  const Status launched = launch(notices_.report_of(*notice, *memory_.control()));
  const Status status = notices_.launched(launched, *notice, on);
  if (!quiet()) poll_later();
  return status;
}

Status StreamEnd::send(ConstBuffer source, const OnStream& on) noexcept {
  if (other_closed_) return Status::canceled;
  Status status = engine_.memory_kinds().resolve(source.data, source.bytes, source.kind);
  const bool reached = source.kind == engine_.peers().mutual_kind(peer_) || source.kind == MemoryKind::pinned;
  if (status == Status::ok && !reached && source.bytes != 0) status = Status::wrong_kind;
  if (status == Status::ok && source.bytes > stream_steps::StreamArrival::kBytesMax) status = Status::limit_reached;
  if (status != Status::ok) return status;
  status = queue(on, [&](StreamControl::Report* report) noexcept {
    return kernels_->send(ends(), static_cast<const std::byte*>(source.data), source.bytes, report, on.stream);
  });
  if (status == Status::ok || status == Status::in_progress) {
    PathTally& tally = engine_.counters().path(Path::kernel);
    tally.sends.add();
    tally.bytes_sent.add(source.bytes);
  }
  return status;
}

Status StreamEnd::recv(Buffer landing, const OnStream& on) noexcept {
  const Result<stream_steps::Receive> receive = bases_.describe(landing);
  if (!receive) return receive.status();
  return queue(on, [&](StreamControl::Report* report) noexcept {
    return kernels_->receive(ends(), *receive, report, on.stream);
  });
}

Status StreamEnd::recv_start(Buffer landing, port::Stream* stream) noexcept {
  const Result<stream_steps::Receive> receive = bases_.describe(landing);
  return receive ? kernels_->start(ends(), *receive, stream) : receive.status();
}

Status StreamEnd::recv_finish(const OnStream& on) noexcept {
  return queue(on, [&](StreamControl::Report* report) noexcept { return kernels_->finish(ends(), report, on.stream); });
}

unsigned StreamEnd::poll() noexcept {
  meeting_.poll();
  bases_.poll();
  const unsigned ended = quiet() ? 0 : notices_.poll(*memory_.control());
  if (quiet() && meeting_.idle() && bases_.idle()) engine_.pollers().detach(*this);
  if (closed_ && quiet()) table_.look_at_closed();
  return ended;
}

}  // namespace brant
