#pragma once

#include "ops/coll/device/stream_board.h"
#include "ops/coll/device/stream_crews.h"

namespace brant::coll {

/// Of the memory of the CPU, which lies behind a bus: a look takes a microsecond, and delays fences.
template <typename Machine>
inline constexpr unsigned kStreamLooks = Machine::kLooksPerCheck * 8;

/// The turns of one block: what it tells the others of them, how it waits for the others, and what ends that.
template <typename Machine>
class StreamHeads {
 public:
  BRANT_DEVICE_CODE StreamHeads(Machine& machine, const StreamCall& call)
      : machine_(machine),
        call_(call),
        board_(*machine.reach(call.boards[call.self])),
        talk_(*machine.reach(call.talk)) {
    turn = machine_.load_relaxed(&board_.blocks[machine_.block()].turn);
    calls_ = machine_.load_relaxed(&board_.calls);
    fault_ = machine_.load_relaxed(&board_.fault);
  }

  Word turn;  ///< That this block is in.
  bool lost = false;

  /// False: nothing goes any more. What this thread reads before is on its way at the same time as the turn is.
  BRANT_DEVICE_CODE bool begin() { return !machine_.sync_block_any(fault_ != 0); }
  BRANT_DEVICE_CODE void end() {
    if (machine_.sync_block_any(lost) || machine_.thread() != 0) return;
    machine_.store_relaxed(&board_.blocks[machine_.block()].turn, turn);
    if (machine_.block() == 0) machine_.store_relaxed(&board_.calls, calls_ + 1);
  }

  /// Waits in bounded time until `look()` holds, which `member` brings about. False: this block gives up.
  template <typename Look>
  BRANT_DEVICE_CODE bool wait(unsigned member, Look&& look) {
    Word begin = 0;
    for (unsigned looks = 1; !look(); ++looks) {
      if (lost) return false;
      if (looks % kStreamLooks<Machine> != 0) {
        machine_.pause();
        continue;
      }
      if (machine_.load_relaxed(&board_.fault) != 0 || machine_.load_acquire(&talk_.abort) != 0) {
        give_up();
        return false;
      }
      const Word now = machine_.now_ns();
      if (begin == 0) {
        begin = now;
        machine_.store_relaxed(&talk_.waits_member, member);
        machine_.store_relaxed(&talk_.waits_call, calls_ + 1);
      }
      if (now - begin <= machine_.load_relaxed(&talk_.patience_ns)) continue;
      report(StreamWhy::late, member, 0, 0);
      return false;
    }
    return true;
  }

  /// What this member has put into the rooms of a turn is there. By threads that have met those who put it.
  BRANT_DEVICE_CODE void tell(const Crew& crew, Word of_turn) {
    each_other(crew, [&](unsigned m) {
      machine_.fence_system();
      write_head(m, of_turn);
    });
  }
  /// All members have told of this turn. Before those meet them who take it.
  BRANT_DEVICE_CODE void await(const Crew& crew) {
    each_other(crew, [&](unsigned m) {
      await_head(m);
      machine_.fence_system();
    });
  }
  /// By lines, which need no order: by the last threads, which have no line to wait for where a call is small.
  BRANT_DEVICE_CODE void tell_by_lines() {
    each_other(from_last(), [&](unsigned m) { write_head(m, turn); });
  }
  BRANT_DEVICE_CODE void await_by_lines() {
    each_other(from_last(), [&](unsigned m) { await_head(m); });
  }

 private:
  BRANT_DEVICE_CODE void report(StreamWhy why, unsigned member, Word low, Word high) {
    if (machine_.add_acq_rel_device(&board_.claim, 1) == 0) {
      machine_.store_relaxed(&talk_.call, calls_ + 1);
      machine_.store_relaxed(&talk_.member, member);
      machine_.store_relaxed(&talk_.their_low, low);
      machine_.store_relaxed(&talk_.their_high, high);
      machine_.store_relaxed(&talk_.our_low, call_.low);
      machine_.store_relaxed(&talk_.our_high, call_.high);
      machine_.store_release(&talk_.why, static_cast<Word>(why));
    }
    give_up();
  }
  BRANT_DEVICE_CODE void give_up() {
    machine_.store_release(&board_.fault, 1);
    lost = true;
  }

  BRANT_DEVICE_CODE void write_head(unsigned member, Word of_turn) {
    StreamBoard& theirs = *machine_.reach(call_.boards[member]);
    machine_.store_line(&theirs.heads[of_turn % kRoomSets][machine_.block()][call_.self].turn,
                        simt::Pair{of_turn << 32 | call_.low, call_.high});
  }
  BRANT_DEVICE_CODE void await_head(unsigned member) {
    const BoardLine& head = board_.heads[turn % kRoomSets][machine_.block()][member];
    simt::Pair seen{};
    const bool came = wait(member, [&] {
      seen = machine_.load_line(&head.turn);
      return seen.first >> 32 == (turn & 0xffffffffu);
    });
    const Word low = seen.first & 0xffffffffu;
    if (came && (low != call_.low || seen.second != call_.high))
      report(StreamWhy::other_call, member, low, seen.second);
  }
  BRANT_DEVICE_CODE Crew from_last() const { return {machine_.threads() - 1 - machine_.thread(), machine_.threads()}; }
  template <typename Each>
  BRANT_DEVICE_CODE void each_other(const Crew& crew, Each&& each) {
    for (Word m = crew.rank; m < call_.members; m += crew.count) {
      if (m != call_.self) each(static_cast<unsigned>(m));
    }
  }

  Machine& machine_;
  const StreamCall& call_;
  StreamBoard& board_;
  StreamTalk& talk_;
  Word calls_;  ///< Before this one.
  Word fault_;
};

}  // namespace brant::coll
