#include "ops/coll/message_steps.h"

#include "ops/coll/extent.h"

namespace brant::coll {
namespace {

using Kind = CollectiveKind;
using What = Step::What;

/// The steps of one member in one round.
class Round {
 public:
  Round(const Members& members, const Work& work, const Plan& plan, std::uint64_t round, std::vector<Step>& steps)
      : members_(members), work_(work), plan_(plan), round_(round), steps_(steps) {}

  void add() {
    if (is_of_neighbours(work_.kind)) return neighbours();
    switch (plan_.algorithm) {
      case Algorithm::alone: return alone();
      case Algorithm::dissemination: return dissemination();
      case Algorithm::binomial: return binomial();
      case Algorithm::pairwise: return pairwise();
      default: return direct();
    }
  }

 private:
  [[nodiscard]] unsigned count() const noexcept { return members_.count; }
  [[nodiscard]] unsigned self() const noexcept { return members_.self; }
  [[nodiscard]] bool is_root() const noexcept { return work_.is_root(members_); }
  [[nodiscard]] Extent piece(std::uint64_t bytes) const noexcept { return piece_of(bytes, plan_.piece, round_); }

  void send(unsigned peer, const std::byte* from, std::uint64_t bytes) {
    steps_.push_back({What::send, peer, from, nullptr, bytes});
  }
  void receive(unsigned peer, std::byte* to, std::uint64_t bytes) {
    steps_.push_back({What::receive, peer, nullptr, to, bytes});
  }
  /// Two members agree on the size of the block between them, and so on how many messages it takes: one at least, by
  /// which they hear what the other one calls.
  [[nodiscard]] bool goes_on(const Extent& piece) const noexcept { return round_ == 0 || piece.bytes != 0; }
  void send_piece(unsigned peer, const std::byte* block, const Extent& piece) {
    if (goes_on(piece)) send(peer, block + piece.offset, piece.bytes);
  }
  void receive_piece(unsigned peer, std::byte* block, const Extent& piece) {
    if (goes_on(piece)) receive(peer, block + piece.offset, piece.bytes);
  }
  void hold(unsigned peer, std::uint64_t bytes) { steps_.push_back({What::hold, peer, nullptr, nullptr, bytes}); }
  void combine(unsigned of, const std::byte* own, std::byte* to, std::uint64_t bytes) {
    steps_.push_back({What::combine, of, own, to, bytes});
  }
  void copy(const std::byte* from, std::byte* to, std::uint64_t bytes) {
    if (from != to && bytes != 0) steps_.push_back({What::copy, self(), from, to, bytes});
  }
  /// Every other member, the next one first: not all begin with the same.
  template <typename Visit>
  void others(Visit&& visit) const {
    for (unsigned i = 1; i < count(); ++i) visit((self() + i) % count());
  }

  void alone() {
    const bool whole = work_.kind == Kind::allreduce || work_.kind == Kind::reduce || work_.kind == Kind::scan ||
                       work_.kind == Kind::reduce_scatter;
    if (whole) return combine(1, work_.in, work_.out, work_.bytes);
    const bool moves = work_.kind == Kind::allgather || work_.kind == Kind::gather || work_.kind == Kind::alltoall ||
                       work_.kind == Kind::scatter;
    if (moves && work_.out != nullptr) copy(work_.in, work_.out, work_.bytes);
  }

  void dissemination() {
    for (unsigned distance = 1; distance < count(); distance *= 2) {
      send((self() + distance) % count(), nullptr, 0);
      receive((self() + count() - distance) % count(), nullptr, 0);
    }
  }

  /// A member's parent is without its lowest bit, as counted from the root.
  void binomial() {
    const Extent some = piece(work_.bytes);
    const unsigned place = (self() + count() - work_.root) % count();
    const auto member_at = [&](unsigned at) { return (at + work_.root) % count(); };
    unsigned bit = 1;
    while (bit < count() && (place & bit) == 0) bit *= 2;
    if (place != 0) receive(member_at(place - bit), work_.out + some.offset, some.bytes);
    for (bit /= 2; bit != 0; bit /= 2) {
      if (place + bit < count()) send(member_at(place + bit), work_.in + some.offset, some.bytes);
    }
  }

  void pairwise() {
    const bool everybody = work_.kind == Kind::allreduce;
    const auto slice = [&](unsigned member, std::uint64_t round) {
      return slice_of(work_.bytes, work_.element, plan_, count(), member, round);
    };
    const Extent own = slice(self(), round_);
    others([&](unsigned peer) {
      const Extent theirs = slice(peer, round_);
      if (theirs.bytes != 0) send(peer, work_.in + theirs.offset, theirs.bytes);
    });
    if (round_ > 0 && (everybody || is_root())) {
      others([&](unsigned peer) {
        const Extent theirs = slice(peer, round_ - 1);
        if (theirs.bytes != 0) receive(peer, work_.out + theirs.offset, theirs.bytes);
      });
    }
    if (own.bytes == 0) return;
    others([&](unsigned peer) { hold(peer, own.bytes); });
    if (everybody || is_root()) {
      combine(count(), work_.in + own.offset, work_.out + own.offset, own.bytes);
    } else {
      steps_.push_back({What::combine, count(), work_.in + own.offset, nullptr, own.bytes});
    }
    others([&](unsigned peer) {
      if (everybody || peer == work_.root)
        send(peer, work_.out == nullptr ? nullptr : work_.out + own.offset, own.bytes);
    });
  }

