#pragma once

#include "brant/coll/collectives.h"
#include "ops/coll/device/stream_board.h"
#include "ops/coll/device/stream_units.h"

/// What the kernels of a team do, once for GPUs and CPU threads. `Machine` (port/simt.h) is one thread of one block.
///
/// Lines need no order: each word says that it is there. What goes through rooms is written by all threads of a block,
/// which meet; then a thread for each other member fences, and writes the head. Who has seen the head, fenced and met
/// its block sees the bytes.
namespace brant::coll {

/// Of the memory of the CPU, which lies behind a bus: a look takes a microsecond, and delays fences.
template <typename Machine>
inline constexpr unsigned kStreamLooks = Machine::kLooksPerCheck * 8;

/// One thread's part in one call.
template <typename Machine>
class StreamRounds {
 public:
  BRANT_DEVICE_CODE StreamRounds(Machine& machine, const StreamCall& call)
      : machine_(machine),
        call_(call),
        kind_(static_cast<CollectiveKind>(call.kind)),
        members_(call.members),
        self_(call.self),
        board_(*machine.reach(call.boards[call.self])),
        talk_(*machine.reach(call.talk)),
        in_(call.in == nullptr ? nullptr : machine.reach(call.in)),
        out_(call.out == nullptr ? nullptr : machine.reach(call.out)) {
    share_ = piece_of(call.bytes, call.share, machine.block());
  }

  BRANT_DEVICE_CODE void run() {
    StreamBoard::OfBlock& own = board_.blocks[machine_.block()];
    turn_ = machine_.load_relaxed(&own.turn);
    if (machine_.sync_block_any(machine_.load_acquire(&board_.fault) != 0)) return;
    const bool lines = call_.algorithm == StreamAlgorithm::lines;
    const Word rounds = call_.rounds + (call_.algorithm == StreamAlgorithm::slices ? 1 : 0);
    for (Word round = 0; round < rounds; ++round) {
      ++turn_;
      if (lines) {
        put_lines();
        meet_in_lines();
        take_lines();
      } else {
        if (round == 0) put_into_rooms(round, turn_);
        tell_all();
        if (round + 1 < rounds) put_into_rooms(round + 1, turn_ + 1);  // while the heads are on their way
        if (!await_all()) return;
        take_from_rooms(round);
      }
    }
    if (machine_.sync_block_any(lost_)) return;
    if (machine_.thread() != 0) return;
    machine_.store_relaxed(&own.turn, turn_);
    if (machine_.block() == 0) machine_.store_relaxed(&board_.calls, machine_.load_relaxed(&board_.calls) + 1);
  }

 private:
  /// Some bytes of a vector or block.
  struct Part {
    Word offset = 0;
    Word bytes = 0;
  };
  BRANT_DEVICE_CODE static Part piece_of(Word bytes, Word size, Word index) {
    const Word offset = size * index < bytes ? size * index : bytes;
    return {offset, size < bytes - offset ? size : bytes - offset};
  }
  BRANT_DEVICE_CODE Part part_of_share(Word size, Word index) const {
    const Part part = piece_of(share_.bytes, size, index);
    return {share_.offset + part.offset, part.bytes};
  }
  BRANT_DEVICE_CODE Part piece(Word round) const { return part_of_share(call_.piece, round); }
  /// What member `m` combines for all in a round.
  BRANT_DEVICE_CODE Part slice(unsigned m, Word round) const {
    return part_of_share(call_.piece, round * members_ + m);
  }

  // Who gives what to whom
  // -----------------------------------------------------------------------------------------------------------------

