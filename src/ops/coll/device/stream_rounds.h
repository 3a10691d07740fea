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

/// Calls that a kernel of few registers carries out, with many accesses under way: they move bytes, or sum up floats.
BRANT_DEVICE_CODE bool is_light(const StreamCall& call) {
  switch (static_cast<CollectiveKind>(call.kind)) {
    case CollectiveKind::allreduce:
    case CollectiveKind::reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scan:
    case CollectiveKind::exscan: return is_float_sum(static_cast<DataType>(call.type), static_cast<ReduceOp>(call.op));
    default: return true;
  }
}

/// One thread's part in one call. kInLines: it goes by lines, else by rooms. kLight: see is_light.
template <typename Machine, bool kInLines, bool kLight>
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
    if (!begin()) return;
    if constexpr (kInLines) {
      by_lines();
    } else {
      call_.algorithm == StreamAlgorithm::slices ? by_slices() : by_slots();
    }
    end();
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

  /// The threads of a block that do something together. A block of one thread does what all crews do.
  struct Crew {
    Word rank;  ///< Of this thread; not below `count`: it belongs to another crew.
    Word count;
    [[nodiscard]] BRANT_DEVICE_CODE bool has_this() const { return rank < count; }
  };
  BRANT_DEVICE_CODE Crew crew(unsigned first, unsigned count) const {
    return machine_.threads() == 1 ? Crew{0, 1} : Crew{Word{machine_.thread()} - first, count};
  }
  BRANT_DEVICE_CODE Crew whole_block() const { return {machine_.thread(), machine_.threads()}; }
  /// The last two warps wait for heads and write them, so that nobody else waits for a fence.
  BRANT_DEVICE_CODE unsigned worker_count() const { return machine_.threads() - 2 * kWarp; }
  BRANT_DEVICE_CODE Crew workers() const { return crew(0, worker_count()); }
  BRANT_DEVICE_CODE Crew first_workers() const { return crew(0, worker_count() / 2); }
  BRANT_DEVICE_CODE Crew other_workers() const { return crew(worker_count() / 2, worker_count() / 2); }
  BRANT_DEVICE_CODE Crew waiters() const { return crew(worker_count(), kWarp); }
  BRANT_DEVICE_CODE Crew tellers() const { return crew(worker_count() + kWarp, kWarp); }
  static constexpr unsigned kWarp = 32;
  /// The workers and the warp that waits for heads, or that writes them.
  static constexpr unsigned kBegins = 1, kEnds = 2;  // of the barriers of a block
  BRANT_DEVICE_CODE bool meet_workers(unsigned barrier, bool said) {
    return machine_.sync_some_any(barrier, worker_count() + kWarp, said);
  }

  // The turns of a call
  // -----------------------------------------------------------------------------------------------------------------

  /// False: nothing goes any more. All that it reads is under way at once.
  BRANT_DEVICE_CODE bool begin() {
    turn_ = machine_.load_relaxed(&board_.blocks[machine_.block()].turn);
    calls_ = machine_.load_relaxed(&board_.calls);
    const Word fault = machine_.load_relaxed(&board_.fault);
    if constexpr (kInLines) early_ = first_unit();
    return !machine_.sync_block_any(fault != 0);
  }
  BRANT_DEVICE_CODE void end() {
    if (machine_.sync_block_any(lost_) || machine_.thread() != 0) return;
    machine_.store_relaxed(&board_.blocks[machine_.block()].turn, turn_);
    if (machine_.block() == 0) machine_.store_relaxed(&board_.calls, calls_ + 1);
  }

  BRANT_DEVICE_CODE void by_lines() {
    ++turn_;
    write_heads_of_lines();
    put_lines();
    await_heads_of_lines();
    take_part<1>(share_, whole_block());
  }
  /// Pieces are on their way while those before them are taken, and nobody who moves bytes waits for a fence: the link
  /// has no rest.
  BRANT_DEVICE_CODE void by_slots() {
    const Word before = turn_;
    const bool works = workers().has_this(), awaits = waiters().has_this(), tells = tellers().has_this();
    for (Word step = 0; step < call_.rounds + kTurnsAhead && !lost_; ++step) {
      const bool puts = step < call_.rounds, takes = step >= kTurnsAhead;
      if (takes) {
        ++turn_;
        if (awaits) await_heads(waiters());
        if (awaits || works) lost_ = meet_workers(kBegins, lost_);
      }
      if (works && !lost_) work_on_slots(step, before, puts, takes);
      if (!puts) continue;
      if (works || tells) lost_ = meet_workers(kEnds, lost_);
      if (tells && !lost_) tell(tellers(), before + step + 1);
    }
  }
  BRANT_DEVICE_CODE void work_on_slots(Word step, Word before, bool puts, bool takes) {
    const Crew putters = takes ? first_workers() : workers(), takers = puts ? other_workers() : workers();
    if (puts && putters.has_this()) put_slots(step, before + step + 1, putters);
    if (takes && takers.has_this()) take_part<2>(piece(step - kTurnsAhead), takers);
  }
  /// A turn shows what all combine, and the results of the turn before.
  BRANT_DEVICE_CODE void by_slices() {
    for (Word round = 0; round <= call_.rounds; ++round) {
      ++turn_;
      if (round == 0) put_slices(round, turn_);
      machine_.sync_block();
      tell(whole_block(), turn_);
      if (round < call_.rounds) put_slices(round + 1, turn_ + 1);  // while the heads are on their way
      await_heads(whole_block());
      if (machine_.sync_block_any(lost_)) return;
      if (round > 0) take_results(round - 1);
      combine_slice(round);
    }
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
    return at(member, StreamBoard::room_at(turn, machine_.block()));
  }
  BRANT_DEVICE_CODE BoardLine* lines(unsigned member, unsigned from) const {
    return reinterpret_cast<BoardLine*>(at(member, StreamBoard::lines_at(members_, turn_, machine_.block(), from)));
  }
  BRANT_DEVICE_CODE std::byte* slot(unsigned member, unsigned from, Word turn) const {
    return room(member, turn) + from * StreamRoom::slot_bytes(members_);
  }

  // Waits
  // -----------------------------------------------------------------------------------------------------------------

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
      report(StreamWhy::late, member, 0, 0);
      return false;
    }
    return true;
  }

  BRANT_DEVICE_CODE void write_head(unsigned member, Word turn) {
    StreamBoard& theirs = *machine_.reach(call_.boards[member]);
    machine_.store_line(&theirs.heads[turn % kRoomSets][machine_.block()][self_].turn,
                        simt::Pair{turn << 32 | call_.low, call_.high});
  }
  BRANT_DEVICE_CODE void await_head(unsigned member) {
    const BoardLine& head = board_.heads[turn_ % kRoomSets][machine_.block()][member];
    simt::Pair seen{};
    const bool came = wait(member, [&] {
      seen = machine_.load_line(&head.turn);
      return seen.first >> 32 == (turn_ & 0xffffffffu);
    });
    const Word low = seen.first & 0xffffffffu;
    if (came && (low != call_.low || seen.second != call_.high))
      report(StreamWhy::other_call, member, low, seen.second);
  }

  /// What this member has put into the rooms of a turn is there. By threads that have met those who put it.
  BRANT_DEVICE_CODE void tell(const Crew& crew, Word turn) {
    for (Word m = crew.rank; m < members_; m += crew.count) {
      if (m == self_) continue;
      machine_.fence_system();
      write_head(static_cast<unsigned>(m), turn);
    }
  }
  /// All members have told of this turn. Before those meet them who take it.
  BRANT_DEVICE_CODE void await_heads(const Crew& crew) {
    for (Word m = crew.rank; m < members_; m += crew.count) {
      if (m == self_) continue;
      await_head(static_cast<unsigned>(m));
      machine_.fence_system();
    }
  }
  /// By lines, which need no order: by the last threads, which have no line to wait for where a call is small.
  BRANT_DEVICE_CODE void write_heads_of_lines() {
    for (unsigned m = from_last(); m < members_; m += machine_.threads()) {
      if (m != self_) write_head(m, turn_);
    }
  }
  BRANT_DEVICE_CODE void await_heads_of_lines() {
    for (unsigned m = from_last(); m < members_; m += machine_.threads()) {
      if (m != self_) await_head(m);
    }
  }
  BRANT_DEVICE_CODE unsigned from_last() const { return machine_.threads() - 1 - machine_.thread(); }

  // What is put where others look
  // -----------------------------------------------------------------------------------------------------------------

  /// Units of a part that one thread deals with together: so many reads are under way at once.
  struct Batch {
    Word first;
    Word stride;
    Word end;
    [[nodiscard]] BRANT_DEVICE_CODE Word at(unsigned u) const { return first + u * stride; }
    [[nodiscard]] BRANT_DEVICE_CODE bool has(unsigned u) const { return at(u) < end; }
  };
  template <Place kPlace>
  struct At {};
  /// `here` is called for batches of whole units, and for all others one by one. What the program has of the part is
  /// `aligned`, or none of its units is whole.
  template <unsigned N, typename Here>
  BRANT_DEVICE_CODE void each_batch(Word bytes, bool aligned, const Crew& crew, Here&& here) {
    constexpr unsigned kAtOnce = kLight ? 4 : 1;
    const Word end = (bytes + Unit<N>::kBytes - 1) / Unit<N>::kBytes, whole = aligned ? bytes / Unit<N>::kBytes : 0;
    for (Word i = crew.rank; i < whole; i += kAtOnce * crew.count)
      here(Batch{i, crew.count, whole}, Several<kAtOnce>{}, At<Place::whole>{});
    for (Word i = whole + crew.rank; i < end; i += crew.count) here(Batch{i, 1, i + 1}, Several<1>{}, At<Place::any>{});
  }
  template <unsigned kUnits>
  struct Several {};
  template <unsigned N, typename Read, typename Write>
  BRANT_DEVICE_CODE void move(Word bytes, bool aligned, const Crew& crew, Read&& read, Write&& write) {
    each_batch<N>(bytes, aligned, crew,
                  [&]<unsigned kUnits, Place kPlace>(const Batch& batch, Several<kUnits>, At<kPlace> at) {
                    Unit<N> units[kUnits]{};
                    read(batch, units, at);
                    for (unsigned u = 0; u < kUnits; ++u) {
                      if (batch.has(u)) write(batch.at(u), units[u], at);
                    }
                  });
  }
  template <unsigned N, Place kPlace, unsigned kUnits>
  BRANT_DEVICE_CODE void read_part(const std::byte* from, Word bytes, const Batch& batch,
                                   Unit<N> (&units)[kUnits]) const {
    for (unsigned u = 0; u < kUnits; ++u) {
      if (batch.has(u)) units[u] = read_unit<N, kPlace>(from, batch.at(u), bytes);
    }
  }

  /// What this thread puts first into the lines of the first other member.
  BRANT_DEVICE_CODE Unit<1> first_unit() const {
    const unsigned to = other(1);
    const Word i = machine_.thread();
    if (!gives(self_, to) || i * Unit<1>::kBytes >= share_.bytes) return {};
    return read_unit<1, Place::any>(in_ + gift_at(to) + share_.offset, i, share_.bytes);
  }
  BRANT_DEVICE_CODE void put_line(BoardLine* lines, Word i, const Unit<1>& unit) {
    machine_.store_line(&lines[i].turn, simt::Pair{turn_, unit.word[0]});
  }
  BRANT_DEVICE_CODE void put_lines() {
    for (unsigned step = 1; step < members_; ++step) {
      const unsigned to = other(step);
      if (!gives(self_, to)) continue;
      const std::byte* from = in_ + gift_at(to) + share_.offset;
      BoardLine* there = lines(to, self_);
      Word bytes = share_.bytes;
      if (step == 1) {  // the first units have been read
        if (machine_.thread() * Unit<1>::kBytes < bytes) put_line(there, machine_.thread(), early_);
        const Word done = Word{machine_.threads()} * Unit<1>::kBytes;
        if (bytes <= done) continue;
        from += done;
        bytes -= done;
        there += machine_.threads();
      }
      move<1>(
          bytes, is_aligned<1>(from), whole_block(),
          [&]<unsigned kUnits, Place kPlace>(const Batch& batch, Unit<1>(&units)[kUnits], At<kPlace>) {
            read_part<1, kPlace>(from, bytes, batch, units);
          },
          [&](Word i, const Unit<1>& unit, auto) { put_line(there, i, unit); });
    }
  }

  BRANT_DEVICE_CODE void put_into(std::byte* there, const std::byte* from, Word bytes, const Crew& crew) {
    move<2>(
        bytes, is_aligned<2>(from), crew,
        [&]<unsigned kUnits, Place kPlace>(const Batch& batch, Unit<2>(&units)[kUnits], At<kPlace>) {
          read_part<2, kPlace>(from, bytes, batch, units);
        },
        [&](Word i, const Unit<2>& unit, auto) { write_room<2>(machine_, there, i, unit); });
  }
  BRANT_DEVICE_CODE void put_slots(Word round, Word turn, const Crew& crew) {
    const Part now = piece(round);
    for (unsigned step = 1; step < members_; ++step) {
      const unsigned to = other(step);
      if (gives(self_, to)) put_into(slot(to, self_, turn), in_ + gift_at(to) + now.offset, now.bytes, crew);
    }
  }
  /// The results of the round before go there too: see `share_result`.
  BRANT_DEVICE_CODE void put_slices(Word round, Word turn) {
    for (unsigned step = 1; step < members_; ++step) {
      const unsigned to = other(step);
      const Part theirs = slice(to, round);
      put_into(room(to, turn) + self_ * StreamRoom::slice_bytes(members_), in_ + theirs.offset, theirs.bytes,
               whole_block());
    }
  }

  // What is taken
  // -----------------------------------------------------------------------------------------------------------------

  /// What `from` has given to this member. N says by which way.
  template <unsigned N, unsigned kUnits>
  BRANT_DEVICE_CODE void take(unsigned from, const Batch& batch, Unit<N> (&units)[kUnits]) {
    if constexpr (N == 1) {
      const BoardLine* const there = lines(self_, from);
      wait(from, [&] {
        bool whole = true;
        for (unsigned u = 0; u < kUnits; ++u) {
          if (!batch.has(u)) continue;
          const simt::Pair seen = machine_.load_line(&there[batch.at(u)].turn);
          whole = whole && seen.first == turn_;
          units[u].word[0] = seen.second;
        }
        return whole;
      });
    } else {
      const bool slices = call_.algorithm == StreamAlgorithm::slices;
      const std::byte* const there =
          slices ? room(self_, turn_) + from * StreamRoom::slice_bytes(members_) : slot(self_, from, turn_);
      for (unsigned u = 0; u < kUnits; ++u) {
        if (batch.has(u)) units[u] = read_room<N>(machine_, there, batch.at(u));
      }
    }
  }

  /// Part of a vector that this member combines, of what members [0, count) give, in the order of their ranks.
  struct Combination {
    unsigned count;
    const std::byte* own;
    std::byte* to;  ///< Where this member wants it, or null.
    Word bytes;
    bool shares;  ///< The others get it too.
  };
  template <unsigned N>
  BRANT_DEVICE_CODE void combine(const Combination& what, const Crew& crew) {
    const bool aligned = is_aligned<N>(what.own) && is_aligned<N>(what.to);
    each_batch<N>(what.bytes, aligned, crew,
                  [&]<unsigned kUnits, Place kPlace>(const Batch& batch, Several<kUnits>, At<kPlace>) {
                    if (!lost_) combine_batch<N, kUnits, kPlace>(what, batch);
                  });
  }
  template <unsigned N, unsigned kUnits, Place kPlace>
  BRANT_DEVICE_CODE void combine_batch(const Combination& what, const Batch& batch) {
    const auto op = static_cast<ReduceOp>(call_.op);
    Totals<N, kUnits, kLight> totals(static_cast<DataType>(call_.type), op);
    Unit<N> units[kUnits]{};
    for (unsigned m = 0; m < what.count; ++m) {
      m == self_ ? read_part<N, kPlace>(what.own, what.bytes, batch, units) : take<N>(m, batch, units);
      m == 0 ? totals.begin(units) : totals.add(units);
    }
    if (lost_) return;
    totals.end(op == ReduceOp::average ? members_ : 0, units);
    for (unsigned u = 0; u < kUnits; ++u) {
      if (!batch.has(u)) continue;
      if (what.shares) share_result<N>(batch.at(u), units[u]);
      if (what.to != nullptr) write_unit<N, kPlace>(what.to, batch.at(u), what.bytes, units[u]);
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
  BRANT_DEVICE_CODE void take_copies(const Part& now, const Crew& crew) {
    for (unsigned step = 0; step < members_; ++step) {
      const unsigned from = other(step);
      if (!gives(from, self_) || out_ == nullptr) continue;
      std::byte* const to = out_ + place_of(from) + now.offset;
      const std::byte* const own = in_ + gift_at(self_) + now.offset;
      if (from == self_ && own == to) continue;
      move<N>(
          now.bytes, is_aligned<N>(own) && is_aligned<N>(to), crew,
          [&]<unsigned kUnits, Place kPlace>(const Batch& batch, Unit<N>(&units)[kUnits], At<kPlace>) {
            from == self_ ? read_part<N, kPlace>(own, now.bytes, batch, units) : take<N>(from, batch, units);
          },
          [&]<Place kPlace>(Word i, const Unit<N>& unit, At<kPlace>) {
            if (!lost_) write_unit<N, kPlace>(to, i, now.bytes, unit);
          });
    }
  }
  /// How many members' parts this one combines: those of the lowest ranks. 0: it gets nothing.
  BRANT_DEVICE_CODE unsigned combined() const {
    if (kind_ == CollectiveKind::reduce && self_ != call_.root) return 0;
    return !is_prefix() ? members_ : self_ + (kind_ == CollectiveKind::scan ? 1 : 0);
  }
  template <unsigned N>
  BRANT_DEVICE_CODE void take_part(const Part& now, const Crew& crew) {
    if (!combines()) return take_copies<N>(now, crew);
    const unsigned count = combined();
    if (count == 0) return;
    combine<N>({count, in_ + gift_at(self_) + now.offset, out_ + now.offset, now.bytes, false}, crew);
  }

  BRANT_DEVICE_CODE void combine_slice(Word round) {
    const Part own = slice(self_, round);
    std::byte* const to = wants_result(self_) ? out_ + own.offset : nullptr;
    combine<2>({members_, in_ + own.offset, to, own.bytes, true}, whole_block());
  }
  BRANT_DEVICE_CODE void take_results(Word round) {
    for (unsigned step = 1; wants_result(self_) && step < members_; ++step) {
      const unsigned from = other(step);
      const Part theirs = slice(from, round);
      const std::byte* const there = result_of(from, room(self_, turn_));
      std::byte* const to = out_ + theirs.offset;
      move<2>(
          theirs.bytes, is_aligned<2>(to), whole_block(),
          [&]<unsigned kUnits>(const Batch& batch, Unit<2>(&units)[kUnits], auto) {
            for (unsigned u = 0; u < kUnits; ++u) {
              if (batch.has(u)) units[u] = read_room<2>(machine_, there, batch.at(u));
            }
          },
          [&]<Place kPlace>(Word i, const Unit<2>& unit, At<kPlace>) {
            write_unit<2, kPlace>(to, i, theirs.bytes, unit);
          });
    }
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
  Unit<1> early_{};
  Word turn_ = 0;
  Word calls_ = 0;  ///< Before this one.
  bool lost_ = false;
};

/// A thread of the kernel that such a call is for.
template <typename Machine>
void run_stream_call(Machine& machine, const StreamCall& call) {
  const bool lines = call.algorithm == StreamAlgorithm::lines;
  if (is_light(call)) {
    lines ? StreamRounds<Machine, true, true>(machine, call).run()
          : StreamRounds<Machine, false, true>(machine, call).run();
  } else {
    lines ? StreamRounds<Machine, true, false>(machine, call).run()
          : StreamRounds<Machine, false, false>(machine, call).run();
  }
}

}  // namespace brant::coll
