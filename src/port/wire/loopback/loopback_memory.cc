#include "port/wire/loopback/loopback_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <new>
#include <utility>

#include "base/atomic_word.h"
#include "port/wire/loopback/loopback_wire.h"

namespace brant::port::loopback {
namespace {

constexpr std::uint64_t kKeyMagic = 0x6b65796c6f6f7062;

struct PackedKey {
  std::uint64_t magic = kKeyMagic;
  std::uint64_t fabric = 0;
  std::uint64_t owner = 0;
  std::uint64_t segment = 0;
  std::uint64_t check = 0;

  [[nodiscard]] std::uint64_t sum() const noexcept {
    return (magic ^ fabric * 31 ^ owner * 131 ^ segment * 8191) * 0x9e3779b97f4a7c15u;
  }
};

const Segment* segment_cast(const WireSegment* segment) noexcept { return reinterpret_cast<const Segment*>(segment); }
Key* key_cast(WireKey* key) noexcept { return reinterpret_cast<Key*>(key); }
const Key* key_cast(const WireKey* key) noexcept { return reinterpret_cast<const Key*>(key); }

}  // namespace

LoopbackMemory::LoopbackMemory(LoopbackWire& wire) noexcept
    : wire_(wire), records_(wire.fabric().options().requests_max) {}

Result<WireSegment*> LoopbackMemory::register_memory(Buffer memory) noexcept {
  if (memory.data == nullptr || memory.bytes == 0) return Status::invalid_argument;
  if (!wire_.capabilities().takes(memory.kind)) return Status::wrong_kind;
  try {
    segments_.push_back(std::make_unique<Segment>());
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  segments_.back()->memory = memory;
  return reinterpret_cast<WireSegment*>(segments_.back().get());
}

void UnmapPages::operator()(std::byte* pages) const noexcept { ::munmap(pages, bytes); }

Result<WireSegment*> LoopbackMemory::allocate_shared(std::size_t bytes) noexcept {
  if (bytes == 0) return Status::invalid_argument;
  void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return Status::no_memory;
  std::unique_ptr<std::byte, UnmapPages> owned(static_cast<std::byte*>(pages), UnmapPages{bytes});
  Result<WireSegment*> segment = register_memory({pages, bytes, MemoryKind::host});
  if (segment) segments_.back()->owned = std::move(owned);
  return segment;
}

Buffer LoopbackMemory::memory_of(const WireSegment* segment) const noexcept {
  return segment != nullptr ? segment_cast(segment)->memory : Buffer{};
}

Result<std::vector<std::byte>> LoopbackMemory::pack_key(const WireSegment* segment) noexcept {
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i].get() != segment_cast(segment) || !segments_[i]->alive) continue;
    PackedKey key;
    key.fabric = wire_.fabric().id();
    key.owner = wire_.index();
    key.segment = i;
    key.check = key.sum();
    try {
      std::vector<std::byte> packed(sizeof key);
      std::memcpy(packed.data(), &key, sizeof key);
      return packed;
    } catch (const std::bad_alloc&) {
      return Status::no_memory;
    }
  }
  return Status::invalid_argument;
}

void LoopbackMemory::release_segment(WireSegment* segment) noexcept {
  for (const auto& one : segments_) {
    if (one.get() != segment_cast(segment)) continue;
    one->alive = false;
    one->memory = {};
    one->owned.reset();
  }
}

