#pragma once

#include "brant/coll/collectives.h"
#include "ops/coll/device/stream_board.h"
#include "ops/coll/device/stream_crews.h"
#include "ops/coll/device/stream_heads.h"
#include "ops/coll/device/stream_parts.h"
#include "ops/coll/device/stream_units.h"

/// What the kernels of a team do, once for GPUs and CPU threads. `Machine` (port/simt.h) is one thread of one block.
///
/// Lines need no order: each word says that it is there. What goes through rooms is written by many threads of a block.
/// They meet a thread for each other member, which fences and writes the head. The thread that has seen the head fences
/// and meets those who take, and they see the bytes.
namespace brant::coll {

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

/// Units of a part that one thread deals with together: so many reads are under way at once.
struct Batch {
  Word first;
  Word stride;
  Word end;
  [[nodiscard]] BRANT_DEVICE_CODE Word at(unsigned u) const { return first + u * stride; }
  [[nodiscard]] BRANT_DEVICE_CODE bool has(unsigned u) const { return at(u) < end; }
};

/// One thread's part in one call. kInLines: it goes by lines, else by rooms. kLight: see is_light.
template <typename Machine, bool kInLines, bool kLight>
class StreamRounds {
 public:
  BRANT_DEVICE_CODE StreamRounds(Machine& machine, const StreamCall& call)
      : machine_(machine), call_(call), parts_(machine, call), crews_(machine), heads_(machine, call) {}

  BRANT_DEVICE_CODE void run() {
    if constexpr (kInLines) early_ = first_unit();
    if (!heads_.begin()) return;
    if constexpr (kInLines) {
      by_lines();
    } else {
      call_.algorithm == StreamAlgorithm::slices ? by_slices() : by_slots();
    }
    heads_.end();
  }

 private:
  using Crews = StreamCrews<Machine>;
  using Part = typename StreamParts<Machine>::Part;
  template <Place kPlace>
  struct At {};
  template <unsigned kUnits>
  struct Several {};

  BRANT_DEVICE_CODE void by_lines() {
    ++heads_.turn;
    heads_.tell_by_lines();
    put_lines();
    heads_.await_by_lines();
    take_part<1>(parts_.share, crews_.whole_block());
  }
  /// Pieces are on their way while those before them are taken, and nobody who moves bytes waits for a fence: the link
  /// has no rest.
  BRANT_DEVICE_CODE void by_slots() {
    const Word before = heads_.turn;
    const bool works = crews_.workers().has_this(), awaits = crews_.waiters().has_this(),
               tells = crews_.tellers().has_this();
    for (Word step = 0; step < call_.rounds + kTurnsAhead && !heads_.lost; ++step) {
      const bool puts = step < call_.rounds, takes = step >= kTurnsAhead;
      if (takes) {
        ++heads_.turn;
        if (awaits) heads_.await(crews_.waiters());
        if (awaits || works) heads_.lost = crews_.meet_workers(Crews::kBegins, heads_.lost);
      }
      if (works && !heads_.lost) work_on_slots(step, before, puts, takes);
      if (!puts) continue;
      if (works || tells) heads_.lost = crews_.meet_workers(Crews::kEnds, heads_.lost);
      if (tells && !heads_.lost) heads_.tell(crews_.tellers(), before + step + 1);
    }
  }
  BRANT_DEVICE_CODE void work_on_slots(Word step, Word before, bool puts, bool takes) {
    const Crew putters = takes ? crews_.first_workers() : crews_.workers(),
               takers = puts ? crews_.other_workers() : crews_.workers();
    if (puts && putters.has_this()) put_slots(step, before + step + 1, putters);
    if (takes && takers.has_this()) take_part<2>(parts_.piece(step - kTurnsAhead), takers);
  }
  /// A turn shows what all combine, and the results of the turn before.
  BRANT_DEVICE_CODE void by_slices() {
    for (Word round = 0; round <= call_.rounds; ++round) {
      ++heads_.turn;
      if (round == 0) put_slices(round, heads_.turn);
      machine_.sync_block();
      heads_.tell(crews_.whole_block(), heads_.turn);
      if (round < call_.rounds) put_slices(round + 1, heads_.turn + 1);  // while the heads are on their way
      heads_.await(crews_.whole_block());
      if (machine_.sync_block_any(heads_.lost)) return;
      if (round > 0) take_results(round - 1);
      combine_slice(round);
    }
  }

