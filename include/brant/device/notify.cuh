#pragma once

#include "brant/base/simt.h"

/// What kernels do with bells: ring one, wait for one, ring one together. Compiles with nvcc, with NVRTC, and for the
/// host, where kernels run on CPU threads: one text, a template over the Machine (brant/base/simt.h).
///
///     brant::simt::GpuThread machine;                                    // on the CPU: CpuThread
///     pack(face);                                                        // all threads of the block
///     brant::notify::ring(machine, bell, epoch, brant::notify::Block{}); // the CPU, or a peer, sees it behind the
///     bytes
///
/// A bell is a word of 64 bits that holds an epoch: it only grows, and is never reset. Epochs are compared cyclically,
/// as cuStreamWaitValue64 with GEQ does. One side rings and the other looks, by one release store and one acquire load;
/// nothing is read, changed and written across a bus.
namespace brant::notify {

using simt::Word;

/// What a kernel gets of a bell, as an argument by value. Made by `Bell::device` and `PeerBell::device`.
struct DeviceBell {
  Word* word = nullptr;
  Word number = 0;  ///< By which errors name it.
};

/// A bell in device memory may be rung in so many parts, each by a place of its own, which need not meet for that. They
/// are words of its own that lie behind each other; part 0 is the bell's word.
inline constexpr unsigned kBellParts = 16;

/// Several arrivals are one ring: what `arrive` counts in. A word of device memory, made by `Notifier::fan_in`. It has
/// a count for each of four epochs that follow each other, so that who arrives first may be two epochs ahead.
struct FanIn {
  Word* counts = nullptr;
  Word of = 1;  ///< Arrivals for each ring, 65535 at most.
};

/// What a kernel tells the CPU, 128 bytes that the GPU alone writes, and what the CPU asks of it, another 128.
struct Told {
  Word started;  ///< All its blocks are there.
  Word ended;    ///< All its blocks have gone.
  Word done;     ///< Items that all blocks have done.
  Word heartbeat;
  Word waits_for;  ///< Number of a bell that a thread waited for in vain, and gave up; 0: none.
  Word wanted;     ///< The epoch it wanted,
  Word seen;       ///< and what it saw.
  Word failed;     ///< A Waited.
  Word unused[8];
};
struct Asked {
  Word abort;
  Word quit;
  Word items;  ///< So many were handed out.
  Word unused[13];
};

/// Work for all blocks of a persistent kernel; what the words mean is the program's business.
struct Item {
  Word words[4];
};
/// One as the CPU hands it out: each word beside the number of the item, the two of which are one access. So a kernel
/// reads all of it at once, and sees whether it was there.
struct ItemSlot {
  struct Line {
    Word number;
    Word word;
  };
  Line lines[4];
};
inline constexpr Word kItemSlots = 4;
inline constexpr Word kSlotsOfLine = 2;  ///< In 128 bytes.
inline constexpr Word kItems = 3;  ///< Under way at once: no block is more than two ahead of another one (see arrive).

/// In device memory: how the blocks of one kernel agree.
struct Together {
  Word arrived;
  Word gone;
  Word handed;  ///< Item number that all may take, in the upper bits; bit 0: no more come.
  Word finished;
  Word unused[12];  // so that items are aligned to their size
  Item items[kItemSlots];
};

/// What a persistent kernel gets as its first argument.
struct KernelControl {
  Told* told = nullptr;
  const Asked* asked = nullptr;
  const ItemSlot* slots[kItemSlots / kSlotsOfLine] = {};  ///< In pinned memory, kSlotsOfLine each.
  Together* together = nullptr;
  Word patience_ns = 0;  ///< Of each wait; 0: no end.
};

/// Where an item of a number is.
BRANT_DEVICE_CODE const ItemSlot* slot_of(const KernelControl& control, Word number) {
  const Word slot = number % kItemSlots;
  return control.slots[slot / kSlotsOfLine] + slot % kSlotsOfLine;
}

/// How a wait ended. Not `rung`: what was waited for has not come, and the block should end.
enum class Waited : unsigned { rung = 0, timed_out = 1, aborted = 2 };

/// Threads of a warp: on the CPU a block is one thread.
#ifdef __CUDACC__
inline constexpr unsigned kLanes = 32;
#else
inline constexpr unsigned kLanes = 1;
#endif

/// Who does it together; all of them call. Before a ring they have done what it tells of; after a wait all see it.
/// `first` and `stride`: which of many items are a thread's. `worst`: how the waits of all its threads ended.
struct Thread {
  template <typename Machine>
  BRANT_DEVICE_CODE static Word first(Machine&) {
    return 0;
  }
  template <typename Machine>
  BRANT_DEVICE_CODE static Word stride(Machine&) {
    return 1;
  }
  template <typename Machine>
  BRANT_DEVICE_CODE static Waited worst(Machine&, Waited waited) {
    return waited;
  }
  template <typename Machine>
  BRANT_DEVICE_CODE static bool gather(Machine&) {
    return true;
  }
  template <typename Machine>
  BRANT_DEVICE_CODE static Waited share(Machine&, Waited waited) {
    return waited;
  }
};
struct Warp {
  template <typename Machine>
  BRANT_DEVICE_CODE static Word first(Machine& machine) {
    return machine.lane();
  }
  template <typename Machine>
  BRANT_DEVICE_CODE static Word stride(Machine&) {
    return kLanes;
  }
  template <typename Machine>
  BRANT_DEVICE_CODE static Waited worst(Machine& machine, Waited waited) {
    const bool aborted = machine.any(kLanes, [&](unsigned) { return waited == Waited::aborted; });
    if (aborted) return Waited::aborted;
    const bool late = machine.any(kLanes, [&](unsigned) { return waited == Waited::timed_out; });
    return late ? Waited::timed_out : Waited::rung;
  }
  template <typename Machine>
  BRANT_DEVICE_CODE static bool gather(Machine& machine) {
    machine.sync_warp();
    return machine.lane() == 0;
  }
  template <typename Machine>
  BRANT_DEVICE_CODE static Waited share(Machine& machine, Waited waited) {
    const Word shared = machine.uniform(static_cast<Word>(waited));
    machine.sync_warp();
    return static_cast<Waited>(static_cast<unsigned>(shared));
  }
};
struct Block {
  template <typename Machine>
  BRANT_DEVICE_CODE static Word first(Machine& machine) {
    return machine.thread();
  }
  template <typename Machine>
  BRANT_DEVICE_CODE static Word stride(Machine& machine) {
    return machine.threads();
  }
  template <typename Machine>
  BRANT_DEVICE_CODE static Waited worst(Machine& machine, Waited waited) {
    return share(machine, waited);
  }
  template <typename Machine>
  BRANT_DEVICE_CODE static bool gather(Machine& machine) {
    machine.sync_block();
    return machine.thread() == 0;
  }
  template <typename Machine>
  BRANT_DEVICE_CODE static Waited share(Machine& machine, Waited waited) {
    if (!machine.sync_block_any(waited != Waited::rung)) return Waited::rung;
    return machine.sync_block_any(waited == Waited::aborted) ? Waited::aborted : Waited::timed_out;
  }
};

/// `seen` is `wanted`, or later.
BRANT_DEVICE_CODE bool reached(Word seen, Word wanted) { return static_cast<long long>(seen - wanted) >= 0; }

/// Everything that the callers wrote, and what they have seen of others, is visible system-wide when the epoch is. The
/// epochs of one bell grow, and one place rings it at a time. Cost: a release store of system scope, about 1 us when
/// much was written.
template <typename Machine, typename Scope = Thread>
BRANT_DEVICE_CODE void ring(Machine& machine, DeviceBell bell, Word epoch, Scope = {}) {
  if (Scope::gather(machine)) machine.store_release(machine.reach(bell.word), epoch);
}

/// The epoch alone: what was written before need not be there when it is seen. For an answer, a credit, a heartbeat;
/// epochs of one bell stay in their order. Cost: a store that nothing waits for.
template <typename Machine>
BRANT_DEVICE_CODE void ring_relaxed(Machine& machine, DeviceBell bell, Word epoch) {
  machine.store_relaxed(machine.reach(bell.word), epoch);
}

/// A part of a bell in device memory, to be rung alone.
BRANT_DEVICE_CODE DeviceBell part_of(DeviceBell bell, Word part) { return {bell.word + part, bell.number}; }

/// Whether the epoch has come; then what its ringer wrote before is there.
template <typename Machine>
BRANT_DEVICE_CODE bool test(Machine& machine, DeviceBell bell, Word epoch) {
  return reached(machine.load_acquire(machine.reach(bell.word)), epoch);
}

/// The last of `fan_in.of` callers (scopes) does `tell(epoch)`, for all of them; nobody waits. Each takes part in each
/// epoch, e, e + 1, e + 2; one may be left out when all callers know that all have arrived for those before. A caller
/// may be up to two epochs ahead of the others; they are told of in their order. Cost: one atomic of device memory, and
/// for the last one another behind what it tells; none of a single caller.
template <typename Machine, typename Tell, typename Scope = Block>
BRANT_DEVICE_CODE void arrive_and(Machine& machine, FanIn fan_in, Word epoch, Tell&& tell, Scope = {}) {
  if (!Scope::gather(machine)) return;
  if (fan_in.of == 1) {  // it is always the last one
    tell(epoch);
    return;
  }
  constexpr unsigned kBits = 16;
  const auto shift = [](Word of) { return static_cast<unsigned>(of % 4) * kBits; };
  const auto count = [&](Word counts, Word of) { return counts >> shift(of) & 0xffffu; };
  Word* const word = machine.reach(fan_in.counts);
  const Word one = 1;
  Word counts = machine.add_acq_rel_device(word, one << shift(epoch)) + (one << shift(epoch));
  // An epoch before this one that has not rung: who rings that one finds this one complete, and goes on with it.
  if (count(counts, epoch) != fan_in.of || count(counts, epoch - 1) != 0) return;
  while (count(counts, epoch) == fan_in.of) {
    tell(epoch);
    const Word back = Word{0} - (fan_in.of << shift(epoch));
    counts = machine.add_acq_rel_device(word, back) + back;
    ++epoch;
  }
}

/// `arrive_and` that rings a bell.
template <typename Machine, typename Scope = Block>
BRANT_DEVICE_CODE void arrive(Machine& machine, DeviceBell bell, FanIn fan_in, Word epoch, Scope scope = {}) {
  Word* const word = machine.reach(bell.word);
  arrive_and(machine, fan_in, epoch, [&](Word all_there) { machine.store_release(word, all_there); }, scope);
}

/// So many looks have no rest between them. Hundreds of blocks that go on like that keep all others from the slice of
/// the cache that their words are in: a sweep beside them took ten times as long on an H100.
inline constexpr unsigned kEagerLooks = 16;

/// Nothing else ends a wait.
struct NothingElse {
  BRANT_DEVICE_CODE Waited operator()() const { return Waited::rung; }
};

namespace detail {

/// Whether the clock or the program ends a wait that began when this was called first: then `begun` is 0.
template <typename Machine>
BRANT_DEVICE_CODE Waited ended_early(Machine& machine, const KernelControl& control, Word& begun) {
  const Word now = machine.now_ns();
  if (begun == 0) begun = now;
  if (control.patience_ns != 0 && now - begun > control.patience_ns) return Waited::timed_out;
  const bool aborts = control.asked != nullptr && machine.load_relaxed(&machine.reach(control.asked)->abort) != 0;
  return aborts ? Waited::aborted : Waited::rung;
}

/// To the CPU: what was waited for in vain.
template <typename Machine>
BRANT_DEVICE_CODE void tell_in_vain(Machine& machine, const KernelControl& control, Word number, Word epoch, Word seen,
                                    Waited waited) {
  if (control.told == nullptr) return;
  Told* const told = machine.reach(control.told);
  machine.store_relaxed(&told->wanted, epoch);
  machine.store_relaxed(&told->seen, seen);
  machine.store_relaxed(&told->failed, static_cast<Word>(waited));
  machine.store_release(&told->waits_for, number);
}

}  // namespace detail

/// Looks until `look()` gives the epoch, or a later one; for one thread. Ends early where the program aborts the
/// kernel, when `control.patience_ns` is over, or when `also()` says so: that is told to the CPU, by the number of what
/// was waited for.
template <typename Machine, typename Look, typename Also = NothingElse>
BRANT_DEVICE_CODE Waited look_until(Machine& machine, const KernelControl& control, Word number, Word epoch,
                                    Look&& look, Also also = {}) {
  Word begun = 0;
  for (unsigned looks = 1;; ++looks) {
    Word seen = look();
    if (reached(seen, epoch)) return Waited::rung;
    if (looks % Machine::kLooksPerCheck != 0) {
      looks < kEagerLooks ? machine.pause() : machine.rest();
      continue;
    }
    Waited waited = also();
    if (waited != Waited::rung) {  // what came before that end has come
      seen = look();
      if (reached(seen, epoch)) return Waited::rung;
    }
    const Waited early = detail::ended_early(machine, control, begun);
    if (early != Waited::rung) waited = early;
    if (waited == Waited::rung) {
      machine.rest();
      continue;
    }
    detail::tell_in_vain(machine, control, number, epoch, seen, waited);
    return waited;
  }
}

/// Threads of a scope look, each at what it waits for: `look()` gives the epoch, or a later one, when the thread has
/// all of that. Ends early as `look_until` does, which one of them finds out for all: if thousands looked at memory of
/// the host, a wait that takes long would take a millisecond more, and so would that of who waits for this one.
template <typename Machine, typename Look, typename Scope = Block>
BRANT_DEVICE_CODE Waited look_together(Machine& machine, const KernelControl& control, Word number, Word epoch,
                                       Look&& look, Scope = {}) {
  Word begun = 0;
  Word seen = epoch - 1;
  for (;;) {
    for (unsigned looks = 1; !reached(seen, epoch) && looks <= Machine::kLooksPerCheck; ++looks) {
      seen = look();
      if (!reached(seen, epoch)) looks < kEagerLooks ? machine.pause() : machine.rest();
    }
    const bool lacks = !reached(seen, epoch);
    if (Scope::worst(machine, lacks ? Waited::timed_out : Waited::rung) == Waited::rung) return Waited::rung;
    Waited waited = Waited::rung;
    if (Scope::first(machine) == 0) waited = detail::ended_early(machine, control, begun);
    waited = Scope::worst(machine, waited);
    if (waited == Waited::rung) continue;
    if (lacks) detail::tell_in_vain(machine, control, number, epoch, seen, waited);
    return waited;
  }
}

/// Waits until the epoch has come; all callers see what its ringer wrote before. It ends early as `look_until` says.
/// One thread of the scope looks. Cost: a look is some hundred nanoseconds in device memory, about 1 us in pinned
/// memory of the host.
template <typename Machine, typename Scope = Block>
BRANT_DEVICE_CODE Waited wait(Machine& machine, const KernelControl& control, DeviceBell bell, Word epoch, Scope = {}) {
  Waited waited = Waited::rung;
  if (Scope::gather(machine)) {
    const Word* const word = machine.reach(static_cast<const Word*>(bell.word));
    waited = look_until(machine, control, bell.number, epoch, [&] { return machine.load_acquire(word); });
  }
  return Scope::share(machine, waited);
}

/// Waits until the first `parts` parts of a bell have reached the epoch, kBellParts at most. Threads of the scope look
/// at one each. Cost: that of `wait`.
template <typename Machine, typename Scope = Block>
BRANT_DEVICE_CODE Waited wait_for_parts(Machine& machine, const KernelControl& control, DeviceBell bell, Word parts,
                                        Word epoch, Scope = {}) {
  const Word* const words = machine.reach(static_cast<const Word*>(bell.word));
  const Word stride = Scope::stride(machine);
  Waited waited = Waited::rung;
  for (Word part = Scope::first(machine); part < parts && waited == Waited::rung; part += stride) {
    waited = look_until(machine, control, bell.number, epoch, [&] { return machine.load_acquire(&words[part]); });
  }
  return Scope::worst(machine, waited);
}

/// All blocks of a grid that run at once have come to a place, and each sees what all have written before; places have
/// the numbers 1, 2, 3 and so on. `bell` and what `all` counts in lie in device memory, and nobody else uses them. It
/// ends early as `look_until` says. Cost: a fan-in, and a look at what the last block stored; nothing of a system's
/// scope. Have one block on each SM: where some wait and others compute on the same one, an acquire takes those the
/// cache of that SM.
template <typename Machine>
BRANT_DEVICE_CODE Waited meet(Machine& machine, const KernelControl& control, DeviceBell bell, FanIn all, Word place) {
  Word* const word = machine.reach(bell.word);
  arrive_and(machine, all, place, [&](Word all_there) { machine.store_release_device(word, all_there); }, Block{});
  Waited waited = Waited::rung;
  if (machine.thread() == 0) {
    waited = look_until(machine, control, bell.number, place, [&] { return machine.load_acquire_device(word); });
  }
  return Block::share(machine, waited);
}

/// The life of a persistent kernel, for all threads of all its blocks: the constructor tells the CPU that all blocks
/// are there, `leave` that all have gone.
///
///     KernelLife life(machine, control);
///     Item item;
///     while (life.next(item)) { work(item); life.done(); }
///     life.leave();
template <typename Machine>
class KernelLife {
 public:
  BRANT_DEVICE_CODE KernelLife(Machine& machine, const KernelControl& control)
      : machine_(machine),
        control_(control),
        told_(machine.reach(control.told)),
        together_(machine.reach(control.together)) {
    if (Block::gather(machine_) && last(&together_->arrived)) machine_.store_release(&told_->started, 1);
  }
  KernelLife(const KernelLife&) = delete;
  KernelLife& operator=(const KernelLife&) = delete;

