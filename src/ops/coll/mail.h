#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "brant/base/ids.h"
#include "ops/am/messenger.h"
#include "ops/coll/call_words.h"

namespace brant::coll {

/// What a message between members is; travels as the message's session.
enum class MailKind : std::uint16_t { data = 1, fault = 2, shrink = 3 };

/// What stands in front of its payload.
struct MailHeader {
  std::uint64_t team = 0;  ///< See TeamState: the same at all members, and of no other team of a process.
  std::uint64_t high = 0;  ///< CallWords.
  std::uint32_t low = 0;
  std::uint32_t call = 0;  ///< Its number in the team, the low half.

  [[nodiscard]] CallWords words() const noexcept { return {high, low}; }
};
static_assert(sizeof(MailHeader) == am::kHeaderBytesMax);

/// The messages of one team: those that wait here, for each member in the order in which it sent them, and the way to
/// the others.
class Mail {
 public:
  Mail(am::Messenger& messenger, std::uint64_t team, std::span<const Rank> members)
      : messenger_(messenger), team_(team), members_(members.begin(), members.end()), waiting_(members.size()) {}
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;
  ~Mail() { drop_all(); }

  /// limit_reached: not now. no_memory, peer_lost, and what the messenger says.
  Status send(unsigned to, MailKind kind, std::uint64_t call, const CallWords& words,
              std::span<const std::byte> payload) noexcept;

  void keep(unsigned from, am::Message& message) noexcept { waiting_[from].push_back(message); }
  /// The oldest message of a member. Null: none is there.
  [[nodiscard]] am::Message* front(unsigned from) const noexcept { return waiting_[from].front(); }
  /// Takes it over: it is the caller's to release.
  am::Message& take(unsigned from) noexcept { return *waiting_[from].pop_front(); }
  void release(am::Message& message) noexcept { messenger_.release(message); }
  void drop_all() noexcept;

 private:
  am::Messenger& messenger_;
  const std::uint64_t team_;
  const std::vector<Rank> members_;
  std::vector<am::MessageList> waiting_;
};

}  // namespace brant::coll
