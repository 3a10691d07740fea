#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ucp/api/ucp.h>

#include "port/wire.h"
#include "port/wire/ucx/ucx_atomics.h"
#include "port/wire/ucx/ucx_endpoints.h"
#include "port/wire/ucx/ucx_operations.h"
#include "port/wire/ucx/ucx_pieces.h"
#include "port/wire/ucx/ucx_worker.h"

namespace brant::port::ucx {

/// What a WireSegment of this adapter is.
struct UcxSegment {
  ucp_mem_h handle = nullptr;
  Buffer memory;
};

/// What a WireKey of this adapter is. The range is checked here: UCX would write wherever it is told.
struct UcxKey {
  ucp_rkey_h handle = nullptr;
  UcxEndpoint* endpoint = nullptr;
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  std::byte* mapped = nullptr;  ///< Where this process sees `base`, if it can.
  MemoryKind kind = MemoryKind::host;
};

/// One-sided operations over UCX. Every address is checked against the segment's range, which travels with the key.
class UcxRemoteMemory final : public RemoteMemory {
 public:
  UcxRemoteMemory(UcxWorker& worker, UcxOperations& operations, UcxEndpoints& endpoints);

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

  /// Lets go of all segments and keys.
  void release() noexcept;

  /// Bytes at an address a peer names, or null unless all lie in host memory of one of our segments.
  [[nodiscard]] std::byte* local_bytes(std::uint64_t address, std::size_t bytes) const noexcept;
  /// A word likewise, which is aligned.
  [[nodiscard]] void* local_word(std::uint64_t address, std::size_t bytes) const noexcept;

 private:
  Result<WireSegment*> map(const ucp_mem_map_params_t& params, MemoryKind kind) noexcept;
  /// The endpoint if the access is one UCX may be given, else null and `why`.
  UcxEndpoint* checked(WireEndpoint* endpoint, const WireKey* key, std::uint64_t remote_address, std::size_t bytes,
                       Status& why) const noexcept;

  /// The owner's CPU does it, since no transport reaches that memory by itself.
  [[nodiscard]] static bool is_by_owner(const UcxEndpoint& to, const UcxKey& there, std::size_t bytes,
                                        MemoryKind here) noexcept {
    return !to.reaches && there.mapped == nullptr && bytes != 0 && host_accessible(there.kind) && host_accessible(here);
  }

  ucp_request_param_t& params_of(UcxRequest& request, MemoryKind kind) noexcept;

  UcxWorker& worker_;
  const UcxLibrary& library_;
  UcxOperations& operations_;
  UcxEndpoints& endpoints_;
  UcxAtomics atomics_{worker_, operations_, *this};
  UcxPieces pieces_{worker_, operations_, *this};
  ucp_request_param_t params_{};  ///< Filled once; a post changes two members, as in UcxTags.
  std::vector<std::unique_ptr<UcxSegment>> segments_;
  std::vector<std::unique_ptr<UcxKey>> keys_;
};

}  // namespace brant::port::ucx
