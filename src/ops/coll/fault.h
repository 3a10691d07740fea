#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "brant/base/ids.h"
#include "brant/base/status.h"
#include "brant/coll/team.h"
#include "ops/coll/call_words.h"

namespace brant::coll {

/// What ended a team. Travels as bytes: whoever finds it tells all other members.
struct Fault {
  enum class Why : std::uint32_t {
    none,
    lost,        ///< A member died.
    left,        ///< Its program has ended.
    late,        ///< It did not come within the patience.
    other_call,  ///< It called something else.
    no_memory,   ///< `member` has none for a message.
    network,     ///< `member` could not be reached.
    closed,      ///< `member` closed the team while calls were under way, or gave it up.
    device,      ///< The device of `member` has failed.
  };

  Why why = Why::none;
  std::uint32_t member = 0;     ///< Who it was.
  std::uint32_t teller = 0;     ///< Who found it.
  std::uint32_t on_stream = 0;  ///< 1: in a call that a stream carries out; those are counted apart.
  std::uint64_t call = 0;       ///< In which call of the team, those by which it was made counted too.
  std::uint64_t last_call = 0;  ///< The last one that `member` is known to have come to; 0: none.
  CallWords theirs;             ///< other_call: what it called.
  CallWords ours;               ///< What the teller called. Kind none: nothing was under way.

  [[nodiscard]] bool happened() const noexcept { return why != Why::none; }
  [[nodiscard]] Status status() const noexcept;
};
static_assert(std::is_trivially_copyable_v<Fault> && sizeof(Fault) == 64);

/// False: no process of ours told it.
bool is_sound(const Fault& fault, std::size_t members) noexcept;

/// For people: a member, by its number and rank.
std::string describe_member(unsigned number, Rank rank, const TeamWording& wording);
/// For people: the member, the call, what it did, and the cure. `self` is the member that says it. `team`: its name.
std::string describe(const Fault& fault, const std::string& team, std::span<const Rank> members, unsigned self,
                     const TeamWording& wording);

}  // namespace brant::coll