  /// The next item that the CPU has handed out: the same for all blocks, and each gets all of them. False: there are no
  /// more (`PersistentKernel::quit`, or abort). Block 0 looks at the memory of the host, for all.
  BRANT_DEVICE_CODE bool next(Item& item) {
    ++number_;
    if (machine_.thread() == 0) {
      if (machine_.block() == 0) hand_out();
      Word handed = machine_.load_acquire_device(&together_->handed);
      for (unsigned looks = 1; handed >> 1 < number_ && (handed & 1) == 0; ++looks) {
        looks % Machine::kLooksPerCheck == 0 ? machine_.rest() : machine_.pause();
        handed = machine_.load_acquire_device(&together_->handed);
      }
      more_ = handed >> 1 >= number_;
    }
    if (!machine_.sync_block_any(machine_.thread() == 0 && more_)) return false;
    const Item& from = together_->items[number_ % kItemSlots];
    for (unsigned i = 0; i < 4; i += 2) {
      const simt::Pair pair = machine_.load_pair_relaxed_device(&from.words[i]);
      item.words[i] = pair.first;
      item.words[i + 1] = pair.second;
    }
    return true;
  }
  /// This block has done the item; the last one tells the CPU, which then sees what all have written.
  BRANT_DEVICE_CODE void done() {
    arrive(machine_, DeviceBell{&control_.told->done}, FanIn{&control_.together->finished, machine_.blocks()}, number_,
           Block{});
  }
  /// The same, and a bell is rung by it too: its epoch grows by one with each item.
  BRANT_DEVICE_CODE void done(DeviceBell bell, Word epoch) {
    const Word ahead = epoch - number_;
    Word* const word = machine_.reach(bell.word);
    const auto tell = [&](Word number) {
      machine_.store_relaxed(&told_->done, number);
      machine_.store_release(word, number + ahead);
    };
    arrive_and(machine_, FanIn{&control_.together->finished, machine_.blocks()}, number_, tell, Block{});
  }
  /// The program wants the kernel to end at once. One thread may ask; costs a look at the memory of the host.
  BRANT_DEVICE_CODE bool aborted() { return machine_.load_relaxed(&machine_.reach(control_.asked)->abort) != 0; }
  BRANT_DEVICE_CODE void leave() {
    if (Block::gather(machine_) && last(&together_->gone)) machine_.store_release(&told_->ended, 1);
  }

