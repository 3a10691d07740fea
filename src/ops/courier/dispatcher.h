#pragma once

#include "ops/courier/desk.h"
#include "ops/courier/signal.h"

namespace brant::courier {

/// A warp that reads host memory: takes orders, copies a single small one itself, and spreads the rest over the worker
/// groups. It waits for a copy of a group only if nothing else is under way, and else is back at the orders at once.
///
/// A few of them share a desk, each with its own copy of the ring to look at: who sees an order first claims it, by
/// moving the one word `next` on. The first that finds `idle_ns` gone without an order, or `lease_ns` since its start,
/// closes the desk for all of them, in the same word, and writes down which order nobody has claimed. So every order is
/// either taken by this launch or left to the CPU, never both.
template <typename Machine>
class Dispatcher {
 public:
  /// `index`: which of them this is, and whose ring it reads.
  BRANT_DEVICE_CODE Dispatcher(Machine& machine, const Launch& launch, BlockDesk& desk, unsigned index)
      : machine_(machine), launch_(launch), desk_(desk), index_(index), orders_(desk.orders[index]) {}

  /// One of them makes the desk ready; the others and the group of this block may begin after that.
  BRANT_DEVICE_CODE void prepare() {
    const auto& begin = launch_.device->begin[launch_.number % 2];
    machine_.each(kGroupsMax, [&](unsigned group) {
      const std::uint64_t number = group == 0 ? 0 : machine_.load_acquire_device(&begin[group]);
      desk_.posted[group] = number == 0 ? PartRing::kFirst : number;
      desk_.known_finished[group] = desk_.posted[group];
    });
    machine_.each(PartRing::kSlots * PartRing::kWords, [&](unsigned word) {
      machine_.store_relaxed(&desk_.parts.words[word / PartRing::kWords][word % PartRing::kWords], 0);
    });
    const std::uint64_t now = machine_.now_ns();
    machine_.each(1, [&](unsigned) {
      machine_.store_relaxed(&desk_.finished, PartRing::kFirst);
      desk_.lock = 0;
      desk_.next = launch_.first;
      desk_.quiet = 0;
      desk_.busy_at = now;
      desk_.found = 1;
      desk_.groups_shift = desk_.turn = desk_.deals = 0;
    });
    machine_.sync_warp();
  }

  BRANT_DEVICE_CODE void run() {
    if (index_ == 0)
      machine_.each(1, [&](unsigned) { machine_.store_relaxed(&launch_.host->started, launch_.number); });
    const std::uint64_t born = machine_.now_ns();
    unsigned width = launch_.look_idle;
    bool busy = false;
    for (unsigned looks = 1;; ++looks) {
      const std::uint64_t next = machine_.load_shared_uniform(&desk_.next);
      if ((next & BlockDesk::kClosed) != 0) return;
      if (machine_.load_shared_uniform(&desk_.quiet) != 0) {
        machine_.pause();
        continue;
      }
      const unsigned count = take_entries(machine_, launch_.host->orders[index_], next, width, orders_);
      if (count != 0) {
        take(next, count);
        width = launch_.look_busy;
        busy = true;
      } else {
        width = launch_.look_idle;
        machine_.pause();
      }
      if (looks % Machine::kLooksPerClock != 0) continue;
      const std::uint64_t now = machine_.now_ns();
      if (busy) machine_.each(1, [&](unsigned) { machine_.store_shared(&desk_.busy_at, now); });
      const bool idle = !busy && now - machine_.load_shared_uniform(&desk_.busy_at) >= launch_.idle_ns;
      busy = false;
      leave_or_count(now, idle, now - born >= launch_.lease_ns);
    }
  }

 private:
  static constexpr unsigned kDealsPerCount = 8;
  static constexpr std::uint32_t kPartMost = 128 * 1024;

  /// The orders on the desk, `count` from number `seen` on; others may have taken the first of them by now.
  BRANT_DEVICE_CODE void take(std::uint64_t seen, unsigned count) {
    unsigned end = 0;
    while (end < count && !is_stop(orders_[end])) ++end;
    const bool stop = end < count;
    const bool alone = count == 1 && !stop && bytes_of(orders_[0]) <= launch_.alone_bytes;
    if (alone) {
      if (machine_.claim(&desk_.next, seen, seen + 1)) copy_alone(orders_[0], seen);
    } else {
      machine_.lock(&desk_.lock);
      const std::uint64_t next = claim_from(seen, end, stop);
      if (next < seen + end) hand_out(orders_ + (next - seen), static_cast<unsigned>(seen + end - next), next);
      if (stop && next <= seen + end) close(seen + end + 1);
      if (next == seen && end == 1 && is_lone(orders_[0])) wait_for_groups();
      machine_.unlock(&desk_.lock);
    }
    machine_.sync_warp();  // all lanes have read the desk before the next look writes it
  }

