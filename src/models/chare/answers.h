#pragma once

#include <cstdint>
#include <exception>

#include "brant/chare/callback.h"
#include "core/reply_table.h"
#include "models/chare/ending.h"
#include "models/chare/messages.h"
#include "models/chare/program_context.h"
#include "models/chare/sending.h"

namespace brant::detail {

/// What was asked of whom.
struct AskedCall {
  Target target;
  const EntryInfo* entry = nullptr;
};
using WaitingCalls = ReplyTable<AskedCall>;

/// The answers to calls: who waits here for which, and how those are told who wait elsewhere.
class Answers {
 public:
  Answers(const ProgramContext& context, Messages& messages, Sending& sending, Ending& ending) noexcept
      : context_(context), messages_(messages), sending_(sending), ending_(ending) {}

  [[nodiscard]] WaitingCalls& waiting() noexcept { return waiting_; }
  [[nodiscard]] const WaitingCalls& waiting() const noexcept { return waiting_; }

  /// A message for whoever waits for an invocation; its result goes behind `kReplyPrefix`. Throws no_memory.
  am::Message& open(const Invocation& invocation, std::size_t bytes);
  /// Tells whoever waits, or ends the job with an error.
  void fail(const Invocation& invocation, std::exception_ptr error) noexcept;
  /// The same for who waits at the end of a callback.
  void fail_future(const CallbackTarget& target, const Error& error) noexcept;

  /// A reply has come.
  void run(am::Message& message, const Envelope& envelope);
  /// Those here who wait for a rank that is lost.
  void fail_waiting_for(std::int32_t rank, const std::exception_ptr& error);
  void fail_all_waiting(const std::exception_ptr& error);

 private:
  void fail_waiting(std::uint32_t number, const std::exception_ptr& error);

  const ProgramContext& context_;
  Messages& messages_;
  Sending& sending_;
  Ending& ending_;
  WaitingCalls waiting_;
};

}  // namespace brant::detail
