#include "core/paths/path_choice.h"

#include <algorithm>

namespace brant {
namespace {

constexpr const char* kCourierBetweenDevices = "the courier copies between device memory";
constexpr const char* kNoCourier = "this device has no courier (BRANT_COURIER=0, or its kernel could not be loaded)";
constexpr const char* kNoLink = "the two ends share no memory (other host, or the link could not be opened)";

/// The same as `refusal` for a put or a get.
const char* one_sided_refusal(Path path, const PathQuery& query, EndPair ends) noexcept {
  switch (path) {
    case Path::ucx:
      if (query.wire_takes_kind) return nullptr;
      return query.locality == Locality::same_process
                 ? "the network is not asked within one process, or does not take these kinds of memory"
                 : "the network library does not take these kinds of memory";
    case Path::staged: return nullptr;
    case Path::shm:
      if (ends.from_device || ends.to_device) return "the CPU cannot reach this kind of memory";
      return query.shm_open ? nullptr
                            : "the memory of the other end is not mapped here (other host, or not of Runtime::allocate "
                              "with 16 KB or more)";
    case Path::copy_engine:
    case Path::courier:
      if (!ends.from_device && !ends.to_device) return "only device memory is mapped by the peer";
      if (!query.peer_maps)
        return "the device memory is not mapped here (other host, other pid namespace, or not the same kind of device)";
      if (ends.from_device != ends.to_device && !query.pinned_here)
        return "the device takes host memory only if it is pinned and of this process, or mapped and registered here";
      if (path == Path::copy_engine) return nullptr;
      return query.courier_bytes != 0 ? nullptr : kNoCourier;
    case Path::kernel: return "only transfers that a stream triggers take it";
    case Path::automatic: break;
  }
  return "not a path";
}

/// Why a path cannot serve at all; null if it can, whether or not it should.
const char* refusal(Path path, const PathQuery& query) noexcept {
  const EndPair ends = EndPair::of(query.kind, query.other_kind);
  if (query.one_sided) return one_sided_refusal(path, query, ends);
  switch (path) {
    case Path::ucx: return query.wire_takes_kind ? nullptr : "the network library does not take this kind of memory";
    case Path::staged: return nullptr;
    case Path::shm:
      if (ends.from_device) return "the CPU cannot reach this kind of memory";
      if (!query.shm_open) return kNoLink;
      // Small messages come to the receiver as they are, and it copies them to its device.
      if (ends.to_device && query.bytes > kShmSmallBytes) return "the CPU cannot reach the memory of the other end";
      return nullptr;
    case Path::copy_engine:
    case Path::courier:
      if (!ends.from_device && !ends.to_device) return "only device memory is mapped by the peer";
      if (ends.from_device && !ends.to_device && !query.mapped_landing)
        return "the memory of the other end is the host's, and not mapped here";
      // From pageable memory the device's copy would make the caller wait.
      if (!ends.from_device && query.kind != MemoryKind::pinned && query.wire_takes_kind)
        return "from host memory that is not pinned the network goes first";
      if (!query.peer_maps)
        return "the two ends cannot map each other's device memory (other host, other pid namespace, or not the same "
               "kind of device)";
      if (path == Path::courier && ends.from_device != ends.to_device) return kCourierBetweenDevices;
      return path == Path::courier && query.courier_bytes == 0 ? kNoCourier : nullptr;
    case Path::kernel: return "only transfers that a stream triggers take it";
    case Path::automatic: break;
  }
  return "not a path";
}

/// The same for a path that nobody demanded.
const char* refusal_unforced(Path path, const PathQuery& query) noexcept {
  const char* reason = refusal(path, query);
  if (reason != nullptr) return reason;
  if (path == Path::courier && query.bytes > query.courier_bytes)
    return "the message is larger than what the courier takes";
  // It would map the memory a second time, for good: what is allocated there later could not be mapped any more.
  if (path == Path::ucx && query.one_sided && query.peer_maps &&
      host_accessible(query.kind) != host_accessible(query.other_kind))
    return "the device memory is mapped here, so that nothing needs the network";
  return nullptr;
}

const char* praise(Path path) noexcept {
  switch (path) {
    case Path::shm: return "the CPUs copy through memory that both processes map";
    case Path::courier: return "a kernel of the sender's device writes into the mapped memory of the receiver's";
    case Path::copy_engine: return "the sender's device writes into the mapped memory of the receiver's";
    case Path::ucx: return "the network library moves this kind directly";
    default: return "through pinned host memory";
  }
}

/// A message that the receiver copies from where it is: whatever is faster for other memory (decision 14).
bool is_pulled(const PathQuery& query) noexcept {
  const EndPair ends = EndPair::of(query.kind, query.other_kind);
  return query.mapped_source && query.shm_open && !query.one_sided && !ends.from_device && !ends.to_device &&
         query.bytes >= kOfferedBytes;
}

/// Between host memories there is nothing to stage: a message goes as if nothing was forced, and is called what it is.
Path forced_path(const PathQuery& query) noexcept {
  const EndPair ends = EndPair::of(query.kind, query.other_kind);
  const bool nothing_to_stage = !query.one_sided && !ends.from_device && !ends.to_device;
  return query.forced == Path::staged && nothing_to_stage ? Path::automatic : query.forced;
}

/// A message between a device and host memory that the device reaches: it needs nobody else.
bool is_direct(const PathQuery& query) noexcept {
  const EndPair ends = EndPair::of(query.kind, query.other_kind);
  if (query.one_sided || !query.peer_maps || ends.from_device == ends.to_device) return false;
  if (ends.from_device) return query.mapped_landing;
  return query.kind == MemoryKind::pinned && query.bytes > kShmSmallBytes;
}

/// Which measurements hold for a path.
EndPair measured_ends(Path path, const PathQuery& query) noexcept {
  return path == Path::shm && is_pulled(query) ? kFromMapped : EndPair::of(query.kind, query.other_kind);
}

const PathOrder& order_for(const PathQuery& query, const PathOrder& order) noexcept {
  const EndPair ends = EndPair::of(query.kind, query.other_kind);
  if (is_direct(query)) return PathOrder::one_sided();
  // Orders are measured with messages: between devices a put goes as they do, with host memory it does not.
  if (query.one_sided && !(ends.from_device && ends.to_device)) return PathOrder::one_sided();
  return query.locality == Locality::same_host ? order : PathOrder::defaults();
}

}  // namespace

PathChoice choose_path(const PathQuery& query, const PathOrder& order) noexcept {
  if (const Path forced = forced_path(query); forced != Path::automatic) {
    const char* const reason = refusal(forced, query);
    if (reason != nullptr) return {forced, Status::not_supported, reason};
    return {forced, Status::ok, "forced"};
  }
  if (is_pulled(query)) return {Path::shm, Status::ok, "the receiver copies from the sender's memory, which it maps"};
  for (const Path path : order_for(query, order).at(EndPair::of(query.kind, query.other_kind), query.bytes)) {
    if (refusal_unforced(path, query) == nullptr) return {path, Status::ok, praise(path)};
  }
  return {Path::staged, Status::ok, praise(Path::staged)};  // it never refuses, so this is not reached
}

std::optional<double> predicted_us(Path path, const PathQuery& query, const Calibration& calibration) {
  return calibration.predict(path, measured_ends(path, query), query.bytes);
}

std::vector<PathVerdict> judge_paths(const PathQuery& query, const PathOrder& order, const Calibration& calibration) {
  const EndPair ends = is_pulled(query) ? kFromMapped : EndPair::of(query.kind, query.other_kind);
  std::vector<PathVerdict> verdicts;
  for (const Path path : order_for(query, order).at(ends, query.bytes)) {
    PathVerdict verdict{path, refusal_unforced(path, query), {}};
    // What was measured holds between two processes of one host.
    if (verdict.refusal == nullptr && query.locality == Locality::same_host)
      verdict.us = predicted_us(path, query, calibration);
    verdicts.push_back(verdict);
  }
  verdicts.push_back({Path::kernel, refusal(Path::kernel, query), {}});
  std::stable_partition(verdicts.begin(), verdicts.end(),
                        [](const PathVerdict& verdict) { return verdict.refusal == nullptr; });
  return verdicts;
}

}  // namespace brant
