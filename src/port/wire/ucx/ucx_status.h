#pragma once

#include <ucs/type/status.h>

#include "brant/base/status.h"

namespace brant::port::ucx {

/// What a UCX status means to brant. UCS_INPROGRESS is in_progress.
constexpr Status status_of(ucs_status_t status) noexcept {
  switch (status) {
    case UCS_OK: return Status::ok;
    case UCS_INPROGRESS: return Status::in_progress;
    case UCS_ERR_MESSAGE_TRUNCATED: return Status::truncated;
    case UCS_ERR_CANCELED: return Status::canceled;
    case UCS_ERR_NO_MEMORY: return Status::no_memory;
    case UCS_ERR_NO_RESOURCE:
    case UCS_ERR_EXCEEDS_LIMIT: return Status::limit_reached;
    case UCS_ERR_INVALID_PARAM:
    case UCS_ERR_INVALID_ADDR:
    case UCS_ERR_BUFFER_TOO_SMALL:
    case UCS_ERR_OUT_OF_RANGE: return Status::invalid_argument;
    case UCS_ERR_UNSUPPORTED:
    case UCS_ERR_NOT_IMPLEMENTED: return Status::not_supported;
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_ENDPOINT_TIMEOUT: return Status::peer_lost;
    case UCS_ERR_REJECTED: return Status::peer_rejected;
    case UCS_ERR_TIMED_OUT: return Status::timed_out;
    case UCS_ERR_IO_ERROR:
    case UCS_ERR_SHMEM_SEGMENT: return Status::io_error;
    case UCS_ERR_NO_ELEM:
    case UCS_ERR_NO_DEVICE: return Status::not_found;
    default: return Status::internal;
  }
}

}  // namespace brant::port::ucx
