#include "models/mpi/transport.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "models/mpi/checks/checks.h"
#include "models/mpi/process.h"

namespace brant::mpi {

Transport::Transport(Engine& engine, Process& process)
    : engine_(engine),
      process_(process),
      messenger_(engine.service<am::Messenger>()),
      lanes_(engine.service<lane::DataLanes>()),
      early_data_(lanes_, engine.job().size),
      landings_(lanes_, messenger_, early_data_),
      early_units_(engine.job().size),
      waiting_(engine.job().size),
      lost_(static_cast<std::size_t>(engine.job().size)) {
  messenger_.claim(am::ServiceId::mpi, &Transport::on_message, &Transport::on_trouble, this, &Transport::take_in_place);
}

Transport::~Transport() {
  messenger_.claim(am::ServiceId::mpi, nullptr, nullptr, nullptr);
  engine_.pollers().detach(*this);
  waiting_.for_each([this](Rank, am::MessageList& list) {
    while (am::Message* message = list.pop_front()) messenger_.release(*message);
  });
}

// Sending
// -------------------------------------------------------------------------------------------------------------------

namespace {

/// Of a message that a receive is looked up for.
Envelope envelope_of(const SendRequest& request, RankId to, Word word) noexcept {
  return {.word = word,
          .target = Process::slot_of(to),
          .context = request.context,
          .source = request.communicator->rank,
          .tag = request.tag};
}

/// It need not wait for its receive.
bool is_eager(const TypedBuffer& source) noexcept {
  return source.bytes() == 0 || (source.bytes() <= Transport::kEagerMax && host_accessible(source.kind()));
}

}  // namespace

bool Transport::send_small(const Communicator& communicator, const TypedBuffer& source, int destination,
                           int tag) noexcept {
  if (checks() != nullptr || !is_eager(source)) return false;
  const RankId to = communicator.id_of(destination);
  const bool may_be_lost = losses_ != 0 || !ended_here_.empty() || process_.has_connections();
  if (may_be_lost && is_lost(to)) return false;
  const Envelope envelope{.word = Word::eager,
                          .target = Process::slot_of(to),
                          .context = communicator.context,
                          .source = communicator.rank,
                          .tag = tag};
  return send_at_once(Process::process_of(to), envelope, source);
}

void Transport::send(SendRequest& request) noexcept {
  const RankId to = request.communicator->id_of(request.destination);
  if (is_lost(to)) return request.end(MPI_ERR_PROC_ABORTED);
  const std::size_t bytes = request.source.bytes();
  if (checks() != nullptr) [[unlikely]] {
    if (const Status status = send_label(request, to); status != Status::ok) return request.end(error_class_of(status));
  }
  if (copy_to_posted(request, to)) return;
  const bool eager = is_eager(request.source);
  const bool synchronous = request.mode == SendMode::synchronous;
  if (!synchronous && eager &&
      send_at_once(Process::process_of(to), envelope_of(request, to, Word::eager), request.source))
    return request.end(MPI_SUCCESS);
  if (!synchronous && !eager && send_accompanied(request, to)) return;
  am::Message* message = messenger_.make(eager ? bytes : sizeof(Announcement));
  if (message == nullptr) return request.end(MPI_ERR_NO_MEM);
  Envelope envelope = envelope_of(request, to, Word::request);
  if (!eager || synchronous) {
    try {
      request.ticket = request.rank.tickets.give(request);
    } catch (const std::bad_alloc&) {
      messenger_.release(*message);
      return request.end(MPI_ERR_NO_MEM);
    }
    envelope.ticket = request.ticket;
  }
  if (eager) {
    envelope.word = synchronous ? Word::eager_synchronous : Word::eager;
    request.source.pack(message->data);
  } else {
    const Announcement announcement{bytes, Process::slot_of(request.rank.id)};
    std::memcpy(message->data, &announcement, sizeof announcement);
  }
  message->set_header(envelope);
  post(Process::process_of(to), *message, &request, eager && !synchronous);
}

namespace {

/// Whom a message belongs to that waits for room. Who tries to send it may use these words meanwhile.
void mark(am::Message& message, SendRequest* request, bool ends_when_sent) noexcept {
  message.scratch[0] = reinterpret_cast<std::uintptr_t>(request);
  message.scratch[1] = ends_when_sent ? 1 : 0;
}

/// The status of what may throw.
template <typename Attempt>
Status status_of(const Attempt& attempt) noexcept {
  try {
    return attempt();
  } catch (const Error& error) {
    return error.status();
  } catch (const CallError&) {
    return Status::not_supported;
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

}  // namespace

/// Within this process, host memory goes from one buffer to the other where the receive is posted. False: it is not, or
/// its memory is of another kind.
bool Transport::copy_to_posted(SendRequest& request, RankId to) noexcept {
  if (Process::process_of(to).value != engine_.job().rank || !request.source.contiguous()) return false;
  if (request.source.bytes() != 0 && !host_accessible(request.source.kind())) return false;
  const MatchKey key{request.context, request.communicator->rank, request.tag};
  RankState& rank = *process_.rank_at(Process::slot_of(to));
  if (!land_in_place(rank, key, {request.source.data(), request.source.bytes()})) return false;
  request.end(MPI_SUCCESS);
  return true;
}

/// Data for a receive that is posted. False: none is, or its memory is of another kind.
bool Transport::land_in_place(RankState& rank, const MatchKey& key, std::span<const std::byte> data) noexcept {
  PostedReceive* const taken = rank.matching.take_receive(key, [&](const PostedReceive& found) {
    return data.empty() || host_accessible(static_cast<const ReceiveRequest&>(found).landing.kind());
  });
  if (taken == nullptr) return false;
  auto& receive = static_cast<ReceiveRequest&>(*taken);
  receive.posted = false;
  const std::size_t room = receive.landing.bytes();
  receive.outcome = {.source = key.source, .tag = key.tag, .error = MPI_SUCCESS, .bytes = std::min(data.size(), room)};
  receive.landing.unpack(data.data(), receive.outcome.bytes);
  receive.outcome.error = data.size() > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
  if (checks() != nullptr) [[unlikely]] {
    if (!checks()->labels.fits(checks()->labels.take(Process::slot_of(rank.id), key), receive))
      receive.outcome.error = MPI_ERR_TYPE;
  }
  receive.end(receive.outcome.error);
  return true;
}

/// To another process of this host, data that lies in one run goes straight into the memory of that process. False: it
/// takes a message of its own.
bool Transport::send_at_once(Rank process, const Envelope& envelope, const TypedBuffer& source) noexcept {
  if (!source.contiguous() || !waiting_[process].empty()) return false;
  return messenger_.send_at_once(process, am::ServiceId::mpi,
                                 {reinterpret_cast<const std::byte*>(&envelope), sizeof envelope},
                                 {source.data(), source.bytes()}) == Status::ok;
}

void Transport::post(Rank to, am::Message& message, SendRequest* request, bool ends_when_sent) noexcept {
  if (to.value == engine_.job().rank) {
    message.peer = to.value;
    message.units = 0;
    if (ends_when_sent) request->end(MPI_SUCCESS);
    return arrive(*process_.rank_at(message.header<Envelope>().target), message);
  }
  am::MessageList& waiting = waiting_[to];
  if (waiting.empty()) {
    const Status status = messenger_.send(to, am::ServiceId::mpi, message);
    if (status == Status::ok) {
      if (ends_when_sent) request->end(MPI_SUCCESS);
      return;
    }
    if (status != Status::limit_reached) {
      messenger_.release(message);
      if (request != nullptr) request->end(error_class_of(status));
      return;
    }
  }
  mark(message, request, ends_when_sent);
  waiting.push_back(message);
  ++waiting_count_;
  engine_.pollers().attach(*this);
}

unsigned Transport::poll() noexcept {
  unsigned events = 0;
  waiting_.for_each([&](Rank to, am::MessageList& list) {
    while (am::Message* message = list.front()) {
      auto* const request = reinterpret_cast<SendRequest*>(message->scratch[0]);
      const bool ends_when_sent = message->scratch[1] != 0;
      list.pop_front();
      const Status status = messenger_.send(to, am::ServiceId::mpi, *message);
      if (status == Status::limit_reached) {
        mark(*message, request, ends_when_sent);
        list.push_front(*message);
        break;
      }
      --waiting_count_;
      ++events;
      if (status != Status::ok) messenger_.release(*message);
      if (request != nullptr && (status != Status::ok || ends_when_sent)) request->end(error_class_of(status));
    }
  });
  if (waiting_count_ == 0) engine_.pollers().detach(*this);
  return events;
}

/// A few words of the protocol, which wait for nothing.
template <typename Body>
Status Transport::say(Rank to, const Envelope& envelope, const Body& body) noexcept {
  am::Message* message = messenger_.make(sizeof body);
  if (message == nullptr) return Status::no_memory;
  std::memcpy(message->data, &body, sizeof body);
  message->set_header(envelope);
  const Status status = messenger_.send(to, am::ServiceId::mpi, *message, am::Flow::urgent);
  if (status != Status::ok) messenger_.release(*message);
  return status;
}

Status Transport::send_label(const SendRequest& request, RankId to) noexcept {
  if (!MessageLabels::label(request.context)) return Status::ok;
  return status_of([&] {
    const MessageLabel label = MessageLabel::of(request.source);
    const Envelope envelope = envelope_of(request, to, Word::label);
    const Rank process = Process::process_of(to);
    if (process.value == engine_.job().rank) {
      checks()->labels.add(envelope.target, envelope.key(), label);
      return Status::ok;
    }
    am::Message* const message = messenger_.make(sizeof label);
    if (message == nullptr) return Status::no_memory;
    std::memcpy(message->data, &label, sizeof label);
    message->set_header(envelope);
    post(process, *message, nullptr, false);
    return Status::ok;
  });
}

/// Where the data lies that is to travel. With gaps, the CPU packs what it reaches; a device packs as it copies.
void Transport::lend_source(SendRequest& request, lane::DataOrigin& origin) {
  const TypedBuffer& source = request.source;
  if (source.contiguous()) {
    origin.buffer = source.run();
    origin.memory = source.memory();
  } else if (host_accessible(source.kind())) {
    request.packed = std::make_unique<std::byte[]>(source.bytes());
    source.pack(request.packed.get());
    origin.buffer = {request.packed.get(), source.bytes(), MemoryKind::host};
  } else {
    request.shape.emplace(source.shape(source.bytes()));
    origin.shape = lanes_.keep(request.shape->shape());
    if (origin.shape == nullptr) throw Error(lanes_.shape_refusal(), "no record for the shape of a message");
    origin.buffer = source.ground(*request.shape);
  }
}

/// Small data of a device need not wait for its receive. False: it has to.
bool Transport::send_accompanied(SendRequest& request, RankId to) noexcept {
  const Rank process = Process::process_of(to);
  if (process.value == engine_.job().rank || host_accessible(request.source.kind())) return false;
  if (request.source.bytes() > EarlyData::kBytesMax) return false;
  if (!waiting_[process].empty() || !early_data_.take_credit(process, request.source.bytes())) return false;
  start_data(request, envelope_of(request, to, Word::accompanied));
  return true;
}

/// The data leaves, with the message that tells its number.
void Transport::start_data(SendRequest& request, Envelope envelope) noexcept {
  const Rank to = Process::process_of(request.communicator->id_of(request.destination));
  lane::DataOrigin* origin = lanes_.take_origin();
  if (origin == nullptr) return request.end(MPI_ERR_NO_MEM);
  const Status status = status_of([&] {
    lend_source(request, *origin);
    origin->free = {&Transport::on_source_free, &request};
    return say(
        to, envelope,
        Consignment{
            .number = lanes_.next_number(to.value), .bytes = request.source.bytes(), .kind = request.source.kind()});
  });
  if (status != Status::ok) {
    origin->free = {};
    lanes_.release_one(*origin, status);
    return request.end(error_class_of(status));
  }
  request.origin = origin;
  lanes_.send(to.value, origin);
}

void Transport::on_source_free(void* self, const OpResult& result) noexcept {
  auto& request = *static_cast<SendRequest*>(self);
  request.origin = nullptr;
  // That it was longer than its landing is the receiver's fault, and its to report.
  request.end(result.status == Status::truncated ? MPI_SUCCESS : error_class_of(result.status));
}

void Transport::forget(SendRequest& request) noexcept {
  if (request.ticket != 0) request.rank.tickets.take_back(std::exchange(request.ticket, 0));
}

// Messages that come
// -------------------------------------------------------------------------------------------------------------------

bool Transport::is_sound(const am::Message& message) const noexcept {
  if (message.wire.header_bytes != sizeof(Envelope)) return false;
  const auto envelope = message.header<Envelope>();
  if (process_.rank_at(envelope.target) == nullptr) return false;
  switch (envelope.word) {
    case Word::eager:
    case Word::eager_synchronous: return envelope.source >= 0 && envelope.tag >= 0;
    case Word::request:
      return envelope.source >= 0 && envelope.tag >= 0 && message.bytes == sizeof(Announcement) &&
             (message.peer != engine_.job().rank || envelope.ticket != 0);
    case Word::clear: return message.bytes == sizeof(Clearance);
    case Word::accompanied:
      return envelope.source >= 0 && envelope.tag >= 0 && message.bytes == sizeof(Consignment) &&
             body_of<Consignment>(message).bytes <= EarlyData::kBytesMax;
    case Word::data: return message.bytes == sizeof(Consignment);
    case Word::credits: return message.bytes == sizeof(EarlyCredit);
    case Word::knock:
    case Word::answered:
    case Word::parting:
    case Word::met: return message.bytes == sizeof(DoorWord);
    case Word::label: return message.bytes == sizeof(MessageLabel);
    case Word::matched: return true;
  }
  return false;
}

void Transport::on_message(void* context, am::Message& message) noexcept {
  auto& self = *static_cast<Transport*>(context);
  if (!self.is_sound(message)) [[unlikely]] {
    self.engine_.peers().distrust(message.peer, "a message of MPI with a damaged header");
    return self.messenger_.release(message);
  }
  const auto envelope = message.header<Envelope>();
  RankState& rank = *self.process_.rank_at(envelope.target);
  message.scratch[0] = 0;  // no data of it was fetched
  if (envelope.word <= Word::request) return self.arrive(rank, message);
  const Rank from{message.peer};
  if (envelope.word == Word::data) {
    const auto consignment = body_of<Consignment>(message);
    auto* receive = dynamic_cast<ReceiveRequest*>(rank.tickets.find(envelope.ticket));
    self.messenger_.release(message);
    if (receive != nullptr) {
      self.forget(*receive);
      return self.landings_.land(*receive, from, consignment);
    }
    const lane::DataMeta meta{.bytes = consignment.bytes, .kind = consignment.kind};
    return self.lanes_.swallow(from.value, consignment.number, &meta, 1);
  }
  if (envelope.word == Word::credits) {
    self.early_data_.give_back(from, body_of<EarlyCredit>(message));
    return self.messenger_.release(message);
  }
  if (envelope.word == Word::label) {
    if (checks() != nullptr) checks()->labels.add(envelope.target, envelope.key(), body_of<MessageLabel>(message));
    return self.messenger_.release(message);
  }
  if (envelope.word >= Word::knock) {
    const auto word = body_of<DoorWord>(message);
    self.messenger_.release(message);
    return self.process_.hear(from, envelope.word, word);
  }
  const Clearance clearance = envelope.word == Word::clear ? body_of<Clearance>(message) : Clearance{};
  self.messenger_.release(message);
  auto* send = dynamic_cast<SendRequest*>(rank.tickets.find(envelope.ticket));
  if (send == nullptr) return;  // it has failed meanwhile
  self.forget(*send);
  if (envelope.word == Word::matched) return send->end(MPI_SUCCESS);
  const RankId target = send->communicator->id_of(send->destination);
  self.start_data(*send, {.word = Word::data, .target = Process::slot_of(target), .ticket = clearance.ticket});
}

/// Eager data that is waited for, and sound as `is_sound` has it.
bool Transport::take_in_place(void* context, const am::WireHeader& header, std::span<const std::byte> data) noexcept {
  const auto& self = *static_cast<Transport*>(context);
  if (header.header_bytes != sizeof(Envelope)) return false;
  Envelope envelope;
  std::memcpy(&envelope, header.user, sizeof envelope);
  if (envelope.word != Word::eager || envelope.source < 0 || envelope.tag < 0) return false;
  RankState* const rank = self.process_.rank_at(envelope.target);
  return rank != nullptr && land_in_place(*rank, envelope.key(), data);
}

void Transport::arrive(RankState& rank, am::Message& message) noexcept {
  PostedReceive* const taken = rank.matching.take_receive(message.header<Envelope>().key());
  if (taken == nullptr) return keep(rank, message);
  auto& request = static_cast<ReceiveRequest&>(*taken);
  request.posted = false;
  if (checks() != nullptr) [[unlikely]]
    checks()->labels.pin(message, Process::slot_of(rank.id), message.header<Envelope>().key());
  receive(request, message);
}

/// Of a sender that sends much before it is received, messages move to memory of this process, so that its window has
/// room for those that are waited for.
void Transport::keep(RankState& rank, am::Message& arrived) noexcept {
  am::Message* message = &arrived;
  std::size_t& units = early_units_[Rank{message->peer}];
  if (message->units != 0 && units + message->units > kEarlyUnitsMax) {
    if (am::Message* copy = messenger_.make(message->bytes); copy != nullptr) {
      if (message->bytes != 0) std::memcpy(copy->data, message->data, message->bytes);
      copy->set_header(message->header<Envelope>());
      copy->peer = message->peer;
      copy->units = 0;
      messenger_.release(*message);
      message = copy;
    }
  }
  units += message->units;
  const bool accompanied = message->header<Envelope>().word == Word::accompanied;
  const bool has_room = !accompanied || early_data_.fetch(*message, body_of<Consignment>(*message)) == Status::ok;
  EarlyMessage* early = has_room ? early_.take() : nullptr;
  if (early != nullptr) {
    early->key = message->header<Envelope>().key();
    early->message = message;
    if (rank.matching.keep(*early)) return;
  }
  end_job(1, fmt::format("brant MPI: rank {} has no memory for another message without a receive ({} wait already)",
                         rank.id.value, rank.matching.kept()));
}

const am::Message* Transport::look_for(RankState& rank, const MatchKey& wanted) noexcept {
  const EarlyMessage* early = rank.matching.find_message(wanted);
  return early != nullptr ? early->message : nullptr;
}

am::Message* Transport::take_out(RankState& rank, const MatchKey& wanted) noexcept {
  EarlyMessage* early = rank.matching.find_message(wanted);
  if (early == nullptr) return nullptr;
  am::Message* message = early->message;
  rank.matching.remove(*early);
  early_.give_back(early);
  early_units_[Rank{message->peer}] -= message->units;
  if (checks() != nullptr) [[unlikely]]
    checks()->labels.pin(*message, Process::slot_of(rank.id), message->header<Envelope>().key());
  return message;
}

// Receiving
// -------------------------------------------------------------------------------------------------------------------

void Transport::receive(ReceiveRequest& request) noexcept {
  const bool anything_came = request.rank.matching.kept() != 0;
  if (am::Message* message = anything_came ? take_out(request.rank, request.wanted) : nullptr; message != nullptr)
    return receive(request, *message);
  if (is_hopeless(*request.communicator, request.source)) return request.end(MPI_ERR_PROC_ABORTED);
  if (!request.rank.matching.post(request)) return request.end(MPI_ERR_NO_MEM);
  request.posted = true;
}

void Transport::receive(ReceiveRequest& request, am::Message& message) noexcept {
  const auto envelope = message.header<Envelope>();
  const std::size_t bytes = data_bytes(message);
  request.outcome.source = envelope.source;
  request.outcome.tag = envelope.tag;
  request.outcome.bytes = std::min(bytes, request.landing.bytes());
  request.outcome.error = bytes > request.landing.bytes() ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
  if (checks() != nullptr && !checks()->labels.fits(checks()->labels.take_pinned(message), request)) [[unlikely]]
    request.outcome.error = MPI_ERR_TYPE;
  if (envelope.word == Word::request) return land_announced(request, message);
  if (envelope.word == Word::accompanied) return land_accompanied(request, message);
  if (envelope.word == Word::eager_synchronous) {
    const RankId sender = request.communicator->id_of(envelope.source);
    const Envelope answer{.word = Word::matched, .target = Process::slot_of(sender), .ticket = envelope.ticket};
    const Status status = say(Rank{message.peer}, answer, std::uint64_t{0});
    if (status == Status::no_memory) request.outcome.error = MPI_ERR_NO_MEM;
  }
  landings_.land(request, message);
}

void Transport::land_announced(ReceiveRequest& request, am::Message& message) noexcept {
  const auto envelope = message.header<Envelope>();
  const auto announcement = body_of<Announcement>(message);
  const Rank from{message.peer};
  messenger_.release(message);
  if (from.value == engine_.job().rank) {
    auto* sender = dynamic_cast<SendRequest*>(process_.rank_at(announcement.from)->tickets.find(envelope.ticket));
    if (sender == nullptr) return request.end(MPI_ERR_INTERN);
    forget(*sender);
    return copy_within(request, *sender);
  }
  try {
    request.ticket = request.rank.tickets.give(request);
  } catch (const std::bad_alloc&) {
    return request.end(MPI_ERR_NO_MEM);
  }
  const Envelope answer{
      .word = Word::clear, .target = static_cast<std::uint16_t>(announcement.from), .ticket = envelope.ticket};
  const Status status = say(from, answer, Clearance{request.ticket});
  if (status == Status::ok) return;
  forget(request);
  request.end(error_class_of(status));
}

/// Its data is on its way, or was fetched before there was a receive.
void Transport::land_accompanied(ReceiveRequest& request, am::Message& message) noexcept {
  const auto consignment = body_of<Consignment>(message);
  const Rank from{message.peer};
  lane::DataPart* fetched = EarlyData::part_of(message);
  messenger_.release(message);
  // A sender that is not told announces its data: that is slower, and no fault.
  if (early_data_.count_taken(from, consignment.bytes))
    static_cast<void>(say(from, {.word = Word::credits}, early_data_.take_out_taken(from)));
  fetched != nullptr ? landings_.land(request, *fetched) : landings_.land(request, from, consignment);
}

/// Both ends are in this process.
void Transport::copy_within(ReceiveRequest& request, SendRequest& sender) noexcept {
  lane::DataOrigin* origin = lanes_.take_origin();
  const Status status = status_of([&] {
    if (origin == nullptr) return Status::no_memory;
    lend_source(sender, *origin);
    return Status::ok;
  });
  if (status != Status::ok) {
    if (origin != nullptr) lanes_.release_one(*origin, status);
    sender.end(error_class_of(status));
    return request.end(error_class_of(status));
  }
  origin->free = {&Transport::on_source_free, &sender};
  sender.origin = origin;
  landings_.copy(request, origin);
}

void Transport::forget(ReceiveRequest& request) noexcept {
  if (request.posted) request.rank.matching.withdraw(request);
  request.posted = false;
  if (request.ticket != 0) request.rank.tickets.take_back(std::exchange(request.ticket, 0));
}

Status Transport::tell(Rank to, Word word, const DoorWord& body) noexcept { return say(to, {.word = word}, body); }

}  // namespace brant::mpi