  BRANT_DEVICE_CODE bool gives(unsigned from, unsigned to) const {
    switch (kind_) {
      case CollectiveKind::broadcast:
      case CollectiveKind::scatter: return from == call_.root;
      case CollectiveKind::reduce:
      case CollectiveKind::gather: return to == call_.root;
      case CollectiveKind::scan:
      case CollectiveKind::exscan: return from < to;
      case CollectiveKind::allreduce:
      case CollectiveKind::allgather:
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::alltoall: return true;
      default: return false;
    }
  }
  /// Where in this member's `in` the part of `to` is.
  BRANT_DEVICE_CODE Word gift_at(unsigned to) const {
    const bool blocks = kind_ == CollectiveKind::scatter || kind_ == CollectiveKind::alltoall ||
                        kind_ == CollectiveKind::reduce_scatter;
    return blocks ? to * call_.bytes : 0;
  }
  /// Where in this member's `out` the part of `from` belongs.
  BRANT_DEVICE_CODE Word place_of(unsigned from) const {
    const bool blocks =
        kind_ == CollectiveKind::allgather || kind_ == CollectiveKind::gather || kind_ == CollectiveKind::alltoall;
    return blocks ? from * call_.bytes : 0;
  }
  BRANT_DEVICE_CODE bool combines() const {
    return kind_ == CollectiveKind::allreduce || kind_ == CollectiveKind::reduce || is_prefix() ||
           kind_ == CollectiveKind::reduce_scatter;
  }
  BRANT_DEVICE_CODE bool is_prefix() const { return kind_ == CollectiveKind::scan || kind_ == CollectiveKind::exscan; }
  /// The next other member: each begins with another one, so that no link has all of them at once.
  BRANT_DEVICE_CODE unsigned other(unsigned step) const { return (self_ + step) % members_; }

  BRANT_DEVICE_CODE std::byte* at(unsigned member, Word offset) const {
    return reinterpret_cast<std::byte*>(machine_.reach(call_.boards[member])) + offset;
  }
  BRANT_DEVICE_CODE std::byte* room(unsigned member, Word turn) const {
    return at(member, StreamBoard::room_at(members_, turn, machine_.block()));
  }
  BRANT_DEVICE_CODE BoardLine* lines(unsigned member, unsigned from) const {
    return reinterpret_cast<BoardLine*>(at(member, StreamBoard::lines_at(members_, turn_, machine_.block(), from)));
  }
  BRANT_DEVICE_CODE std::byte* slot(unsigned member, unsigned from, Word turn) const {
    return room(member, turn) + from * StreamRoom::slot_bytes(members_);
  }

  // Waits
  // -----------------------------------------------------------------------------------------------------------------

