#include "ops/coll/fault.h"

#include <fmt/format.h>

namespace brant::coll {
namespace {

std::string call_of(const Fault& fault, const CallWords& words) {
  if (kind_of(words) == CollectiveKind::none) return "between calls";
  return fmt::format("in call {}{}, {}", fault.call, fault.on_stream != 0 ? " on streams" : "", describe(words));
}

std::string last_of(const Fault& fault, std::string_view team) {
  if (fault.last_call == 0) return fmt::format("it has come to no call of this {}", team);
  return fmt::format("the last call it is known to have come to is {}", fault.last_call);
}

}  // namespace

Status Fault::status() const noexcept {
  switch (why) {
    case Why::none: return Status::ok;
    case Why::lost:
    case Why::left:
    case Why::network: return Status::peer_lost;
    case Why::late: return Status::timed_out;
    case Why::other_call: return Status::invalid_argument;
    case Why::no_memory: return Status::no_memory;
    case Why::closed: return Status::canceled;
    case Why::device: return Status::device_failed;
  }
  return Status::internal;
}

bool is_sound(const Fault& fault, std::size_t members) noexcept {
  return fault.why != Fault::Why::none && fault.why <= Fault::Why::device && fault.member < members &&
         fault.teller < members && fault.on_stream <= 1;
}

std::string describe_member(unsigned number, Rank rank, const TeamWording& wording) {
  if (wording.member != nullptr) return wording.member(rank);
  return fmt::format("member {} (rank {} of the job)", number, rank.value);
}

std::string describe(const Fault& fault, const std::string& team, std::span<const Rank> members, unsigned self,
                     const TeamWording& wording) {
  const auto name = [&](std::uint32_t member) { return describe_member(member, members[member], wording); };
  const std::string who = name(fault.member);
  std::string text = fmt::format("{} {} has ended, {}: ", wording.team, team, call_of(fault, fault.ours));
  switch (fault.why) {
    case Fault::Why::none: return {};
    case Fault::Why::lost:
      text += fmt::format("{} has died; {}. {}", who, last_of(fault, wording.team), wording.after_death);
      break;
    case Fault::Why::left:
      text += fmt::format("the program of {} has ended; {}", who, last_of(fault, wording.team));
      break;
    case Fault::Why::late:
      text += fmt::format(
          "{} did not come within the patience; {}. Look for what it waits for, or give TeamOptions::patience more",
          who, last_of(fault, wording.team));
      break;
    case Fault::Why::other_call:
      text += fmt::format(
          "{} called {} there: all members call the same, with the same sizes, types, ops and roots, in one order", who,
          describe(fault.theirs));
      break;
    case Fault::Why::no_memory: text += fmt::format("{} has no memory for a message", who); break;
    case Fault::Why::network:
      text += fmt::format("{} could not be reached; the log of who found it says why", who);
      break;
    case Fault::Why::closed:
      text += fmt::format("{} has closed the {} while calls were under way, or given it up: its log says why", who,
                          wording.team);
      break;
    case Fault::Why::device: text += fmt::format("the device of {} has failed; its log says how", who); break;
  }
  if (fault.teller != self) text += fmt::format(" (found by {})", name(fault.teller));
  return text;
}

}  // namespace brant::coll
