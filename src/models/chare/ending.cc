#include <fmt/format.h>

#include "base/log.h"
#include "models/chare/core.h"
#include "models/chare/mail.h"

namespace brant::detail {

// How a program ends. Somebody calls exit: rank 0 is told. Code 0: rank 0 spreads `stop`, which takes its place
// in every queue: what came before it still runs. Then the rank runs no more entries and answers how many invocations
// it sent and ran; the sums must agree, or messages are under way and the ending is an error. Then (or at once for
// another code) rank 0 spreads `ended`, and everybody leaves. An error is spread by the rank where it happened.
// A rank that destroys its chares before any of that has reached it says so (`left`): the others would wait for it.

void Core::exit(std::int64_t code) {
  if (ended_) return;
  if (rank_ != 0) return send_control(0, MessageKind::exit_asked, code, {}, {});
  if (std::exchange(exiting_, true)) return;
  if (code == 0) return spread_control(MessageKind::stop, 0);
  spread_control(MessageKind::ended, code);
}

/// Tells all other ranks by a tree, and does the same here.
void Core::spread_control(MessageKind kind, std::int64_t code) {
  Envelope envelope;
  envelope.kind = kind;
  envelope.reply = static_cast<std::uint32_t>(rank_);
  envelope.key = static_cast<std::uint64_t>(code);
  am::Message& message = make(envelope, 0);
  forward_by_tree(message, envelope);
  if (kind == MessageKind::stop) return enqueue(message, envelope);
  on_control(message, envelope);
  messenger_.release(message);
}

void Core::send_control(std::int32_t to, MessageKind kind, std::int64_t code, const std::string& text,
                        const Tally& tally) {
  Envelope envelope;
  envelope.kind = kind;
  envelope.key = static_cast<std::uint64_t>(code);
  SizeArchive size;
  size(tally.sent, tally.run, text);
  am::Message& message = make(envelope, size.size());
  WriteArchive write(message.data);
  write(tally.sent, tally.run, text);
  send_to(to, message, envelope);
}

void Core::on_control(const am::Message& message, const Envelope& envelope) {
  const auto code = static_cast<std::int64_t>(envelope.key);
  switch (envelope.kind) {
    case MessageKind::exit_asked: return exit(code);
    case MessageKind::stop: return stop();
    case MessageKind::stopped: {
      Tally theirs;
      ReadArchive read(&chares_, message.data, message.bytes);
      read(theirs.sent, theirs.run, theirs.example);
      return add_tally(theirs);
    }
    case MessageKind::wave: return quiet_.answer(envelope.key);
    case MessageKind::wave_answer: {
      WaveAnswer theirs;
      ReadArchive read(&chares_, message.data, message.bytes);
      read(theirs);
      return quiet_.take_answer(envelope.key, theirs);
    }
    case MessageKind::report_asked: return quiet_.answer_report();
    case MessageKind::report: {
      std::vector<std::string> lines;
      ReadArchive read(&chares_, message.data, message.bytes);
      read(lines);
      return quiet_.take_report(lines);
    }
    case MessageKind::numbers_asked: {
      std::vector<LateName> names;
      ReadArchive read(&chares_, message.data, message.bytes);
      read(names);
      return enrolment_.answer(message.wire.source, names);
    }
    case MessageKind::numbers_given: {
      std::vector<LateNumber> numbers;
      ReadArchive read(&chares_, message.data, message.bytes);
      read(numbers);
      return enrolment_.take_answer(numbers);
    }
    case MessageKind::left:
      return fail_job(
          fmt::format("rank {}'s program ended without running its chares (rank {} heard of it): call Chares::run on "
                      "every rank, or progress until the program has ended",
                      message.wire.source, rank_));
    case MessageKind::ended:
      if (!ended_) exit_code_ = static_cast<int>(code);
      ended_ = true;
      return;
    default:
      if (!ended_) exit_code_ = 1;
      ended_ = true;
      return;
  }
}

void Core::stop() {
  stopping_ = true;
  // What was sent from elsewhere may wait here, so this rank's own sums say nothing.
  const Tally mine{calls_sent_ + static_cast<std::uint64_t>(kept_), calls_run_, 0, first_undelivered()};
  if (rank_ == 0) return add_tally(mine);
  send_control(0, MessageKind::stopped, 0, mine.example, mine);
}

void Core::add_tally(const Tally& theirs) {
  tally_.sent += theirs.sent;
  tally_.run += theirs.run;
  if (tally_.example.empty()) tally_.example = theirs.example;
  if (++tally_.answers < ranks_ || ended_) return;
  if (tally_.sent == tally_.run) return spread_control(MessageKind::ended, 0);
  fail_job(
      fmt::format("exit while {} entry invocations are under way{}: await their replies before the program ends, "
                  "or exit with a code other than 0 to drop them",
                  tally_.sent - tally_.run, tally_.example.empty() ? "" : " (one is " + tally_.example + ")"));
}

std::string Core::first_undelivered() {
  const auto is_call = [](const am::Message& message) { return message.header<Envelope>().counted(); };
  const auto describe = [this](const am::Message& message, const char* state) {
    const auto envelope = message.header<Envelope>();
    const auto* entry = registry_.find<EntryInfo>(envelope.number, RegisteredKind::entry);
    const std::string method = entry != nullptr ? std::string(entry->name) : "?";
    if (envelope.kind == MessageKind::broadcast || envelope.kind == MessageKind::multicast) {
      return fmt::format("a {} of {} on rank {}{}",
                         envelope.kind == MessageKind::broadcast ? "broadcast" : "call of a section,", method, rank_,
                         state);
    }
    return fmt::format("{}::{} on rank {}{}", name_of({envelope.collection, key_of(message, envelope)}), method, rank_,
                       state);
  };
  if (const am::Message* message = queue_.find(is_call)) return describe(*message, "");
  if (kept_ != 0) return first_kept(collections_);
  for (const auto& [id, collection] : collections_) {
    for (const auto& [key, list] : collection->waiting) {
      if (list.front() != nullptr) return describe(*list.front(), ", which was never inserted");
    }
  }
  for (const DataCall* call = data_calls_.front(); call != nullptr; call = data_calls_.next(*call)) {
    if (call->remaining != 0) return describe(*call->message, ", whose data is still coming");
  }
  for (const auto& [id, list] : unknown_) {
    if (list.front() != nullptr && is_call(*list.front())) return describe(*list.front(), ", which was never made");
  }
  for (const auto& [id, list] : unknown_sections_) {
    if (list.front() != nullptr) return describe(*list.front(), ", whose section was never made");
  }
  if (const am::Message* message = enrolment_.first_parked(); message != nullptr && is_call(*message)) {
    return describe(*message, ", which nobody has enrolled there");
  }
  for (const am::MessageList& outbox : outboxes_) {
    if (outbox.front() != nullptr && is_call(*outbox.front())) return describe(*outbox.front(), ", not sent yet");
  }
  return {};
}

void Core::fail_job(const std::string& text) noexcept {
  if (ended_) return;
  log::error("{}", text);
  try {
    failure_ = text;
    ended_ = true;
    exit_code_ = 1;
    spread_control(MessageKind::failed, 1);
  } catch (...) {  // the launcher ends the others when this process leaves
  }
}

/// The program has not ended and others may wait for this rank. Where all leave so, nobody is left to mind.
void Core::tell_of_leaving() noexcept {
  if (ended_ || !connected_ || !engine_.is_of_this_process()) return;
  try {
    const std::int32_t end = rank_ == 0 ? ranks_ : 1;
    for (std::int32_t other = rank_ == 0 ? 1 : 0; other < end; ++other) {
      send_control(other, MessageKind::left, 0, {}, {});
    }
    drain_urgent();
  } catch (...) {
    log::error("rank {} leaves before its program has ended, and could not tell the others: they may wait for it",
               rank_);
  }
}

void Core::require_not_running() const {
  if (running_ == 0 && !in_progress_ && !main_.has_value()) return;
  throw Error(Status::invalid_argument,
              fmt::format("rank {}: Chares::run or start was called while its program runs already. Call it once, from "
                          "the process's own main; inside the program, co_await the task or call entry methods",
                          rank_));
}

void Core::start(Task<int> main) {
  if (!ended_ || running_ != 0) require_not_running();
  if (rank_ != 0 || ended_) return;
  main_.emplace(std::move(main));
  main_->start();
}

void Core::look_at_main() {
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

void Core::look_at_troubles() {
  std::vector<std::pair<Rank, Status>> troubles;
  troubles.swap(troubles_);
  for (const auto& [peer, status] : troubles) {
    const std::string text = fmt::format("rank {} lost rank {} and its chares: {} ({})", rank_, peer.value,
                                         status_text(status), status_name(status));
    for (const std::uint32_t number : replies_.numbers(peer.value, false)) {
      fail_waiting(number, std::make_exception_ptr(Error(status, text)));
    }
    fail_job(text);
  }
}

}  // namespace brant::detail
