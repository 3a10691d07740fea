// Calls with data arguments: from the message to the moment when all data is there. Sources and transport are in
// ops/lane.
#include <fmt/format.h>

#include "base/log.h"
#include "brant/chare/device.h"
#include "models/chare/busy_mark.h"
#include "models/chare/core.h"
#include "models/chare/message_check.h"

namespace brant::detail {

namespace {
/// How long an ending program waits for other ranks, which may not come round to it any more.
constexpr std::chrono::seconds kFarewell{5};

template <typename Condition>
void progress_while(Engine& engine, std::chrono::nanoseconds limit, Condition&& holds) noexcept {
  const TimePoint deadline = deadline_after(limit);
  while (holds() && Clock::now() < deadline) engine.progress();
}
}  // namespace

// Sources
// -------------------------------------------------------------------------------------------------------------------

DataSources::DataSources(Core& core, const EntryInfo& entry, DataSource* sources, DataMeta* metas, std::size_t count)
    : core_(core) {
  DataLanes& lanes = core.data_lanes();
  DataOrigin** end = &first_;
  for (std::size_t i = 0; i < count; ++i) {
    ConstBuffer& buffer = sources[i].buffer;
    Status status = lanes.engine().resolve_kind(buffer.data, buffer.bytes, buffer.kind);
    if (status == Status::ok && metas[i].host_only && !host_accessible(buffer.kind)) status = Status::wrong_kind;
    DataOrigin* origin = status == Status::ok ? lanes.take_origin() : nullptr;
    if (origin == nullptr) {
      if (status == Status::ok) status = Status::limit_reached;
      lanes.release(std::exchange(first_, nullptr), Status::canceled);
      throw Error(status, fmt::format("rank {}: data argument {} of a call of {}::{} ({} bytes of {} memory) cannot be "
                                      "sent: {}. {}",
                                      core.rank(), i, entry.owner, entry.name, buffer.bytes,
                                      memory_kind_name(buffer.kind), status_text(status),
                                      metas[i].host_only ? "no_copy takes host memory; use device(...) for other kinds"
                                                         : "Pass a live buffer of the kind that it declares"));
    }
    metas[i].bytes = buffer.bytes;
    metas[i].kind = buffer.kind;
    origin->buffer = buffer;
    origin->free = sources[i].free;
    origin->promise = std::move(sources[i].promise);
    *end = origin;
    end = &origin->following;
  }
}

DataSources::~DataSources() { core_.data_lanes().release(first_, Status::canceled); }

void DataSources::hand_over(Outgoing& outgoing) noexcept {
  auto& message = *static_cast<am::Message*>(outgoing.message);
  auto envelope = message.header<Envelope>();
  envelope.flags |= Envelope::kData;
  message.set_header(envelope);
  first_ = nullptr;
}

// Sending
// -------------------------------------------------------------------------------------------------------------------

/// The message goes first, with the numbers that its data will have: a message that must wait for room leaves no hole
/// in the numbering.
Status Core::send_with_data(std::int32_t to, am::Message& message, const Envelope& envelope, am::Flow flow) {
  const DataHeader before = data_header(message, envelope);
  Status status = Status::ok;
  try {
    set_data_header(message, envelope, {lanes_.next_number(to), DataState::numbers, before.count});
    status = messenger_.send(Rank{to}, am::ServiceId::chare, message, flow);
  } catch (const Error& error) {
    status = error.status();
  }
  if (status == Status::ok) {
    lanes_.send(to, place_as<DataOrigin>(before));
  } else {
    set_data_header(message, envelope, before);
  }
  return status;
}

void Core::share_data(const am::Message& message, const Envelope& envelope) noexcept {
  if (envelope.has_data()) DataLanes::share(place_as<DataOrigin>(data_header(message, envelope)));
}

// Receiving
// -------------------------------------------------------------------------------------------------------------------

DataCall& Core::new_data_call(am::Message& message, std::size_t count) {
  DataCall* call = data_call_pool_.take();
  if (call == nullptr) throw Error(Status::limit_reached, "a million calls wait for their data already");
  call->core = this;
  call->message = &message;
  data_calls_.push_back(*call);
  DataPart** end = &call->parts;
  for (std::size_t i = 0; i < count; ++i) {
    DataPart* part = lanes_.take_part();
    if (part == nullptr) {
      end_data_call(*call);
      throw Error(Status::limit_reached, "a million data arguments are under way already");
    }
    part->owner = call;
    part->ended = &Core::part_ended;
    *end = part;
    end = &part->following;
  }
  return *call;
}

/// Receives into memory of the runtime go on without their call.
void Core::drop_swallowed(DataCall& call) noexcept {
  DataPart** place = &call.parts;
  while (DataPart* part = *place) {
    if (!part->under_way || part->block == nullptr) {
      place = &part->following;
      continue;
    }
    *place = part->following;
    part->ended = nullptr;
  }
}

void Core::end_data_call(DataCall& call) noexcept {
  while (call.parts != nullptr) {
    DataPart* part = std::exchange(call.parts, call.parts->following);
    lanes_.give_back(*part);
  }
  data_calls_.remove(call);
  data_call_pool_.give_back(&call);
}

/// Memory of the runtime for one argument; for data that lies in such memory already, a share of that.
void Core::lend_landing(DataPart& part, const DataMeta& meta, const DataOrigin* origin) {
  const auto bytes = static_cast<std::size_t>(meta.bytes);
  if (origin != nullptr && origin->block != nullptr) {
    part.block = origin->block;
    ++part.block->owners;
  } else {
    const MemoryKind kind = lanes_.landings().landing_kind(meta.kind, meta.host_only);
    const Result<LandingBlock*> block = lanes_.landings().take(kind, bytes);
    if (!block) {
      throw Error(block.status(), fmt::format("{} bytes of {} memory for a data argument: {}. Give the method a post "
                                              "entry, or drop DeviceData earlier",
                                              bytes, memory_kind_name(kind), status_text(block.status())));
    }
    part.block = *block;
  }
  part.landing = part.block->view(bytes);
}

namespace {

std::string describe(const DataMeta& meta, std::size_t index, std::int32_t source) {
  return fmt::format("data argument {} ({} bytes of {} memory from rank {})", index, meta.bytes,
                     memory_kind_name(meta.kind), source);
}

std::string describe(const Buffer& landing) {
  return fmt::format("{} bytes of {} memory", landing.bytes, memory_kind_name(landing.kind));
}

}  // namespace

/// The landing that a post entry named, cut to the size of the data.
Buffer Core::checked_landing(Buffer landing, const DataMeta& meta, std::size_t index, std::int32_t source, bool local) {
  if (landing.bytes < meta.bytes) {
    throw Error(Status::truncated,
                fmt::format("{}: its post entry named a landing of {}: too small. Give at least DeviceMeta::bytes",
                            describe(meta, index, source), describe(landing)));
  }
  // A landing that the channel will look at is checked there.
  Status status = Status::ok;
  if (local || meta.host_only || landing.kind == MemoryKind::detect) {
    status = engine_.resolve_kind(landing.data, landing.bytes, landing.kind);
  }
  if (status == Status::ok && meta.host_only && !host_accessible(landing.kind)) status = Status::wrong_kind;
  if (status != Status::ok) {
    throw Error(status, fmt::format("{}: its post entry named a landing of {}: {}. {}", describe(meta, index, source),
                                    describe(landing), status_text(status),
                                    meta.host_only ? "HostData lands in host memory"
                                                   : "Name a live allocation, and declare the kind that it is"));
  }
  landing.bytes = static_cast<std::size_t>(meta.bytes);
  return landing;
}

/// Asks the post entry and finds memory for the rest. Starts nothing.
DataCall& Core::prepare_landing(ChareBase& chare, const EntryInfo& entry, am::Message& message,
                                const Envelope& envelope) {
  const DataHeader header = data_header(message, envelope);
  const DataMeta* metas = data_metas(message, envelope);
  const std::int32_t source = source_of(message);
  const bool local = header.state == DataState::origins;
  Buffer landings[kDataMax];
  if (entry.post != nullptr) {
    DeviceMeta told[kDataMax];
    for (std::size_t i = 0; i < header.count; ++i) {
      told[i] = {static_cast<std::size_t>(metas[i].bytes), metas[i].kind, Rank{source}, static_cast<int>(i)};
    }
    ReadArchive arguments = arguments_of(chares_, message, envelope);
    const BusyMark mark(chare.busy_);
    entry.post(chare, arguments, told, landings);
  }
  DataCall& call = new_data_call(message, header.count);
  call.chare = &chare;
  try {
    const DataOrigin* origin = local ? place_as<DataOrigin>(header) : nullptr;
    std::size_t i = 0;
    for (DataPart* part = call.parts; part != nullptr; part = part->following, ++i) {
      const bool named = landings[i].data != nullptr || landings[i].bytes != 0;
      if (named) {
        part->landing = checked_landing(landings[i], metas[i], i, source, local);
      } else {
        lend_landing(*part, metas[i], origin);
      }
      if (origin != nullptr) origin = origin->following;
    }
  } catch (...) {
    end_data_call(call);
    throw;
  }
  return call;
}

/// Fills the landings. `call.remaining` says how many are not filled on return.
void Core::fill_landings(DataCall& call, am::Message& message, const Envelope& envelope, DataState filling) noexcept {
  const DataHeader header = data_header(message, envelope);
  const DataMeta* metas = data_metas(message, envelope);
  set_data_header(message, envelope, {place_of(&call), filling, header.count});
  DataOrigin* origin = header.state == DataState::origins ? place_as<DataOrigin>(header) : nullptr;
  std::size_t i = 0;
  for (DataPart* part = call.parts; part != nullptr; part = part->following, ++i) {
    Status status = Status::ok;
    if (origin != nullptr) {
      part->origin = std::exchange(origin, origin->following);  // the message's use of it
      const bool shared = part->block != nullptr && part->block == part->origin->block;
      if (!shared) status = lanes_.copy(*part);
    } else {
      part->from = source_of(message);
      part->number = header.place + i;
      status = lanes_.receive(*part, part->from, part->number);
      const bool came = status == Status::ok || status == Status::in_progress || status == Status::truncated;
      if (!came) lanes_.swallow(part->from, part->number, &metas[i], 1);
    }
    if (status == Status::in_progress) {
      part->under_way = true;
      ++call.remaining;
      note_data_started();
    } else {
      settle(*part, status);
    }
  }
}

/// A part is filled, or never will be.
void Core::settle(DataPart& part, Status status) noexcept {
  part.under_way = false;
  if (part.origin != nullptr) lanes_.release_one(*std::exchange(part.origin, nullptr), status);
  DataCall& call = call_of(part);
  if (call.status == Status::ok) call.status = status;
  part.status = status;
}

void Core::part_ended(DataPart& part, Status status) noexcept {
  DataCall& call = call_of(part);
  Core& core = *call.core;
  core.settle(part, status);
  core.note_data_ended();
  if (--call.remaining == 0) core.data_complete(call);
}

/// All of a call's data is here (or failed to come); from progress.
void Core::data_complete(DataCall& call) noexcept {
  am::Message& message = *call.message;
  const auto envelope = message.header<Envelope>();
  DataHeader header = data_header(message, envelope);
  try {
    if (header.state == DataState::staging) return data_staged(call, message, envelope);
    header.state = DataState::landed;
    set_data_header(message, envelope, header);
    am::MessageList after = std::exchange(call.after, {});
    if (after.empty()) return enqueue(message, envelope);
    // What stood behind the data goes before whatever waits in the queue: a later insertion must find the chare gone.
    after.push_front(message);
    run_next(after);
  } catch (const std::exception& error) {
    fail_job(fmt::format("rank {}: a call whose data has come could not be queued: {}", rank_, error.what()));
  }
}

/// True: all is here, and the method may run. False: the message was taken over.
bool Core::data_ready(ChareBase& chare, const EntryInfo& entry, am::Message& message, const Envelope& envelope) {
  const DataHeader header = data_header(message, envelope);
  try {
    if (header.state == DataState::staging) {
      place_as<DataCall>(header)->wanted = true;
      return false;
    }
    if (header.state != DataState::landed) {
      DataCall& call = prepare_landing(chare, entry, message, envelope);
      fill_landings(call, message, envelope, DataState::landing);
      if (call.remaining != 0) {
        call.wanted = true;
        return false;
      }
      set_data_header(message, envelope, {place_of(&call), DataState::landed, header.count});
    }
    require_landed(message, envelope);
    return true;
  } catch (...) {
    fail_data(chare, entry, message, envelope, std::current_exception());
    return false;
  }
}

void Core::require_landed(const am::Message& message, const Envelope& envelope) const {
  const DataCall& call = *place_as<DataCall>(data_header(message, envelope));
  if (call.status == Status::ok) return;
  const DataMeta* metas = data_metas(message, envelope);
  std::size_t i = 0;
  for (const DataPart* part = call.parts; part != nullptr; part = part->following, ++i) {
    if (part->status == Status::ok) continue;
    throw Error(part->status,
                fmt::format("{} did not reach its landing of {}: {}", describe(metas[i], i, source_of(message)),
                            describe(part->landing), status_text(part->status)));
  }
}

void Core::fail_data(ChareBase& chare, const EntryInfo& entry, am::Message& message, const Envelope& envelope,
                     std::exception_ptr error) noexcept {
  count_out(message);
  ++calls_run_;
  const Invocation invocation{this, &chare, &entry, &message, source_of(message), envelope.reply};
  fail_invocation(invocation, std::move(error));
  drop(message);
}

Buffer landed_data(const Invocation& invocation, std::size_t index, LandingBlock*& block) noexcept {
  const auto& message = *static_cast<const am::Message*>(invocation.message);
  DataPart* part = place_as<DataCall>(data_header(message, message.header<Envelope>()))->parts;
  while (index-- != 0) part = part->following;
  block = std::exchange(part->block, nullptr);
  return part->landing;
}

// Staging: data whose landing is not known yet
// -------------------------------------------------------------------------------------------------------------------

/// Takes data from the network (or, of a broadcast of this process, from its sources) into memory of the runtime.
/// `wanted`: the message stands in no queue. May be called from inside the network.
void Core::stage(am::Message& message, const Envelope& envelope, bool wanted) {
  const DataHeader header = data_header(message, envelope);
  if (header.state != DataState::numbers && !wanted) return;  // a source of this process can wait where it is
  DataCall& call = new_data_call(message, header.count);
  call.wanted = wanted;
  try {
    const DataMeta* metas = data_metas(message, envelope);
    std::size_t i = 0;
    for (DataPart* part = call.parts; part != nullptr; part = part->following) {
      lend_landing(*part, metas[i++], nullptr);
    }
  } catch (...) {
    end_data_call(call);
    throw;
  }
  fill_landings(call, message, envelope, DataState::staging);
  if (call.remaining == 0) data_staged(call, message, envelope);
}

/// The memory of the runtime becomes the source, in this process.
void Core::data_staged(DataCall& call, am::Message& message, const Envelope& envelope) {
  const DataHeader header = data_header(message, envelope);
  DataHeader staged{0, DataState::origins, header.count};
  const bool wanted = call.wanted;
  const Status status = call.status;
  std::size_t lost = 0;  // which argument
  for (const DataPart* part = call.parts; part != nullptr && part->status == Status::ok; part = part->following) ++lost;
  DataOrigin* first = nullptr;
  DataOrigin* last = nullptr;
  for (DataPart* part = call.parts; part != nullptr && status == Status::ok; part = part->following) {
    DataOrigin* origin = lanes_.take_origin();
    if (origin == nullptr) throw Error(Status::limit_reached, "a million data arguments are under way already");
    origin->block = std::exchange(part->block, nullptr);
    origin->buffer = part->landing;
    (last != nullptr ? last->following : first) = origin;
    last = origin;
  }
  staged.place = place_of(first);
  end_data_call(call);
  set_data_header(message, envelope, staged);
  if (status != Status::ok) {
    set_data_header(message, envelope, {0, DataState::none, header.count});
    const auto* entry = registry_.find<EntryInfo>(envelope.number, RegisteredKind::entry);
    const std::string what = describe(data_metas(message, envelope)[lost], lost, source_of(message));
    fail_job(fmt::format("{} for {} on rank {} was lost: {} ({})", what, entry != nullptr ? entry->name : "?", rank_,
                         status_text(status), status_name(status)));
    if (wanted) drop(message);
    return;
  }
  if (!wanted) return;
  if (envelope.by_tree() && message.wire.source >= 0) forward_by_tree(message, envelope);
  enqueue(message, envelope);
}

/// A broadcast becomes a call of each element here: every one has a post entry of its own, or shares the data.
void Core::fan_out(Collection& collection, am::Message& message, const Envelope& envelope) {
  const std::size_t slots = collection.slots().size();
  for (std::size_t slot = 0; slot < slots; ++slot) {
    if (const ChareBase* chare = collection.slots()[slot]) call_member(chare->key_, message, envelope);
  }
  count_out(message);
  ++calls_run_;
  drop(message);
}

// Ending
// -------------------------------------------------------------------------------------------------------------------

/// What a message that will not run (any more) still holds or announces.
void Core::discard_data(am::Message& message) noexcept {
  const auto envelope = message.header<Envelope>();
  const DataHeader header = data_header(message, envelope);
  set_data_header(message, envelope, {0, DataState::none, header.count});
  switch (header.state) {
    case DataState::numbers:
      return lanes_.swallow(source_of(message), header.place, data_metas(message, envelope), header.count);
    case DataState::origins: return lanes_.release(place_as<DataOrigin>(header), Status::canceled);
    case DataState::landed: return end_data_call(*place_as<DataCall>(header));
    default: return;
  }
}

bool Core::put_behind_data(const ChareBase& chare, am::Message& message, const Envelope& envelope) noexcept {
  if (envelope.has_data() && data_header(message, envelope).state == DataState::landed) return false;  // came before
  for (DataCall* call = data_calls_.front(); call != nullptr; call = data_calls_.next(*call)) {
    if (call->chare != &chare || call->remaining == 0) continue;
    call->after.push_back(message);
    return true;
  }
  return false;
}

bool Core::put_behind_data(const Collection& collection, am::Message& message) noexcept {
  for (DataCall* call = data_calls_.front(); call != nullptr; call = data_calls_.next(*call)) {
    if (call->chare == nullptr || call->remaining == 0 || call->chare->collection_ != &collection) continue;
    call->chare->leaving_ = true;
    call->after.push_back(message);
    return true;
  }
  return false;
}

/// Data that another process's device may be writing into memory of a chare cannot be dropped: it comes, or its sender
/// agrees that it will not.
void Core::take_landings_back() noexcept {
  const auto for_each_landing = [this](auto&& use) {
    for (DataCall* call = data_calls_.front(); call != nullptr; call = data_calls_.next(*call)) {
      for (DataPart* part = call->parts; part != nullptr; part = part->following) {
        const bool into_chare = part->under_way && part->number != DataPart::kNoNumber && part->block == nullptr;
        if (into_chare && lanes_.runs_elsewhere(part->from)) use(*part);
      }
    }
  };
  for_each_landing([](DataPart& part) {
    part.op.delivered = {[](void* self, const OpResult& result) noexcept {
                           auto& ended = *static_cast<DataPart*>(self);
                           ended.under_way = false;
                           ended.status = result.status;
                         },
                         &part};
    part.op.cancel();
  });
  const auto pending = [&] {
    bool any = false;
    for_each_landing([&](DataPart&) { any = true; });
    return any;
  };
  progress_while(engine_, kFarewell, pending);
}

/// Before the chares of an ending program are destroyed: nothing may write into their memory any more.
void Core::abandon_data() noexcept {
  // A copy within the process ends soon, and with it perhaps its call: none may end below.
  const auto copying = [this] {
    for (const DataCall* call = data_calls_.front(); call != nullptr; call = data_calls_.next(*call)) {
      for (const DataPart* part = call->parts; part != nullptr; part = part->following) {
        if (part->under_way && part->number == DataPart::kNoNumber) return true;
      }
    }
    return false;
  };
  progress_while(engine_, options_.held_back_max, copying);
  take_landings_back();
  for (DataCall* call = data_calls_.front(); call != nullptr;) {
    DataCall* following = data_calls_.next(*call);
    const auto envelope = call->message->header<Envelope>();
    const DataHeader header = data_header(*call->message, envelope);
    const DataMeta* metas = data_metas(*call->message, envelope);
    if (header.state != DataState::landed) {
      std::size_t i = 0;
      for (DataPart* part = call->parts; part != nullptr; part = part->following, ++i) {
        // A receive that was taken back is received by nobody.
        const bool unreceived = part->under_way || part->status == Status::canceled;
        if (!unreceived || part->number == DataPart::kNoNumber) continue;
        if (part->block == nullptr) {  // it must not come into memory of a chare any more
          if (part->under_way) part->op.detach();
          lanes_.swallow(part->from, part->number, &metas[i], 1);
        }
      }
      drop_swallowed(*call);
      while (am::Message* next = call->after.pop_front()) let_go(*next);
      am::Message* held = call->wanted ? call->message : nullptr;
      set_data_header(*call->message, envelope, {0, DataState::none, header.count});
      end_data_call(*call);
      if (held != nullptr) messenger_.release(*held);
    }
    call = following;
  }
}

/// What other processes have not taken yet lies in memory that the chares free. All ranks take it, whoever ends first.
void Core::await_sources() noexcept {
  progress_while(engine_, kFarewell, [this] { return lanes_.sending_to_others(); });
}

/// Messages of a program that has ended.
void Core::receive_late(void* engine, am::Message& message) noexcept {
  auto& of = *static_cast<Engine*>(engine);
  if (!is_sound(message, of.job().size, Registry::of_program())) [[unlikely]]
    return drop_damaged(of, message);
  const auto envelope = message.header<Envelope>();
  if (envelope.has_data()) {
    const DataHeader header = data_header(message, envelope);
    of.service<DataLanes>().swallow(message.wire.source, header.place, data_metas(message, envelope), header.count);
  }
  of.service<am::Messenger>().release(message);
}

void Core::look_at_lanes() {
  const DataLanes::Break& broken = lanes_.broken();
  fail_job(fmt::format(
      "rank {} could not {} rank {}: {} ({})", rank_,
      broken.receiving ? "receive a data argument that nobody wants any more from" : "send a data argument to",
      broken.rank, status_text(broken.status), status_name(broken.status)));
}

}  // namespace brant::detail
