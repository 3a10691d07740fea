// What comes is run here: functions, and those that wait for answers.
#include <cstring>
#include <exception>

#include <fmt/format.h>

#include "base/error_text.h"
#include "base/log.h"
#include "ops/rpc/data_block.h"
#include "ops/rpc/end_program.h"
#include "ops/rpc/service.h"

namespace brant::remote {

void RpcService::run(am::Message& message) noexcept {
  const auto header = message.header<CallHeader>();
  if (header.kind == CallKind::call) {
    outboxes_.leave_queue(message);
    return run_call(message, header);
  }
  // A result or failure is of a call that somebody waits for, or has waited for.
  header.number == 0 ? hear_unknown(message, header) : answers_.deliver(message, header);
  release(message);
}

void RpcService::run_call(am::Message& message, const CallHeader& header) noexcept {
  const Rank from{message.peer};
  if (parted_) {
    if (header.number != 0) {
      send_failure(from, header.number, Status::shutting_down,
                   fmt::format("rank {} has ended its program before the call was run", rank_.value));
    }
    return release(message);
  }
  try {
    const Function* function = functions_.find(header.word);
    if (function != nullptr) return call_function(*function, message, header);
    say_unknown(message, header);
  } catch (const std::exception& error) {
    if (header.number == 0) end_program(Status::invalid_argument, error.what());
    send_failure(from, header.number, Status::invalid_argument, error.what());
  }
  release(message);
}

/// Its data has come, and is as much as the function takes.
void RpcService::require_data(const Function& function, const am::Message& message, const CallHeader& header) const {
  if (header.data != function.data) {
    throw Error(Status::invalid_argument,
                fmt::format("{} arguments came as data, and it takes {}", header.data, function.data));
  }
  const Status status = Landings::outcome(message);
  if (status == Status::ok) return;
  throw Error(status, fmt::format("its data did not come: {} ({})", status_text(status), status_name(status)));
}

void RpcService::call_function(const Function& function, am::Message& message, const CallHeader& header) noexcept {
  bool begun = false;
  bool retained = false;
  const Invocation invocation{this, &function, &message, Rank{message.peer}, header.number, &begun, &retained};
  const std::size_t behind_data = data_block_bytes(header.data);
  ReadArchive arguments(message.data + behind_data, message.bytes - behind_data);
  try {
    if (header.data != 0 || function.data != 0) require_data(function, message, header);
    function.run(arguments, invocation);
  } catch (const PartNotMade& part) {
    if (parts_.keep(message, part.id)) return;
    fail(invocation, std::make_exception_ptr(Error(Status::no_memory, "no memory to let a call wait")));
  } catch (...) {
    begun ? fail(invocation, std::current_exception()) : blame_message(function, message, header.number);
  }
  if (!retained) release(message);
}

/// Of the exception that is being handled: the arguments could not be read.
void RpcService::blame_message(const Function& function, am::Message& message, std::uint32_t number) noexcept {
  Status status = Status::internal;
  const std::string text = fmt::format("rank {} could not read the arguments of {} from rank {}: {}", rank_.value,
                                       function.name, message.peer, detail::text_of(std::current_exception(), status));
  if (number != 0) return send_failure(Rank{message.peer}, number, status, text);
  if (message.peer == rank_.value || status == Status::no_memory) end_program(status, text);
  if (status == Status::peer_lost) return log::info("{}", text);
  log::error("{}", text);
  engine_.peers().distrust(message.peer, "arguments of a remote call that cannot be read");
}

void RpcService::fail(const Invocation& invocation, const std::exception_ptr& error) noexcept {
  Status status = Status::internal;
  const std::string thrown = detail::text_of(error, status);
  if (invocation.number == 0) {
    end_program(status, fmt::format("{}, which rank {} told rank {} to run, threw: {}", invocation.function->name,
                                    invocation.source.value, rank_.value, thrown));
  }
  send_failure(invocation.source, invocation.number, status,
               fmt::format("{} on rank {} threw: {}", invocation.function->name, rank_.value, thrown));
}

void RpcService::send_failure(Rank to, std::uint32_t number, Status status, const std::string& text) noexcept {
  const CallHeader header{static_cast<std::uint64_t>(status), number, CallKind::failure};
  am::Message* message = open(header, text.size());
  if (message == nullptr) end_program(Status::no_memory, "no memory to say why a remote call has failed: " + text);
  std::memcpy(message->data, text.data(), text.size());
  send_answer(to, *message);
}

void RpcService::say_unknown(am::Message& message, const CallHeader& header) noexcept {
  am::Message* answer = open({header.word, header.number, CallKind::unknown}, 0);
  if (answer == nullptr) end_program(Status::no_memory, "no memory to say that a remote call names no function here");
  send_answer(Rank{message.peer}, *answer);
}

/// The target of a call that was told does not know its function.
void RpcService::hear_unknown(const am::Message& message, const CallHeader& header) noexcept {
  const Function* function = nullptr;
  try {
    function = functions_.find(header.word);
  } catch (const std::exception& error) {  // two have that hash
    log::warn("{}", error.what());
  }
  if (function == nullptr) return engine_.peers().distrust(message.peer, "an answer to a call that never was");
  end_program(Status::not_found, answers_.unknown_text(*function, message.peer));
}

void end_program(Status status, const std::string& text) noexcept {
  try {
    throw Error(status, text);
  } catch (...) {
    std::terminate();  // inside the handler: what ends the program says what was thrown
  }
}

RunningCall::RunningCall(const Invocation& of, std::coroutine_handle<> in) noexcept : invocation(of), frame(in) {
  *of.retained = true;
  of.service->enter(*this);
}

RunningCall::~RunningCall() { invocation.service->leave(*this); }

}  // namespace brant::remote
