#include "models/chare/ending.h"

#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace brant::detail {

void Ending::start(Task<int> main) {
  if (!ended_ || activity_.running != 0) require_not_running();
  if (context_.rank != 0 || ended_) return;
  main_.emplace(std::move(main));
  main_->start();
}

void Ending::require_not_running() const {
  if (activity_.running == 0 && !activity_.in_progress && !main_.has_value()) return;
  throw Error(Status::invalid_argument,
              fmt::format("rank {}: Chares::run or start was called while its program runs already. Call it once, from "
                          "the process's own main; inside the program, co_await the task or call entry methods",
                          context_.rank));
}

void Ending::look_at_main() {
  if (!main_->finished()) return;
  Task<int> main = std::move(*main_);
  main_.reset();
  try {
    exit(main.take());
  } catch (const std::exception& error) {
    fail_job(fmt::format("the main task on rank 0 threw: {}", error.what()));
  } catch (...) {
    fail_job("the main task on rank 0 threw an exception that is no std::exception");
  }
}

void Ending::exit(std::int64_t code) {
  if (ended_) return;
  if (context_.rank != 0) return sending_.send_code(0, MessageKind::exit_asked, code);
  if (std::exchange(exiting_, true)) return;
  if (code != 0) return spread_end(static_cast<int>(code));
  const Envelope envelope = sending_.control_envelope(MessageKind::stop, 0);
  am::Message& message = messages_.make(envelope, 0);
  sending_.forward_by_tree(message, envelope);
  queue_.push(message, envelope);
}

void Ending::stop(std::string example) {
  stopping_ = true;
  // What was sent from elsewhere may wait here, so this rank's own sums say nothing.
  const Tally mine{activity_.calls_sent + static_cast<std::uint64_t>(activity_.kept), activity_.calls_run,
                   std::move(example)};
  if (context_.rank == 0) return add_tally(mine);
  sending_.send_value(0, MessageKind::stopped, 0, mine);
}

void Ending::add_tally(const Tally& theirs) {
  tally_.sent += theirs.sent;
  tally_.run += theirs.run;
  if (tally_.example.empty()) tally_.example = theirs.example;
  if (++answers_ < context_.ranks || ended_) return;
  if (tally_.sent == tally_.run) return spread_end(0);
  fail_job(
      fmt::format("exit while {} entry invocations are under way{}: await their replies before the program ends, "
                  "or exit with a code other than 0 to drop them",
                  tally_.sent - tally_.run, tally_.example.empty() ? "" : " (one is " + tally_.example + ")"));
}

void Ending::fail_job(std::string_view text) noexcept {
  if (ended_) return;
  log::error("{}", text);
  ended_ = true;
  exit_code_ = 1;
  try {
    failure_ = text;
  } catch (const std::bad_alloc&) {
    failure_.assign(text, 0, failure_.capacity());
  }
  try {
    sending_.spread(MessageKind::failed, 1);
  } catch (...) {  // the launcher ends the others when this process leaves
  }
}

void Ending::tell_of_leaving() noexcept {
  if (ended_ || !connected_ || !context_.engine.is_of_this_process()) return;
  try {
    const std::int32_t end = context_.rank == 0 ? context_.ranks : 1;
    for (std::int32_t other = context_.rank == 0 ? 1 : 0; other < end; ++other) {
      sending_.send_code(other, MessageKind::left, 0);
    }
    sending_.drain_urgent();
  } catch (...) {
    log::error("rank {} leaves before its program has ended, and could not tell the others: they may wait for it",
               context_.rank);
  }
}

void Ending::leave(int code) noexcept {
  if (!ended_) exit_code_ = code;
  ended_ = true;
}

/// Everybody leaves.
void Ending::spread_end(int code) {
  sending_.spread(MessageKind::ended, code);
  leave(code);
}

}  // namespace brant::detail