  BRANT_DEVICE_CODE void set_quiet(std::uint64_t quiet) {
    machine_.each(1, [&](unsigned) { machine_.store_shared(&desk_.quiet, quiet); });
  }
  /// They always come on. Whoever posts next waits for the lone order, or for the lock.
  BRANT_DEVICE_CODE void wait_for_groups() {
    set_quiet(1);
    while (!groups_done()) machine_.pause();
    set_quiet(0);
  }
  /// The lock is held.
  BRANT_DEVICE_CODE bool groups_done() {
    return machine_.leading(groups(), [&](unsigned group) { return finished(group) == desk_.posted[group]; }) >=
           groups();
  }

  /// Claims what is left of the `end` orders from `seen` on, and a stop behind them: from the number returned on they
  /// are this dispatcher's; beyond them all: nothing is.
  BRANT_DEVICE_CODE std::uint64_t claim_from(std::uint64_t seen, unsigned end, bool stop) {
    while (true) {
      const std::uint64_t next = machine_.load_shared_uniform(&desk_.next);
      if (next - seen >= end + (stop ? 1u : 0u)) return ~std::uint64_t{0};  // closed, too
      if (machine_.claim(&desk_.next, next, seen + end + (stop ? 1 : 0))) return next;
    }
  }

  BRANT_DEVICE_CODE void copy_alone(const OrderRing::Entry& order, std::uint64_t number) {
    if (is_lone(order)) set_quiet(1);
    machine_.copy_by_warp(order.words[OrderWords::to], order.words[OrderWords::from], bytes_of(order));
    machine_.fence_system();
    if (is_lone(order)) set_quiet(0);
    machine_.each(1, [&](unsigned) { signal(machine_, *launch_.host, order, number); });
  }

  /// It is not idle while its groups work; when its time is over it leaves anyway.
  BRANT_DEVICE_CODE void leave_or_count(std::uint64_t now, bool idle, bool over) {
    if (!idle && !over && machine_.load_shared_uniform(&desk_.found) == launch_.groups) return;
    machine_.lock(&desk_.lock);
    if (over || (idle && groups_done())) {
      close(machine_.load_shared_uniform(&desk_.next));
    } else if (idle) {
      machine_.each(1, [&](unsigned) { machine_.store_shared(&desk_.busy_at, now); });
    } else {
      count_groups();
    }
    machine_.unlock(&desk_.lock);
  }

  /// Orders that nobody has claimed are the CPU's again. Those before `next` have been; the lock is held.
  BRANT_DEVICE_CODE void close(std::uint64_t next) {
    while ((next & BlockDesk::kClosed) == 0 && !machine_.claim(&desk_.next, next, next | BlockDesk::kClosed)) {
      next = machine_.load_shared_uniform(&desk_.next);  // a small one went to somebody meanwhile
    }
    if ((next & BlockDesk::kClosed) != 0) return;  // by somebody else
    machine_.each(1, [&](unsigned) { machine_.store_relaxed(&launch_.host->left, leave_word(launch_.number, next)); });
    dismiss_groups();
  }

  BRANT_DEVICE_CODE PartRing& parts_of(unsigned group) {
    return group == 0 ? desk_.parts : launch_.device->parts[group];
  }
  BRANT_DEVICE_CODE std::uint64_t finished(unsigned group) {
    return group == 0 ? machine_.load_shared(&desk_.finished)
                      : machine_.load_acquire_device(&launch_.device->finished[group][0]);
  }
  [[nodiscard]] BRANT_DEVICE_CODE unsigned groups() const { return 1u << desk_.groups_shift; }

  /// Blocks that found no place on the GPU get no work: somebody's kernel may keep them out for as long as it likes.
  /// Of those that run, a power of two is used: dealing out needs no division then.
  BRANT_DEVICE_CODE void count_groups() {
    if (machine_.load_shared_uniform(&desk_.found) == launch_.groups) return;
    const std::uint64_t started = machine_.uniform(machine_.load_acquire_device(&launch_.device->groups_started));
    const auto found = static_cast<unsigned>(started - launch_.groups_before) + 1;
    unsigned shift = 0;
    while (2u << shift <= found) ++shift;
    machine_.each(1, [&](unsigned) {
      machine_.store_shared(&desk_.found, found);
      desk_.groups_shift = shift;
    });
    machine_.sync_warp();
  }