 private:
  /// All blocks have been here, and this is the last one.
  BRANT_DEVICE_CODE bool last(Word* count) { return machine_.add_acq_rel_device(count, 1) + 1 == machine_.blocks(); }
  BRANT_DEVICE_CODE void hand_out() {
    Item item;
    while (!look(item)) {
      if (ends()) {
        machine_.store_release_device(&together_->handed, (number_ - 1) << 1 | 1);
        return;
      }
      machine_.pause();
    }
    Item& to = together_->items[number_ % kItemSlots];
    for (unsigned i = 0; i < 4; ++i) machine_.store_relaxed(&to.words[i], item.words[i]);
    machine_.store_release_device(&together_->handed, number_ << 1);
  }
  /// One look at the memory of the host, which is a round trip across the bus: nothing is read because of what was read
  /// before. Lines that were read too early show it by their numbers. True: the item is there, and all that the CPU
  /// wrote before it. Else `asks_` is what the CPU may have asked.
  BRANT_DEVICE_CODE bool look(Item& item) {
    const ItemSlot* const slot = machine_.reach(slot_of(control_, number_));
    const Asked* const asked = machine_.reach(control_.asked);
    simt::Pair lines[4];
    for (unsigned i = 0; i < 4; ++i) lines[i] = machine_.load_line(&slot->lines[i].number);
    const simt::Pair abort_and_quit = machine_.load_line(&asked->abort);
    bool there = machine_.load_acquire(&asked->items) >= number_;
    for (unsigned i = 0; i < 4; ++i) {
      there = there && lines[i].first == number_;
      item.words[i] = lines[i].second;
    }
    asks_ = (abort_and_quit.first | abort_and_quit.second) != 0;
    return there;
  }
  /// The kernel is to end: at once, or what was handed out before is done.
  BRANT_DEVICE_CODE bool ends() {
    if (!asks_) return false;
    const Asked* const asked = machine_.reach(control_.asked);
    if (machine_.load_acquire(&asked->abort) != 0) return true;
    return machine_.load_acquire(&asked->quit) != 0 && machine_.load_acquire(&asked->items) < number_;
  }

