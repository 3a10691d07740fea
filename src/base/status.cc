#include "brant/base/status.h"

#include <fmt/format.h>

namespace brant {

std::string_view status_name(Status status) noexcept {
  switch (status) {
    case Status::ok: return "ok";
    case Status::in_progress: return "in_progress";
    case Status::invalid_argument: return "invalid_argument";
    case Status::wrong_kind: return "wrong_kind";
    case Status::truncated: return "truncated";
    case Status::limit_reached: return "limit_reached";
    case Status::not_supported: return "not_supported";
    case Status::not_found: return "not_found";
    case Status::peer_lost: return "peer_lost";
    case Status::peer_rejected: return "peer_rejected";
    case Status::version_mismatch: return "version_mismatch";
    case Status::no_memory: return "no_memory";
    case Status::device_failed: return "device_failed";
    case Status::canceled: return "canceled";
    case Status::timed_out: return "timed_out";
    case Status::shutting_down: return "shutting_down";
    case Status::io_error: return "io_error";
    case Status::internal: return "internal";
  }
  return "unknown";
}

std::string_view status_text(Status status) noexcept {
  switch (status) {
    case Status::ok: return "completed";
    case Status::in_progress: return "not complete yet";
    case Status::invalid_argument: return "an argument is outside what the call accepts";
    case Status::wrong_kind: return "the memory is not of the kind it was declared to be";
    case Status::truncated: return "the message is longer than the receive buffer";
    case Status::limit_reached: return "a documented bound is exhausted";
    case Status::not_supported: return "not supported by this adapter or machine";
    case Status::not_found: return "no such name, key or file";
    case Status::peer_lost: return "the peer process has ended, died or become unreachable";
    case Status::peer_rejected: return "the peer refused the operation";
    case Status::version_mismatch: return "the peer runs versions that cannot talk to ours";
    case Status::no_memory: return "memory is exhausted";
    case Status::device_failed: return "the device or its driver reported an error";
    case Status::canceled: return "cancelled before it matched";
    case Status::timed_out: return "the deadline passed first";
    case Status::shutting_down: return "the runtime is closing";
    case Status::io_error: return "the operating system refused";
    case Status::internal: return "a fault of brant, please report it";
  }
  return "unknown status";
}

void throw_error(Status status, std::string_view what) {
  throw Error(status, fmt::format("{}: {} ({})", what, status_text(status), status_name(status)));
}

}  // namespace brant
