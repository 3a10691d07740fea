#pragma once

#include <vector>

#include "port/wire/faulty/faulty.h"

namespace brant::port {

/// The one-sided half of FaultyWire.
class FaultyMemory final : public RemoteMemory {
 public:
  FaultyMemory(FaultyWire& wire, RemoteMemory& inside) noexcept : wire_(wire), inside_(inside) {}

  Result<WireSegment*> register_memory(Buffer memory) noexcept override { return inside_.register_memory(memory); }
  Result<WireSegment*> allocate_shared(std::size_t bytes) noexcept override { return inside_.allocate_shared(bytes); }
  [[nodiscard]] Buffer memory_of(const WireSegment* segment) const noexcept override {
    return inside_.memory_of(segment);
  }
  Result<std::vector<std::byte>> pack_key(const WireSegment* segment) noexcept override;
  void release_segment(WireSegment* segment) noexcept override { inside_.release_segment(segment); }
  Result<WireKey*> import_key(WireEndpoint* endpoint, std::span<const std::byte> packed) noexcept override {
    return inside_.import_key(endpoint, packed);
  }
  void release_key(WireKey* key) noexcept override { inside_.release_key(key); }
  Result<void*> map_remote(WireKey* key, std::uint64_t remote_address) noexcept override {
    return inside_.map_remote(key, remote_address);
  }
  Status put(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, ConstBuffer source,
             WireOp& op) noexcept override;
  Status get(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, Buffer landing,
             WireOp& op) noexcept override;
  Status atomic(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, const Atomic& what,
                std::uint64_t* before, WireOp& op) noexcept override;
  Status flush(WireEndpoint* endpoint, WireOp& op) noexcept override;

 private:
  FaultyWire& wire_;
  RemoteMemory& inside_;
  std::uint64_t keys_packed_ = 0;
};

}  // namespace brant::port
