#include "models/pgas/space_state.h"

#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/seconds.h"

namespace brant {

using pgas::SpaceWord;
using pgas::WordHeader;

std::string describe(GlobalPtr<const std::byte> at) {
  if (at.is_null()) return "a null pointer";
  return fmt::format("rank {}, segment {} ({}), offset {}", at.rank(), at.segment(), memory_kind_name(at.kind()),
                     at.offset());
}

SpaceState::SpaceState(GlobalSpace& space, SpaceService& service) noexcept
    : space_(space), service_(service), engine_(service.engine()) {
  service_.set_state(this);
}

SpaceState::~SpaceState() {
  constexpr auto kPatience = std::chrono::seconds(20);
  directory_.close();
  copies_.close();
  owned_.retire_all();
  const auto idle = [](void* state) noexcept {
    auto& self = *static_cast<SpaceState*>(state);
    self.look_around();
    return self.copies_.live() == 0 && self.directory_.empty() && !self.owned_.any_retiring() &&
           self.windows_.all_over();
  };
  if (engine_.waiting().wait(idle, this, kPatience) != Status::ok) {
    log::warn(
        "the global space of rank {} ends while {} of its copies are under way, or others have not let go of its "
        "segments: they make no progress",
        rank(), copies_.live());
  }
  service_.set_state(nullptr);
}

std::uint32_t& SpaceState::last_segment() noexcept { return service_.last_segment(); }

Status SpaceState::say(Rank to, const WordHeader& header, std::span<const std::byte> payload, am::Flow flow) noexcept {
  return service_.say(to, header, payload, flow);
}

void SpaceState::let_go(std::int32_t owner, std::uint32_t segment) noexcept {
  // One that cannot be told has gone.
  static_cast<void>(say(Rank{owner}, {.word = SpaceWord::let_go, .segment = segment}, {}));
}

void SpaceState::wake_for(GlobalPtr<const std::byte> word) noexcept {
  if (!host_accessible(word.kind())) return;
  Peer* const peer = engine_.peers().find(word.rank());
  if (peer == nullptr || peer->same_process || peer->lost) return;
  if (peer->link != nullptr) return peer->link->wake();
  // One that cannot be told has gone.
  static_cast<void>(say(peer->rank, {.word = SpaceWord::wake}, {}));
}

bool SpaceState::has_gone(std::int32_t rank) const noexcept { return service_.has_gone(rank); }

void SpaceState::look_around() noexcept {
  directory_.look_around();
  owned_.look_around();
  copies_.look_around();
  windows_.look_around();
}

CopyRecord* SpaceState::take(CopyRecord::Task task, GlobalPtr<const std::byte> there, Op& op,
                             CopyOptions& options) noexcept {
  CopyRecord* copy = copies_.take(op);
  if (copy == nullptr) return nullptr;
  copy->task = task;
  // Whether it is written is the task's.
  copy->there = {there.rank(), there.segment(), there.offset(), there.kind_number(), there.device()};
  copy->path = options.path;
  copy->shapes = options.shapes;
  copy->at_target = std::move(options.at_target);
  return copy;
}

Status SpaceState::post_move(CopyRecord::Task task, GlobalPtr<const std::byte> there, Buffer local, Op& op,
                             CopyOptions& options) noexcept {
  KnownSegment* known = directory_.find_open(there.rank(), there.segment());
  if (known != nullptr && !options.at_target.is_wanted()) [[likely]] {
    const RmaOptions how{.path = options.path, .shapes = options.shapes};
    return task == CopyRecord::Task::put ? known->remote.post_put(there.offset(), local, op, how)
                                         : known->remote.post_get(there.offset(), local, op, how);
  }
  if (op.pending()) return refuse_pending_op();
  if (task == CopyRecord::Task::get && options.at_target.is_behind_all()) {
    log::error(
        "a get from {} cannot tell behind all that was posted before: its bytes come to this process. Await "
        "the others, or a fence",
        describe(there));
    return Status::invalid_argument;
  }
  CopyRecord* copy = take(task, there, op, options);
  if (copy == nullptr) return copies_.refusal();
  copy->local = local;
  return copies_.start(*copy, op);
}

Status SpaceState::post_value(CopyRecord::Task task, GlobalPtr<const std::byte> there, Buffer value, Op& op,
                              CopyOptions& options) noexcept {
  if (value.bytes > sizeof(CopyRecord::value) || value.data == nullptr || options.shapes != nullptr)
    return Status::invalid_argument;
  // Where the CPU copies at once, nothing need be kept.
  const KnownSegment* known = directory_.find_open(there.rank(), there.segment());
  const auto by_cpu = [](Path path) { return path == Path::automatic || path == Path::shm; };
  if (known != nullptr && known->remote.host_pointer() != nullptr && by_cpu(options.path) &&
      by_cpu(engine_.options().path))
    return post_move(task, there, value, op, options);
  if (op.pending()) return refuse_pending_op();
  CopyRecord* copy = take(task, there, op, options);
  if (copy == nullptr) return copies_.refusal();
  copy->kept = static_cast<std::uint8_t>(value.bytes);
  if (task == CopyRecord::Task::put) {
    std::memcpy(copy->value, value.data, value.bytes);
  } else {
    copy->value_to = static_cast<std::byte*>(value.data);
  }
  return copies_.start(*copy, op);
}

Status SpaceState::post_copy(GlobalPtr<const std::byte> from, GlobalPtr<std::byte> to, std::size_t bytes, Op& op,
                             CopyOptions&& options) noexcept {
  if (op.pending()) return refuse_pending_op();
  CopyRecord* copy = take(CopyRecord::Task::copy, to, op, options);
  if (copy == nullptr) return copies_.refusal();
  copy->source = from;
  copy->bytes = bytes;
  return copies_.start(*copy, op);
}

Status SpaceState::post_atomic(GlobalPtr<std::byte> at, const Atomic& what, Op& op, void* before) noexcept {
  KnownSegment* known = directory_.find_open(at.rank(), at.segment());
  if (known != nullptr) [[likely]]
    return known->remote.post_atomic(at.offset(), what, op, before);
  if (op.pending()) return refuse_pending_op();
  CopyOptions none;
  CopyRecord* copy = take(CopyRecord::Task::atomic, at, op, none);
  if (copy == nullptr) return copies_.refusal();
  copy->atomic = what;
  copy->kept = before == nullptr ? std::uint8_t{0} : static_cast<std::uint8_t>(what.bytes());
  copy->value_to = static_cast<std::byte*>(before);
  return copies_.start(*copy, op);
}

Status SpaceState::post_fence(Rank rank, Op& op) noexcept {
  if (!copies_.any_to(rank.value)) return brant::post_fence(runtime(), rank, op);
  if (op.pending()) return refuse_pending_op();
  CopyOptions none;
  CopyRecord* copy = take(CopyRecord::Task::fence, GlobalPtr<const std::byte>(rank.value, 1, 0, 0, 0), op, none);
  return copy == nullptr ? copies_.refusal() : copies_.start(*copy, op);
}

Status SpaceState::post_reach(GlobalPtr<const std::byte> at, Op& op) noexcept {
  if (op.pending()) return refuse_pending_op();
  CopyOptions none;
  CopyRecord* copy = take(CopyRecord::Task::reach, at, op, none);
  if (copy == nullptr) return copies_.refusal();
  return copies_.start(*copy, op);
}

KnownSegment* SpaceState::find_reached(GlobalPtr<const std::byte> at, std::size_t bytes) noexcept {
  KnownSegment* known = directory_.find_open(at.rank(), at.segment());
  if (known == nullptr) {
    // This process's own are reached without a question.
    if (at.rank() != rank() || directory_.reach(at, known) != Status::ok) return nullptr;
  }
  const std::size_t size = known->remote.size();
  return at.offset() <= size && bytes <= size - at.offset() ? known : nullptr;
}

void* SpaceState::host_address(GlobalPtr<const std::byte> at, std::size_t bytes) noexcept {
  const KnownSegment* known = find_reached(at, bytes);
  auto* const base = known == nullptr ? nullptr : static_cast<std::byte*>(known->remote.host_pointer());
  return base == nullptr ? nullptr : base + at.offset();
}

void* SpaceState::device_address(GlobalPtr<const std::byte> at, std::size_t bytes) noexcept {
  const KnownSegment* known = find_reached(at, bytes);
  auto* const base = known == nullptr ? nullptr : static_cast<std::byte*>(known->remote.device_pointer());
  return base == nullptr ? nullptr : base + at.offset();
}

void SpaceState::hear(std::int32_t from, const WordHeader& header, std::span<const std::byte> payload) noexcept {
  switch (header.word) {
    case SpaceWord::ask: static_cast<void>(owned_.tell(Rank{from}, header.segment)); return;
    case SpaceWord::ticket:
      return directory_.note_ticket(from, header.segment, static_cast<Status>(header.status), payload);
    case SpaceWord::retired:
      if (!directory_.note_retired(from, header.segment)) let_go(from, header.segment);
      return;
    case SpaceWord::let_go: return owned_.note_let_go(from, header.segment);
    case SpaceWord::wake: return;  // that it came has woken this process
    case SpaceWord::copied: return copies_.note_copied(from, header.id, static_cast<Status>(header.status));
    case SpaceWord::copy: {
      pgas::CopyRequest request;
      if (payload.size() < sizeof(request)) break;
      std::memcpy(&request, payload.data(), sizeof(request));
      const auto shapes = payload.subspan(sizeof(request));
      if ((request.has_shapes != 0) == shapes.empty()) break;
      return served_.serve(from, header.id, request, shapes);
    }
  }
  engine_.peers().distrust(from, "a word of the global space that nobody of this job says");
}

SpaceService::SpaceService(Engine& engine) : engine_(engine), messenger_(engine.service<am::Messenger>()) {
  messenger_.claim(am::ServiceId::pgas, &SpaceService::on_message, nullptr, this);
}

bool SpaceService::has_gone(std::int32_t rank) const noexcept {
  const Peer* peer = engine_.peers().find(rank);
  return peer == nullptr || peer->lost || peer->ended;
}

void SpaceService::set_state(SpaceState* state) noexcept {
  state_ = state;
  if (state == nullptr) return;
  early_.hand_over([&](std::int32_t owner, std::uint32_t segment, std::span<const std::byte> ticket) {
    if (!has_gone(owner)) state->directory().note_ticket(owner, segment, Status::ok, ticket);
  });
}

bool SpaceState::stalled(std::chrono::nanoseconds idle) noexcept {
  if (copies_.live() == 0) return false;
  const KnownSegment* const awaited = directory_.awaited();
  if (awaited != nullptr) {
    log::warn(
        "rank {} waits for rank {} to say how its segment {} is reached; nothing has moved for {:.1f} s. The owner "
        "answers while it has a GlobalSpace and waits in brant or makes progress",
        rank(), awaited->rank, awaited->segment, in_seconds(idle));
  } else {
    log::warn("rank {} waits for {} copies of global memory; nothing has moved for {:.1f} s", rank(), copies_.live(),
              in_seconds(idle));
  }
  return true;
}

void SpaceService::look_around() noexcept {
  if (state_ != nullptr) return state_->look_around();
  early_.drop_those_of([&](std::int32_t owner) { return has_gone(owner); });
}

Status SpaceService::say(Rank to, const WordHeader& header, std::span<const std::byte> payload,
                         am::Flow flow) noexcept {
  am::Message* message = messenger_.make(payload.size());
  if (message == nullptr) return Status::no_memory;
  message->set_header(header);
  if (!payload.empty()) std::memcpy(message->data, payload.data(), payload.size());
  const Status status = messenger_.send(to, am::ServiceId::pgas, *message, flow);
  if (status != Status::ok) messenger_.release(*message);
  return status;
}

void SpaceService::on_message(void* service, am::Message& message) noexcept {
  auto& self = *static_cast<SpaceService*>(service);
  if (message.wire.header_bytes == sizeof(WordHeader)) {
    self.hear(message.peer, message.header<WordHeader>(), message.payload());
  } else {
    self.engine_.peers().distrust(message.peer, "a message of the global space without its header");
  }
  self.messenger_.release(message);
}

/// Without a space there are no segments, and nothing is reached yet.
void SpaceService::hear(std::int32_t from, const WordHeader& header, std::span<const std::byte> payload) noexcept {
  if (state_ != nullptr) return state_->hear(from, header, payload);
  WordHeader answer = header;
  answer.status = static_cast<std::int32_t>(Status::not_found);
  switch (header.word) {
    case SpaceWord::ask: answer.word = SpaceWord::ticket; break;
    case SpaceWord::copy: answer.word = SpaceWord::copied; break;
    case SpaceWord::ticket:
      if (static_cast<Status>(header.status) != Status::ok || early_.keep(from, header.segment, payload)) return;
      answer.word = SpaceWord::let_go;
      break;
    case SpaceWord::retired:
      early_.drop(from, header.segment);
      answer.word = SpaceWord::let_go;
      break;
    default: return;
  }
  static_cast<void>(say(Rank{from}, answer, {}));
}

}  // namespace brant
