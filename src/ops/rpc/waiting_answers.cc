#include "ops/rpc/waiting_answers.h"

#include <exception>
#include <new>

#include <fmt/format.h>

#include "ops/rpc/functions.h"
#include "ops/rpc/outbox.h"

namespace brant::remote {

std::uint32_t WaitingAnswers::expect(const detail::Waiting& waiting, const Function& function, Rank of) noexcept {
  try {
    const std::uint32_t number = calls_.add(waiting, {&function});
    if (number == 0) return 0;
    calls_.find(number)->rank = of.value;
    ++count_;
    return number;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

detail::Waiting WaitingAnswers::take(Calls::Entry& line) noexcept {
  --count_;
  return calls_.take(line);
}

void WaitingAnswers::refuse(const detail::Waiting& waiting, const Function& function, Rank to,
                            Status status) const noexcept {
  detail::Waiting refused = waiting;
  std::exception_ptr why;
  try {
    const std::string cure = status == Status::limit_reached
                                 ? fmt::format(
                                       ". At most {} calls or {} bytes wait for one rank, and {} for answers: "
                                       "await some, or let progress run, before calling more",
                                       Outbox::kCallsMax, Outbox::kBytesMax, Calls::kRepliesMax)
                                 : std::string();
    why = std::make_exception_ptr(
        Error(status, fmt::format("rank {} could not call {} at rank {}: {} ({}){}", self_.value, function.name,
                                  to.value, status_text(status), status_name(status), cure)));
  } catch (...) {
    why = std::current_exception();
  }
  refused.deliver(refused.storage, nullptr, why);
}

void WaitingAnswers::deliver(const am::Message& answer, const CallHeader& header) noexcept {
  Calls::Entry* line = calls_.find(header.number);
  if (line == nullptr || line->rank != answer.peer) return;  // its time was over
  if (header.kind == CallKind::unknown)
    return fail(*line, Status::not_found, unknown_text(*line->function, line->rank));
  if (header.kind == CallKind::failure) {
    const auto status = static_cast<Status>(header.word);
    const bool known = status != Status::ok && status_name(status) != status_name(Status{-1});
    return fail(*line, known ? status : Status::internal,
                std::string(reinterpret_cast<const char*>(answer.data), answer.bytes));
  }
  ReadArchive result(answer.data, answer.bytes);
  detail::Waiting waiting = take(*line);
  waiting.deliver(waiting.storage, &result, nullptr);
}

void WaitingAnswers::fail(Calls::Entry& line, Status status, const std::string& text) noexcept {
  std::exception_ptr error;
  try {
    error = std::make_exception_ptr(Error(status, text));
  } catch (...) {
    error = std::current_exception();
  }
  detail::Waiting waiting = take(line);
  waiting.deliver(waiting.storage, nullptr, error);
}

void WaitingAnswers::fail(std::int32_t rank, bool any, Status status) noexcept {
  for (const std::uint32_t number : calls_.numbers(rank, any)) {
    Calls::Entry* line = calls_.find(number);
    if (line == nullptr) continue;  // whom an earlier one told has ended it
    fail(*line, status,
         fmt::format("rank {} will get no answer from {} at rank {}: {} ({})", self_.value, line->function->name,
                     line->rank, status_text(status), status_name(status)));
  }
}

std::string WaitingAnswers::example() const {
  std::string first;
  calls_.for_each([&](const Calls::Entry& line) {
    if (first.empty()) first = fmt::format("{} at rank {}", line.function->name, line.rank);
  });
  return first;
}

std::string WaitingAnswers::unknown_text(const Function& function, std::int32_t rank) const {
  return fmt::format(
      "rank {} does not know {}, which rank {} called there: all processes run the same binary with the same "
      "libraries, and a library that is opened later is opened at both ends before its functions are called",
      rank, described(function), self_.value);
}

}  // namespace brant::remote
