#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "brant/base/atomic.h"
#include "core/engine.h"
#include "core/event_pool.h"
#include "ops/mover/copy_lane.h"
#include "ops/mover/stage_pool.h"

namespace brant {

/// One atomic that a device performs. The value before is in `*before` once it is done, until it is given back.
struct DeviceAtomic : DeviceCopy {
  void* word = nullptr;
  Atomic what;
  std::uint64_t* before = nullptr;
};

/// Atomics on device memory that this process's device reaches, by a kernel on a stream of its own. Those that are
/// asked for between two progress calls go in one launch. When it goes, it waits for the last of them.
class DeviceAtomics final : private Poller {
 public:
  static constexpr std::size_t kMost = 4096;  ///< Under way.

  /// `done` is called from progress with a DeviceAtomic.
  DeviceAtomics(Engine& engine, std::shared_ptr<StagePool> stages, CopyEnd done) noexcept
      : engine_(engine), stages_(std::move(stages)), events_(engine.device()), done_(done) {}
  ~DeviceAtomics();
  DeviceAtomics(const DeviceAtomics&) = delete;
  DeviceAtomics& operator=(const DeviceAtomics&) = delete;

  /// Word and operation are set. in_progress; else nothing was started: limit_reached, not_supported (the device runs
  /// no kernels of ours), no_memory.
  Status start(DeviceAtomic& atomic) noexcept;
  void give_back(DeviceAtomic& atomic) noexcept { free_.push_back(std::exchange(atomic.before, nullptr)); }

 private:
  Status open() noexcept;
  void issue() noexcept;
  Status launch(const DeviceCopies& batch) noexcept;
  unsigned poll() noexcept override;

  Engine& engine_;
  const std::shared_ptr<StagePool> stages_;
  EventPool events_;
  const CopyEnd done_;
  port::Kernel* kernel_ = nullptr;
  StagePool::Lease results_;
  std::vector<std::uint64_t*> free_;  ///< Places of results.
  std::optional<CopyLane> lane_;      ///< From `open` on.
  DeviceCopies asked_;
  FailedCopies failed_;
};

}  // namespace brant
