#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "brant/base/intrusive_list.h"
#include "ops/place/place.h"

namespace brant::place {

/// How this rank sends to a thing that lives elsewhere than at its home.
struct Way {
  Identity id;
  Place place;
  bool turning = false;  ///< Being changed or given up: `Delivery` knows more. It is not evicted.
  ListHook<Way> by_use;
};

/// What its place knows of a thing that has moved, besides the thing itself. It goes along when the thing moves.
struct Guest {
  /// A rank that was told the place. `direct`: it has taken that up, and does not send by way of the home.
  struct Sender {
    std::int32_t rank = -1;
    bool direct = false;
  };

  std::uint32_t epoch = 0;
  std::uint32_t epoch_before = 0;
  /// Of the senders that went the way to the place before (the home is one of them), how many have not ended it yet.
  std::uint32_t awaited = 0;
  std::vector<Sender> senders;

  /// Nothing is under way by the place before, and no stub is left there.
  [[nodiscard]] bool settled() const noexcept { return awaited == 0; }
};

/// What a place leaves behind when a thing goes: it passes on what still comes.
struct Stub {
  Place next;
  std::uint32_t epoch = 0;    ///< Of the stay that is over.
  std::uint32_t awaited = 0;  ///< Senders that have not ended their way to here; with the last one the stub goes.
};

/// Who is where, for the things of one kind (one array of chares, say), as one rank sees it. It has records of things
/// that have moved and of no others; while there are none, nothing is looked up. Belongs to one thread. What adds a
/// record throws bad_alloc and nothing else.
class Directory {
 public:
  /// `ways_max`: of how many things of other homes it remembers the way.
  explicit Directory(std::int32_t self, std::size_t ways_max = 4096);
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  [[nodiscard]] std::int32_t self() const noexcept { return self_; }
  /// False: everything lives at its home, as far as this rank knows or need know.
  [[nodiscard]] bool anything_moved() const noexcept { return records_ != 0; }
  /// The rank to which this one sends what is for `id`: its own if it lives here, else the next on the way.
  [[nodiscard]] std::int32_t rank_of(Identity id) const noexcept {
    if (!anything_moved()) [[likely]]
      return id.home();
    return rank_of_moved(id);
  }
  [[nodiscard]] bool lives_here(Identity id) const noexcept;

  // Ways. Those to things of other homes are at most `ways_max`; those to things of this home are as many as are away.
  [[nodiscard]] const Way* way(Identity id) const noexcept;
  /// Null if there is none; it counts as used now.
  Way* use_way(Identity id) noexcept;
  /// False: there is one, or there is no room.
  bool add_way(Identity id, Place place);
  /// Nobody evicts it, until `turned`.
  void start_turn(Way& way) noexcept;
  /// False, and nothing has changed: `place` is no newer than where the way leads.
  [[nodiscard]] bool turned(Way& way, Place place) noexcept;
  void forget_way(Identity id) noexcept;
  [[nodiscard]] bool full() const noexcept { return ways_.size() >= ways_max_; }
  /// The way, not turning, that was not used for longest; null if all are turning.
  [[nodiscard]] Way* least_used() const noexcept { return by_use_.front(); }

  // What lives here and has moved.
  [[nodiscard]] Guest* guest(Identity id) noexcept;
  Guest& enter(Identity id, Guest guest);
  /// It went, or it is at home and nobody need remember that it ever moved.
  void forget_guest(Identity id) noexcept;
  /// For something that leaves its home as if for the first time: larger than any that was forgotten here.
  [[nodiscard]] std::uint32_t first_epoch() const noexcept { return forgotten_epoch_ + 1; }

  // What has gone.
  [[nodiscard]] Stub* stub(Identity id) noexcept;
  void leave_stub(Identity id, const Stub& stub);
  void remove_stub(Identity id) noexcept;

  [[nodiscard]] std::size_t ways() const noexcept { return ways_.size(); }
  /// Things of this home that live elsewhere.
  [[nodiscard]] std::size_t away() const noexcept { return away_.size(); }
  template <typename Visit>
  void for_each_away(Visit&& visit) const {
    for (const auto& [id, way] : away_) visit(id);
  }
  [[nodiscard]] std::size_t guests() const noexcept { return guests_.size(); }
  [[nodiscard]] std::size_t stubs() const noexcept { return stubs_.size(); }

 private:
  using Ways = std::unordered_map<Identity, Way, Identity::Hash>;

  [[nodiscard]] std::int32_t rank_of_moved(Identity id) const noexcept;
  [[nodiscard]] const Ways& ways_to(Identity id) const noexcept { return id.home() == self_ ? away_ : ways_; }
  [[nodiscard]] Ways& ways_to(Identity id) noexcept { return id.home() == self_ ? away_ : ways_; }

  const std::int32_t self_;
  const std::size_t ways_max_;
  std::size_t records_ = 0;  ///< In all four tables.
  Ways ways_;
  Ways away_;
  IntrusiveList<Way, &Way::by_use> by_use_;  ///< Of `ways_`, those not turning; least used first.
  std::unordered_map<Identity, Guest, Identity::Hash> guests_;
  std::unordered_map<Identity, Stub, Identity::Hash> stubs_;
  std::uint32_t forgotten_epoch_ = 0;
};

}  // namespace brant::place
