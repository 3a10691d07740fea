#pragma once

#include "brant/device/put.cuh"

/// What the kernels of `brant bench notify` do: one text for the GPU and for the emulated device.
namespace brant::bench::notify_steps {

using notify::DeviceBell;
using notify::KernelControl;
using notify::KernelLife;
using notify::Line;
using notify::Waited;
using simt::Word;

/// Words beside the bells, to see whether what was written before a ring is there behind it. Null: none.
struct Witness {
  const Word* question = nullptr;
  Word* answer = nullptr;
};

/// Rings `out` as often as `in` is rung, with the answer to the question: a word more than that. `relaxed`: the rings
/// tell of nothing but themselves.
template <typename Machine>
BRANT_DEVICE_CODE void echo(Machine& machine, const KernelControl& control, DeviceBell in, DeviceBell out, Word rounds,
                            Witness witness, Word relaxed) {
  KernelLife life(machine, control);
  for (Word epoch = 1; epoch <= rounds; ++epoch) {
    if (wait(machine, control, in, epoch, notify::Thread{}) != Waited::rung) break;
    if (witness.question != nullptr) {
      machine.store_relaxed(machine.reach(witness.answer), machine.load_relaxed(machine.reach(witness.question)) + 1);
    }
    relaxed != 0 ? ring_relaxed(machine, out, epoch) : ring(machine, out, epoch, notify::Thread{});
  }
  life.leave();
}

/// Nanoseconds that many of each take, one behind the other.
enum Cost : unsigned { kLooks, kRings, kRelaxedRings, kDeviceReleases, kEarly, kCosts };

/// How long `rounds` looks at a bell take, as many rings of it, of either sort, and releases of device scope, in
/// memory of the device.
template <typename Machine>
BRANT_DEVICE_CODE void cost(Machine& machine, const KernelControl& control, DeviceBell seen, DeviceBell rung,
                            Word rounds, Word* nanoseconds) {
  KernelLife life(machine, control);
  Word* const results = machine.reach(nanoseconds);
  Word begin = machine.now_ns();
  const auto tell = [&](Cost cost) {
    const Word end = machine.now_ns();
    machine.store_relaxed(&results[cost], end - begin);
    begin = machine.now_ns();
  };
  Word early = 0;
  for (Word i = 0; i < rounds; ++i) early += test(machine, seen, 1) ? 1 : 0;
  tell(kLooks);
  for (Word epoch = 1; epoch <= rounds; ++epoch) ring(machine, rung, epoch, notify::Thread{});
  tell(kRings);
  for (Word epoch = rounds + 1; epoch <= 2 * rounds; ++epoch) ring_relaxed(machine, rung, epoch);
  tell(kRelaxedRings);
  for (Word i = 1; i <= rounds; ++i) machine.store_release_device(&results[kEarly], i);
  tell(kDeviceReleases);
  machine.store_release(&results[kEarly], early);
  life.leave();
}

/// Ping-pong with the kernel of another process, no CPU between. Gives the nanoseconds of all rounds.
template <typename Machine>
BRANT_DEVICE_CODE void play(Machine& machine, const KernelControl& control, DeviceBell own, DeviceBell peers,
                            Word rounds, Word leads, Word* nanoseconds) {
  KernelLife life(machine, control);
  const Word begin = machine.now_ns();
  for (Word epoch = 1; epoch <= rounds; ++epoch) {
    if (leads != 0) ring(machine, peers, epoch, notify::Thread{});
    if (wait(machine, control, own, epoch, notify::Thread{}) != Waited::rung) break;
    if (leads == 0) ring(machine, peers, epoch, notify::Thread{});
  }
  machine.store_release(machine.reach(nanoseconds), machine.now_ns() - begin);
  life.leave();
}

/// What two kernels that play with bytes are given. `wrong`: set to 1 where `check` finds a word that is not of its
/// epoch.
struct Play {
  Word rounds = 0;
  Word leads = 0;
  Word check = 0;
  Word count = 0;  ///< Words of a message.
  Word* words = nullptr;
  Word* nanoseconds = nullptr;
  Word* wrong = nullptr;
};

template <typename Machine>
BRANT_DEVICE_CODE void fill(Machine& machine, const Play& play, Word epoch) {
  if (play.check == 0) return;
  Word* const words = machine.reach(play.words);
  for (Word i = machine.thread(); i < play.count; i += machine.threads()) machine.store_relaxed(&words[i], epoch + i);
}
template <typename Machine>
BRANT_DEVICE_CODE void look_at(Machine& machine, const Play& play, const Word* landed, Word epoch) {
  if (play.check == 0) return;
  const Word* const words = machine.reach(landed);
  for (Word i = machine.thread(); i < play.count; i += machine.threads()) {
    if (machine.load_relaxed(&words[i]) != epoch + i) machine.store_relaxed(machine.reach(play.wrong), 1);
  }
}

/// The same with bytes before each ring: to `to` over there, while the other's come to `landed`.
template <typename Machine>
BRANT_DEVICE_CODE void play_put(Machine& machine, const KernelControl& control, DeviceBell own, DeviceBell peers,
                                void* to, const Word* landed, Play play) {
  KernelLife life(machine, control);
  const Word bytes = play.count * sizeof(Word);
  const Word begin = machine.now_ns();
  for (Word epoch = 1; epoch <= play.rounds; ++epoch) {
    fill(machine, play, epoch);
    if (play.leads != 0) put_and_ring(machine, peers, epoch, to, play.words, bytes, notify::Block{});
    if (wait(machine, control, own, epoch, notify::Block{}) != Waited::rung) break;
    look_at(machine, play, landed, epoch);
    if (play.leads == 0) put_and_ring(machine, peers, epoch, to, play.words, bytes, notify::Block{});
  }
  if (machine.thread() == 0) machine.store_release(machine.reach(play.nanoseconds), machine.now_ns() - begin);
  life.leave();
}

/// The same with words in lines: to `to` over there, while the other's come to `from` and are taken into `words`, which
/// is what the one that does not lead sends back.
template <typename Machine>
BRANT_DEVICE_CODE void play_lines(Machine& machine, const KernelControl& control, Line* to, const Line* from,
                                  Play play) {
  KernelLife life(machine, control);
  const Word begin = machine.now_ns();
  for (Word epoch = 1; epoch <= play.rounds; ++epoch) {
    if (play.leads != 0) {
      fill(machine, play, epoch);
      put_lines(machine, to, epoch, play.words, play.count, notify::Block{});
    }
    if (take_lines(machine, control, from, epoch, play.words, play.count, 0, notify::Block{}) != Waited::rung) break;
    look_at(machine, play, play.words, epoch);
    if (play.leads == 0) put_lines(machine, to, epoch, play.words, play.count, notify::Block{});
  }
  if (machine.thread() == 0) machine.store_release(machine.reach(play.nanoseconds), machine.now_ns() - begin);
  life.leave();
}

}  // namespace brant::bench::notify_steps
