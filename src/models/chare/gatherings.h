#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "brant/chare/array.h"
#include "brant/chare/callback.h"
#include "brant/chare/detail/gathering.h"
#include "models/chare/callback_functions.h"
#include "models/chare/collection.h"
#include "models/chare/program_context.h"

namespace brant::detail {

class Answers;
class Collections;
class Ending;
class Latecomers;
class Quiet;
struct Activity;

inline constexpr std::string_view kCallbackOwner = "brant::Callback";

/// Who contributed first, for errors.
struct Contributor {
  ElementKey key;
  std::int32_t rank = -1;
};

/// The state of one reduction, without what it combines.
struct PartialHeader {
  GatheringId gathering;
  std::uint32_t round = 0;
  std::uint16_t reducer = 0xffff;  ///< 0xffff: nobody contributed below.
  std::uint8_t lazy = 0;
  std::int32_t from = -1;
  Contributor example;
  CallbackTarget target;
  void serialize(auto& archive) { archive(gathering, round, reducer, lazy, from, example, target); }
};

/// The parts of the core that the gatherings need; the core makes them, and the gatherings with them.
struct GatheringsNeighbours {
  const ProgramContext& context;
  Activity& activity;
  Collections& collections;
  Ending& ending;
  Answers& answers;
  Latecomers& latecomers;
  Quiet& quiet;
};

/// Everything that elements do together, for one rank: sections and their multicasts, reductions, and the functions
/// that callbacks run. It is itself a chare, one on every rank, made by the `Core`: its messages are ordinary calls,
/// ordered, bounded and counted as those are.
///
/// A reduction climbs a tree over the ranks of its gathering. A rank closes a round when all its elements have
/// contributed and all children have reported; then it tells its parent, once. A rank without elements cannot know that
/// a round has begun: it is *lazy*, says so with each report, and its parent pokes it.
class Gatherings : public Chare<Gatherings, Single> {
 public:
  /// A section's members on this rank, and their next round.
  using Members = std::unordered_map<ElementKey, std::uint32_t, KeyHash>;
  static constexpr unsigned kArity = 4;  ///< Children of a rank in a tree.
  struct Branches {
    std::array<std::int32_t, kArity> rank;
    std::size_t count = 0;
  };

  Gatherings() = default;
  /// Fails the futures whose results never came: their coroutines are gone.
  ~Gatherings();

  // --- entries
  void define(GatheringId gathering, std::int32_t root, const std::vector<ElementKey>& members);
  void partial(const PartialHeader& header, Blob values);
  void poke(GatheringId gathering, std::uint32_t round);
  void became_lazy(GatheringId gathering, std::int32_t child);
  void result(GatheringId gathering, std::uint32_t round, Blob value);
  /// Resumes those of this rank who wait for it: what fits a `BatchTime`, and the others by another message.
  void tell_waiting(GatheringId gathering, std::uint32_t round, Blob value);
  void run_function(std::uint32_t number, std::uint64_t turn, Blob values);
  void destroy_function(std::uint32_t number, std::uint64_t turn);
  /// On rank 0.
  void await_quiescence(const Callback<>& to);

  // --- called by the core
  static Target target_on(std::int32_t rank);
  /// Once, when it is made.
  void join(const GatheringsNeighbours& neighbours) noexcept { with_ = &neighbours; }
  void contribute_here(const Contribution& contribution);
  /// Those that callbacks run here.
  [[nodiscard]] CallbackFunctions& functions() noexcept { return functions_; }
  std::uint64_t new_section() noexcept;
  /// Null while the section's definition is under way.
  [[nodiscard]] const Members* members(const GatheringId& section) const noexcept;
  /// The ranks to which this one passes on what `root` sends to a section whose definition is known.
  [[nodiscard]] Branches branches(const GatheringId& section, std::int32_t root) const;
  /// The first reduction that an element made now takes part in.
  [[nodiscard]] std::uint32_t first_round(std::uint32_t collection) noexcept;
  /// An element was made that takes part from `first_round` on.
  void born(const Collection& collection, std::uint32_t first_round);
  /// `how`: of what moves, the sections go on at its home.
  void gone(const Collection& collection, const ChareBase& element, Gone how) noexcept;
  /// A collection is destroyed: its reductions have no result, and its sections no members. Adds whoever waits here for
  /// a result that goes to everyone.
  void forget(std::uint32_t collection, std::vector<Waiting>& unanswered);
  /// Its elements exist now.
  void collection_ready(std::uint32_t collection);
  /// Messages are made now that cannot wait for others to run.
  [[nodiscard]] bool at_work() const noexcept { return at_work_ != 0; }
  /// What waits for contributions, one line each, at most `limit`.
  void describe(std::vector<std::string>& lines, std::size_t limit);

