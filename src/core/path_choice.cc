#include "core/path_choice.h"

namespace brant {
namespace {

PathChoice refuse(Path path, const char* reason) noexcept { return {path, Status::not_supported, reason}; }

PathChoice forced_choice(const PathQuery& query) noexcept {
  switch (query.forced) {
    case Path::ucx:
      if (!query.wire_takes_kind) return refuse(Path::ucx, "the network library does not take this kind of memory");
      return {Path::ucx, Status::ok, "forced"};
    case Path::staged: return {Path::staged, Status::ok, "forced"};
    case Path::shm:
      if (!host_accessible(query.kind)) return refuse(Path::shm, "the CPU cannot reach this kind of memory");
      if (!query.shm_open)
        return refuse(Path::shm, "the two ends share no memory (other host, or the link could not be opened)");
      return {Path::shm, Status::ok, "forced"};
    case Path::copy_engine:
    case Path::courier:
      if (host_accessible(query.kind)) return refuse(query.forced, "only device memory is mapped by the peer");
      if (!query.peer_maps)
        return refuse(query.forced,
                      "the two ends cannot map each other's device memory (other host, other pid "
                      "namespace, or not the same kind of device)");
      if (query.forced == Path::courier && query.courier_bytes == 0)
        return refuse(Path::courier, "this device has no courier (BRANT_COURIER=0, or its kernel could not be loaded)");
      return {query.forced, Status::ok, "forced"};
    case Path::kernel: return refuse(Path::kernel, "only transfers that a stream triggers take it");
    case Path::automatic: break;
  }
  return refuse(query.forced, "not a path");
}

}  // namespace

PathChoice choose_path(const PathQuery& query) noexcept {
  if (query.forced != Path::automatic) return forced_choice(query);
  const bool shm_possible = query.shm_open && host_accessible(query.kind);
  if (shm_possible && shm_is_faster(query.bytes)) {
    return {Path::shm, Status::ok, "host memory within one host, of a size where two copies by the CPUs are faster"};
  }
  if (shm_possible && !query.wire_takes_kind) return {Path::shm, Status::ok, "host memory within one host"};
  if (query.peer_maps && !host_accessible(query.kind) && query.bytes <= query.courier_bytes) {
    return {Path::courier, Status::ok,
            "a kernel of the sender's device writes into the mapped memory of the receiver's"};
  }
  if (query.peer_maps && !host_accessible(query.kind)) {
    return {Path::copy_engine, Status::ok, "the sender's device writes into the mapped memory of the receiver's"};
  }
  if (query.wire_takes_kind) return {Path::ucx, Status::ok, "the network library moves this kind directly"};
  return {Path::staged, Status::ok, "the network library does not take this kind: through pinned host memory"};
}

}  // namespace brant