  BRANT_DEVICE_CODE void hand_out(const OrderRing::Entry* orders, unsigned count, std::uint64_t number) {
    const std::uint32_t deals = desk_.deals;
    if (deals % kDealsPerCount == 0) count_groups();
    const unsigned shift = split_shift(orders, count);
    const unsigned total = count << shift;
    const unsigned mask = groups() - 1;
    // The group beside the dispatchers is woken soonest; while it has work, everybody gets some in turn.
    const unsigned start = machine_.load_shared_uniform(&desk_.finished) == desk_.posted[0] ? 0 : desk_.turn & mask;
    machine_.sync_warp();
    machine_.each(1, [&](unsigned) {
      desk_.turn = start + total;
      desk_.deals = deals + 1;
    });
    wait_for_room(total);
    machine_.fence_parts();
    machine_.each(
        total, [&](unsigned part) { put_part(orders[part >> shift], number + (part >> shift), part, shift, start); });
    machine_.sync_warp();
    machine_.each(groups(), [&](unsigned group) {
      const unsigned first = (group - start) & mask;  // its first part of these
      if (first < total) desk_.posted[group] += ((total - first - 1) >> desk_.groups_shift) + 1;
    });
    machine_.sync_warp();
  }

  /// Few orders and many groups, or large orders: 2^n groups share an order.
  BRANT_DEVICE_CODE unsigned split_shift(const OrderRing::Entry* orders, unsigned count) {
    std::uint32_t largest = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (bytes_of(orders[i]) > largest) largest = bytes_of(orders[i]);
    }
    unsigned shift = 0;
    while (largest >> (shift + 1) >= launch_.part_bytes && count << (shift + 1) <= groups()) ++shift;
    // Whatever else there is to do: one group takes 25 us for a megabyte, and the last of a window would wait for it.
    while (largest >> shift > kPartMost && 2u << shift <= groups()) ++shift;
    return shift;
  }

  /// Part `part` of all that is handed out together, which belongs to `order`.
  BRANT_DEVICE_CODE void put_part(const OrderRing::Entry& order, std::uint64_t number, unsigned part, unsigned shift,
                                  unsigned start) {
    const unsigned group = (start + part) & (groups() - 1);
    const std::uint32_t bytes = bytes_of(order);
    // Whole pages, so that parts are as aligned as the order is.
    const std::uint32_t share =
        shift == 0 ? bytes : (((bytes + (1u << shift) - 1) >> shift) + 4095) & ~std::uint32_t{4095};
    const std::uint32_t begin = smaller((part & ((1u << shift) - 1)) * share, bytes);
    const std::uint32_t end = smaller(begin + share, bytes);
    PartRing::Entry entry;
    entry.words[OrderWords::to] = order.words[OrderWords::to] + begin;
    entry.words[OrderWords::from] = order.words[OrderWords::from] + begin;
    entry.words[OrderWords::flag] = order.words[OrderWords::flag];
    entry.words[OrderWords::size] = (order.words[OrderWords::size] & ~kBytesMask) | (end - begin);
    entry.words[OrderWords::number] = number;
    entry.words[OrderWords::share] = kGroupsMax >> shift;
    put_entry(machine_, parts_of(group), desk_.posted[group] + (part >> desk_.groups_shift), entry);
  }
  static BRANT_DEVICE_CODE std::uint32_t smaller(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }

  /// Groups always come on, so this ends. Parts go round, so no group gets more than this.
  BRANT_DEVICE_CODE void wait_for_room(unsigned total) {
    const unsigned each = ((total - 1) >> desk_.groups_shift) + 1;
    while (machine_.leading(groups(), [&](unsigned group) {
      return desk_.posted[group] + each - known_finished(group, each) <= PartRing::kSlots;
    }) < groups()) {
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
    wait_for_room(groups());
    machine_.each(kGroupsMax, [&](unsigned group) {
      const bool here = group < launch_.groups;
      machine_.store_relaxed(&launch_.device->begin[(launch_.number + 1) % 2][group],
                             desk_.posted[group] + (here ? 1 : 0));
      if (!here) return;
      PartRing::Entry stop{};
      stop.words[OrderWords::flag] = kStopBit;
      put_entry(machine_, parts_of(group), desk_.posted[group], stop);
    });
  }

  Machine& machine_;
  const Launch& launch_;
  BlockDesk& desk_;
  const unsigned index_;
  OrderRing::Entry* const orders_;
};

}  // namespace brant::courier
