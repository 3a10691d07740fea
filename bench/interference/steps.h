#pragma once

#include "brant/device/notify.cuh"

/// What the kernels of `brant bench interference` do: one text for the GPU and for the emulated device.
///
/// A kernel of one block, or of all that run at once, does rounds. In each it writes what the CPU sends, and then
/// writes words beside it, or the same ones, again and again. Such a pass over all words is a sweep; all blocks meet
/// behind each of them.
namespace brant::bench::interference_steps {

using notify::Block;
using notify::DeviceBell;
using notify::FanIn;
using notify::Item;
using notify::KernelControl;
using notify::KernelLife;
using notify::Thread;
using notify::Waited;
using simt::Word;

/// How a round goes.
enum How : Word {
  kSilent = 0,
  kRingsOnce = 1,  ///< When what is sent has been written; and it looks at each sweep what the CPU has rung.
  kRings = 2,      ///< Behind each sweep too.
  kAnswered = 4,   ///< Each ring is answered by the CPU before the next sweep.
};

/// A round, as an item hands it to all blocks.
struct Round {
  Word number = 0;  ///< Of all rounds; in the upper half of all words that it writes.
  Word epoch = 0;   ///< Of its first ring.
  Word sweeps = 0;  ///< So many behind the first writing; 0: until `epoch` is heard.
  Word how = kSilent;
};

/// What a kernel works on.
struct Scene {
  Word* words = nullptr;   ///< What is sent,
  Word* beside = nullptr;  ///< and what is written meanwhile. Both have `count` words.
  Word count = 0;
  DeviceBell rung;       ///< By this kernel, for the CPU.
  DeviceBell heard;      ///< What the CPU answers: the epoch that it has seen, or whose send is done.
  DeviceBell met;        ///< Of the device: all blocks have done the sweep of this number.
  Word swept = 0;        ///< Sweeps of the kernels before.
  Word* last = nullptr;  ///< Device memory, which begins as 0: number of a sweep that is the last of its round.
  Word* lap = nullptr;   ///< Pinned, a Lap: what the last round took.
};
enum Lap : unsigned { kNanoseconds, kSweeps, kLapWords };

/// All blocks leave the kernel behind the sweep of this number.
inline constexpr Word kLeave = Word{1} << 63;
/// How often the clock is looked at, and whether the program wants the end.
inline constexpr Word kSweepsPerCheck = 64;

/// Word `i` behind so many sweeps of a round.
BRANT_DEVICE_CODE Word value_of(Word round, Word sweep, Word i) { return round << 32 | ((sweep + i) & 0xffffffffu); }

/// All blocks together.
template <typename Machine>
BRANT_DEVICE_CODE void write(Machine& machine, Word* to, Word count, Word round, Word sweep) {
  Word* const words = machine.reach(to);
  const Word step = Word{machine.threads()} * machine.blocks();
  const Word first = Word{machine.block()} * machine.threads() + machine.thread();
  for (Word i = first; i < count; i += step) machine.store_relaxed(&words[i], value_of(round, sweep, i));
}

/// One kernel: what its blocks agree upon, and what its first thread decides for all of them.
template <typename Machine>
class Player {
 public:
  BRANT_DEVICE_CODE Player(Machine& machine, const KernelControl& control, const Scene& scene, FanIn arrivals)
      : machine_(machine),
        control_(control),
        scene_(scene),
        arrivals_(arrivals),
        life_(machine, control),
        swept_(scene.swept) {}
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  BRANT_DEVICE_CODE void play() {
    Item item;
    while (life_.next(item)) {
      const Met met = play({item.words[0], item.words[1], item.words[2], item.words[3]});
      if (met == Met::all_leave) break;
      // Who has not met the others goes on to an item that does not come: block 0 must be there to tell of the end.
      if (met == Met::round_is_over) life_.done();
    }
    life_.leave();
  }

 private:
  enum class Met { not_all, sweep_is_over, round_is_over, all_leave };

