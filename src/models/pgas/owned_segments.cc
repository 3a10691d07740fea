#include "models/pgas/owned_segments.h"

#include <algorithm>
#include <new>
#include <utility>

#include "models/pgas/space_state.h"

namespace brant {

OwnedSegments::~OwnedSegments() {
  space_.engine().deferrals().take_back(*this);
  for (const auto& [id, owned] : open_) owned->space = nullptr;
}

std::shared_ptr<OwnedSegment> OwnedSegments::add(Memory memory, Buffer view) {
  std::uint32_t& last = space_.last_segment();
  if (last == ~std::uint32_t{0})
    throw Error(Status::limit_reached, "this process has made 2^32 - 1 segments, and numbers are not given twice");
  const auto info = space_.engine().device().query(view.data);
  const bool on_device = info.ok() && !host_accessible(info->kind) && info->device > 0;
  auto owned =
      std::make_shared<OwnedSegment>(space_, space_.rank(), last + 1, std::move(memory), expose(space_.runtime(), view),
                                     on_device ? static_cast<unsigned>(info->device) : 0u);
  open_.emplace(owned->id, owned);
  ++last;
  return owned;
}

OwnedSegment* OwnedSegments::find(std::uint32_t id) const noexcept {
  const auto found = open_.find(id);
  return found == open_.end() ? nullptr : found->second.get();
}

Status OwnedSegments::tell(Rank to, std::uint32_t id) noexcept {
  OwnedSegment* owned = find(id);
  Status known = owned == nullptr ? Status::not_found : Status::ok;
  if (owned != nullptr && std::ranges::find(owned->holders, to.value) == owned->holders.end()) {
    try {
      owned->holders.push_back(to.value);
    } catch (const std::bad_alloc&) {
      known = Status::no_memory;
    }
  }
  const SegmentTicket ticket = known == Status::ok ? owned->segment.ticket() : SegmentTicket{};
  const Status said = space_.say(
      to, {.word = pgas::SpaceWord::ticket, .status = static_cast<std::int32_t>(known), .segment = id}, ticket.bytes());
  return known != Status::ok ? known : said;
}

void OwnedSegments::retire(const std::shared_ptr<OwnedSegment>& owned) noexcept {
  owned->space = nullptr;
  retiring_.push_back(owned);
  open_.erase(owned->id);
  // Of the holders, this process answers within the call.
  const std::vector<std::int32_t> holders = owned->holders;
  for (const std::int32_t holder : holders) {
    static_cast<void>(space_.say(Rank{holder}, {.word = pgas::SpaceWord::retired, .segment = owned->id}, {}));
  }
  look_at_retiring();
}

void OwnedSegments::retire_all() noexcept {
  while (!open_.empty()) retire(std::shared_ptr<OwnedSegment>(open_.begin()->second));
}

void OwnedSegments::note_let_go(std::int32_t holder, std::uint32_t id) noexcept {
  if (OwnedSegment* owned = find(id)) {
    std::erase(owned->holders, holder);
    return;
  }
  for (const auto& owned : retiring_) {
    if (owned->id == id) std::erase(owned->holders, holder);
  }
  look_at_retiring();
}

void OwnedSegments::look_around() noexcept {
  for (const auto& owned : retiring_) {
    std::erase_if(owned->holders, [&](std::int32_t holder) { return space_.has_gone(holder); });
  }
  look_at_retiring();
}

void OwnedSegments::look_at_retiring() noexcept {
  bool any = false;
  for (std::size_t i = retiring_.size(); i-- > 0;) {
    if (!retiring_[i]->holders.empty()) continue;
    unreached_.push_back(std::move(retiring_[i]));
    retiring_.erase(retiring_.begin() + static_cast<std::ptrdiff_t>(i));
    any = true;
  }
  if (any) space_.engine().deferrals().defer(*this);
}

void OwnedSegments::run_deferred() noexcept {
  for (auto& owned : std::exchange(unreached_, {})) {
    owned->segment.close();
    owned->memory = {};
    owned->told.delivered = {&OwnedSegments::tell_retired, owned.get()};
    OwnedSegment& told = *owned;
    closed_.push_back(std::move(owned));
    told.space = &space_;
    space_.engine().completions().complete(told.told, {Status::ok, 0});
  }
}

void OwnedSegments::tell_retired(void* record, const OpResult&) noexcept {
  auto& owned = *static_cast<OwnedSegment*>(record);
  OwnedSegments& self = std::exchange(owned.space, nullptr)->owned();
  std::optional<Promise<void>> promise = std::exchange(owned.retired, std::nullopt);
  std::erase_if(self.closed_, [&](const auto& each) { return each.get() == &owned; });
  if (promise) promise->deliver();
}

}  // namespace brant
