#include "models/pgas/copies.h"

#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "base/log.h"
#include "models/pgas/kept_shapes.h"
#include "models/pgas/space_state.h"

namespace brant {
namespace {

/// For the device to reach a flag in memory of the host, all pages of its allocation are locked, some 100 us a MB,
/// once: a second put costs less than locking more than this.
constexpr std::size_t kLockedForFlagMost = std::size_t{16} << 20;

/// Where this process, or its device, reaches bytes of a segment; no memory where neither does.
Buffer mapped_part(const KnownSegment& known, std::uint64_t offset, std::size_t bytes, MemoryKind other) noexcept {
  MemoryKind kind = known.remote.kind();
  void* base = nullptr;
  if (host_accessible(kind)) {
    base = known.remote.host_pointer();
    const bool by_device = !host_accessible(other) && known.remote.device_pointer() != nullptr;
    kind = by_device ? MemoryKind::pinned : MemoryKind::host;
  } else {
    base = known.remote.device_pointer();
  }
  if (base == nullptr || offset > known.remote.size() || bytes > known.remote.size() - offset) return {};
  return {static_cast<std::byte*>(base) + offset, bytes, kind};
}

}  // namespace

Copies::~Copies() { space_.engine().pollers().detach(*this); }

CopyRecord* Copies::take(Op& op) noexcept {
  CopyRecord* copy = records_.take(space_);
  if (copy == nullptr) return nullptr;
  copy->tells_free = op.source_free.fire != nullptr;
  copy->cancel = &Copies::on_cancel;
  posted_.push_back(*copy);
  return copy;
}

void Copies::give_back(CopyRecord& copy) noexcept {
  let_go(copy);
  posted_.remove(copy);
  records_.give_back(&copy);
}

/// Its bytes have moved, or never will: nothing keeps the segments any more but what is posted to them.
void Copies::let_go(CopyRecord& copy) noexcept {
  if (copy.other_end != nullptr) space_.directory().release(*std::exchange(copy.other_end, nullptr));
  if (copy.flags != nullptr) space_.directory().release(*std::exchange(copy.flags, nullptr));
}

bool Copies::any_before(const CopyRecord* fence, std::int32_t rank) noexcept {
  using Task = CopyRecord::Task;
  for (const CopyRecord* copy = posted_.front(); copy != fence; copy = decltype(posted_)::next(*copy)) {
    const bool writes = copy->task == Task::put || copy->task == Task::copy || copy->task == Task::atomic;
    if (copy->there.rank() == rank && writes) return true;
  }
  return false;
}

void Copies::begin_fence(CopyRecord& fence) noexcept {
  fence.inner.delivered = {&Copies::on_moved, &fence};
  const Status status = brant::post_fence(space_.runtime(), fence.there.where(), fence.inner);
  if (status != Status::in_progress) moved(fence, {status, 0});
}

/// One after the other, since each may end others.
void Copies::look_at_fences() noexcept {
  for (CopyRecord* fence = fences_.front(); fence != nullptr;) {
    if (any_before(fence, fence->there.rank())) {
      fence = decltype(fences_)::next(*fence);
      continue;
    }
    fences_.remove(*fence);
    begin_fence(*fence);
    fence = fences_.front();
  }
}

Status Copies::start(CopyRecord& copy, Op& op) noexcept {
  op.result = {Status::ok, 0};
  if (copy.task == CopyRecord::Task::fence) {
    fences_.push_back(copy);
  } else {
    proceed(copy);
  }
  copy.posting = false;
  if (copy.outcome == Status::in_progress) {
    copy.own(space_.engine().completions(), op);
    if (copy.tells_free && (copy.kept != 0 || copy.has_moved()))  // the record has the value, or it is there
      space_.engine().completions().report(copy, Moment::source_free,
                                           {Status::ok, copy.has_moved() ? copy.moved_bytes : copy.kept});
    return Status::in_progress;
  }
  const Status outcome = copy.outcome;
  if (outcome == Status::ok) op.result.bytes = copy.moved_bytes;
  give_back(copy);
  if (!fences_.empty()) look_at_fences();
  return outcome;
}

Status Copies::reach(CopyRecord& copy, GlobalPtr<const std::byte> at, KnownSegment*& known) noexcept {
  const Status status = space_.directory().reach(at, known);
  if (status == Status::in_progress) {
    known->waiting.push_back(copy);
    copy.waits_for = known;
  }
  return status;
}

/// The segment of the flag, before any byte moves: one that cannot be set refuses the copy.
Status Copies::reach_flag(CopyRecord& copy) noexcept {
  const auto* set = std::get_if<AtTarget::Set>(&copy.at_target.what());
  if (set == nullptr) return Status::ok;
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  KnownSegment* known = nullptr;
  const Status status = reach(copy, set->flag, known);
  if (status != Status::ok) return status;
  const std::uint64_t offset = set->flag.offset();
  const std::size_t size = known->remote.size();
  const bool inside = offset <= size && kWord <= size - offset;
  if (inside && (known->remote.owners_address() + offset) % kWord == 0) return Status::ok;
  log::error("a copy to {} sets a flag at {}: its 8 bytes must lie inside the segment, aligned to 8",
             describe(copy.there), describe(set->flag));
  return Status::invalid_argument;
}

/// Begins, or goes on once a segment was reached.
void Copies::proceed(CopyRecord& copy) noexcept {
  KnownSegment* to = nullptr;
  KnownSegment* from = nullptr;
  Status status = reach(copy, copy.there, to);
  if (status == Status::ok && copy.task == CopyRecord::Task::copy) status = reach(copy, copy.source, from);
  if (status == Status::ok) status = reach_flag(copy);
  if (status == Status::in_progress) return;
  if (status != Status::ok) return end(copy, status);
  switch (copy.task) {
    case CopyRecord::Task::reach: return end(copy, Status::ok);
    case CopyRecord::Task::copy: return move_between(copy, *from, *to);
    case CopyRecord::Task::atomic: return perform(copy, *to);
    case CopyRecord::Task::put:
    case CopyRecord::Task::get:
    case CopyRecord::Task::fence: break;
  }
  if (copy.kept != 0) copy.local = Buffer(copy.value, copy.kept, MemoryKind::host);
  post(copy, *to, copy.local, copy.task == CopyRecord::Task::put);
}

void Copies::go_on(CopyRecord& copy, Status status) noexcept {
  copy.waits_for = nullptr;
  if (status != Status::ok) return end(copy, status);
  proceed(copy);
}

/// Whoever owns an end copies without a detour; so does who has mapped both. Nobody else could but the source's owner.
void Copies::move_between(CopyRecord& copy, KnownSegment& from, KnownSegment& to) noexcept {
  const int self = space_.rank();
  if (copy.there.rank() == self || copy.source.rank() == self) {
    const bool is_put = copy.source.rank() == self;
    KnownSegment& own = is_put ? from : to;
    const OwnedSegment* owned = space_.owned().find(own.segment);
    const std::uint64_t offset = is_put ? copy.source.offset() : copy.there.offset();
    if (owned == nullptr || !owned->covers(offset, copy.bytes)) {
      log::error("copy of {} bytes at offset {} of segment {} of this process: they must lie inside it", copy.bytes,
                 offset, own.segment);
      return end(copy, owned == nullptr ? Status::not_found : Status::invalid_argument);
    }
    const Buffer local(static_cast<std::byte*>(owned->view.data) + offset, copy.bytes, owned->view.kind);
    copy.other_end = &own;
    space_.directory().hold(own);
    return post(copy, is_put ? to : from, local, is_put);
  }
  const Buffer source = mapped_part(from, copy.source.offset(), copy.bytes, to.remote.kind());
  const Buffer landing = mapped_part(to, copy.there.offset(), copy.bytes, from.remote.kind());
  const bool both = source.data != nullptr && landing.data != nullptr;
  if (both) {
    copy.other_end = &from;
    space_.directory().hold(from);
    return post(copy, to, source, true);
  }
  if (copy.shapes == nullptr || KeptShapes::packed_bytes(*copy.shapes) <= KeptShapes::kBytesMost)
    return ask_owner(copy);
  log::error(
      "copy from {} to {}: the owner of the source copies, who takes shapes of {} bytes at most, and these have {} (16 "
      "for each run of a list). Copy in parts",
      describe(copy.source), describe(copy.there), KeptShapes::kBytesMost, KeptShapes::packed_bytes(*copy.shapes));
  end(copy, Status::not_supported);
}

void Copies::post(CopyRecord& copy, KnownSegment& known, Buffer local, bool is_put) noexcept {
  copy.inner.delivered = {&Copies::on_moved, &copy};
  if (copy.tells_free && is_put && copy.kept == 0 && !copy.telling)
    copy.inner.source_free = {&Copies::on_source_free, &copy};
  RmaOptions options{.path = copy.path, .shapes = copy.shapes};
  if (is_put) options.word_behind = word_behind(copy, known, local);
  const bool by_source = copy.task == CopyRecord::Task::copy && !is_put;
  const std::uint64_t offset = by_source ? copy.source.offset() : copy.there.offset();
  const Status status = is_put ? known.remote.post_put(offset, local, copy.inner, options)
                               : known.remote.post_get(offset, local, copy.inner, options);
  if (status != Status::in_progress) moved(copy, {status, copy.inner.result.bytes});
}

/// The flag of the target, where the device that copies can set it as well: the target sees it before this CPU hears of
/// the copy.
WordBehind Copies::word_behind(CopyRecord& copy, const KnownSegment& known, Buffer local) noexcept {
  const auto* set = std::get_if<AtTarget::Set>(&copy.at_target.what());
  if (set == nullptr || set->value > std::numeric_limits<std::uint32_t>::max()) return {};
  // The device knows of nothing but what it copies, and writes words.
  if (copy.at_target.is_behind_all() || set->adds) return {};
  // What is not to be found is refused by the put.
  if (space_.engine().memory_kinds().resolve(local.data, local.bytes, local.kind) != Status::ok) return {};
  if (host_accessible(local.kind) && host_accessible(known.remote.kind())) return {};
  KnownSegment* flags = space_.find_reached(set->flag, sizeof(std::uint64_t));
  if (flags == nullptr) return {};
  auto* const base = static_cast<std::byte*>(flags->remote.device_pointer(kLockedForFlagMost));
  if (base == nullptr) return {};
  copy.flags = flags;
  space_.directory().hold(*flags);
  return {reinterpret_cast<std::uint64_t*>(base + set->flag.offset()), static_cast<std::uint32_t>(set->value),
          &copy.told};
}

void Copies::perform(CopyRecord& copy, KnownSegment& known) noexcept {
  copy.inner.delivered = {&Copies::on_moved, &copy};
  void* const before = copy.value_to == nullptr ? nullptr : copy.value;
  const Status status = known.remote.post_atomic(copy.there.offset(), copy.atomic, copy.inner, before);
  if (status != Status::in_progress) moved(copy, {status, copy.inner.result.bytes});
}

void Copies::ask_owner(CopyRecord& copy) noexcept {
  const pgas::CopyRequest request{
      copy.source, copy.there, copy.bytes, copy.path, copy.shapes != nullptr ? std::uint8_t{1} : std::uint8_t{0}, {}};
  const auto plain = std::as_bytes(std::span(&request, 1));
  std::vector<std::byte> shaped;
  copy.id = ++last_id_;
  copy.moved_bytes = copy.shapes != nullptr ? copy.shapes->from.bytes() : copy.bytes;
  try {
    if (copy.shapes != nullptr) {
      shaped.assign(plain.begin(), plain.end());
      KeptShapes::pack(*copy.shapes, shaped);
    }
    elsewhere_.emplace(copy.id, &copy);
  } catch (const std::bad_alloc&) {
    return end(copy, Status::no_memory);
  }
  const pgas::WordHeader header{.word = pgas::SpaceWord::copy, .id = copy.id};
  const Status status = shaped.empty() ? space_.say(copy.source.where(), header, plain)
                                       : space_.say(copy.source.where(), header, shaped, am::Flow::credit);
  if (status == Status::ok) return;
  elsewhere_.erase(copy.id);
  status == Status::limit_reached && !copy.posting ? wait_for_room(copy) : end(copy, status);
}

/// Of one that nobody observes any more the shapes may be gone: it is not tried again.
void Copies::note_copied(std::int32_t from, std::uint64_t id, Status status) noexcept {
  const auto found = elsewhere_.find(id);
  if (found == elsewhere_.end() || found->second->source.rank() != from) return;
  CopyRecord& copy = *found->second;
  elsewhere_.erase(found);
  const bool is_refused = status == Status::limit_reached && copy.shapes != nullptr;
  if (is_refused && !copy.observed()) return end(copy, Status::canceled);
  moved(copy, {status, copy.moved_bytes});
}

void Copies::moved(CopyRecord& copy, const OpResult& result) noexcept {
  let_go(copy);
  // Whoever posts is told of it, unless the bytes have moved.
  if (result.status == Status::limit_reached && (!copy.posting || copy.has_moved())) return wait_for_room(copy);
  if (!result.ok()) return end(copy, result.status);
  if (!copy.has_moved()) {
    copy.moved_bytes = result.bytes;
  } else if (copy.telling) {
    space_.wake_for(copy.there);
  }
  // Of one that nobody observes any more the place may be gone.
  if (copy.value_to != nullptr && (copy.posting || copy.observed())) std::memcpy(copy.value_to, copy.value, copy.kept);
  copy.value_to = nullptr;
  if (!copy.at_target.is_wanted()) return end(copy, Status::ok);
  if (copy.at_target.is_behind_all() && !copy.fencing) return tell_behind_all(copy);
  if (!copy.told) return tell(copy);
  space_.wake_for(std::get<AtTarget::Set>(copy.at_target.what()).flag);
  end(copy, Status::ok);
}

/// The record becomes a fence of the process that it has copied to, and comes back as one that has moved.
void Copies::tell_behind_all(CopyRecord& copy) noexcept {
  copy.fencing = true;
  fences_.push_back(copy);
  look_at_fences();
}

void Copies::tell(CopyRecord& copy) noexcept {
  copy.telling = true;
  AtTarget::What& what = copy.at_target.what();
  if (const auto* ring = std::get_if<AtTarget::Ring>(&what)) return end(copy, ring->bell->ring(ring->epoch));
  if (auto* call = std::get_if<PackedCall>(&what)) {
    const Status status = call->send();
    return status == Status::limit_reached ? wait_for_room(copy) : end(copy, status);
  }
  if (std::holds_alternative<AtTarget::Tell>(what)) {
    copy.inner.delivered = {&Copies::on_tell, &copy};
    return space_.engine().completions().complete(copy.inner, {Status::ok, 0});
  }
  // A put or an atomic of its own: the record goes round once more.
  const AtTarget::Set set = std::get<AtTarget::Set>(what);
  copy.at_target = {};
  if (set.adds) {
    copy.atomic = Atomic::of<std::uint64_t>(AtomicOp::add, set.value);
    copy.task = CopyRecord::Task::atomic;
  } else {
    std::memcpy(copy.value, &set.value, sizeof(set.value));
    copy.kept = sizeof(set.value);
    copy.task = CopyRecord::Task::put;
  }
  copy.there = set.flag;
  copy.shapes = nullptr;
  copy.path = Path::automatic;
  proceed(copy);
}

void Copies::wait_for_room(CopyRecord& copy) noexcept {
  copy.refused = true;
  refused_.push_back(copy);
  space_.engine().pollers().attach(*this);
}

void Copies::try_again(CopyRecord& copy) noexcept {
  copy.refused = false;
  if (copy.task == CopyRecord::Task::fence || (copy.fencing && !copy.telling)) return begin_fence(copy);
  if (copy.telling && copy.at_target.is_wanted()) return tell(copy);
  proceed(copy);
}

/// All of them, since what one target has no room for another one takes.
unsigned Copies::poll() noexcept {
  space_.engine().pollers().detach(*this);
  IntrusiveList<CopyRecord, &CopyRecord::hook> these;
  while (CopyRecord* copy = refused_.pop_front()) these.push_back(*copy);
  unsigned tried = 0;
  for (; CopyRecord* copy = these.pop_front(); ++tried) try_again(*copy);
  return tried;
}

void Copies::on_tell(void* record, const OpResult&) noexcept {
  auto& copy = *static_cast<CopyRecord*>(record);
  Status status = Status::ok;
  try {
    std::get<AtTarget::Tell>(copy.at_target.what()).tell();
  } catch (const Error& fault) {
    status = fault.status();
    log::error("the target of a copy to {} could not be told: {}", describe(copy.there), fault.what());
  } catch (const std::exception& fault) {
    status = Status::internal;
    log::error("the target of a copy to {} could not be told: {}", describe(copy.there), fault.what());
  } catch (...) {
    status = Status::internal;
  }
  copy.space.copies().end(copy, status);
}

void Copies::end(CopyRecord& copy, Status status) noexcept {
  if (copy.posting) {
    copy.outcome = status;
    return;
  }
  space_.engine().completions().finish(copy, {status, status == Status::ok ? copy.moved_bytes : 0});
  give_back(copy);
  if (!fences_.empty()) look_at_fences();
}

void Copies::on_moved(void* record, const OpResult& result) noexcept {
  auto& copy = *static_cast<CopyRecord*>(record);
  copy.space.copies().moved(copy, result);
}

void Copies::on_source_free(void* record, const OpResult& result) noexcept {
  auto& copy = *static_cast<CopyRecord*>(record);
  if (!result.ok()) return;  // `delivered` says the same, and ends the copy
  copy.space.engine().completions().report(copy, Moment::source_free, result);
}

/// What has not begun is withdrawn; what moves goes on. Fences go on too.
void Copies::on_cancel(OpOwner& owner) noexcept {
  auto& copy = static_cast<CopyRecord&>(owner);
  Copies& self = copy.space.copies();
  if (copy.waits_for != nullptr) {
    std::exchange(copy.waits_for, nullptr)->waiting.remove(copy);
  } else if (copy.refused && !copy.has_moved() && copy.task != CopyRecord::Task::fence) {
    self.refused_.remove(copy);
  } else {
    return;
  }
  self.end(copy, Status::canceled);
}

void Copies::look_around() noexcept {
  if (elsewhere_.empty()) return;
  std::vector<std::uint64_t> lost;
  try {
    for (const auto& [id, copy] : elsewhere_) {
      if (space_.has_gone(copy->source.rank())) lost.push_back(id);
    }
  } catch (const std::bad_alloc&) {
    return;  // the next look finds them
  }
  for (const std::uint64_t id : lost) {
    const auto found = elsewhere_.find(id);
    if (found != elsewhere_.end()) note_copied(found->second->source.rank(), id, Status::peer_lost);
  }
}

void Copies::close() noexcept {
  while (!elsewhere_.empty()) {
    CopyRecord& copy = *elsewhere_.begin()->second;
    elsewhere_.erase(elsewhere_.begin());
    end(copy, Status::canceled);
  }
  while (CopyRecord* copy = refused_.pop_front()) end(*copy, Status::canceled);
}

}  // namespace brant
