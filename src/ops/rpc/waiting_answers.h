#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "brant/base/ids.h"
#include "brant/core/reply.h"
#include "brant/ops/rpc/function.h"
#include "core/reply_table.h"
#include "ops/am/message.h"
#include "ops/rpc/call_header.h"

namespace brant::remote {

/// Who waits in this process for the answers of which calls. Whoever is told is user code: only where completions are
/// fired, except by `refuse`, before anybody can wait.
class WaitingAnswers {
 public:
  explicit WaitingAnswers(Rank self) noexcept : self_(self) {}

  /// A number for `waiting`; 0: a million wait already, or there is no memory.
  std::uint32_t expect(const detail::Waiting& waiting, const Function& function, Rank of) noexcept;
  /// Nobody waits under that number any more, and nobody is told.
  void forget(std::uint32_t number) noexcept { static_cast<void>(take(*calls_.find(number))); }
  /// Tells who would wait for an answer that its call was not sent.
  void refuse(const detail::Waiting& waiting, const Function& function, Rank to, Status status) const noexcept;

  /// Tells who waits for this answer, if somebody does.
  void deliver(const am::Message& answer, const CallHeader& header) noexcept;
  void fail_all_of(Rank rank, Status status) noexcept { fail(rank.value, false, status); }
  void fail_all(Status status) noexcept { fail(0, true, status); }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// One of those that are waited for: "scale at rank 1".
  [[nodiscard]] std::string example() const;
  [[nodiscard]] std::string unknown_text(const Function& function, std::int32_t rank) const;

 private:
  struct AskedFunction {
    const Function* function = nullptr;
  };
  using Calls = detail::ReplyTable<AskedFunction>;

  detail::Waiting take(Calls::Entry& line) noexcept;
  void fail(Calls::Entry& line, Status status, const std::string& text) noexcept;
  void fail(std::int32_t rank, bool any, Status status) noexcept;

  const Rank self_;
  Calls calls_;
  std::size_t count_ = 0;
};

}  // namespace brant::remote
