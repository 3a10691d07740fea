#include "ops/channel/stream_lane.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

#include "base/log.h"
#include "core/link_services.h"
#include "ops/channel/endpoint.h"

namespace brant {
namespace {

/// Blocks of its own: a shared one could not be mapped while somebody (UCX's cache, say) has a piece mapped that was
/// freed (docs/gotchas/shared-memory-and-copies.md).
std::size_t mailbox_bytes(const port::Device& device) noexcept {
  const std::size_t block = device.capabilities().export_block_bytes;
  return (sizeof(StreamMailbox) + block - 1) / block * block;
}

std::uint64_t word(Status status) noexcept { return static_cast<std::uint64_t>(status); }

}  // namespace

StreamLane::StreamLane(ChannelEndpoint& endpoint, Engine& engine, Peer& peer, LinkPump& pump) noexcept
    : endpoint_(endpoint), engine_(engine), peer_(peer), pump_(pump), events_(engine.device()) {
  lost = [](PeerOp& self) noexcept { static_cast<StreamLane&>(self).abandon(Status::peer_lost); };
  opening_.cancel = [](OpOwner&) noexcept {};  // ends with the other end's answer, or its death
  for (Notice& notice : notices_) notice.cancel = [](OpOwner&) noexcept {};  // a stream cannot take back what it got
  peer_.add_outstanding(*this);
}

StreamLane::~StreamLane() {
  abandon(Status::canceled);
  peer_.remove_outstanding(*this);
  engine_.pollers().detach(*this);
  while (Notice* notice = noticed_.pop_front()) events_.give_back(notice->event);
  port::Device& device = engine_.device();
  if (stream_ != nullptr) device.streams()->destroy_stream(stream_);
  for (void* memory : {static_cast<void*>(ends_.own), static_cast<void*>(ends_.control)}) {
    if (memory != nullptr) static_cast<void>(device.free(memory));
  }
}

// The two ends meet
// -------------------------------------------------------------------------------------------------------------------

Status StreamLane::open(const StreamKernels& kernels, std::chrono::nanoseconds patience, Op& op) noexcept {
  kernels_ = &kernels;
  const Status made = make_memory(patience);
  if (made != Status::ok) {
    log::error("channel {} to rank {}: no memory for transfers triggered by streams ({} bytes of device memory): {}",
               endpoint_.id().value, peer_.rank.value, mailbox_bytes(engine_.device()), status_text(made));
    refuse_peer();
    abandon(made);
    return made;
  }
  opening_.own(engine_.completions(), op);
  tell_mailbox();
  return Status::in_progress;
}

Status StreamLane::make_memory(std::chrono::nanoseconds patience) noexcept {
  port::Device& device = engine_.device();
  const Result<void*> mailbox = device.allocate(engine_.peers().mutual_kind(peer_), mailbox_bytes(device));
  if (!mailbox) return mailbox.status();
  ends_.own = static_cast<StreamMailbox*>(*mailbox);
  const Result<void*> control = device.allocate(MemoryKind::pinned, sizeof(StreamControl));
  if (!control) return control.status();
  ends_.control = new (*control) StreamControl{};
  ends_.control->patience_ns = static_cast<std::uint64_t>(patience.count());
  const Result<port::Stream*> stream = device.streams()->create_stream(port::StreamPriority::high);
  if (!stream) return stream.status();
  stream_ = *stream;
  Status status = device.streams()->fill(ends_.own, std::byte{0}, sizeof(StreamMailbox), stream_);
  if (status == Status::ok) status = device.streams()->synchronize(stream_);
  if (status != Status::ok) return status;
  if (const Result<port::PointerInfo> info = device.query(ends_.own)) pump_.mappings().exports.make_way(*info);
  const Result<port::ExportRecord> record = device.export_allocation(ends_.own);
  if (record) mailbox_ = *record;
  return record.status();
}

void StreamLane::tell_mailbox() noexcept {
  const LinkMessage message = endpoint_.link_message(LinkMessage::Kind::stream_mailbox);
  told_ = pump_.link().post(link_service::kChannel, std::as_bytes(std::span(&message, 1)),
                            std::as_bytes(std::span(&mailbox_, 1)));
  if (!told_) engine_.pollers().attach(*this);  // no room now
}

bool StreamLane::can_be_mailbox(const port::ExportRecord& record, MemoryKind kind) noexcept {
  return record.kind == kind && record.offset <= record.bytes && record.bytes - record.offset >= sizeof(StreamMailbox);
}

void StreamLane::connect(const port::ExportRecord& mailbox) noexcept {
  theirs_ = mailbox;
  map_mailbox();
}

void StreamLane::map_mailbox() noexcept {
  // Nobody else uses it, and its end is that of this channel's end.
  Result<MappedMemory> mapped = pump_.mappings().imports.open(*theirs_, sizeof(StreamMailbox), 0);
  if (mapped.status() == Status::in_progress) return engine_.pollers().attach(*this);
  theirs_.reset();
  if (mapped) {
    ends_.peer = reinterpret_cast<StreamMailbox*>(mapped->address);
    mapped_ = std::move(mapped->lease);
    note_kernels(true);
    engine_.completions().finish(opening_, {Status::ok, 0});
    return;
  }
  log::error("channel {}: the device memory of rank {} cannot be mapped for transfers triggered by streams: {}",
             endpoint_.id().value, peer_.rank.value, status_text(mapped.status()));
  refuse_peer();
  abandon(Status::not_supported);
}

void StreamLane::refuse_peer() noexcept { pump_.control(endpoint_.link_message(LinkMessage::Kind::stream_refused)); }

/// They wait for those of the other end, whose CPU launches them.
void StreamLane::note_kernels(bool may_run) noexcept {
  if (std::exchange(kernels_may_run_, may_run) != may_run) engine_.deferrals().note_waiting_kernels(may_run ? +1 : -1);
}

void StreamLane::give_up(Status why) noexcept {
  theirs_.reset();
  note_kernels(false);
  if (ends_.control != nullptr) {
    std::atomic_ref<std::uint64_t>(ends_.control->abort).store(word(why), std::memory_order_release);
  }
  engine_.completions().finish(opening_, {why, 0});
}

void StreamLane::abandon(Status why) noexcept {
  if (fault_ == Status::ok) fault_ = why;
  give_up(fault_);
}

void StreamLane::close() noexcept {
  if (fault_ == Status::ok) refuse_peer();
  abandon(Status::canceled);
}

Status StreamLane::state() const noexcept {
  if (fault_ != Status::ok) return fault_;
  if (!connected()) return Status::invalid_argument;
  return static_cast<Status>(std::atomic_ref<std::uint64_t>(ends_.control->fault).load(std::memory_order_acquire));
}

// Transfers
// -------------------------------------------------------------------------------------------------------------------

Status StreamLane::send(ConstBuffer source, const OnStream& on) noexcept {
  Status status = engine_.memory_kinds().resolve(source.data, source.bytes, source.kind);
  const bool reached = source.kind == engine_.peers().mutual_kind(peer_) || source.kind == MemoryKind::pinned;
  if (status == Status::ok && !reached && source.bytes != 0) status = Status::wrong_kind;
  if (status == Status::ok && source.bytes > stream_steps::StreamArrival::kBytesMax) status = Status::limit_reached;
  if (status != Status::ok) return status;
  const Result<Notice*> notice = take_notice(on);
  if (!notice) return notice.status();
  status =
      kernels_->send(ends_, static_cast<const std::byte*>(source.data), source.bytes, report_of(*notice), on.stream);
  return launched(status, *notice, on);
}

Status StreamLane::recv(Buffer landing, const OnStream& on) noexcept {
  const Result<stream_steps::Receive> receive = describe(landing);
  if (!receive) return receive.status();
  const Result<Notice*> notice = take_notice(on);
  if (!notice) return notice.status();
  return launched(kernels_->receive(ends_, *receive, report_of(*notice), on.stream), *notice, on);
}

Status StreamLane::recv_start(Buffer landing, port::Stream* stream) noexcept {
  const Result<stream_steps::Receive> receive = describe(landing);
  return receive ? kernels_->start(ends_, *receive, stream) : receive.status();
}

Status StreamLane::recv_finish(const OnStream& on) noexcept {
  const Result<Notice*> notice = take_notice(on);
  if (!notice) return notice.status();
  return launched(kernels_->finish(ends_, report_of(*notice), on.stream), *notice, on);
}

Result<stream_steps::Receive> StreamLane::describe(Buffer landing) noexcept {
  const Status status = engine_.memory_kinds().resolve(landing.data, landing.bytes, landing.kind);
  if (status != Status::ok) return status;
  if (landing.kind != engine_.peers().mutual_kind(peer_)) return Status::wrong_kind;
  LinkMessage place = endpoint_.link_message(LinkMessage::Kind::stream_base);
  if (const Status mapped = pump_.describe(landing.data, place); mapped != Status::ok) return mapped;
  const Result<std::uint64_t> base = base_of(place.buffer_id, landing.data);
  if (!base) return base.status();
  return stream_steps::Receive{static_cast<std::byte*>(landing.data), landing.bytes, *base, place.offset};
}

/// The number of an allocation, told to the other end on first use.
Result<std::uint64_t> StreamLane::base_of(std::uint64_t buffer_id, const void* place) noexcept {
  const auto known =
      std::find_if(bases_.begin(), bases_.end(), [&](const Base& base) { return base.buffer_id == buffer_id; });
  if (known != bases_.end()) return static_cast<std::uint64_t>(known - bases_.begin());
  if (bases_.size() == StreamMailbox::kBases) {
    log::error("channel {} to rank {}: receives on streams land in more than {} allocations: use fewer, larger ones",
               endpoint_.id().value, peer_.rank.value, StreamMailbox::kBases);
    return Status::limit_reached;
  }
  try {
    bases_.push_back({buffer_id, place});
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  LinkMessage message = endpoint_.link_message(LinkMessage::Kind::stream_base);
  message.number = bases_.size() - 1;
  message.buffer_id = buffer_id;
  pump_.control(message);
  return message.number;
}

void StreamLane::on_base(const LinkMessage& message) noexcept {
  if (message.number >= StreamMailbox::kBases) [[unlikely]]
    return engine_.peers().distrust(peer_, "the number of an allocation for streams beyond what there may be");
  if (ends_.control == nullptr) return;
  MappedMemory mapped = pump_.mappings().imports.take(message.buffer_id, 0, 0, Reach::device);
  mapped_bases_[message.number] = std::move(mapped.lease);
  void* base = mapped.address;
  if (base == nullptr) {  // freed by now, perhaps: small messages do without
    LinkMessage answer = endpoint_.link_message(LinkMessage::Kind::stream_unmapped);
    answer.number = message.number;
    pump_.control(answer);
    base = reinterpret_cast<void*>(StreamMailbox::kUnmapped);
  }
  std::uint64_t* place = &ends_.own->bases[message.number];
  const Status status = engine_.device().streams()->write_value(place, reinterpret_cast<std::uint64_t>(base), stream_);
  if (status != Status::ok) abandon(status);
}

void StreamLane::on_unmapped(const LinkMessage& message) noexcept {
  if (message.number >= bases_.size()) return;
  const Base& base = bases_[message.number];
  const Result<port::PointerInfo> now = engine_.device().query(base.place);
  if (!now || now->buffer_id != base.buffer_id) return;  // freed: nobody waits for it
  log::error(
      "channel {}: rank {} cannot map an allocation of {} bytes that receives on streams land in: allocate 2 MB or "
      "more, of which the driver makes a block of its own",
      endpoint_.id().value, peer_.rank.value, now->bytes);
  refuse_peer();
  abandon(Status::not_supported);
}

// Who waits for them
// -------------------------------------------------------------------------------------------------------------------

/// Null: nobody waits.
Result<StreamLane::Notice*> StreamLane::take_notice(const OnStream& on) noexcept {
  if (on.op == nullptr) return nullptr;
  const auto free = std::find_if(notices_.begin(), notices_.end(), [](const Notice& notice) { return !notice.used; });
  if (free == notices_.end()) return Status::limit_reached;
  const Result<port::Event*> event = events_.take();
  if (!event) return event.status();
  free->event = *event;
  free->used = true;
  return &*free;
}

StreamControl::Report* StreamLane::report_of(const Notice* notice) noexcept {
  return notice == nullptr ? nullptr : &ends_.control->reports[notice - notices_.data()];
}

Status StreamLane::launched(Status status, Notice* notice, const OnStream& on) noexcept {
  if (notice == nullptr) return status;
  if (status == Status::ok) status = engine_.device().streams()->record(notice->event, on.stream);
  if (status != Status::ok) {
    events_.give_back(notice->event);
    notice->used = false;
    return status;
  }
  notice->own(engine_.completions(), *on.op);
  noticed_.push_back(*notice);
  engine_.pollers().attach(*this);
  return Status::in_progress;
}

unsigned StreamLane::poll() noexcept {
  if (!told_) tell_mailbox();
  if (theirs_) map_mailbox();
  unsigned ended = 0;
  for (Notice* notice = noticed_.front(); notice != nullptr;) {
    Notice* following = noticed_.next(*notice);
    Status status = engine_.device().streams()->poll(notice->event);
    if (status != Status::in_progress) {
      const StreamControl::Report report = *report_of(notice);
      if (status == Status::ok) status = static_cast<Status>(report.status);
      end(*notice, {status, report.bytes});
      ++ended;
    }
    notice = following;
  }
  if (idle()) engine_.pollers().detach(*this);
  return ended;
}

void StreamLane::end(Notice& notice, OpResult result) noexcept {
  noticed_.remove(notice);
  events_.give_back(notice.event);
  notice.used = false;
  engine_.completions().finish(notice, result);
}

}  // namespace brant
