#pragma once

#include <cstdint>

#include <ucp/api/ucp.h>

#include "port/wire/ucx/ucx_requests.h"

namespace brant::port::ucx {

class UcxEndpoints;

/// What a WireEndpoint of this adapter is. Lives until the wire closes, so that misuse after `disconnect` is an error
/// and not a crash.
struct UcxEndpoint {
  ucp_ep_h handle = nullptr;
  UcxEndpoints* table = nullptr;
  std::uint64_t owner = 0;  ///< Names the peer's wire; keys carry the same number.
  bool to_self = false;
  bool peer_errors = false;  ///< Made in UCX's error mode PEER.
  bool reaches = false;      ///< One of its transports reads and writes the peer's memory by itself.
  bool failed = false;       ///< UCX reported the peer lost.
  bool failure_told = false;
  bool closed = false;
  bool kept = false;            ///< Closed for its user alone: who connects to the same wire again gets it.
  bool sends_given_up = false;  ///< Some that UCX still has: a flush might wait for them for ever.
  std::uint64_t sequence = 0;   ///< Of the last atomic operation or flush.
  UcxRequestList pending;
  // See UcxPieces.
  IntrusiveList<UcxRequest, &UcxRequest::ask_hook> to_ask;  ///< Who asks for the next piece, by turns.
  unsigned pieces_under_way = 0;
  bool asks = false;  ///< The next ones are being asked for.
};

}  // namespace brant::port::ucx