  // What is put where others look
  // -----------------------------------------------------------------------------------------------------------------

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
    const unsigned to = parts_.other(1);
    const Word i = machine_.thread();
    if (!parts_.gives(parts_.self, to) || i * Unit<1>::kBytes >= parts_.share.bytes) return {};
    return read_unit<1, Place::any>(parts_.in + parts_.gift_at(to) + parts_.share.offset, i, parts_.share.bytes);
  }
  BRANT_DEVICE_CODE void put_line(BoardLine* lines, Word i, const Unit<1>& unit) {
    machine_.store_line(&lines[i].turn, simt::Pair{heads_.turn, unit.word[0]});
  }
  BRANT_DEVICE_CODE void put_lines() {
    for (unsigned step = 1; step < parts_.members; ++step) {
      const unsigned to = parts_.other(step);
      if (!parts_.gives(parts_.self, to)) continue;
      const std::byte* from = parts_.in + parts_.gift_at(to) + parts_.share.offset;
      BoardLine* there = parts_.lines(to, parts_.self, heads_.turn);
      Word bytes = parts_.share.bytes;
      if (step == 1) {  // the first units have been read
        if (machine_.thread() * Unit<1>::kBytes < bytes) put_line(there, machine_.thread(), early_);
        const Word done = Word{machine_.threads()} * Unit<1>::kBytes;
        if (bytes <= done) continue;
        from += done;
        bytes -= done;
        there += machine_.threads();
      }
      move<1>(
          bytes, is_aligned<1>(from), crews_.whole_block(),
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
    const Part now = parts_.piece(round);
    for (unsigned step = 1; step < parts_.members; ++step) {
      const unsigned to = parts_.other(step);
      if (parts_.gives(parts_.self, to))
        put_into(parts_.slot(to, parts_.self, turn), parts_.in + parts_.gift_at(to) + now.offset, now.bytes, crew);
    }
  }
  /// The results of the round before go there too: see `share_result`.
  BRANT_DEVICE_CODE void put_slices(Word round, Word turn) {
    for (unsigned step = 1; step < parts_.members; ++step) {
      const unsigned to = parts_.other(step);
      const Part theirs = parts_.slice(to, round);
      put_into(parts_.slice_of(parts_.self, parts_.room(to, turn)), parts_.in + theirs.offset, theirs.bytes,
               crews_.whole_block());
    }
  }

  // What is taken
  // -----------------------------------------------------------------------------------------------------------------

  /// What `from` has given to this member. N says by which way.
  template <unsigned N, unsigned kUnits>
  BRANT_DEVICE_CODE void take(unsigned from, const Batch& batch, Unit<N> (&units)[kUnits]) {
    if constexpr (N == 1) {
      const BoardLine* const there = parts_.lines(parts_.self, from, heads_.turn);
      heads_.wait(from, [&] {
        bool whole = true;
        for (unsigned u = 0; u < kUnits; ++u) {
          if (!batch.has(u)) continue;
          const simt::Pair seen = machine_.load_line(&there[batch.at(u)].turn);
          whole = whole && seen.first == heads_.turn;
          units[u].word[0] = seen.second;
        }
        return whole;
      });
    } else {
      const bool slices = call_.algorithm == StreamAlgorithm::slices;
      const std::byte* const there = slices ? parts_.slice_of(from, parts_.room(parts_.self, heads_.turn))
                                            : parts_.slot(parts_.self, from, heads_.turn);
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
                    if (!heads_.lost) combine_batch<N, kUnits, kPlace>(what, batch);
                  });
  }
  template <unsigned N, unsigned kUnits, Place kPlace>
  BRANT_DEVICE_CODE void combine_batch(const Combination& what, const Batch& batch) {
    const auto op = static_cast<ReduceOp>(call_.op);
    Totals<N, kUnits, kLight> totals(static_cast<DataType>(call_.type), op);
    Unit<N> units[kUnits]{};
    for (unsigned m = 0; m < what.count; ++m) {
      m == parts_.self ? read_part<N, kPlace>(what.own, what.bytes, batch, units) : take<N>(m, batch, units);
      m == 0 ? totals.begin(units) : totals.add(units);
    }
    if (heads_.lost) return;
    totals.end(op == ReduceOp::average ? parts_.members : 0, units);
    for (unsigned u = 0; u < kUnits; ++u) {
      if (!batch.has(u)) continue;
      if (what.shares) share_result<N>(batch.at(u), units[u]);
      if (what.to != nullptr) write_unit<N, kPlace>(what.to, batch.at(u), what.bytes, units[u]);
    }
  }
  /// Goes where the next turn shows it.
  template <unsigned N>
  BRANT_DEVICE_CODE void share_result(Word i, const Unit<N>& result) {
    for (unsigned step = 1; step < parts_.members; ++step) {
      const unsigned to = parts_.other(step);
      if (parts_.wants_result(to))
        write_room<N>(machine_, parts_.result_of(parts_.self, parts_.room(to, heads_.turn + 1)), i, result);
    }
  }
  template <unsigned N>
  BRANT_DEVICE_CODE void take_copies(const Part& now, const Crew& crew) {
    for (unsigned step = 0; step < parts_.members; ++step) {
      const unsigned from = parts_.other(step);
      if (!parts_.gives(from, parts_.self) || parts_.out == nullptr) continue;
      std::byte* const to = parts_.out + parts_.place_of(from) + now.offset;
      const std::byte* const own = from == parts_.self ? parts_.in + parts_.gift_at(from) + now.offset : nullptr;
      if (own == to) continue;
      move<N>(
          now.bytes, is_aligned<N>(own) && is_aligned<N>(to), crew,
          [&]<unsigned kUnits, Place kPlace>(const Batch& batch, Unit<N>(&units)[kUnits], At<kPlace>) {
            own != nullptr ? read_part<N, kPlace>(own, now.bytes, batch, units) : take<N>(from, batch, units);
          },
          [&]<Place kPlace>(Word i, const Unit<N>& unit, At<kPlace>) {
            if (!heads_.lost) write_unit<N, kPlace>(to, i, now.bytes, unit);
          });
    }
  }
  template <unsigned N>
  BRANT_DEVICE_CODE void take_part(const Part& now, const Crew& crew) {
    if (!parts_.combines()) return take_copies<N>(now, crew);
    const unsigned count = parts_.combined();
    if (count == 0) return;
    combine<N>({count, parts_.in + parts_.gift_at(parts_.self) + now.offset, parts_.out + now.offset, now.bytes, false},
               crew);
  }

  BRANT_DEVICE_CODE void combine_slice(Word round) {
    const Part own = parts_.slice(parts_.self, round);
    std::byte* const to = parts_.wants_result(parts_.self) ? parts_.out + own.offset : nullptr;
    combine<2>({parts_.members, parts_.in + own.offset, to, own.bytes, true}, crews_.whole_block());
  }
  BRANT_DEVICE_CODE void take_results(Word round) {
    for (unsigned step = 1; parts_.wants_result(parts_.self) && step < parts_.members; ++step) {
      const unsigned from = parts_.other(step);
      const Part theirs = parts_.slice(from, round);
      const std::byte* const there = parts_.result_of(from, parts_.room(parts_.self, heads_.turn));
      std::byte* const to = parts_.out + theirs.offset;
      move<2>(
          theirs.bytes, is_aligned<2>(to), crews_.whole_block(),
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
  const StreamParts<Machine> parts_;
  Crews crews_;
  StreamHeads<Machine> heads_;
  Unit<1> early_{};
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
