#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "port/wire/loopback/records.h"

namespace brant::port::loopback {

class LoopbackWire;

/// Pages from the system: aligned, zeroed, and refused where a heap would try.
struct UnmapPages {
  std::size_t bytes = 0;
  void operator()(std::byte* pages) const noexcept;
};

/// What a WireSegment is. A released one stays as a mark, so that a key to it is refused and not followed.
struct Segment {
  Buffer memory;
  std::unique_ptr<std::byte, UnmapPages> owned;  ///< Of allocate_shared.
  bool alive = true;
};

/// What a WireKey is.
struct Key {
  Endpoint* endpoint = nullptr;
  std::size_t segment = 0;  ///< Its number at the owner.
  bool alive = true;
};

/// One-sided operations within the process: checked, then copied.
class LoopbackMemory final : public RemoteMemory {
 public:
  explicit LoopbackMemory(LoopbackWire& wire) noexcept;

  Result<WireSegment*> register_memory(Buffer memory) noexcept override;
  Result<WireSegment*> allocate_shared(std::size_t bytes) noexcept override;
  [[nodiscard]] Buffer memory_of(const WireSegment* segment) const noexcept override;
  Result<std::vector<std::byte>> pack_key(const WireSegment* segment) noexcept override;
  void release_segment(WireSegment* segment) noexcept override;
  Result<WireKey*> import_key(WireEndpoint* endpoint, std::span<const std::byte> packed) noexcept override;
  void release_key(WireKey* key) noexcept override;
  Result<void*> map_remote(WireKey* key, std::uint64_t remote_address) noexcept override;
  Status put(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, ConstBuffer source,
             WireOp& op) noexcept override;
  Status get(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, Buffer landing,
             WireOp& op) noexcept override;
  Status atomic(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, const Atomic& what,
                std::uint64_t* before, WireOp& op) noexcept override;
  Status flush(WireEndpoint* endpoint, WireOp& op) noexcept override;

  /// Performs what is due. Returns how many.
  unsigned progress() noexcept;
  [[nodiscard]] bool idle() const noexcept { return under_way_.empty(); }
  void cancel(Endpoint& endpoint) noexcept;

 private:
  /// The bytes behind an address of a peer. Not ok when the key does not cover them.
  Result<Buffer> resolve(WireEndpoint* endpoint, const WireKey* key, std::uint64_t remote_address,
                         std::size_t bytes) noexcept;
  /// The live segment a key names, or null.
  Segment* segment_of(const Key& key) noexcept;
  Status post(const OneSided& what, WireOp& op) noexcept;
  [[nodiscard]] Status perform(const OneSided& what) noexcept;

  LoopbackWire& wire_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<std::unique_ptr<Key>> keys_;
  OneSideds under_way_;
  Pool<OneSided, &OneSided::place, 64> records_;
};

}  // namespace brant::port::loopback
