#pragma once

#include "ops/courier/desk.h"
#include "ops/courier/signal.h"

namespace brant::courier {

/// Warps that copy together: they take what stands in their ring, up to ten parts at a time, copy all of it, and pay
/// one fence for all of it. The first warp leads; the others sleep at a barrier in between.
template <typename Machine>
class WorkerGroup {
 public:
  BRANT_DEVICE_CODE WorkerGroup(Machine& machine, const Launch& launch, GroupDesk& desk)
      : machine_(machine), launch_(launch), desk_(desk) {}

  /// The group beside the dispatcher, whose desk is ready.
  BRANT_DEVICE_CODE void run_beside(BlockDesk& block) {
    beside_ = true;
    parts_ = &block.parts;
    finished_ = &block.finished;
    next_ = PartRing::kFirst;
    work();
  }

  /// A group of another block. Rings are given out in the order of arrival, so that the groups that run are the first
  /// ones. One that comes when the dispatcher has left finds that in its ring.
  BRANT_DEVICE_CODE void run_apart() {
    if (machine_.leads()) {
      DeviceDesk& device = *launch_.device;
      std::uint64_t arrival = 0;
      machine_.each(1, [&](unsigned) { arrival = machine_.add_device(&device.groups_started, 1); });
      const auto group = static_cast<unsigned>(machine_.uniform(arrival) - launch_.groups_before) + 1;
      parts_ = &device.parts[group];
      finished_ = &device.finished[group][0];
      next_ = machine_.uniform(machine_.load_acquire_device(&device.begin[launch_.number % 2][group]));
      if (next_ == 0) next_ = PartRing::kFirst;
      machine_.each(1, [&](unsigned) { machine_.store_relaxed(finished_, next_); });
    }
    work();
  }

 private:
  BRANT_DEVICE_CODE void work() {
    bool last = false;
    while (!last) {
      if (machine_.leads()) take();
      machine_.group_sync();
      const unsigned count = desk_.count;
      last = desk_.last != 0;
      machine_.copy_by_group(desk_.parts, count);
      machine_.group_sync();
      if (machine_.leads()) finish(count);
    }
  }

  BRANT_DEVICE_CODE void take() {
    unsigned count = 0;
    const auto load = [&](const std::uint64_t* pair) {
      return beside_ ? machine_.load_pair_shared(pair) : machine_.load_pair_relaxed_device(pair);
    };
    while ((count = take_entries(machine_, *parts_, next_, kPartsPerLook, desk_.parts, load)) == 0) machine_.pause();
    machine_.fence_parts();
    next_ += count;
    const bool last = is_stop(desk_.parts[count - 1]);  // nothing comes behind it
    machine_.sync_warp();
    machine_.each(1, [&](unsigned) {
      desk_.count = count - (last ? 1 : 0);
      desk_.last = last ? 1 : 0;
    });
  }

  /// One fence for the whole batch.
  BRANT_DEVICE_CODE void finish(unsigned count) {
    if (count > 0) machine_.fence_system();
    machine_.each(count, [&](unsigned i) { report(desk_.parts[i]); });
    machine_.each(1, [&](unsigned) { machine_.store_relaxed(finished_, next_); });
    machine_.sync_warp();
  }

  /// Of an order that several groups worked on the last one gives the signal. Every group counts itself only when its
  /// own fence is over; that the last one's signal comes behind the bytes of all is the machine's to see to.
  BRANT_DEVICE_CODE void report(const PartRing::Entry& part) {
    const std::uint64_t number = part.words[OrderWords::number];
    const std::uint64_t share = part.words[OrderWords::share];
    if (share != kGroupsMax) {
      const std::uint64_t before = machine_.add_device(&launch_.device->arrived[number % OrderRing::kSlots], share);
      if ((before + share) % kGroupsMax != 0) return;
      machine_.fence_counted();
    }
    signal(machine_, *launch_.host, part, number);
  }

  Machine& machine_;
  const Launch& launch_;
  GroupDesk& desk_;
  bool beside_ = false;        ///< Its ring and word are in the memory of its block.
  PartRing* parts_ = nullptr;  ///< The leader's, like the next two.
  std::uint64_t* finished_ = nullptr;
  std::uint64_t next_ = 0;
};

}  // namespace brant::courier
