#pragma once

#include <cstdint>

#include "brant/base/ids.h"
#include "brant/base/intrusive_list.h"
#include "core/peer_record.h"
#include "port/link.h"
#include "port/wire.h"

namespace brant {

/// A record of something under way with a peer. When the peer dies, `lost` is called once, after the record left the
/// list.
class PeerOp {
 public:
  ListHook<PeerOp> peer_hook;
  void (*lost)(PeerOp& self) noexcept = nullptr;
};

/// Another process of the job, this one, or one that has joined.
struct Peer {
  using Outstanding = IntrusiveList<PeerOp, &PeerOp::peer_hook>;

  Rank rank;
  PeerRecord record;
  std::int32_t rank_there = -1;            ///< By which it knows this process: whom messages to it say they are from.
  std::int32_t rank_in_its_job = -1;       ///< `rank`, but of one that has joined.
  bool joined = false;                     ///< After the start: it has no part in what the job does together.
  port::WireEndpoint* endpoint = nullptr;  ///< Null until the first use.
  port::Link* link = nullptr;              ///< From the first use on; null if the two share no memory.
  bool same_host = false;
  bool same_process = false;
  bool lost = false;
  bool suspected = false;
  bool distrusted = false;           ///< It wrote what no process of this job writes, and that was said.
  bool ended = false;                ///< It has said farewell: its program takes and sends nothing new any more.
  std::uint32_t farewell_words = 0;  ///< Then: how many words of its services belong to that.
  Outstanding outstanding;

  void add_outstanding(PeerOp& op) noexcept { outstanding.push_back(op); }
  /// Does nothing if it is not outstanding.
  void remove_outstanding(PeerOp& op) noexcept {
    if (Outstanding::linked(op)) outstanding.remove(op);
  }
};

}  // namespace brant