  BRANT_DEVICE_CODE Met play(const Round& round) {
    Word begun = 0;
    for (Word sweep = 0;; ++sweep) {
      ++swept_;
      if (leads()) decide(round, sweep, begun);
      write(machine_, sweep == 0 ? scene_.words : scene_.beside, scene_.count, round.number, sweep);
      const Met met = meet(round, sweep);
      if (met == Met::not_all || met == Met::all_leave) return met;
      if (leads() && sweep == 0) begun = machine_.now_ns();
      if (met == Met::sweep_is_over) continue;
      if (leads()) tell_lap(machine_.now_ns() - begun, sweep);
      return met;
    }
  }

  [[nodiscard]] BRANT_DEVICE_CODE bool leads() const { return machine_.block() == 0 && machine_.thread() == 0; }

  /// Whether this sweep is the last one of its round, which all learn when they meet behind it.
  BRANT_DEVICE_CODE void decide(const Round& round, Word sweep, Word begun) {
    if (sweep == 0) return;
    Word last = 0;
    if ((round.how & kAnswered) != 0 &&
        notify::wait(machine_, control_, scene_.heard, round.epoch + sweep - 1, Thread{}) != Waited::rung) {
      last = swept_ | kLeave;
    } else if (round.sweeps != 0) {
      if (round.how != kSilent) notify::test(machine_, scene_.heard, round.epoch);  // for what a look costs
      if (sweep == round.sweeps) last = swept_;
    } else if (notify::test(machine_, scene_.heard, round.epoch)) {
      last = swept_;
    }
    if (last == 0 && sweep % kSweepsPerCheck == 0 && gives_up(round, begun)) last = swept_ | kLeave;
    if (last != 0) machine_.store_relaxed(machine_.reach(scene_.last), last);
  }

  /// The program wants the end; or its answer does not come: the CPU is told which bell has not rung.
  BRANT_DEVICE_CODE bool gives_up(const Round& round, Word begun) {
    if (life_.aborted()) return true;
    if (round.sweeps != 0 || machine_.now_ns() - begun < control_.patience_ns) return false;
    KernelControl hasty = control_;
    hasty.patience_ns = 1;
    return notify::wait(machine_, hasty, scene_.heard, round.epoch, Thread{}) != Waited::rung;
  }

  /// Behind a sweep: all blocks have come, and see what all have written. The last one lets the others go on, and
  /// rings.
  BRANT_DEVICE_CODE Met meet(const Round& round, Word sweep) {
    Word* const word = machine_.reach(scene_.met.word);
    const auto tell = [&](Word all_there) {
      machine_.store_release_device(word, all_there);
      const bool rings = sweep == 0 ? round.how != kSilent : (round.how & kRings) != 0;
      if (rings) notify::ring(machine_, scene_.rung, round.epoch + sweep, Thread{});
    };
    notify::arrive_and(machine_, FanIn{arrivals_.counts, machine_.blocks()}, swept_, tell, Block{});
    Waited waited = Waited::rung;
    Word last = 0;
    if (machine_.thread() == 0) {
      KernelControl patient = control_;
      patient.patience_ns *= 2;  // the first thread may be waiting for the CPU
      waited = notify::look_until(machine_, patient, scene_.met.number, swept_,
                                  [&] { return machine_.load_acquire_device(word); });
      last = machine_.load_relaxed(machine_.reach(scene_.last));
    }
    if (Block::share(machine_, waited) != Waited::rung) return Met::not_all;
    if (machine_.sync_block_any(last == (swept_ | kLeave))) return Met::all_leave;
    return machine_.sync_block_any(last == swept_) ? Met::round_is_over : Met::sweep_is_over;
  }

  BRANT_DEVICE_CODE void tell_lap(Word nanoseconds, Word sweeps) {
    Word* const lap = machine_.reach(scene_.lap);
    machine_.store_relaxed(&lap[kNanoseconds], nanoseconds);
    machine_.store_relaxed(&lap[kSweeps], sweeps);
  }

  Machine& machine_;
  const KernelControl control_;
  const Scene scene_;
  const FanIn arrivals_;
  KernelLife<Machine> life_;
  Word swept_;
};

}  // namespace brant::bench::interference_steps
