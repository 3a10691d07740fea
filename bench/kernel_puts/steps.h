#pragma once

#include "../notify/steps.h"
#include "brant/pgas/device_window.cuh"

/// What the kernels of `brant bench kernel-puts` do: one text for the GPU and for the emulated device. Two processes,
/// each with one kernel, and a window that reaches the memory of both.
namespace brant::bench::kernel_steps {

using notify::KernelControl;
using notify::KernelLife;
using notify::Line;
using notify::Waited;
using pgas::DeviceWindow;
using simt::Word;

/// So many blocks put side by side at most, each with a flag of its own.
inline constexpr unsigned kBlocksMax = 64;
/// Where things lie in the window of each process, in bytes.
inline constexpr Word kFlags = 0;                                    ///< Of the blocks.
inline constexpr Word kAnswer = kFlags + kBlocksMax * sizeof(Word);  ///< All flags of the other one have come.
inline constexpr Word kCounter = kAnswer + 128;
inline constexpr Word kBarrier = kCounter + 128;
inline constexpr Word kLanding = 4096;

/// What a kernel is given.
struct Play : notify_steps::Play {
  DeviceWindow window;
};

BRANT_DEVICE_CODE unsigned other(const Play& play) { return 1 - play.window.member; }

template <typename Machine>
BRANT_DEVICE_CODE void tell(Machine& machine, const Play& play, Word begin) {
  if (machine.block() == 0 && machine.thread() == 0) {
    machine.store_release(machine.reach(play.nanoseconds), machine.now_ns() - begin);
  }
}

/// Ping-pong: bytes, and a flag behind them.
template <typename Machine>
BRANT_DEVICE_CODE void put_notify(Machine& machine, const KernelControl& control, const Play& play) {
  KernelLife life(machine, control);
  const Word* const landed = pgas::peer_pointer<Word>(play.window, play.window.member, kLanding);
  const Word bytes = play.count * sizeof(Word);
  const Word begin = machine.now_ns();
  for (Word epoch = 1; epoch <= play.rounds; ++epoch) {
    fill(machine, play, epoch);
    if (play.leads != 0)
      pgas::put_notify(machine, control, play.window, other(play), kLanding, play.words, bytes, kFlags, epoch);
    if (pgas::wait(machine, control, play.window, kFlags, epoch) != Waited::rung) break;
    look_at(machine, play, landed, epoch);
    if (play.leads == 0)
      pgas::put_notify(machine, control, play.window, other(play), kLanding, play.words, bytes, kFlags, epoch);
  }
  tell(machine, play, begin);
  life.leave();
}

/// The same with words in lines, which are their own flags.
template <typename Machine>
BRANT_DEVICE_CODE void put_lines(Machine& machine, const KernelControl& control, const Play& play) {
  notify_steps::play_lines(machine, control, pgas::peer_pointer<Line>(play.window, other(play), kLanding),
                           pgas::peer_pointer<Line>(play.window, play.window.member, kLanding), play);
}

/// The other one's kernel puts nothing: it waits for the flags of all blocks, and answers.
template <typename Machine>
BRANT_DEVICE_CODE void answer(Machine& machine, const KernelControl& control, const Play& play, Word epoch) {
  if (machine.block() != 0) return;
  for (unsigned block = 0; block < machine.blocks(); ++block) {
    if (pgas::wait(machine, control, play.window, kFlags + block * sizeof(Word), epoch) != Waited::rung) return;
  }
  pgas::notify_member(machine, control, play.window, other(play), kAnswer, 1);
}

/// All blocks put their parts of a message again and again, and tell of the last one, or of each (`told` not 0). Until
/// the other one has seen them all.
template <typename Machine>
BRANT_DEVICE_CODE void stream_puts(Machine& machine, const KernelControl& control, const Play& play, Word told) {
  KernelLife life(machine, control);
  const Word last = told != 0 ? play.rounds : 1;
  const Word flag = kFlags + machine.block() * sizeof(Word);
  const Word share = play.count / machine.blocks() * sizeof(Word);  // the bench makes it come out even
  const Word offset = machine.block() * share;
  const unsigned char* const from = reinterpret_cast<const unsigned char*>(play.words) + offset;
  const Word begin = machine.now_ns();
  if (play.leads != 0) {
    for (Word epoch = 1; epoch <= play.rounds; ++epoch) {
      if (told != 0) {
        pgas::put_notify(machine, control, play.window, other(play), kLanding + offset, from, share, flag, epoch);
      } else {
        pgas::put(machine, control, play.window, other(play), kLanding + offset, from, share);
      }
    }
    if (told == 0) pgas::notify_member(machine, control, play.window, other(play), flag, last);
    if (machine.block() == 0) pgas::wait(machine, control, play.window, kAnswer, 1);
  } else {
    answer(machine, control, play, last);
  }
  tell(machine, play, begin);
  life.leave();
}

/// One block reads what lies there, which the other one changes each time. The time is that of the reading alone.
template <typename Machine>
BRANT_DEVICE_CODE void get(Machine& machine, const KernelControl& control, const Play& play) {
  KernelLife life(machine, control);
  Word reading = 0;
  for (Word epoch = 1; epoch <= play.rounds; ++epoch) {
    if (play.leads == 0) {
      Word* const words = machine.reach(pgas::peer_pointer<Word>(play.window, play.window.member, kLanding));
      for (Word i = machine.thread(); i < play.count; i += machine.threads())
        machine.store_relaxed(&words[i], epoch * play.count + i);
      pgas::notify_member(machine, control, play.window, other(play), kFlags, epoch);
      if (pgas::wait(machine, control, play.window, kAnswer, epoch) != Waited::rung) break;
    } else {
      if (pgas::wait(machine, control, play.window, kFlags, epoch) != Waited::rung) break;
      const Word begin = machine.now_ns();
      pgas::get(machine, control, play.window, other(play), kLanding, play.words, play.count * sizeof(Word));
      reading += machine.now_ns() - begin;
      const Word* const got = machine.reach(static_cast<const Word*>(play.words));
      for (Word i = machine.thread(); i < play.count; i += machine.threads())
        if (got[i] != epoch * play.count + i) machine.store_relaxed(machine.reach(play.wrong), 1);
      pgas::notify_member(machine, control, play.window, other(play), kAnswer, epoch);
    }
  }
  tell(machine, play, machine.now_ns() - reading);
  life.leave();
}

/// One thread adds 1 to a word there, `rounds` times, and needs what it was before.
template <typename Machine>
BRANT_DEVICE_CODE void fetch_add(Machine& machine, const KernelControl& control, const Play& play, Word relaxed) {
  KernelLife life(machine, control);
  const Word begin = machine.now_ns();
  Word next = 0;
  for (Word round = 0; play.leads != 0 && machine.thread() == 0 && round < play.rounds; ++round) {
    Word before = 0;
    if (relaxed != 0) {
      pgas::fetch_add_relaxed(machine, control, play.window, other(play), kCounter, 1, before);
    } else {
      pgas::fetch_add(machine, control, play.window, other(play), kCounter, 1, before);
    }
    if (before != next) machine.store_relaxed(machine.reach(play.wrong), 1);
    next = before + 1;
  }
  tell(machine, play, begin);
  life.leave();
}

/// Both meet.
template <typename Machine>
BRANT_DEVICE_CODE void barrier(Machine& machine, const KernelControl& control, const Play& play) {
  KernelLife life(machine, control);
  const Word begin = machine.now_ns();
  for (Word epoch = 1; epoch <= play.rounds; ++epoch) {
    if (pgas::barrier(machine, control, play.window, kBarrier, epoch) != Waited::rung) break;
  }
  tell(machine, play, begin);
  life.leave();
}

}  // namespace brant::bench::kernel_steps
