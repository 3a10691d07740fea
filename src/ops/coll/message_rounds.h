#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/coll/fault.h"
#include "ops/coll/mail.h"
#include "ops/coll/message_steps.h"

namespace brant::coll {

/// The call of a team that goes by messages now: does its steps as far as messages have come.
class MessageRounds {
 public:
  MessageRounds(Mail& mail, const Members& members) : mail_(mail), members_(members), held_(members.count) {}
  MessageRounds(const MessageRounds&) = delete;
  MessageRounds& operator=(const MessageRounds&) = delete;
  ~MessageRounds() { drop_held(); }

  void begin(std::uint64_t call) noexcept;
  /// ok: the call has ended. in_progress: it waits, or has done so much that others shall have their turn (`moved`
  /// counts steps). Else `fault` says what.
  Status step(const Work& work, const Plan& plan, Fault& fault) noexcept;

  /// Steps done so far.
  [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }
  /// Whom it waits for.
  [[nodiscard]] unsigned awaited() const noexcept { return awaited_; }
  /// It waits for room to send, of which nobody tells.
  [[nodiscard]] bool is_blocked() const noexcept { return blocked_; }
  void drop_held() noexcept;

 private:
  Status carry_out(const Step& step, const Work& work, Fault& fault);
  Status send(const Step& step, const Work& work, Fault& fault) noexcept;
  Status receive(const Step& step, const Work& work, Fault& fault) noexcept;
  void combine(const Step& step, const Work& work);

  Mail& mail_;
  const Members& members_;
  std::vector<Step> steps_;  ///< Of this round.
  std::size_t next_ = 0;
  std::uint64_t round_ = 0;
  std::uint64_t call_ = 0;
  std::uint64_t moved_ = 0;
  std::vector<am::Message*> held_;  ///< Of each member.
  std::vector<const void*> inputs_;
  std::vector<std::byte> result_;  ///< Of a slice that this member combines for the root.
  unsigned awaited_ = 0;
  bool blocked_ = false;
};

}  // namespace brant::coll