  void direct() {
    switch (work_.kind) {
      case Kind::allreduce: return combine_all(true);
      case Kind::reduce: return combine_all(is_root());
      case Kind::scan:
      case Kind::exscan: return prefixes();
      case Kind::allgather: return blocks(true);
      case Kind::gather: return blocks(is_root());
      case Kind::scatter: return scatter();
      case Kind::alltoall: return exchange();
      case Kind::reduce_scatter: return combine_blocks();
      default: return;
    }
  }

  void combine_all(bool here) {
    const Extent some = piece(work_.bytes);
    const bool everybody = work_.kind == Kind::allreduce;
    others([&](unsigned peer) {
      if (everybody || peer == work_.root) send(peer, work_.in + some.offset, some.bytes);
    });
    if (!here) return;
    others([&](unsigned peer) { hold(peer, some.bytes); });
    combine(count(), work_.in + some.offset, work_.out + some.offset, some.bytes);
  }

  void prefixes() {
    const Extent some = piece(work_.bytes);
    for (unsigned peer = self() + 1; peer < count(); ++peer) send(peer, work_.in + some.offset, some.bytes);
    for (unsigned peer = 0; peer < self(); ++peer) hold(peer, some.bytes);
    const unsigned of = self() + (work_.kind == Kind::scan ? 1 : 0);
    if (of != 0) combine(of, work_.in + some.offset, work_.out + some.offset, some.bytes);
  }

  void blocks(bool here) {
    const Extent own = piece(work_.block_bytes(self()));
    others([&](unsigned peer) {
      if (work_.kind == Kind::allgather || peer == work_.root) send_piece(peer, work_.in, own);
    });
    if (!here) return;
    copy(work_.in + own.offset, work_.out + work_.block_offset(self()) + own.offset, own.bytes);
    others([&](unsigned peer) {
      receive_piece(peer, work_.out + work_.block_offset(peer), piece(work_.block_bytes(peer)));
    });
  }

  void scatter() {
    if (!is_root()) return receive_piece(work_.root, work_.out, piece(work_.bytes));
    others([&](unsigned peer) {
      send_piece(peer, work_.in + work_.in_block_offset(peer), piece(work_.in_block_bytes(peer)));
    });
    const Extent own = piece(work_.in_block_bytes(self()));
    if (work_.out != nullptr)
      copy(work_.in + work_.in_block_offset(self()) + own.offset, work_.out + own.offset, own.bytes);
  }

  void exchange() {
    others([&](unsigned peer) {
      send_piece(peer, work_.in + work_.in_block_offset(peer), piece(work_.in_block_bytes(peer)));
    });
    const Extent own = piece(work_.in_block_bytes(self()));
    copy(work_.in + work_.in_block_offset(self()) + own.offset, work_.out + work_.block_offset(self()) + own.offset,
         own.bytes);
    others([&](unsigned peer) {
      receive_piece(peer, work_.out + work_.block_offset(peer), piece(work_.block_bytes(peer)));
    });
  }

  /// Of edges between the same two members the first ones fit together, and so on: their messages keep their order.
  void neighbours() {
    const auto& [sources, destinations] = work_.neighbours;
    const bool one_for_each = work_.kind == Kind::neighbour_alltoall;
    const auto bytes_given = [&](std::size_t edge) {
      return one_for_each ? work_.in_block_bytes(edge) : work_.in_bytes;
    };
    std::size_t own_edge = 0;  // of this member as its own source
    for (std::size_t edge = 0; edge < destinations.size(); ++edge) {
      const std::byte* const block = work_.in + (one_for_each ? work_.in_block_offset(edge) : 0);
      const Extent some = piece(bytes_given(edge));
      const auto peer = static_cast<unsigned>(destinations[edge]);
      if (peer != self()) {
        send_piece(peer, block, some);
        continue;
      }
      while (own_edge < sources.size() && sources[own_edge] != destinations[edge]) ++own_edge;
      if (own_edge == sources.size()) continue;
      copy(block + some.offset, work_.out + work_.block_offset(own_edge) + some.offset, some.bytes);
      ++own_edge;
    }
    for (std::size_t edge = 0; edge < sources.size(); ++edge) {
      const auto peer = static_cast<unsigned>(sources[edge]);
      if (peer != self()) receive_piece(peer, work_.out + work_.block_offset(edge), piece(work_.block_bytes(edge)));
    }
  }

  void combine_blocks() {
    others([&](unsigned peer) {
      send_piece(peer, work_.in + work_.in_block_offset(peer), piece(work_.in_block_bytes(peer)));
    });
    const Extent own = piece(work_.in_block_bytes(self()));
    if (!goes_on(own)) return;
    others([&](unsigned peer) { hold(peer, own.bytes); });
    combine(count(), work_.in + work_.in_block_offset(self()) + own.offset, work_.out + own.offset, own.bytes);
  }

  const Members& members_;
  const Work& work_;
  const Plan& plan_;
  const std::uint64_t round_;
  std::vector<Step>& steps_;
};

}  // namespace

void add_steps(const Members& members, const Work& work, const Plan& plan, std::uint64_t round,
               std::vector<Step>& steps) {
  Round(members, work, plan, round, steps).add();
}

}  // namespace brant::coll
