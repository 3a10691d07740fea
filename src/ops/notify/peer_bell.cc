#include <atomic>

#include <fmt/format.h>

#include "brant/core/runtime.h"
#include "brant/notify/bell.h"
#include "ops/mapping/opening.h"
#include "ops/notify/armed_lines.h"
#include "ops/notify/table.h"
#include "ops/notify/ticket.h"

namespace brant {
namespace {

MappedMemory map(NotifyTable& table, Peer& peer, const TicketOfBell& content) {
  Engine& engine = table.engine();
  Imports& imports = table.mappings().with(peer).imports;
  const auto what = fmt::format("bell {} of rank {} cannot be mapped", content.number, peer.rank.value);
  // One in device memory may be rung in parts.
  const std::size_t words = host_accessible(content.record.kind) ? 1 : notify::kBellParts;
  MappedMemory mapped =
      open_or_wait(engine, imports, content.record, words * sizeof(std::uint64_t), content.address, what);
  if (!mapped.lease.reach_by_device()) {
    throw Error(Status::not_supported, what + ": the device of this process does not reach it");
  }
  return mapped;
}

}  // namespace

struct OpenPeerBell {
  OpenPeerBell(NotifyTable& table_in, Peer& peer_in, const TicketOfBell& content)
      : table(table_in),
        peer(peer_in),
        number(content.number),
        in_host(host_accessible(content.record.kind)),
        memory(map(table_in, peer_in, content)) {}

  [[nodiscard]] std::uint64_t* word() const noexcept { return reinterpret_cast<std::uint64_t*>(memory.address); }

  NotifyTable& table;
  Peer& peer;
  const std::uint32_t number;
  const bool in_host;
  MappedMemory memory;
};

PeerBell::PeerBell() noexcept = default;
PeerBell::PeerBell(PeerBell&&) noexcept = default;
PeerBell& PeerBell::operator=(PeerBell&&) noexcept = default;
PeerBell::~PeerBell() = default;

PeerBell::PeerBell(Runtime& runtime, Rank owner, const BellTicket& ticket) {
  Engine& engine = runtime.worker().engine();
  const TicketOfBell content = unpack_ticket(ticket);
  Peer& peer = engine.peers().connect(owner);
  if (content.rank != peer.rank_in_its_job || content.pid != peer.record.pid || peer.same_process) {
    throw Error(Status::invalid_argument,
                fmt::format("the ticket is of rank {} (pid {}), and was taken for one of rank {} (pid {}): pass the "
                            "rank that made the bell, which is another process",
                            content.rank, content.pid, peer.rank_in_its_job, peer.record.pid));
  }
  if (!peer.same_host) {
    throw Error(Status::not_supported,
                fmt::format("bell {} of rank {} is on another host: send a message there, and let its receiver ring",
                            content.number, owner.value));
  }
  open_ = std::make_unique<OpenPeerBell>(engine.service<NotifyTable>(), peer, content);
}

notify::DeviceBell PeerBell::device() const noexcept {
  return open_ == nullptr ? notify::DeviceBell{} : notify::DeviceBell{open_->word(), open_->number};
}

Status PeerBell::ring(std::uint64_t epoch) noexcept {
  if (open_ == nullptr) return Status::invalid_argument;
  if (open_->peer.lost) return Status::peer_lost;
  if (!open_->in_host) return Status::not_supported;
  // Of several that ring it, or of copies that end in another order than they were posted, the last may not be the
  // furthest: who waits for that would miss it.
  std::atomic_ref word(*open_->word());
  std::uint64_t seen = word.load(std::memory_order_relaxed);
  while (!ArmedLines::reached(seen, epoch) && !word.compare_exchange_weak(seen, epoch, std::memory_order_release)) {
  }
  return Status::ok;
}

Status PeerBell::enqueue_ring(StreamHandle stream, std::uint64_t epoch) noexcept {
  if (open_ == nullptr || stream == nullptr) return Status::invalid_argument;
  if (open_->peer.lost) return Status::peer_lost;
  port::Device& device = open_->table.engine().device();
  if (!device.capabilities().stream_words) return Status::not_supported;
  return device.streams()->write_value(open_->word(), epoch, stream);
}

}  // namespace brant
