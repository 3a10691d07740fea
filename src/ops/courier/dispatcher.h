#pragma once

#include "ops/courier/desk.h"
#include "ops/courier/signal.h"

namespace brant::courier {

/// The one warp that reads host memory: takes orders, copies a single small one itself, and spreads the rest over the
/// worker groups. It never waits for a copy of a group, so it is back at the orders at once.
///
/// It leaves after `idle_ns` without an order or `lease_ns` after its start, and writes down which order it did not
/// take: between that decision and the record it does not look at the ring again, so every order is either taken by
/// this launch or left to the CPU, never both.
template <typename Machine>
class Dispatcher {
 public:
  BRANT_COURIER_CODE Dispatcher(Machine& machine, const Launch& launch, BlockDesk& desk)
      : machine_(machine), launch_(launch), desk_(desk), next_(launch.first) {}

  /// Makes the desk of this block ready; its group may begin after that.
  BRANT_COURIER_CODE void prepare() {
    const auto& begin = launch_.device->begin[launch_.number % 2];
    machine_.each(kGroupsMax, [&](unsigned group) {
      const std::uint64_t number = group == 0 ? 0 : machine_.load(&begin[group]);
      desk_.posted[group] = number == 0 ? PartRing::kFirst : number;
      desk_.known_finished[group] = desk_.posted[group];
    });
    machine_.each(PartRing::kSlots * PartRing::kWords, [&](unsigned word) {
      machine_.store(&desk_.parts.words[word / PartRing::kWords][word % PartRing::kWords], 0);
    });
    machine_.each(1, [&](unsigned) { machine_.store(&desk_.finished, PartRing::kFirst); });
    machine_.sync_warp();
  }

  BRANT_COURIER_CODE void run() {
    machine_.each(1, [&](unsigned) { machine_.store(&launch_.host->started, launch_.number); });
    const std::uint64_t born = machine_.now_ns();
    std::uint64_t busy_at = born;
    unsigned looks = 0;
    unsigned width = launch_.look_idle;
    bool stop = false;
    while (!stop) {
      const unsigned count = take_entries(machine_, launch_.host->orders, next_, width, desk_.orders);
      const std::uint64_t now = machine_.now_ns();
      if (count == 0) {
        width = launch_.look_idle;
        if (now - busy_at >= launch_.idle_ns || now - born >= launch_.lease_ns) break;
        if (looks++ % 16 == 0) count_groups();
        machine_.pause();
        continue;
      }
      width = launch_.look_busy;
      busy_at = now;
      unsigned work = 0;
      while (work < count && !is_stop(desk_.orders[work])) ++work;
      if (work > 0) hand_out(work);
      stop = work < count;
      next_ += work + (stop ? 1 : 0);
      machine_.sync_warp();  // all lanes have read the desk before the next look writes it
      if (now - born >= launch_.lease_ns) break;
    }
    machine_.each(1, [&](unsigned) { machine_.store(&launch_.host->left, leave_word(launch_.number, next_)); });
    dismiss_groups();
  }

 private:
  BRANT_COURIER_CODE PartRing& parts_of(unsigned group) {
    return group == 0 ? desk_.parts : launch_.device->parts[group];
  }
  BRANT_COURIER_CODE std::uint64_t finished(unsigned group) {
    return machine_.load(group == 0 ? &desk_.finished : &launch_.device->finished[group][0]);
  }
  /// Blocks that found no place on the GPU get no work: somebody's kernel may keep them out for as long as it likes.
  BRANT_COURIER_CODE void count_groups() {
    if (groups_ == launch_.groups) return;
    const std::uint64_t started = machine_.uniform(machine_.load(&launch_.device->groups_started));
    groups_ = static_cast<unsigned>(started - launch_.groups_before) + 1;
  }

