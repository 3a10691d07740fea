#include "ops/lane/data_lanes.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "ops/channel/reserved_ids.h"
#include "ops/channel/table.h"

namespace brant::lane {

// The table of channels is made first, so that it goes first: its last transfers use the records here.
DataLanes::DataLanes(Engine& engine)
    : engine_(engine),
      table_(engine.service<ChannelTable>()),
      mover_(engine.service<Mover>()),
      landings_(engine),
      lanes_(static_cast<std::size_t>(engine.job().size)) {
  mover_.open();
}

DataLanes::~DataLanes() { engine_.pollers().detach(*this); }

DataLanes::Lane& DataLanes::lane(std::int32_t rank) {
  if (Lane* known = lanes_.find(rank)) return *known;
  auto made = std::make_unique<Lane>();
  made->lanes = this;
  made->rank = rank;
  const ChannelId id = joined_rank::is_one(rank) ? reserved_id::kJoinedDataLane
                                                 : reserved_id::data_lane(engine_.job().rank, rank, engine_.job().size);
  made->end = &table_.open(Rank{rank}, id, Path::automatic);
  return *(lanes_.place(rank) = std::move(made));
}

bool DataLanes::forget(Peer& peer) noexcept {
  Lane* lane = lanes_.find(peer.rank.value);
  if (lane == nullptr) return true;
  if (lane->sending != 0 || lane->unposted_count != 0) return false;
  lane->end->closing().close();
  lanes_.forget(peer.rank.value);
  return true;
}

const Shape* DataLanes::keep(const Shape& shape) noexcept {
  Shape* const kept = shapes_.take();
  if (kept != nullptr) *kept = shape;
  return kept;
}

void DataLanes::drop(const Shape*& shape) noexcept {
  if (shape != nullptr) shapes_.give_back(const_cast<Shape*>(std::exchange(shape, nullptr)));
}

namespace {

/// What the future of a data argument throws. Where there is no memory for the text, that.
std::exception_ptr not_delivered(const ConstBuffer& buffer, Status status) noexcept {
  try {
    return std::make_exception_ptr(
        Error(status, fmt::format("a device argument of {} bytes of {} memory was not delivered: {}", buffer.bytes,
                                  memory_kind_name(buffer.kind), status_text(status))));
  } catch (const std::bad_alloc&) {
    return std::current_exception();
  }
}

}  // namespace

// Sources
// -------------------------------------------------------------------------------------------------------------------

void DataLanes::release_one(DataOrigin& origin, Status status) noexcept {
  if (origin.status == Status::ok) origin.status = status;
  if (--origin.users != 0) return;
  drop(origin.shape);
  if (origin.block != nullptr) LandingPool::drop(*std::exchange(origin.block, nullptr));
  if (origin.free.fire == nullptr && !origin.promise) return origins_.give_back(&origin);
  // Not told here: this may be inside the very call that passed the buffer.
  ++untold_;
  origin.lanes = this;
  origin.told.source_free = {[](void* self, const OpResult&) noexcept {
                               auto& unused = *static_cast<DataOrigin*>(self);
                               unused.lanes->tell(unused);
                             },
                             &origin};
  engine_.completions().complete(origin.told, {origin.status, origin.buffer.bytes});
}

void DataLanes::release(DataOrigin* first, Status status) noexcept {
  while (first != nullptr) {
    DataOrigin* following = first->following;
    release_one(*first, status);
    first = following;
  }
}

void DataLanes::tell(DataOrigin& origin) noexcept {
  --untold_;
  const ConstBuffer buffer = origin.buffer;
  const Status status = origin.status;
  const Completion sink = origin.free;
  std::optional<Promise<ConstBuffer>> promise = std::move(origin.promise);
  origins_.give_back(&origin);
  if (sink.fire != nullptr) sink.fire(sink.self, {status, buffer.bytes});
  if (!promise) return;
  if (status != Status::ok) return promise->fail(not_delivered(buffer, status));
  promise->deliver(buffer);
}

unsigned DataLanes::poll() noexcept {
  unsigned events = 0;
  lanes_.for_each([&](Lane& lane) {
    while (!lane.unposted.empty()) {
      Send& send = *lane.unposted.front();
      const Status status = post(send, {});
      if (status == Status::limit_reached || status == Status::no_memory) break;
      lane.unposted.remove(send);
      --lane.unposted_count;
      --unposted_;
      ++events;
      if (status != Status::in_progress) sent(send, status);
    }
  });
  if (unposted_ == 0) engine_.pollers().detach(*this);
  return events;
}

// Sending
// -------------------------------------------------------------------------------------------------------------------

std::uint64_t DataLanes::next_number(std::int32_t to) {
  const Lane& way = lane(to);
  return way.end->sends().next_number() + way.unposted_count;
}

Status DataLanes::post(Send& send, AskedMemory answer) noexcept {
  send.op.source_free = {[](void* self, const OpResult& result) noexcept {
                           auto& ended = *static_cast<Send*>(self);
                           ended.lane->lanes->sent(ended, result.status);
                         },
                         &send};
  ChannelSends& sends = send.lane->end->sends();
  const DataOrigin& origin = *send.origin;
  return origin.shape != nullptr ? sends.post(origin.buffer, *origin.shape, send.op, answer)
                                 : sends.post(origin.buffer, send.op, answer);
}

void DataLanes::send(std::int32_t to, DataOrigin* first) noexcept {
  Lane& way = *lanes_.find(to);  // `next_number` opened it
  while (first != nullptr) {
    DataOrigin& origin = *std::exchange(first, first->following);
    Send* send = sends_.take();
    if (send == nullptr) {
      const Status why = sends_.refusal();
      note_broken({why, to, false});
      release_one(origin, why);
      continue;
    }
    send->lane = &way;
    ++way.sending;
    send->origin = &origin;
    Status status = way.unposted.empty() ? post(*send, origin.memory) : Status::limit_reached;
    if (status == Status::in_progress) continue;
    if (status == Status::limit_reached || status == Status::no_memory) {
      way.unposted.push_back(*send);
      ++way.unposted_count;
      ++unposted_;
      engine_.pollers().attach(*this);
    } else {
      sent(*send, status);
    }
  }
}

/// A message that was longer than its landing is the receiver's fault, and its to report; the buffer is free.
void DataLanes::sent(Send& send, Status status) noexcept {
  if (status != Status::ok && status != Status::truncated) note_broken({status, send.lane->rank, false});
  --send.lane->sending;
  release_one(*send.origin, status);
  sends_.give_back(&send);
}

bool DataLanes::sending_to_others() const noexcept {
  bool some = false;
  lanes_.for_each([&](Lane& lane) { some = some || (lane.sending != 0 && runs_elsewhere(lane.rank)); });
  return some;
}

bool DataLanes::runs_elsewhere(std::int32_t rank) const noexcept {
  return engine_.peers().runs_elsewhere(lanes_.find(rank)->end->peer());
}

// Receiving
// -------------------------------------------------------------------------------------------------------------------

void DataLanes::give_back(DataPart& part) noexcept {
  if (part.block != nullptr) LandingPool::drop(*part.block);
  if (part.origin != nullptr) release_one(*part.origin, Status::ok);
  drop(part.shape);
  parts_.give_back(&part);
}

void DataLanes::filled(DataPart& part, Status status) noexcept {
  if (part.ended == nullptr) return part.lanes.give_back(part);
  part.ended(part, status);
}

Status DataLanes::receive(DataPart& part, std::int32_t from, std::uint64_t number) noexcept {
  part.op.delivered = {[](void* self, const OpResult& result) noexcept {
                         auto& ended = *static_cast<DataPart*>(self);
                         const bool whole = result.bytes == ended.bytes();
                         filled(ended, result.ok() && !whole ? Status::truncated : result.status);
                       },
                       &part};
  Status status = Status::ok;
  try {
    ChannelEndpoint& end = *lane(from).end;
    status = part.shape != nullptr ? end.receives().post(part.landing, *part.shape, part.op, number, part.memory)
                                   : end.receives().post(part.landing, part.op, number, part.memory);
  } catch (const Error& error) {
    status = error.status();
  } catch (const std::bad_alloc&) {
    status = Status::no_memory;
  }
  if (status == Status::in_progress) return status;
  part.op.delivered = {};
  return status == Status::ok && part.op.result.bytes != part.bytes() ? Status::truncated : status;
}

Status DataLanes::copy(DataPart& part) noexcept {
  const DataOrigin& origin = *part.origin;
  const bool shaped = part.shape != nullptr || origin.shape != nullptr;
  const std::size_t bytes = shaped ? part.bytes() : origin.buffer.bytes;
  if (bytes == 0) return Status::ok;
  const MoveEnd from(origin.buffer.data, origin.buffer.kind);
  const MoveEnd to(part.landing.data, part.landing.kind);
  if (host_accessible(from.kind) && host_accessible(to.kind)) {
    if (shaped) {
      CpuCopier::copy({{to, part.shape}}, {{from, origin.shape}}, bytes);
    } else {
      std::memmove(part.landing.data, origin.buffer.data, bytes);
    }
    return Status::ok;
  }
  static constexpr MoveEvents kEvents{&DataLanes::copied, nullptr};
  PartMove* const move = moves_.take(part, kEvents);
  if (move == nullptr) return moves_.refusal();
  if (shaped) {
    move->kept = move_shapes_.take();
    if (move->kept == nullptr) {
      give_back(*move);
      return move_shapes_.refusal();
    }
    move->kept->from = origin.shape != nullptr ? *origin.shape : Shape::contiguous(bytes);
    move->kept->to = part.shape != nullptr ? *part.shape : Shape::contiguous(bytes);
    move->shapes = move->kept;
  }
  move->from = from;
  move->to = to;
  move->bytes = bytes;
  const bool within_device = !host_accessible(from.kind) && !host_accessible(to.kind);
  const bool by_stager = !shaped && (from.kind == MemoryKind::pinned || to.kind == MemoryKind::pinned);
  move->path = within_device ? Path::copy_engine : Path::staged;
  const Status status = by_stager ? mover_.start_staging(*move) : mover_.start(*move);
  if (status != Status::in_progress) give_back(*move);
  return status;
}

void DataLanes::give_back(PartMove& move) noexcept {
  if (move.kept != nullptr) move_shapes_.give_back(move.kept);
  moves_.give_back(&move);
}

void DataLanes::copied(Move& move, Status status) noexcept {
  auto& ended = static_cast<PartMove&>(move);
  DataPart& part = ended.part;
  part.lanes.give_back(ended);
  filled(part, status);
}

void DataLanes::swallow(std::int32_t from, std::uint64_t number, const DataMeta* metas, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    DataPart* part = take_part();
    const auto bytes = static_cast<std::size_t>(metas[i].bytes);
    const Result<LandingBlock*> block =
        landings_.take(landings_.landing_kind(metas[i].kind, metas[i].host_only), bytes);
    if (part == nullptr || !block) {
      note_broken({block ? parts_.refusal() : block.status(), from, true});
      if (part != nullptr) give_back(*part);
      if (block) LandingPool::drop(**block);
      continue;
    }
    part->block = *block;
    part->landing = part->block->view(bytes);
    const Status status = receive(*part, from, number + i);
    if (status == Status::in_progress) continue;
    give_back(*part);
    if (status != Status::ok && status != Status::truncated) note_broken({status, from, true});
  }
}

}  // namespace brant::lane
