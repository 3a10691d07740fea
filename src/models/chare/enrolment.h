#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "brant/chare/callback.h"
#include "models/chare/messages.h"
#include "models/chare/program_context.h"
#include "models/chare/sending.h"

namespace brant::detail {

class Arrivals;

/// Numbers for what libraries enroll that are opened while the program runs, and the messages of others that came
/// before (docs/decisions/0033). Rank 0 gives the numbers, by name, so that it does not matter who opens what first.
class Enrolment {
 public:
  static constexpr std::size_t kParkedMax = 4096;
  static constexpr std::size_t kParkedBytesMax = std::size_t{16} << 20;

  Enrolment(const ProgramContext& context, Messages& messages, Sending& sending, Arrivals& arrivals) noexcept
      : context_(context), messages_(messages), sending_(sending), arrivals_(arrivals) {}

  /// `to` is called when everything enrolled so far has its number.
  void begin(const Callback<>& to);
  /// On rank 0: somebody asks.
  void answer(std::int32_t to, const std::vector<LateName>& names);
  void take_answer(const std::vector<LateNumber>& numbers);

  /// A message that came names what nobody has enrolled here, and may soon.
  [[nodiscard]] bool must_wait(const am::Message& message, const Envelope& envelope) const noexcept;
  /// It goes on when that is enrolled. Throws limit_reached.
  void park(am::Message& message);
  [[nodiscard]] const am::Message* first_parked() const noexcept { return parked_.front(); }
  /// "3 messages wait for ...", or nothing.
  [[nodiscard]] std::string describe() const;
  /// At the end of the program.
  void let_all_go() noexcept;

 private:
  void release();

  const ProgramContext& context_;
  Messages& messages_;
  Sending& sending_;
  Arrivals& arrivals_;
  std::deque<Callback<>> asked_;  ///< Rank 0 answers in the order in which it was asked.
  am::MessageList parked_;
  std::size_t parked_count_ = 0;
  std::size_t parked_bytes_ = 0;
};

}  // namespace brant::detail
