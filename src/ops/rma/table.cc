#include "ops/rma/table.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/log.h"

namespace brant {

std::shared_ptr<ExposedSegment> RmaTable::expose(Buffer memory) {
  if (memory.data == nullptr || memory.bytes == 0) {
    throw Error(Status::invalid_argument, fmt::format("{} bytes at {} cannot be exposed: a segment has a byte at least",
                                                      memory.bytes, memory.data));
  }
  if (const Status status = engine_.memory_kinds().resolve(memory.data, memory.bytes, memory.kind);
      status != Status::ok) {
    throw Error(status, fmt::format("{} bytes at {} cannot be exposed as {} memory: {}", memory.bytes, memory.data,
                                    memory_kind_name(memory.kind), status_text(status)));
  }
  auto segment = std::make_shared<ExposedSegment>(engine_, memory);
  segment->id = ++last_id_;
  exposed_.emplace(segment->id, segment);
  try {
    fill_ticket(*segment);
  } catch (...) {
    close(*segment);
    throw;
  }
  return segment;
}

void RmaTable::fill_ticket(ExposedSegment& segment) {
  TicketContent content;
  content.rank = engine_.job().rank;
  content.pid = engine_.peers().connect(Rank{content.rank}).record.pid;
  content.id = segment.id;
  content.address = reinterpret_cast<std::uintptr_t>(segment.memory.data);
  content.bytes = segment.memory.bytes;
  content.kind = segment.memory.kind;
  // Others may have mapped what lay there before.
  if (const auto info = engine_.device().query(segment.memory.data)) mappings_->make_way(*info);
  const Result<port::ExportRecord> exports = Exports::record_of(engine_.device(), segment.memory.data);
  content.exported = exports.ok() && content.bytes <= exports->bytes - exports->offset;
  if (content.exported) content.exports = *exports;
  if (exports.ok() && !content.exported) {
    log::info(
        "a segment of {} bytes lies in several allocations of the driver (mapped side by side, as PyTorch's "
        "expandable_segments are), and others map one of them: it is reached over the network",
        content.bytes);
  }
  port::RemoteMemory* network = engine_.wire().remote_memory();
  std::vector<std::byte> key;
  if (network != nullptr && engine_.wire().capabilities().takes(segment.memory.kind)) {
    const Result<port::WireSegment*> registered = network->register_memory(segment.memory);
    if (registered) {
      segment.registered = *registered;
      const Result<std::vector<std::byte>> packed = network->pack_key(*registered);
      if (packed) key = packed.value();
    }
  }
  content.key = key;
  if (key.empty() && !content.exported) {
    log::info("a segment of {} bytes of {} memory: only this process reaches it", content.bytes,
              memory_kind_name(content.kind));
  }
  segment.ticket = pack_ticket(content);
}

void RmaTable::close(ExposedSegment& segment) noexcept {
  if (!segment.open) return;
  segment.open = false;
  if (segment.registered != nullptr) engine_.wire().remote_memory()->release_segment(segment.registered);
  exposed_.erase(segment.id);
}

std::shared_ptr<ExposedSegment> RmaTable::find(std::uint64_t id) const noexcept {
  const auto found = exposed_.find(id);
  return found == exposed_.end() ? nullptr : found->second;
}

RmaTarget& RmaTable::open(Rank rank, const SegmentTicket& ticket) {
  targets_.reserve(targets_.size() + 1);
  auto target = std::make_unique<RmaTarget>(*this, rank, unpack_ticket(ticket));
  mover_.prepare(target->peer());
  targets_.push_back(std::move(target));
  return *targets_.back();
}

bool RmaTable::forget(Peer& peer) noexcept {
  return std::ranges::none_of(targets_, [&](const auto& target) { return &target->peer() == &peer; });
}

void RmaTable::drop(RmaTarget& target) noexcept {
  const auto found =
      std::find_if(targets_.begin(), targets_.end(), [&](const auto& each) { return each.get() == &target; });
  std::swap(*found, targets_.back());
  targets_.pop_back();
}

}  // namespace brant
