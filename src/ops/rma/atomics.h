#pragma once

#include "base/object_pool.h"
#include "ops/rma/asked_atomics.h"
#include "ops/rma/device_atomics.h"

namespace brant {

class RmaTable;
class RmaTarget;

/// Atomics on segments, see RemoteSegment::post_atomic: by this CPU at once where it has mapped host memory, else by
/// the owner's, which the wire asks; on device memory that is mapped by the device, and elsewhere by the owner's.
class RmaAtomics {
 public:
  struct Call {
    std::uint64_t offset = 0;
    Atomic what;
    void* before = nullptr;  ///< The caller's; null: not wanted.
    Path forced = Path::automatic;
  };

  explicit RmaAtomics(RmaTable& table);

  static RmaAtomics& of(RmaTarget& target) noexcept;

  Status post(RmaTarget& target, const Call& call, Op& op) noexcept;
  /// Those that waited for the file by means of which the segment is mapped: it has come, or cannot be had. Where there
  /// is no room for one yet, it waits for the next call, and the target is a poller until then. Returns how many were
  /// tried. The target may be gone afterwards.
  unsigned begin_late(RmaTarget& target) noexcept;
  /// Owners that were asked may have died or ended.
  void look_around() noexcept { asked_.look_around(); }
  void let_go() noexcept { asked_.let_go(); }

 private:
  friend class RmaFences;

  /// One that takes time.
  struct Record final : OpOwner, PeerOp {
    struct ByWire : port::WireOp {
      Record* record = nullptr;
    };
    struct ByDevice : DeviceAtomic {
      Record* record = nullptr;
    };
    struct ByOwner : AskedAtomic {
      Record* record = nullptr;
    };

    Record(RmaAtomics& atomics_in, RmaTarget& target_in, const Call& call_in) noexcept
        : atomics(atomics_in), target(target_in), call(call_in) {
      wire.record = device.record = asked.record = this;
    }

    RmaAtomics& atomics;
    RmaTarget& target;
    const Call call;
    Path path = Path::automatic;
    std::uint64_t bits = 0;  ///< Of the value before.
    TimePoint posted_at{};   ///< Exact only with a trace.
    ByWire wire;
    ByDevice device;
    ByOwner asked;
  };

  static constexpr std::size_t kMost = 65536;

  Status check(const RmaTarget& target, const Call& call) const noexcept;
  /// The path, or why there is none; `automatic`: it depends on a file that has not come.
  Result<Path> choose(RmaTarget& target, Path forced) noexcept;
  Status by_cpu(RmaTarget& target, const Call& call, Op& op) noexcept;
  Status start(Record& record) noexcept;
  Status by_wire(Record& record) noexcept;
  Status by_device(Record& record) noexcept;
  Status by_owner(Record& record) noexcept;
  Status await_file(Record& record) noexcept;
  void count(Path path, std::size_t bytes) noexcept;
  void trace(const RmaTarget& target, Path path, TimePoint posted_at, std::size_t bytes) noexcept;
  void release(Record& record) noexcept;
  void ended(Record& record, Status status) noexcept;
  static void on_lost(PeerOp& op) noexcept;

  Engine& engine_;
  ObjectPool<Record> records_{kMost};
  DeviceCopies awaiting_;  ///< A file, or room behind it: see RmaTarget.
  DeviceAtomics device_;
  AskedAtomics asked_;
};

}  // namespace brant
