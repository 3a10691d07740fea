#include "models/pgas/copies.h"

#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "base/log.h"
#include "models/pgas/space_state.h"

namespace brant {
namespace {

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

CopyRecord* Copies::take(Op& op) noexcept {
  CopyRecord* copy = records_.take(space_);
  if (copy == nullptr) return nullptr;
  copy->tells_free = op.source_free.fire != nullptr;
  copy->cancel = &Copies::on_cancel;
  return copy;
}

Status Copies::start(CopyRecord& copy, Op& op) noexcept {
  op.result = {Status::ok, 0};
  proceed(copy);
  copy.posting = false;
  if (copy.outcome == Status::in_progress) {
    copy.own(space_.engine().completions(), op);
    if (copy.tells_free && copy.kept != 0)  // the record has the value
      space_.engine().completions().report(copy, Moment::source_free, {Status::ok, copy.kept});
    return Status::in_progress;
  }
  const Status outcome = copy.outcome;
  if (outcome == Status::ok) op.result.bytes = copy.moved_bytes;
  records_.give_back(&copy);
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

/// Begins, or goes on once a segment was reached.
void Copies::proceed(CopyRecord& copy) noexcept {
  KnownSegment* to = nullptr;
  KnownSegment* from = nullptr;
  Status status = reach(copy, copy.there, to);
  if (status == Status::ok && copy.task == CopyRecord::Task::copy) status = reach(copy, copy.source, from);
  if (status == Status::in_progress) return;
  if (status != Status::ok) return end(copy, status);
  switch (copy.task) {
    case CopyRecord::Task::reach: return end(copy, Status::ok);
    case CopyRecord::Task::copy: return move_between(copy, *from, *to);
    case CopyRecord::Task::atomic: return perform(copy, *to);
    case CopyRecord::Task::put:
    case CopyRecord::Task::get: break;
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
    return post(copy, is_put ? to : from, local, is_put);
  }
  const Buffer source = mapped_part(from, copy.source.offset(), copy.bytes, to.remote.kind());
  const Buffer landing = mapped_part(to, copy.there.offset(), copy.bytes, from.remote.kind());
  const bool both = source.data != nullptr && landing.data != nullptr;
  if (both) return post(copy, to, source, true);
  if (copy.shapes == nullptr) return ask_owner(copy);
  log::error("copy from {} to {}: shapes need both segments mapped in the process that copies", describe(copy.source),
             describe(copy.there));
  end(copy, Status::not_supported);
}

void Copies::post(CopyRecord& copy, KnownSegment& known, Buffer local, bool is_put) noexcept {
  copy.inner.delivered = {&Copies::on_moved, &copy};
  if (copy.tells_free && is_put && copy.kept == 0 && !copy.telling)
    copy.inner.source_free = {&Copies::on_source_free, &copy};
  const RmaOptions options{.path = copy.path, .shapes = copy.shapes};
  const bool by_source = copy.task == CopyRecord::Task::copy && !is_put;
  const std::uint64_t offset = by_source ? copy.source.offset() : copy.there.offset();
  const Status status = is_put ? known.remote.post_put(offset, local, copy.inner, options)
                               : known.remote.post_get(offset, local, copy.inner, options);
  if (status != Status::in_progress) moved(copy, {status, copy.inner.result.bytes});
}

void Copies::perform(CopyRecord& copy, KnownSegment& known) noexcept {
  copy.inner.delivered = {&Copies::on_moved, &copy};
  void* const before = copy.value_to == nullptr ? nullptr : copy.value;
  const Status status = known.remote.post_atomic(copy.there.offset(), copy.atomic, copy.inner, before);
  if (status != Status::in_progress) moved(copy, {status, copy.inner.result.bytes});
}

void Copies::ask_owner(CopyRecord& copy) noexcept {
  const pgas::CopyRequest request{copy.source, copy.there, copy.bytes};
  copy.id = ++last_id_;
  try {
    elsewhere_.emplace(copy.id, &copy);
  } catch (const std::bad_alloc&) {
    return end(copy, Status::no_memory);
  }
  const Status status = space_.say(copy.source.where(), {.word = pgas::SpaceWord::copy, .id = copy.id},
                                   std::as_bytes(std::span(&request, 1)));
  if (status == Status::ok) return;
  elsewhere_.erase(copy.id);
  end(copy, status);
}

void Copies::note_copied(std::int32_t from, std::uint64_t id, Status status) noexcept {
  const auto found = elsewhere_.find(id);
  if (found == elsewhere_.end() || found->second->source.rank() != from) return;
  CopyRecord& copy = *found->second;
  elsewhere_.erase(found);
  moved(copy, {status, copy.bytes});
}

void Copies::moved(CopyRecord& copy, const OpResult& result) noexcept {
  if (!result.ok()) return end(copy, result.status);
  if (!copy.telling) copy.moved_bytes = result.bytes;
  // Of one that nobody observes any more the place may be gone.
  if (copy.value_to != nullptr && (copy.posting || copy.observed())) std::memcpy(copy.value_to, copy.value, copy.kept);
  copy.value_to = nullptr;
  if (!copy.at_target.is_wanted()) return end(copy, Status::ok);
  tell(copy);
}

void Copies::tell(CopyRecord& copy) noexcept {
  copy.telling = true;
  AtTarget::What& what = copy.at_target.what();
  if (const auto* ring = std::get_if<AtTarget::Ring>(&what)) return end(copy, ring->bell->ring(ring->epoch));
  if (auto* call = std::get_if<PackedCall>(&what)) return end(copy, call->send());
  if (std::holds_alternative<AtTarget::Tell>(what)) {
    copy.inner.delivered = {&Copies::on_tell, &copy};
    return space_.engine().completions().complete(copy.inner, {Status::ok, 0});
  }
  // A put of its own: the record goes round once more.
  const AtTarget::Set set = std::get<AtTarget::Set>(what);
  copy.at_target = {};
  std::memcpy(copy.value, &set.value, sizeof(set.value));
  copy.kept = sizeof(set.value);
  copy.task = CopyRecord::Task::put;
  copy.there = set.flag;
  copy.shapes = nullptr;
  copy.path = Path::automatic;
  proceed(copy);
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
  records_.give_back(&copy);
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

/// What has not begun is withdrawn; what moves goes on.
void Copies::on_cancel(OpOwner& owner) noexcept {
  auto& copy = static_cast<CopyRecord&>(owner);
  if (copy.waits_for == nullptr) return;
  std::exchange(copy.waits_for, nullptr)->waiting.remove(copy);
  copy.space.copies().end(copy, Status::canceled);
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
}

}  // namespace brant
