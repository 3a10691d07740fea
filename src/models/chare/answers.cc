#include "models/chare/answers.h"

#include <cstring>

#include <fmt/format.h>

#include "base/error_text.h"
#include "models/chare/collection.h"

namespace brant::detail {

am::Message& Answers::open(const Invocation& invocation, std::size_t bytes) {
  Envelope envelope;
  envelope.kind = MessageKind::reply;
  envelope.reply = invocation.reply;
  am::Message& message = messages_.make(envelope, kReplyPrefix + bytes);
  message.peer = invocation.source;
  std::memset(message.data, 0, kReplyPrefix);  // Status::ok
  return message;
}

void Answers::fail(const Invocation& invocation, std::exception_ptr error) noexcept {
  try {
    Status status;
    std::string text = text_of(error, status);
    if (invocation.chare != nullptr) {
      text = fmt::format("{}::{} on rank {} threw: {}", Collection::name_of(*invocation.chare), invocation.entry->name,
                         context_.rank, text);
    }
    if (invocation.reply == 0) return ending_.fail_job(text);
    SizeArchive size;
    size(text);
    if (ending_.leaving()) return;  // nobody would run it
    am::Message& message = open(invocation, size.size());
    std::memcpy(message.data, &status, sizeof(status));
    WriteArchive write(message.data + kReplyPrefix);
    write(text);
    messages_.count_in(message);
    sending_.deliver(message.peer, message, message.header<Envelope>());
  } catch (...) {
    ending_.fail_job("an exception of an entry method could not be reported: memory is exhausted");
  }
}

void Answers::run(am::Message& message, const Envelope& envelope) {
  WaitingCalls::Entry* line = waiting_.find(envelope.reply);
  if (line == nullptr) return messages_.drop(message);
  Waiting waiting = waiting_.take(*line);
  Status status = Status::ok;
  std::memcpy(&status, message.data, sizeof(status));
  ReadArchive result(&context_.chares, message.data + kReplyPrefix, message.bytes - kReplyPrefix);
  messages_.count_out(message);
  if (status == Status::ok) {
    waiting.deliver(waiting.storage, &result, nullptr);
  } else {
    std::string text;
    result(text);
    waiting.deliver(waiting.storage, nullptr, std::make_exception_ptr(Error(status, text)));
  }
  messages_.drop(message);
}

void Answers::fail_waiting(std::uint32_t number, const std::exception_ptr& error) {
  WaitingCalls::Entry* line = waiting_.find(number);
  if (line == nullptr) return;
  Waiting waiting = waiting_.take(*line);
  waiting.deliver(waiting.storage, nullptr, error);
}

void Answers::fail_future(const CallbackTarget& target, const Error& error) noexcept {
  fail({&context_.core, nullptr, nullptr, nullptr, target.rank, target.number}, std::make_exception_ptr(error));
}

void Answers::fail_waiting_for(std::int32_t rank, const std::exception_ptr& error) {
  for (const std::uint32_t number : waiting_.numbers(rank, false)) fail_waiting(number, error);
}

void Answers::fail_all_waiting(const std::exception_ptr& error) {
  for (const std::uint32_t number : waiting_.numbers(0, true)) fail_waiting(number, error);
}

}  // namespace brant::detail
