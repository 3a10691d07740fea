#pragma once

#include "brant/device/notify.cuh"

/// What the kernels of `brant bench notify` do: one text for the GPU and for the emulated device.
namespace brant::bench::notify_steps {

using notify::DeviceBell;
using notify::KernelControl;
using notify::KernelLife;
using notify::Waited;
using simt::Word;

/// Words beside the bells, to see whether what was written before a ring is there behind it. Null: none.
struct Witness {
  const Word* question = nullptr;
  Word* answer = nullptr;
};

/// Rings `out` as often as `in` is rung, with the answer to the question: a word more than that.
template <typename Machine>
BRANT_DEVICE_CODE void echo(Machine& machine, const KernelControl& control, DeviceBell in, DeviceBell out, Word rounds,
                            Witness witness) {
  KernelLife life(machine, control);
  for (Word epoch = 1; epoch <= rounds; ++epoch) {
    if (wait(machine, control, in, epoch, notify::Thread{}) != Waited::rung) break;
    if (witness.question != nullptr) {
      machine.store_relaxed(machine.reach(witness.answer), machine.load_relaxed(machine.reach(witness.question)) + 1);
    }
    ring(machine, out, epoch, notify::Thread{});
  }
  life.leave();
}

/// How long `rounds` looks at a bell take, and as many rings of it: nanoseconds.
template <typename Machine>
BRANT_DEVICE_CODE void cost(Machine& machine, const KernelControl& control, DeviceBell seen, DeviceBell rung,
                            Word rounds, Word* nanoseconds) {
  KernelLife life(machine, control);
  const Word begin = machine.now_ns();
  Word early = 0;
  for (Word i = 0; i < rounds; ++i) early += test(machine, seen, 1) ? 1 : 0;
  const Word looked = machine.now_ns();
  for (Word epoch = 1; epoch <= rounds; ++epoch) ring(machine, rung, epoch, notify::Thread{});
  const Word end = machine.now_ns();
  Word* const results = machine.reach(nanoseconds);
  machine.store_relaxed(&results[0], looked - begin);
  machine.store_relaxed(&results[1], end - looked);
  machine.store_release(&results[2], early);
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

}  // namespace brant::bench::notify_steps
