#include "brant/pgas/global_segment.h"

#include <algorithm>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "brant/coll/team.h"
#include "models/pgas/space_state.h"

namespace brant {
namespace {

OwnedSegment& require_open(const std::shared_ptr<OwnedSegment>& owned, const char* what) {
  if (owned != nullptr && owned->space != nullptr) return *owned;
  throw Error(Status::invalid_argument,
              fmt::format("{} a segment of the global space that is closed, or whose space has gone", what));
}

}  // namespace

GlobalSegment& GlobalSegment::operator=(GlobalSegment&& other) noexcept {
  GlobalSegment incoming(std::move(other));
  std::swap(owned_, incoming.owned_);
  return *this;
}

GlobalSegment::~GlobalSegment() {
  if (owned_ != nullptr && owned_->space != nullptr) owned_->space->owned().retire(owned_);
}

Buffer GlobalSegment::memory() const noexcept {
  return owned_ == nullptr || owned_->space == nullptr ? Buffer{} : owned_->view;
}

GlobalPtr<std::byte> GlobalSegment::begin() const noexcept {
  return owned_ == nullptr ? GlobalPtr<std::byte>{} : owned_->at(0);
}

GlobalPtr<std::byte> GlobalSegment::allocate_bytes(std::size_t count, std::size_t each, std::size_t alignment) {
  constexpr std::size_t kOfDevices = 256;
  OwnedSegment& owned = require_open(owned_, "allocate in");
  if (!std::has_single_bit(alignment) || alignment > kOfDevices) {
    throw Error(Status::invalid_argument,
                fmt::format("an alignment of {}: use a power of two of {} at most", alignment, kOfDevices));
  }
  if (!host_accessible(owned.view.kind)) alignment = kOfDevices;
  const bool fits = count <= std::numeric_limits<std::size_t>::max() / each;
  const auto at = fits ? owned.allocator.take(count * each, alignment) : std::nullopt;
  if (at) return owned.at(*at);
  throw Error(Status::no_memory,
              fmt::format("{} objects of {} bytes in segment {} of {} bytes of {} memory: {} bytes are used, and the "
                          "largest free piece has {}. Free some, or make a larger segment",
                          count, each, owned.id, owned.view.bytes, memory_kind_name(owned.view.kind),
                          owned.allocator.used(), owned.allocator.largest_free()));
}

void GlobalSegment::deallocate(GlobalPtr<const std::byte> at) {
  if (at.is_null()) return;
  OwnedSegment& owned = require_open(owned_, "deallocate in");
  if (at.rank() == owned.rank && at.segment() == owned.id && owned.allocator.give_back(at.offset())) return;
  throw Error(Status::invalid_argument, fmt::format("{} is no allocation of segment {} of rank {}, or was given back",
                                                    describe(at), owned.id, owned.rank));
}

std::size_t GlobalSegment::bytes_used() const noexcept {
  return owned_ == nullptr ? 0 : static_cast<std::size_t>(owned_->allocator.used());
}

void* GlobalSegment::local_bytes(GlobalPtr<const std::byte> at, std::size_t bytes) const noexcept {
  if (owned_ == nullptr || owned_->space == nullptr) return nullptr;
  const bool inside = at.rank() == owned_->rank && at.segment() == owned_->id && owned_->covers(at.offset(), bytes);
  return inside ? static_cast<std::byte*>(owned_->view.data) + at.offset() : nullptr;
}

GlobalPtr<std::byte> GlobalSegment::global_bytes(const void* object) const noexcept {
  if (owned_ == nullptr || owned_->space == nullptr) return {};
  const auto base = reinterpret_cast<std::uintptr_t>(owned_->view.data);
  const auto address = reinterpret_cast<std::uintptr_t>(object);
  return address >= base && address - base < owned_->view.bytes ? owned_->at(address - base) : GlobalPtr<std::byte>{};
}

Status GlobalSegment::publish(Rank to) noexcept { return publish(std::span(&to, 1)); }

Status GlobalSegment::publish(std::span<const Rank> to) noexcept {
  if (owned_ == nullptr || owned_->space == nullptr) return Status::invalid_argument;
  Status first = Status::ok;
  for (const Rank rank : to) {
    if (rank.value == owned_->rank) continue;
    const Status status = owned_->space->engine().peers().find(rank.value) == nullptr
                              ? Status::invalid_argument
                              : owned_->space->owned().tell(rank, owned_->id);
    if (first == Status::ok) first = status;
  }
  return first;
}

Status GlobalSegment::publish(const Team& to) noexcept {
  if (owned_ == nullptr || owned_->space == nullptr) return Status::invalid_argument;
  Status first = Status::ok;
  for (int member = 0; member < to.size(); ++member) {
    const Status status = publish(to.member(member));
    if (first == Status::ok) first = status;
  }
  return first;
}

Status GlobalSegment::publish_to_all() noexcept {
  if (owned_ == nullptr || owned_->space == nullptr) return Status::invalid_argument;
  Status first = Status::ok;
  for (int rank = 0; rank < owned_->space->engine().job().size; ++rank) {
    const Status status = publish(Rank{rank});
    if (first == Status::ok) first = status;
  }
  return first;
}

Future<void> GlobalSegment::retire() {
  OwnedSegment& owned = require_open(owned_, "retire");
  owned.retired.emplace();
  Future<void> done = owned.retired->future();
  const std::shared_ptr<OwnedSegment> leaving = std::move(owned_);
  leaving->space->owned().retire(leaving);
  return done;
}

}  // namespace brant