  Machine& machine_;
  const KernelControl control_;
  Told* const told_;
  Together* const together_;
  Word number_ = 0;
  bool more_ = false;
  bool asks_ = false;
};

#ifdef __CUDACC__

// For kernels that run on GPUs alone.

template <typename Scope = Thread>
BRANT_DEVICE_CODE void ring(DeviceBell bell, Word epoch, Scope scope = {}) {
  simt::GpuThread machine;
  ring(machine, bell, epoch, scope);
}
BRANT_DEVICE_CODE void ring_relaxed(DeviceBell bell, Word epoch) {
  simt::GpuThread machine;
  ring_relaxed(machine, bell, epoch);
}
template <typename Scope = Block>
BRANT_DEVICE_CODE void arrive(DeviceBell bell, FanIn fan_in, Word epoch, Scope scope = {}) {
  simt::GpuThread machine;
  arrive(machine, bell, fan_in, epoch, scope);
}
template <typename Scope = Block>
BRANT_DEVICE_CODE Waited wait(const KernelControl& control, DeviceBell bell, Word epoch, Scope scope = {}) {
  simt::GpuThread machine;
  return wait(machine, control, bell, epoch, scope);
}
BRANT_DEVICE_CODE bool test(DeviceBell bell, Word epoch) {
  simt::GpuThread machine;
  return test(machine, bell, epoch);
}

#endif

}  // namespace brant::notify
