// From the message to the moment when all of its data is there. Sources are in data_sources.cc, transport is in
// ops/lane.
#include "models/chare/data_landings.h"

#include <utility>

#include <fmt/format.h>

#include "brant/chare/device.h"
#include "models/chare/busy_mark.h"

namespace brant::detail {
namespace {

/// How long an ending program waits for other ranks, which may not come round to it any more.
constexpr std::chrono::seconds kFarewell{5};

template <typename Condition>
void progress_while(Engine& engine, std::chrono::nanoseconds limit, Condition&& holds) noexcept {
  const TimePoint deadline = deadline_after(limit);
  while (holds() && Clock::now() < deadline) engine.progress().step();
}

std::string describe(const DataMeta& meta, std::size_t index, std::int32_t source) {
  return fmt::format("data argument {} ({} bytes of {} memory from rank {})", index, meta.bytes,
                     memory_kind_name(meta.kind), source);
}

std::string describe(const Buffer& landing) {
  return fmt::format("{} bytes of {} memory", landing.bytes, memory_kind_name(landing.kind));
}

}  // namespace

DataLandings::DataLandings(const ProgramContext& context, Activity& activity, DataCalls& calls, Messages& messages,
                           Sending& sending, ReadyQueue& queue, Ending& ending) noexcept
    : context_(context),
      activity_(activity),
      calls_(calls),
      messages_(messages),
      sending_(sending),
      queue_(queue),
      ending_(ending) {}

/// Memory of the runtime for one argument; for data that lies in such memory already, a share of that.
void DataLandings::lend(DataPart& part, const DataMeta& meta, const DataOrigin* origin) {
  const auto bytes = static_cast<std::size_t>(meta.bytes);
  if (origin != nullptr && origin->block != nullptr) {
    part.block = origin->block;
    ++part.block->owners;
  } else {
    const MemoryKind kind = context_.lanes.landings().landing_kind(meta.kind, meta.host_only);
    const Result<LandingBlock*> block = context_.lanes.landings().take(kind, bytes);
    if (!block) {
      throw Error(block.status(), fmt::format("{} bytes of {} memory for a data argument: {}. Give the method a post "
                                              "entry, or drop DeviceData earlier",
                                              bytes, memory_kind_name(kind), status_text(block.status())));
    }
    part.block = *block;
  }
  part.landing = part.block->view(bytes);
}

/// The landing that a post entry named.
void DataLandings::name(DataPart& part, const Landing& landing, const DataMeta& meta, std::size_t index,
                        std::int32_t source, bool local) {
  part.landing = check(landing, meta, index, source, local, part.memory);
  if (!landing.shape) return;
  part.shape = context_.lanes.keep(*landing.shape);
  if (part.shape == nullptr)
    throw Error(context_.lanes.shape_refusal(), "there is no record for the shape of a data argument's landing");
}

/// Its memory, cut to the size of the data where that lies in one run.
Buffer DataLandings::check(const Landing& named, const DataMeta& meta, std::size_t index, std::int32_t source,
                           bool local, AskedMemory& answer) {
  Buffer landing = named.memory;
  if (named.shape && (named.shape->bytes() != meta.bytes || (meta.bytes != 0 && named.shape->end() > landing.bytes))) {
    throw Error(
        Status::invalid_argument,
        fmt::format("{}: its post entry named a shape of {} bytes that ends at byte {} of a landing of {}. A "
                    "shape has DeviceMeta::bytes and ends within its memory",
                    describe(meta, index, source), named.shape->bytes(), named.shape->end(), describe(landing)));
  }
  if (!named.shape && landing.bytes < meta.bytes) {
    throw Error(Status::truncated,
                fmt::format("{}: its post entry named a landing of {}: too small. Give at least DeviceMeta::bytes",
                            describe(meta, index, source), describe(landing)));
  }
  // A landing that the channel will look at is checked there.
  Status status = Status::ok;
  if (local || meta.host_only || landing.kind == MemoryKind::detect) {
    status = context_.engine.memory_kinds().resolve(landing.data, landing.bytes, landing.kind, answer);
  }
  if (status == Status::ok && meta.host_only && !host_accessible(landing.kind)) status = Status::wrong_kind;
  if (status != Status::ok) {
    throw Error(status, fmt::format("{}: its post entry named a landing of {}: {}. {}", describe(meta, index, source),
                                    describe(landing), status_text(status),
                                    meta.host_only ? "HostData lands in host memory"
                                                   : "Name a live allocation, and declare the kind that it is"));
  }
  if (!named.shape) landing.bytes = static_cast<std::size_t>(meta.bytes);
  return landing;
}

/// Asks the post entry and finds memory for the rest. Starts nothing.
DataCall& DataLandings::prepare(ChareBase& chare, const EntryInfo& entry, am::Message& message,
                                const Envelope& envelope) {
  const DataHeader header = data_header(message, envelope);
  const DataMeta* metas = data_metas(message, envelope);
  const std::int32_t source = context_.source_of(message);
  const bool local = header.state == DataState::origins;
  Landing landings[kDataMax];
  if (entry.post != nullptr) {
    DeviceMeta told[kDataMax];
    for (std::size_t i = 0; i < header.count; ++i) {
      told[i] = {static_cast<std::size_t>(metas[i].bytes), metas[i].kind, Rank{source}, static_cast<int>(i)};
    }
    ReadArchive arguments = arguments_of(context_.chares, message, envelope);
    const BusyMark mark(Collection::busy_mark(chare));
    entry.post(chare, arguments, told, landings);
  }
  DataCall& call = calls_.open(message, header.count, *this, &DataLandings::part_ended);
  call.chare = &chare;
  try {
    const DataOrigin* origin = local ? place_as<DataOrigin>(header) : nullptr;
    std::size_t i = 0;
    for (DataPart* part = call.parts; part != nullptr; part = part->following, ++i) {
      const Buffer& memory = landings[i].memory;
      const bool named = memory.data != nullptr || memory.bytes != 0 || landings[i].shape;
      if (named) {
        name(*part, landings[i], metas[i], i, source, local);
      } else {
        lend(*part, metas[i], origin);
      }
      if (origin != nullptr) origin = origin->following;
    }
  } catch (...) {
    calls_.close(call);
    throw;
  }
  return call;
}

/// Fills the landings. `call.remaining` says how many are not filled on return.
void DataLandings::fill(DataCall& call, am::Message& message, const Envelope& envelope, DataState filling) noexcept {
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
      if (!shared) status = context_.lanes.copy(*part);
    } else {
      part->from = message.peer;  // who passed it on has sent the data
      part->number = header.place + i;
      status = context_.lanes.receive(*part, part->from, part->number);
      const bool came = status == Status::ok || status == Status::in_progress || status == Status::truncated;
      if (!came) context_.lanes.swallow(part->from, part->number, &metas[i], 1);
    }
    if (status == Status::in_progress) {
      part->under_way = true;
      ++call.remaining;
      ++activity_.data_started;
    } else {
      settle(*part, status);
    }
  }
}

