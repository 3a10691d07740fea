#include "port/wire/faulty/faulty_memory.h"

#include "port/wire/faulty/faulty_post.inl.h"

namespace brant::port {

Result<std::vector<std::byte>> FaultyMemory::pack_key(const WireSegment* segment) noexcept {
  Result<std::vector<std::byte>> key = inside_.pack_key(segment);
  if (!key || ++keys_packed_ != wire_.policy_.corrupt_nth_key) return key;
  (*key)[key->size() / 2] ^= std::byte{0x20};
  ++wire_.counts_.corrupted;
  return key;
}

Status FaultyMemory::put(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, ConstBuffer source,
                         WireOp& op) noexcept {
  return wire_.post(FaultPoint::put, endpoint, op,
                    [&](WireOp& shadow) { return inside_.put(endpoint, key, remote_address, source, shadow); });
}

Status FaultyMemory::get(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, Buffer landing,
                         WireOp& op) noexcept {
  return wire_.post(FaultPoint::get, endpoint, op,
                    [&](WireOp& shadow) { return inside_.get(endpoint, key, remote_address, landing, shadow); });
}

Status FaultyMemory::atomic(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, const Atomic& what,
                            std::uint64_t* before, WireOp& op) noexcept {
  return wire_.post(FaultPoint::atomic, endpoint, op, [&](WireOp& shadow) {
    return inside_.atomic(endpoint, key, remote_address, what, before, shadow);
  });
}

Status FaultyMemory::flush(WireEndpoint* endpoint, WireOp& op) noexcept {
  return wire_.post(FaultPoint::flush, endpoint, op, [&](WireOp& shadow) { return inside_.flush(endpoint, shadow); });
}

}  // namespace brant::port
