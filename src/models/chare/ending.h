#pragma once

#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "brant/core/future.h"
#include "brant/core/task.h"
#include "models/chare/activity.h"
#include "models/chare/program_context.h"
#include "models/chare/queue.h"
#include "models/chare/sending.h"

namespace brant::detail {

/// What a rank that has stopped says of itself; and, at rank 0, the sum.
struct Tally {
  std::uint64_t sent = 0, run = 0;
  std::string example;  ///< A call that is under way, if one is known.
  void serialize(auto& archive) { archive(sent, run, example); }
};

/// How a program begins and ends. Somebody calls exit: rank 0 is told. Code 0: rank 0 spreads `stop`, which takes its
/// place in every queue: what came before it still runs. Then the rank runs no more entries and answers how many
/// invocations it sent and ran; the sums must agree, or messages are under way and the ending is an error. Then (or at
/// once for another code) rank 0 spreads `ended`, and everybody leaves. An error is spread by the rank where it
/// happened. A rank that destroys its chares before any of that has reached it says so (`left`): the others would wait
/// for it.
class Ending {
 public:
  Ending(const ProgramContext& context, const Activity& activity, Messages& messages, Sending& sending,
         ReadyQueue& queue) noexcept
      : context_(context), activity_(activity), messages_(messages), sending_(sending), queue_(queue) {
    failure_.reserve(kFailureReserved);
  }

  // --- the main task, on rank 0
  /// Throws invalid_argument while the program runs. Of one that has ended `main` is dropped.
  void start(Task<int> main);
  [[nodiscard]] bool has_main() const noexcept { return main_.has_value(); }
  [[nodiscard]] bool main_finished() const noexcept { return main_.has_value() && main_->finished(); }
  [[nodiscard]] bool main_waits() const noexcept { return main_.has_value() && !exiting_; }
  /// With its result the program ends.
  void look_at_main();

  // --- the end
  void exit(std::int64_t code);
  /// No entry runs here any more: tells rank 0. `example` is a call that has not been delivered, or empty.
  void stop(std::string example);
  /// On rank 0: somebody has stopped.
  void add_tally(const Tally& theirs);
  void leave(int code) noexcept;
  void fail_job(std::string_view text) noexcept;
  /// The same of code that may not throw: `say()` gives the text. Where there is no memory for it, `plain` is told.
  template <typename Say>
  void fail_job(Say&& say, std::string_view plain) noexcept {
    try {
      const std::string text = std::forward<Say>(say)();
      fail_job(text);
    } catch (const std::bad_alloc&) {
      fail_job(plain);
    }
  }

  [[nodiscard]] bool ended() const noexcept { return ended_; }
  /// No entry runs any more.
  [[nodiscard]] bool leaving() const noexcept { return ended_ || stopping_; }
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  /// Its future ends with the program, and never before.
  [[nodiscard]] Promise<>& never() noexcept { return never_; }

  // --- the chares of this process
  /// The others count on this rank from now on.
  void note_connected() noexcept { connected_ = true; }
  /// They are destroyed. If the program has not ended, others may wait for this rank: they are told. Where all leave
  /// so, nobody is left to mind.
  void tell_of_leaving() noexcept;
  /// Nothing runs any more, whatever others do.
  void abandon() noexcept {
    stopping_ = true;
    main_.reset();
  }

 private:
  /// So much of a text is kept where there is no memory for it.
  static constexpr std::size_t kFailureReserved = 160;

  void require_not_running() const;
  void spread_end(int code);

  const ProgramContext& context_;
  const Activity& activity_;
  Messages& messages_;
  Sending& sending_;
  ReadyQueue& queue_;
  std::optional<Task<int>> main_;
  Promise<> never_;
  Tally tally_;      ///< Rank 0: what all have answered,
  int answers_ = 0;  ///< and how many.
  bool connected_ = false;
  bool exiting_ = false;   ///< Rank 0: exit was called.
  bool stopping_ = false;  ///< No entry runs any more.
  bool ended_ = false;
  int exit_code_ = 0;
  std::string failure_;
};

}  // namespace brant::detail