Result<WireKey*> LoopbackMemory::import_key(WireEndpoint* endpoint, std::span<const std::byte> packed) noexcept {
  Endpoint* to = wire_.checked(endpoint);
  PackedKey parsed;
  if (to == nullptr || packed.size() != sizeof parsed) return Status::invalid_argument;
  std::memcpy(&parsed, packed.data(), sizeof parsed);
  const bool sound = parsed.magic == kKeyMagic && parsed.check == parsed.sum() &&
                     parsed.fabric == wire_.fabric().id() && parsed.owner == to->peer;
  if (!sound) return Status::invalid_argument;
  try {
    keys_.push_back(std::make_unique<Key>());
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  *keys_.back() = {to, parsed.segment, true};
  return reinterpret_cast<WireKey*>(keys_.back().get());
}

void LoopbackMemory::release_key(WireKey* key) noexcept {
  if (key != nullptr) key_cast(key)->alive = false;
}

Segment* LoopbackMemory::segment_of(const Key& key) noexcept {
  LoopbackWire* owner = wire_.fabric().wire(key.endpoint->peer);
  if (!key.alive || owner == nullptr) return nullptr;
  auto& segments = static_cast<LoopbackMemory*>(owner->remote_memory())->segments_;
  return key.segment < segments.size() && segments[key.segment]->alive ? segments[key.segment].get() : nullptr;
}

Result<void*> LoopbackMemory::map_remote(WireKey* key, std::uint64_t remote_address) noexcept {
  Segment* segment = key != nullptr ? segment_of(*key_cast(key)) : nullptr;
  if (segment == nullptr) return Status::invalid_argument;
  const std::uint64_t base = reinterpret_cast<std::uintptr_t>(segment->memory.data);
  if (remote_address < base || remote_address - base >= segment->memory.bytes) return Status::invalid_argument;
  // As in the real thing, only memory of allocate_shared can be mapped.
  if (segment->owned == nullptr) return Status::not_supported;
  return reinterpret_cast<void*>(remote_address);
}

Result<Buffer> LoopbackMemory::resolve(WireEndpoint* endpoint, const WireKey* key, std::uint64_t remote_address,
                                       std::size_t bytes) noexcept {
  const Endpoint* to = wire_.checked(endpoint);
  if (to == nullptr || key == nullptr || key_cast(key)->endpoint != to) return Status::invalid_argument;
  const Segment* segment = segment_of(*key_cast(key));
  if (segment == nullptr) return wire_.peer_of(*to) != nullptr ? Status::invalid_argument : Status::peer_lost;
  const std::uint64_t base = reinterpret_cast<std::uintptr_t>(segment->memory.data);
  const bool inside = remote_address >= base && remote_address - base <= segment->memory.bytes &&
                      bytes <= segment->memory.bytes - (remote_address - base);
  if (!inside) return Status::invalid_argument;
  return Buffer{reinterpret_cast<void*>(remote_address), bytes, segment->memory.kind};
}

Status LoopbackMemory::perform(const OneSided& what) noexcept {
  const Fabric& fabric = wire_.fabric();
  if (what.segment != nullptr && !what.segment->alive) return Status::peer_rejected;
  switch (what.type) {
    case OneSidedKind::put: return fabric.copy(what.remote, what.local) ? Status::ok : Status::device_failed;
    case OneSidedKind::get: return fabric.copy(what.local, what.remote) ? Status::ok : Status::device_failed;
    case OneSidedKind::atomic: *what.before = perform_atomic(what.remote.data, what.atomic); break;
    case OneSidedKind::flush: break;
  }
  return Status::ok;
}

Status LoopbackMemory::post(const OneSided& what, WireOp& op) noexcept {
  op.bytes = what.local.bytes;
  const bool reachable = wire_.peer_of(*what.endpoint) != nullptr;
  if (reachable && wire_.fabric().immediate()) return op.status = perform(what);
  if (!wire_.operations().take_slot()) return Status::limit_reached;
  OneSided* record = records_.take();
  if (record == nullptr) {
    wire_.operations().give_slot();
    return Status::no_memory;
  }
  *record = what;
  record->kind = RecordKind::one_sided;
  record->op = &op;
  record->due = wire_.tick() + wire_.fabric().random_delay();
  op.request = static_cast<Record*>(record);
  under_way_.push_back(*record);
  return op.status = Status::in_progress;
}

Status LoopbackMemory::put(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, ConstBuffer source,
                           WireOp& op) noexcept {
  if (const Status why = wire_.operations().check(source.data, source.bytes, source.kind, op); why != Status::ok)
    return why;
  const Result<Buffer> remote = resolve(endpoint, key, remote_address, source.bytes);
  if (!remote) return remote.status();
  OneSided what;
  what.type = OneSidedKind::put;
  what.endpoint = key_cast(key)->endpoint;
  what.segment = segment_of(*key_cast(key));
  what.remote = *remote;
  what.local = {const_cast<void*>(source.data), source.bytes, source.kind};  // only read: see perform
  return post(what, op);
}

Status LoopbackMemory::get(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, Buffer landing,
                           WireOp& op) noexcept {
  if (const Status why = wire_.operations().check(landing.data, landing.bytes, landing.kind, op); why != Status::ok)
    return why;
  const Result<Buffer> remote = resolve(endpoint, key, remote_address, landing.bytes);
  if (!remote) return remote.status();
  OneSided what;
  what.type = OneSidedKind::get;
  what.endpoint = key_cast(key)->endpoint;
  what.segment = segment_of(*key_cast(key));
  what.remote = *remote;
  what.local = landing;
  return post(what, op);
}

Status LoopbackMemory::atomic(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, const Atomic& atomic,
                              std::uint64_t* before, WireOp& op) noexcept {
  if (!atomic.exists() || before == nullptr || remote_address % atomic.bytes() != 0) return Status::invalid_argument;
  if (const Status why = wire_.operations().check(nullptr, 0, MemoryKind::host, op); why != Status::ok) return why;
  const Result<Buffer> remote = resolve(endpoint, key, remote_address, atomic.bytes());
  if (!remote) return remote.status();
  if (!host_accessible((*remote).kind)) return Status::not_supported;
  OneSided what;
  what.type = OneSidedKind::atomic;
  what.endpoint = key_cast(key)->endpoint;
  what.segment = segment_of(*key_cast(key));
  what.remote = *remote;
  what.local = {nullptr, atomic.bytes(), MemoryKind::host};
  what.atomic = atomic;
  what.before = before;
  return post(what, op);
}

Status LoopbackMemory::flush(WireEndpoint* endpoint, WireOp& op) noexcept {
  if (const Status why = wire_.operations().check(nullptr, 0, MemoryKind::host, op); why != Status::ok) return why;
  OneSided what;
  what.endpoint = wire_.checked(endpoint);
  if (what.endpoint == nullptr) return Status::invalid_argument;
  return post(what, op);
}

/// In the order of posting, so that a flush comes after what it covers. Operations towards the dead stay until
/// `cancel`.
unsigned LoopbackMemory::progress() noexcept {
  unsigned events = 0;
  OneSided* following = nullptr;
  for (OneSided* record = under_way_.front(); record != nullptr; record = following) {
    following = OneSideds::next(*record);
    if (wire_.peer_of(*record->endpoint) == nullptr) continue;
    if (record->due > wire_.tick()) break;
    const Status status = perform(*record);
    WireOp& op = *record->op;
    under_way_.remove(*record);
    records_.give(*record);
    wire_.operations().give_slot();
    wire_.operations().complete(op, status);
    ++events;
  }
  return events;
}

void LoopbackMemory::cancel(Endpoint& endpoint) noexcept {
  OneSided* following = nullptr;
  for (OneSided* record = under_way_.front(); record != nullptr; record = following) {
    following = OneSideds::next(*record);
    if (record->endpoint != &endpoint) continue;
    WireOp& op = *record->op;
    under_way_.remove(*record);
    records_.give(*record);
    wire_.operations().give_slot();
    wire_.operations().complete(op, Status::canceled);
  }
}

}  // namespace brant::port::loopback
