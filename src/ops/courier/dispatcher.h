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
  BRANT_DEVICE_CODE Dispatcher(Machine& machine, const Launch& launch, BlockDesk& desk)
      : machine_(machine), launch_(launch), desk_(desk), next_(launch.first) {}

  /// Makes the desk of this block ready; its group may begin after that.
  BRANT_DEVICE_CODE void prepare() {
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

  BRANT_DEVICE_CODE void run() {
    machine_.each(1, [&](unsigned) { machine_.store(&launch_.host->started, launch_.number); });
    const std::uint64_t born = machine_.now_ns();
    std::uint64_t busy_at = born;
    unsigned width = launch_.look_idle;
    bool busy = false;
    bool stop = false;
    for (unsigned looks = 1; !stop; ++looks) {
      const unsigned count = take_entries(machine_, launch_.host->orders, next_, width, desk_.orders);
      if (count != 0) {
        stop = take(count);
        width = launch_.look_busy;
        busy = true;
      } else {
        width = launch_.look_idle;
        machine_.pause();
      }
      if (looks % Machine::kLooksPerClock != 0) continue;
      const std::uint64_t now = machine_.now_ns();
      if (busy) busy_at = now;
      busy = false;
      if (now - busy_at >= launch_.idle_ns || now - born >= launch_.lease_ns) break;
      count_groups();
    }
    machine_.each(1, [&](unsigned) { machine_.store(&launch_.host->left, leave_word(launch_.number, next_)); });
    dismiss_groups();
  }

 private:
  static constexpr unsigned kDealsPerCount = 8;

  /// True when the last of them says stop.
  BRANT_DEVICE_CODE bool take(unsigned count) {
    unsigned work = 0;
    while (work < count && !is_stop(desk_.orders[work])) ++work;
    if (work > 0) hand_out(work);
    const bool stop = work < count;
    next_ += work + (stop ? 1 : 0);
    machine_.sync_warp();  // all lanes have read the desk before the next look writes it
    return stop;
  }
  BRANT_DEVICE_CODE PartRing& parts_of(unsigned group) {
    return group == 0 ? desk_.parts : launch_.device->parts[group];
  }
  BRANT_DEVICE_CODE std::uint64_t finished(unsigned group) {
    return machine_.load(group == 0 ? &desk_.finished : &launch_.device->finished[group][0]);
  }
  /// Blocks that found no place on the GPU get no work: somebody's kernel may keep them out for as long as it likes.
  /// Of those that run, a power of two is used: dealing out needs no division then.
  BRANT_DEVICE_CODE void count_groups() {
    if (found_ == launch_.groups) return;
    const std::uint64_t started = machine_.uniform(machine_.load(&launch_.device->groups_started));
    found_ = static_cast<unsigned>(started - launch_.groups_before) + 1;
    while (groups_ * 2 <= found_) {
      groups_ *= 2;
      ++groups_shift_;
    }
  }

  BRANT_DEVICE_CODE void hand_out(unsigned count) {
    if (count == 1 && bytes_of(desk_.orders[0]) <= launch_.alone_bytes) {
      const auto& order = desk_.orders[0];
      machine_.copy_by_warp(order.words[OrderWords::to], order.words[OrderWords::from], bytes_of(order));
      machine_.fence_system();
      machine_.each(1, [&](unsigned) { signal(machine_, *launch_.host, order, next_); });
      return;
    }
    if (deals_++ % kDealsPerCount == 0) count_groups();
    const unsigned shift = split_shift(count);
    const unsigned total = count << shift;
    const unsigned mask = groups_ - 1;
    // The group beside the dispatcher is woken soonest; while it has work, everybody gets some in turn.
    const unsigned start = machine_.uniform(finished(0)) == desk_.posted[0] ? 0 : turn_ & mask;
    turn_ = start + total;
    wait_for_room(total);
    if (start != 0 || total > 1) machine_.fence_device();
    machine_.each(total, [&](unsigned part) { put_part(part, shift, start); });
    machine_.sync_warp();
    machine_.each(groups_, [&](unsigned group) {
      const unsigned first = (group - start) & mask;  // its first part of these
      if (first < total) desk_.posted[group] += ((total - first - 1) >> groups_shift_) + 1;
    });
    machine_.sync_warp();
  }

  /// Few orders and many groups: 2^n groups share an order.
  BRANT_DEVICE_CODE unsigned split_shift(unsigned count) {
    if (groups_ < 2 * count) return 0;
    std::uint32_t largest = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (bytes_of(desk_.orders[i]) > largest) largest = bytes_of(desk_.orders[i]);
    }
    unsigned shift = 0;
    while (largest >> (shift + 1) >= launch_.part_bytes && count << (shift + 1) <= groups_) ++shift;
    return shift;
  }

  BRANT_DEVICE_CODE void put_part(unsigned part, unsigned shift, unsigned start) {
    const unsigned index = part >> shift;
    const auto& order = desk_.orders[index];
    const unsigned group = (start + part) & (groups_ - 1);
    const std::uint32_t bytes = bytes_of(order);
    // Whole pages, so that parts are as aligned as the order is.
    const std::uint32_t share =
        shift == 0 ? bytes : (((bytes + (1u << shift) - 1) >> shift) + 4095) & ~std::uint32_t{4095};
    const std::uint32_t begin = smaller((part - (index << shift)) * share, bytes);
    const std::uint32_t end = smaller(begin + share, bytes);
    PartRing::Entry entry;
    entry.words[OrderWords::to] = order.words[OrderWords::to] + begin;
    entry.words[OrderWords::from] = order.words[OrderWords::from] + begin;
    entry.words[OrderWords::flag] = order.words[OrderWords::flag];
    entry.words[OrderWords::size] = (order.words[OrderWords::size] & ~kBytesMask) | (end - begin);
    entry.words[OrderWords::number] = next_ + index;
    entry.words[OrderWords::parts] = std::uint64_t{1} << shift;
    put_entry(machine_, parts_of(group), desk_.posted[group] + (part >> groups_shift_), entry);
  }
  static BRANT_DEVICE_CODE std::uint32_t smaller(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }

  /// Groups always come on, so this ends. Parts go round, so no group gets more than this.
  BRANT_DEVICE_CODE void wait_for_room(unsigned total) {
    const unsigned each = ((total - 1) >> groups_shift_) + 1;
    while (machine_.leading(groups_, [&](unsigned group) {
      return desk_.posted[group] + each - known_finished(group, each) <= PartRing::kSlots;
    }) < groups_) {
      machine_.pause();
    }
  }
  /// Asks only when what is known does not suffice.
  BRANT_DEVICE_CODE std::uint64_t known_finished(unsigned group, unsigned each) {
    std::uint64_t& known = desk_.known_finished[group];
    if (desk_.posted[group] + each - known > PartRing::kSlots) known = finished(group);
    return known;
  }

  /// Those that have not started yet too: they will find it. Where each ring goes on is for the next launch, in the
  /// other half: a late group of this launch still reads this half.
  BRANT_DEVICE_CODE void dismiss_groups() {
    wait_for_room(groups_);
    machine_.each(launch_.groups, [&](unsigned group) {
      PartRing::Entry stop{};
      stop.words[OrderWords::flag] = kStopBit;
      machine_.store(&launch_.device->begin[(launch_.number + 1) % 2][group], desk_.posted[group] + 1);
      put_entry(machine_, parts_of(group), desk_.posted[group], stop);
    });
  }

  Machine& machine_;
  const Launch& launch_;
  BlockDesk& desk_;
  std::uint64_t next_;
  unsigned found_ = 1;   ///< Groups that run; the one of this block always does.
  unsigned groups_ = 1;  ///< Those used, 2^groups_shift_.
  unsigned groups_shift_ = 0;
  unsigned turn_ = 0;
  unsigned deals_ = 0;
};

}  // namespace brant::courier