/// A part is filled, or never will be.
void DataLandings::settle(DataPart& part, Status status) noexcept {
  part.under_way = false;
  if (part.origin != nullptr) context_.lanes.release_one(*std::exchange(part.origin, nullptr), status);
  DataCall& call = call_of(part);
  if (call.status == Status::ok) call.status = status;
  part.status = status;
}

void DataLandings::part_ended(DataPart& part, Status status) noexcept {
  DataCall& call = call_of(part);
  DataLandings& self = *call.landings;
  self.settle(part, status);
  ++self.activity_.data_ended;
  if (--call.remaining == 0) self.complete(call);
}

/// All of a call's data is here (or failed to come); from progress.
void DataLandings::complete(DataCall& call) noexcept {
  if (call.message == nullptr) return calls_.close(call);
  am::Message& message = *call.message;
  const auto envelope = message.header<Envelope>();
  DataHeader header = data_header(message, envelope);
  try {
    if (header.state == DataState::staging) return staged(call, message, envelope);
    header.state = DataState::landed;
    set_data_header(message, envelope, header);
    am::MessageList after = std::exchange(call.after, {});
    if (after.empty()) return queue_.push(message, envelope);
    // What stood behind the data goes before whatever waits in the queue: a later insertion must find the chare gone.
    after.push_front(message);
    queue_.push_front(after);
  } catch (const std::exception& error) {
    const auto say = [&] {
      return fmt::format("rank {}: a call whose data has come could not be queued: {}", context_.rank, error.what());
    };
    ending_.fail_job(say, "a call whose data has come could not be queued: memory is exhausted");
  }
}

bool DataLandings::ready(ChareBase& chare, const EntryInfo& entry, am::Message& message, const Envelope& envelope) {
  const DataHeader header = data_header(message, envelope);
  if (header.state == DataState::staging) {
    place_as<DataCall>(header)->wanted = true;
    return false;
  }
  if (header.state != DataState::landed) {
    DataCall& call = prepare(chare, entry, message, envelope);
    fill(call, message, envelope, DataState::landing);
    if (call.remaining != 0) {
      call.wanted = true;
      return false;
    }
    set_data_header(message, envelope, {place_of(&call), DataState::landed, header.count});
  }
  require_landed(message, envelope);
  return true;
}

void DataLandings::require_landed(const am::Message& message, const Envelope& envelope) const {
  const DataCall& call = *place_as<DataCall>(data_header(message, envelope));
  if (call.status == Status::ok) return;
  const DataMeta* metas = data_metas(message, envelope);
  std::size_t i = 0;
  for (const DataPart* part = call.parts; part != nullptr; part = part->following, ++i) {
    if (part->status == Status::ok) continue;
    throw Error(part->status, fmt::format("{} did not reach its landing of {}: {}",
                                          describe(metas[i], i, context_.source_of(message)), describe(part->landing),
                                          status_text(part->status)));
  }
}