 private:
  struct Child {
    std::int32_t rank = -1;
    bool lazy = true;
  };
  struct Round {
    const ReducerInfo* reducer = nullptr;
    std::unique_ptr<Partial> partial;
    CallbackTarget target;
    Contributor example;
    std::size_t passed = 0;  ///< Local elements that exist and owe nothing.
    std::vector<std::int32_t> reported;
    std::int64_t since = 0;
  };
  struct Gathering {
    bool known = false;  ///< A section's definition has come, or it is no section.
    bool told_lazy = true;
    std::vector<std::int32_t> ranks;  ///< Of a section: those with members, sorted.
    Members counts;                   ///< Of a section.
    std::uint32_t first = 0;          ///< Number of `rounds.front()`.
    std::deque<Round> rounds;         ///< Begun and not closed.
    bool placed = false;
    std::int32_t parent = -1;
    std::vector<Child> children;
    std::unordered_map<std::uint32_t, std::vector<Waiting>> waiting;  ///< For results that go to everyone.

    [[nodiscard]] std::uint32_t next() const noexcept { return first + static_cast<std::uint32_t>(rounds.size()); }
  };
  struct GatheringHash {
    std::size_t operator()(const GatheringId& id) const noexcept {
      return std::size_t{id.section * 0x9e3779b97f4a7c15u} ^ (std::size_t{id.collection} << 17);
    }
  };
  struct Definition {
    GatheringId gathering;
    std::vector<ElementKey> members;
  };

  [[nodiscard]] Core& core() const noexcept { return with_->context.core; }
  Gathering& gathering_of(const GatheringId& id);
  void install(Gathering& gathering, const GatheringId& id, const std::vector<ElementKey>& members,
               const Collection& collection);
  void place(Gathering& gathering, const GatheringId& id);
  [[nodiscard]] std::size_t alive(const Gathering& gathering, const GatheringId& id) const;
  [[nodiscard]] bool settled(const Gathering& gathering, const GatheringId& id) const;
  Round& open_round(Gathering& gathering, const GatheringId& id, std::uint32_t number);
  void fit(Round& round, const GatheringId& id, std::uint32_t number, const ReducerInfo& reducer,
           const CallbackTarget& target, const Contributor& from) const;
  [[nodiscard]] std::string lengths_text(const LengthsDiffer& lengths, const Round& round, const GatheringId& id,
                                         std::uint32_t number, const Contributor& from) const;
  void close_rounds(Gathering& gathering, const GatheringId& id);
  void report(Gathering& gathering, const GatheringId& id, std::uint32_t number, Round& round);
  void deliver(const GatheringId& id, std::uint32_t number, Round& round);
  void give_up(const GatheringId& id, std::uint32_t number, const CallbackTarget& target);
  void tell_if_lazy(Gathering& gathering, const GatheringId& id);
  [[nodiscard]] std::string name_of(const Contributor& who, const GatheringId& id) const;
  [[nodiscard]] std::string round_text(const GatheringId& id, std::uint32_t number) const;

  const GatheringsNeighbours* with_ = nullptr;
  std::unordered_map<GatheringId, Gathering, GatheringHash> gatherings_;
  std::vector<Definition> early_definitions_;  ///< Of arrays whose creation has not come yet.
  CallbackFunctions functions_;
  std::uint32_t sections_made_ = 0;
  unsigned at_work_ = 0;
};

/// A call of the gatherings of another rank (or of this one) that the ending does not count.
template <auto Method, typename... As>
void tell(Core& core, std::int32_t rank, const As&... arguments) {
  using Entry = EntryOf<Gatherings, Method>;
  const auto open = [&](std::size_t bytes) {
    return open_call(core, Gatherings::target_on(rank), Entry::get(), {}, 0, bytes);
  };
  Outgoing outgoing = PackAs<typename Entry::Traits::Arguments>::pack(open, arguments...);
  auto& message = *static_cast<am::Message*>(outgoing.message);
  auto envelope = message.header<Envelope>();
  envelope.flags |= Envelope::kInternal;
  message.set_header(envelope);
  post(core, outgoing);
}

}  // namespace brant::detail
