#include "ops/channel/paths.h"

#include "base/log.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/table.h"

namespace brant {

namespace {

/// Within one process whoever moves the bytes reaches both ends, as with a put; nothing leaves it.
void reach_both_ends(PathQuery& query) noexcept {
  const bool on_host = host_accessible(query.kind);
  query.one_sided = true;
  query.mapped_source = query.wire_takes_kind = false;
  query.shm_open = on_host;
  query.peer_maps = !on_host;
  if (on_host && query.forced == Path::staged) query.forced = Path::automatic;  // there is nothing to stage
}

}  // namespace

Status ChannelPaths::choose(MemoryKind kind, std::size_t bytes, Path& path, bool mapped) noexcept {
  const Peer& peer = end_.peer();
  PathQuery query;
  query.kind = kind;
  query.bytes = bytes;
  query.locality = peer.same_process ? Locality::same_process
                   : peer.same_host  ? Locality::same_host
                                     : Locality::other_host;
  query.shm_open = end_.linked();
  query.mapped_source = mapped;
  query.peer_maps = end_.linked() && kind == end_.mutual_kind();
  query.wire_takes_kind = end_.engine().wire().capabilities().takes(kind);
  query.forced = forced_;
  if (end_.matched_here()) reach_both_ends(query);
  if (query.peer_maps) query.courier_bytes = end_.table().mover().courier_bytes();
  if (query != last_query_ || last_choice_.path == Path::automatic) {
    last_choice_ = choose_path(query, end_.engine().path_order());
    last_query_ = query;
  }
  const PathChoice& choice = last_choice_;
  path = choice.path;
  if (choice.status != Status::ok) {
    log::error(
        "channel {} to rank {}: path {} cannot carry {} bytes of {} memory: {}. Use BRANT_PATH=auto or another path",
        end_.id().value, peer.rank.value, path_name(choice.path), bytes, memory_kind_name(kind), choice.reason);
  }
  return choice.status;
}

Status ChannelPaths::of(ConstBuffer source, Path& path) noexcept {
  const Status known = end_.engine().memory_kinds().resolve(source.data, source.bytes, source.kind);
  if (known != Status::ok) return known;
  const bool mapped = end_.linked() && host_accessible(source.kind) && end_.link_sender()->can_offer(source);
  return choose(source.kind, source.bytes, path, mapped);
}

}  // namespace brant