void DataLandings::stage(am::Message& message, const Envelope& envelope, bool wanted) {
  const DataHeader header = data_header(message, envelope);
  if (header.state != DataState::numbers && !wanted) return;  // a source of this process can wait where it is
  DataCall& call = calls_.open(message, header.count, *this, &DataLandings::part_ended);
  call.wanted = wanted;
  try {
    const DataMeta* metas = data_metas(message, envelope);
    std::size_t i = 0;
    for (DataPart* part = call.parts; part != nullptr; part = part->following) {
      lend(*part, metas[i++], nullptr);
    }
  } catch (...) {
    calls_.close(call);
    throw;
  }
  fill(call, message, envelope, DataState::staging);
  if (call.remaining == 0) staged(call, message, envelope);
}

/// The memory of the runtime becomes the source, in this process.
void DataLandings::staged(DataCall& call, am::Message& message, const Envelope& envelope) {
  const DataHeader header = data_header(message, envelope);
  DataHeader of_staged{0, DataState::origins, header.count};
  const bool wanted = call.wanted;
  const Status status = call.status;
  std::size_t lost = 0;  // which argument
  for (const DataPart* part = call.parts; part != nullptr && part->status == Status::ok; part = part->following) ++lost;
  DataOrigin* first = nullptr;
  DataOrigin* last = nullptr;
  for (DataPart* part = call.parts; part != nullptr && status == Status::ok; part = part->following) {
    DataOrigin* origin = context_.lanes.take_origin();
    if (origin == nullptr) {
      const Status why = context_.lanes.origin_refusal();
      context_.lanes.release(first, why);
      throw Error(why, "there is no record for a data argument");
    }
    origin->block = std::exchange(part->block, nullptr);
    origin->buffer = part->landing;
    (last != nullptr ? last->following : first) = origin;
    last = origin;
  }
  of_staged.place = place_of(first);
  calls_.close(call);
  set_data_header(message, envelope, of_staged);
  if (status != Status::ok) {
    set_data_header(message, envelope, {0, DataState::none, header.count});
    const auto* entry = context_.registry.find<EntryInfo>(envelope.number, RegisteredKind::entry);
    const std::string what = describe(data_metas(message, envelope)[lost], lost, context_.source_of(message));
    ending_.fail_job(fmt::format("{} for {} on rank {} was lost: {} ({})", what, entry != nullptr ? entry->name : "?",
                                 context_.rank, status_text(status), status_name(status)));
    if (wanted) messages_.drop(message);
    return;
  }
  if (!wanted) return;
  if (envelope.by_tree() && message.wire.source >= 0) sending_.forward_by_tree(message, envelope);
  queue_.push(message, envelope);
}

/// Receives into memory of the runtime go on without their call.
void DataLandings::drop_swallowed(DataCall& call) noexcept {
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

/// Data that another process's device may be writing into memory of a chare cannot be dropped: it comes, or its sender
/// agrees that it will not.
void DataLandings::take_back() noexcept {
  const auto for_each_landing = [this](auto&& use) {
    for (DataCall* call = calls_.first(); call != nullptr; call = calls_.next(*call)) {
      for (DataPart* part = call->parts; part != nullptr; part = part->following) {
        const bool into_chare = part->under_way && part->number != DataPart::kNoNumber && part->block == nullptr;
        if (into_chare && context_.lanes.runs_elsewhere(part->from)) use(*part);
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
  progress_while(context_.engine, kFarewell, pending);
}

void DataLandings::abandon() noexcept {
  // A copy within the process ends soon, and with it perhaps its call: none may end below.
  const auto copying = [this] {
    for (const DataCall* call = calls_.first(); call != nullptr; call = calls_.next(*call)) {
      for (const DataPart* part = call->parts; part != nullptr; part = part->following) {
        if (part->under_way && part->number == DataPart::kNoNumber) return true;
      }
    }
    return false;
  };
  progress_while(context_.engine, context_.options.held_back_max, copying);
  take_back();
  for (DataCall* call = calls_.first(); call != nullptr;) {
    DataCall* following = calls_.next(*call);
    if (call->message == nullptr) {
      drop_swallowed(*call);
      calls_.close(*std::exchange(call, following));
      continue;
    }
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
          context_.lanes.swallow(part->from, part->number, &metas[i], 1);
        }
      }
      drop_swallowed(*call);
      while (am::Message* next = call->after.pop_front()) messages_.let_go(*next);
      am::Message* held = call->wanted ? call->message : nullptr;
      set_data_header(*call->message, envelope, {0, DataState::none, header.count});
      calls_.close(*call);
      if (held != nullptr) context_.messenger.release(*held);
    }
    call = following;
  }
}

void DataLandings::await_sources() noexcept {
  progress_while(context_.engine, kFarewell, [this] { return context_.lanes.sending_to_others(); });
}

}  // namespace brant::detail