  BRANT_DEVICE_CODE void tell(StreamWhy why, unsigned member, Word low, Word high) {
    if (machine_.add_acq_rel_device(&board_.claim, 1) == 0) {
      machine_.store_relaxed(&talk_.call, machine_.load_relaxed(&board_.calls) + 1);
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
    lost_ = true;
  }

  /// Waits in bounded time until `look()` holds, which `member` brings about. False: this block gives up.
  template <typename Look>
  BRANT_DEVICE_CODE bool wait(unsigned member, Look&& look) {
    Word begin = 0;
    for (unsigned looks = 1; !look(); ++looks) {
      if (lost_) return false;
      if (looks % kStreamLooks<Machine> != 0) {
        machine_.pause();
        continue;
      }
      if (machine_.load_relaxed(&board_.fault) != 0 || machine_.load_acquire(&talk_.abort) != 0) {
        give_up();
        return false;
      }
      const Word now = machine_.now_ns();
      if (begin == 0) begin = now;
      if (now - begin <= machine_.load_relaxed(&talk_.patience_ns)) continue;
      tell(StreamWhy::late, member, 0, 0);
      return false;
    }
    return true;
  }

  BRANT_DEVICE_CODE void write_head(unsigned member) {
    StreamBoard& theirs = *machine_.reach(call_.boards[member]);
    machine_.store_line(&theirs.heads[turn_ & 1][machine_.block()][self_].turn,
                        simt::Pair{turn_ << 32 | call_.low, call_.high});
  }
  BRANT_DEVICE_CODE void await_head(unsigned member) {
    const BoardLine& head = board_.heads[turn_ & 1][machine_.block()][member];
    simt::Pair seen{};
    const bool came = wait(member, [&] {
      seen = machine_.load_line(&head.turn);
      return seen.first >> 32 == (turn_ & 0xffffffffu);
    });
    const Word low = seen.first & 0xffffffffu;
    if (came && (low != call_.low || seen.second != call_.high)) tell(StreamWhy::other_call, member, low, seen.second);
  }

  /// This member is in this turn, and what it has put into rooms is there. Whole blocks.
  BRANT_DEVICE_CODE void tell_all() {
    machine_.sync_block();
    for (unsigned m = machine_.thread(); m < members_; m += machine_.threads()) {
      if (m == self_) continue;
      machine_.fence_system();
      write_head(m);
    }
  }
  /// All members are. Whole blocks.
  BRANT_DEVICE_CODE bool await_all() {
    for (unsigned m = machine_.thread(); m < members_; m += machine_.threads()) {
      if (m == self_) continue;
      await_head(m);
      machine_.fence_system();
    }
    return !machine_.sync_block_any(lost_);
  }
  /// Both where nothing but lines is written: what is lost is seen at the end.
  BRANT_DEVICE_CODE void meet_in_lines() {
    for (unsigned m = machine_.thread(); m < members_; m += machine_.threads()) {
      if (m != self_) write_head(m);
    }
    for (unsigned m = machine_.thread(); m < members_; m += machine_.threads()) {
      if (m != self_) await_head(m);
    }
  }

  // What is put where others look
  // -----------------------------------------------------------------------------------------------------------------

  /// Several reads are under way before the first write.
  template <unsigned N, typename Read, typename Write>
  BRANT_DEVICE_CODE void move(Word bytes, Read&& read, Write&& write) {
    constexpr unsigned kAtOnce = 4;
    const Word count = (bytes + Unit<N>::kBytes - 1) / Unit<N>::kBytes, stride = machine_.threads();
    Word i = machine_.thread();
    for (; i + (kAtOnce - 1) * stride < count; i += kAtOnce * stride) {
      Unit<N> units[kAtOnce];
      for (unsigned k = 0; k < kAtOnce; ++k) units[k] = read(i + k * stride);
      for (unsigned k = 0; k < kAtOnce; ++k) write(i + k * stride, units[k]);
    }
    for (; i < count; i += stride) write(i, read(i));
  }

  BRANT_DEVICE_CODE void put_lines() {
    for (unsigned step = 1; step < members_; ++step) {
      const unsigned to = other(step);
      if (!gives(self_, to)) continue;
      const std::byte* const from = in_ + gift_at(to) + share_.offset;
      BoardLine* const there = lines(to, self_);
      move<1>(
          share_.bytes, [&](Word i) { return read_unit<1>(from, i, share_.bytes); },
          [&](Word i, const Unit<1>& unit) { machine_.store_line(&there[i].turn, simt::Pair{turn_, unit.word[0]}); });
    }
  }

  BRANT_DEVICE_CODE void put_into(std::byte* there, const std::byte* from, Word bytes) {
    move<2>(
        bytes, [&](Word i) { return read_unit<2>(from, i, bytes); },
        [&](Word i, const Unit<2>& unit) { write_room<2>(machine_, there, i, unit); });
  }
  BRANT_DEVICE_CODE void put_into_rooms(Word round, Word turn) {
    call_.algorithm == StreamAlgorithm::slices ? put_slices(round, turn) : put_slots(round, turn);
  }
  BRANT_DEVICE_CODE void put_slots(Word round, Word turn) {
    const Part now = piece(round);
    for (unsigned step = 1; step < members_; ++step) {
      const unsigned to = other(step);
      if (gives(self_, to)) put_into(slot(to, self_, turn), in_ + gift_at(to) + now.offset, now.bytes);
    }
  }
  /// The results of the round before go there too: see `share_result`.
  BRANT_DEVICE_CODE void put_slices(Word round, Word turn) {
    for (unsigned step = 1; step < members_; ++step) {
      const unsigned to = other(step);
      const Part theirs = slice(to, round);
      put_into(room(to, turn) + self_ * StreamRoom::slice_bytes(members_), in_ + theirs.offset, theirs.bytes);
    }
  }

  // What is taken
  // -----------------------------------------------------------------------------------------------------------------

  /// One unit of what `from` has given to this member. N says by which way.
  template <unsigned N>
  BRANT_DEVICE_CODE Unit<N> taken(unsigned from, Word i) {
    if constexpr (N == 1) {
      const BoardLine& line = lines(self_, from)[i];
      simt::Pair seen{};
      wait(from, [&] {
        seen = machine_.load_line(&line.turn);
        return seen.first == turn_;
      });
      return {{seen.second}};
    } else {
      const bool slices = call_.algorithm == StreamAlgorithm::slices;
      const std::byte* const there =
          slices ? room(self_, turn_) + from * StreamRoom::slice_bytes(members_) : slot(self_, from, turn_);
      return read_room<N>(machine_, there, i);
    }
  }

  /// Combines a part of what members [0, count) give, `own` being this one's, in the order of their ranks. `to`: where
  /// this member wants it, or null. `shares`: the others get it too.
  template <unsigned N>
  BRANT_DEVICE_CODE void combine(unsigned count, const std::byte* own, Word bytes, std::byte* to, bool shares) {
    const auto op = static_cast<ReduceOp>(call_.op);
    const unsigned divisor = op == ReduceOp::average ? members_ : 0;
    const Word units = (bytes + Unit<N>::kBytes - 1) / Unit<N>::kBytes;
    for (Word i = machine_.thread(); i < units; i += machine_.threads()) {
      Total<N> total(static_cast<DataType>(call_.type), op);
      for (unsigned m = 0; m < count; ++m) {
        const Unit<N> given = m == self_ ? read_unit<N>(own, i, bytes) : taken<N>(m, i);
        m == 0 ? total.begin(given) : total.add(given);
      }
      const Unit<N> result = total.end(divisor);
      if (lost_) return;
      if (shares) share_result<N>(i, result);
      if (to != nullptr) write_unit(to, i, bytes, result);
    }
  }
  /// Goes where the next turn shows it.
  template <unsigned N>
  BRANT_DEVICE_CODE void share_result(Word i, const Unit<N>& result) {
    for (unsigned step = 1; step < members_; ++step) {
      const unsigned to = other(step);
      if (wants_result(to)) write_room<N>(machine_, result_of(self_, room(to, turn_ + 1)), i, result);
    }
  }
  BRANT_DEVICE_CODE std::byte* result_of(unsigned member, std::byte* room) const {
    return room + StreamRoom::kResultsAt + member * StreamRoom::slice_bytes(members_);
  }
  BRANT_DEVICE_CODE bool wants_result(unsigned member) const {
    return kind_ != CollectiveKind::reduce || member == call_.root;
  }

  template <unsigned N>
  BRANT_DEVICE_CODE void take_copies(const Part& now) {
    for (unsigned step = 0; step < members_; ++step) {
      const unsigned from = other(step);
      if (!gives(from, self_) || out_ == nullptr) continue;
      std::byte* const to = out_ + place_of(from) + now.offset;
      const std::byte* const own = in_ + gift_at(self_) + now.offset;
      if (from == self_ && own == to) continue;
      move<N>(
          now.bytes, [&](Word i) { return from == self_ ? read_unit<N>(own, i, now.bytes) : taken<N>(from, i); },
          [&](Word i, const Unit<N>& unit) {
            if (!lost_) write_unit(to, i, now.bytes, unit);
          });
    }
  }
  /// How many members' parts this one combines: those of the lowest ranks. 0: it gets nothing.
  BRANT_DEVICE_CODE unsigned combined() const {
    if (kind_ == CollectiveKind::reduce && self_ != call_.root) return 0;
    return !is_prefix() ? members_ : self_ + (kind_ == CollectiveKind::scan ? 1 : 0);
  }
  BRANT_DEVICE_CODE void take_results(Word round) {
    for (unsigned step = 1; wants_result(self_) && step < members_; ++step) {
      const unsigned from = other(step);
      const Part theirs = slice(from, round);
      const std::byte* const there = result_of(from, room(self_, turn_));
      move<2>(
          theirs.bytes, [&](Word i) { return read_room<2>(machine_, there, i); },
          [&](Word i, const Unit<2>& unit) { write_unit(out_ + theirs.offset, i, theirs.bytes, unit); });
    }
  }
  BRANT_DEVICE_CODE void take_from_rooms(Word round) {
    const bool slices = call_.algorithm == StreamAlgorithm::slices;
    if (!slices && !combines()) return take_copies<2>(piece(round));
    if (slices && round > 0) take_results(round - 1);
    const Part own = slices ? slice(self_, round) : piece(round);
    std::byte* const to = wants_result(self_) ? out_ + own.offset : nullptr;
    const unsigned count = slices ? members_ : combined();
    if (count != 0) combine<2>(count, in_ + gift_at(self_) + own.offset, own.bytes, to, slices);
  }
  BRANT_DEVICE_CODE void take_lines() {
    if (!combines()) return take_copies<1>(share_);
    const unsigned count = combined();
    if (count == 0) return;
    combine<1>(count, in_ + gift_at(self_) + share_.offset, share_.bytes, out_ + share_.offset, false);
  }

  Machine& machine_;
  const StreamCall& call_;
  const CollectiveKind kind_;
  const unsigned members_;
  const unsigned self_;
  StreamBoard& board_;
  StreamTalk& talk_;
  const std::byte* const in_;
  std::byte* const out_;
  Part share_;
  Word turn_ = 0;
  bool lost_ = false;
};

}  // namespace brant::coll
