#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "port/adapters.h"

namespace brant {

/// What every process tells all others, once, at start.
struct PeerRecord {
  std::string wire_version;   ///< A mix is refused: it aborts inside the network library.
  std::string host_id;        ///< Boot id and IPC namespace: who shares memory with whom.
  std::string pid_namespace;  ///< Where `pid` means something; CUDA IPC and pidfd need a shared one.
  std::string device_id;      ///< UUID of the GPU, empty without one.
  pid_t pid = 0;
  std::vector<std::byte> wire_address;
  MemoryKind mappable_kind = MemoryKind::detect;  ///< Of device memory that peers may map; detect: none.
  std::vector<std::byte> link_address;            ///< Empty if this process shares no memory.
  std::vector<std::byte> lease_address;           ///< Where it answers processes of other hosts; empty: nowhere.
};

/// Tells all processes, once. Throws if the bootstrap refuses.
void publish(port::Boot& boot, const char* key, std::span<const std::byte> value);

PeerRecord make_peer_record(const port::Adapters& adapters);
std::vector<std::byte> pack(const PeerRecord& record);
/// Throws version_mismatch if the record is of another brant, invalid_argument if it is damaged.
PeerRecord unpack_peer_record(int rank, std::span<const std::byte> packed);

/// Whether the network libraries of two processes understand each other, as far as their versions tell, or the user
/// has said so (BRANT_ALLOW_MIXED_UCX).
bool have_one_wire_version(const PeerRecord& one, const PeerRecord& other);
/// Throws version_mismatch, naming both versions, if some process uses another network library than `mine`.
void require_one_wire_version(const std::vector<PeerRecord>& records, int mine);

/// Throws invalid_argument, naming both ranks, if another process of this host uses the GPU of `mine`. The device
/// adapter sees only its own process: with CUDA_VISIBLE_DEVICES=0 for all, each believes it has a GPU to itself.
void require_own_gpu(const std::vector<PeerRecord>& records, int mine);

}  // namespace brant