  BRANT_COURIER_CODE void hand_out(unsigned count) {
    if (count == 1 && bytes_of(desk_.orders[0]) <= launch_.alone_bytes) {
      const auto& order = desk_.orders[0];
      machine_.copy_by_warp(order.words[OrderWords::to], order.words[OrderWords::from], bytes_of(order));
      machine_.fence_system();
      machine_.each(1, [&](unsigned) { signal(machine_, *launch_.host, order, next_); });
      return;
    }
    count_groups();
    const unsigned split = parts_per_order(count);
    const unsigned total = count * split;
    // The group beside the dispatcher is woken soonest; while it has work, everybody gets some in turn.
    const unsigned start = machine_.uniform(finished(0)) == desk_.posted[0] ? 0 : turn_ % groups_;
    turn_ = start + total;
    wait_for_room(total);
    machine_.fence_device();
    machine_.each(total, [&](unsigned part) { put_part(part, split, start); });
    machine_.sync_warp();
    machine_.each(groups_, [&](unsigned group) {
      const unsigned first = (group + groups_ - start) % groups_;
      if (first < total) desk_.posted[group] += (total - first + groups_ - 1) / groups_;
    });
    machine_.sync_warp();
  }

  /// Few orders and many groups: several groups share an order.
  BRANT_COURIER_CODE unsigned parts_per_order(unsigned count) {
    if (groups_ < 2 * count) return 1;
    std::uint32_t largest = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (bytes_of(desk_.orders[i]) > largest) largest = bytes_of(desk_.orders[i]);
    }
    const unsigned wanted = largest / launch_.part_bytes;
    const unsigned most = groups_ / count;
    return wanted < 1 ? 1 : wanted < most ? wanted : most;
  }

  BRANT_COURIER_CODE void put_part(unsigned part, unsigned split, unsigned start) {
    const auto& order = desk_.orders[part / split];
    const unsigned group = (start + part) % groups_;
    const std::uint32_t bytes = bytes_of(order);
    const std::uint32_t share = ((bytes + split - 1) / split + 4095) / 4096 * 4096;
    const std::uint32_t begin = split == 1 ? 0 : smaller(part % split * share, bytes);
    const std::uint32_t end = split == 1 ? bytes : smaller(begin + share, bytes);
    PartRing::Entry entry;
    entry.words[OrderWords::to] = order.words[OrderWords::to] + begin;
    entry.words[OrderWords::from] = order.words[OrderWords::from] + begin;
    entry.words[OrderWords::flag] = order.words[OrderWords::flag];
    entry.words[OrderWords::size] = (order.words[OrderWords::size] & ~kBytesMask) | (end - begin);
    entry.words[OrderWords::number] = next_ + part / split;
    entry.words[OrderWords::parts] = split;
    put_entry(machine_, parts_of(group), desk_.posted[group] + part / groups_, entry);
  }
  static BRANT_COURIER_CODE std::uint32_t smaller(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }

  /// Groups always come on, so this ends. Parts go round, so no group gets more than this.
  BRANT_COURIER_CODE void wait_for_room(unsigned total) {
    const unsigned each = (total + groups_ - 1) / groups_;
    while (machine_.leading(groups_, [&](unsigned group) {
      return desk_.posted[group] + each - known_finished(group, each) <= PartRing::kSlots;
    }) < groups_) {
      machine_.pause();
    }
  }
  /// Asks only when what is known does not suffice.
  BRANT_COURIER_CODE std::uint64_t known_finished(unsigned group, unsigned each) {
    std::uint64_t& known = desk_.known_finished[group];
    if (desk_.posted[group] + each - known > PartRing::kSlots) known = finished(group);
    return known;
  }

  /// Those that have not started yet too: they will find it. Where each ring goes on is for the next launch, in the
  /// other half: a late group of this launch still reads this half.
  BRANT_COURIER_CODE void dismiss_groups() {
    wait_for_room_of_all();
    machine_.each(launch_.groups, [&](unsigned group) {
      PartRing::Entry stop{};
      stop.words[OrderWords::flag] = kStopBit;
      machine_.store(&launch_.device->begin[(launch_.number + 1) % 2][group], desk_.posted[group] + 1);
      put_entry(machine_, parts_of(group), desk_.posted[group], stop);
    });
  }
  BRANT_COURIER_CODE void wait_for_room_of_all() {
    groups_ = launch_.groups;
    wait_for_room(1);
  }

  Machine& machine_;
  const Launch& launch_;
  BlockDesk& desk_;
  std::uint64_t next_;
  unsigned groups_ = 1;  ///< Groups that run; the one of this block always does.
  unsigned turn_ = 0;
};

}  // namespace brant::courier
