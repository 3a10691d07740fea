#include "models/mpi/early_data.h"

#include <algorithm>
#include <utility>

namespace brant::mpi {

bool EarlyData::take_credit(Rank to, std::size_t bytes) noexcept {
  EarlyCredit& in_use = in_use_[to];
  if (in_use.messages == kCredit.messages || in_use.bytes + bytes > kCredit.bytes) return false;
  ++in_use.messages;
  in_use.bytes += bytes;
  return true;
}

void EarlyData::give_back(Rank to, const EarlyCredit& credit) noexcept {
  EarlyCredit& in_use = in_use_[to];
  in_use.messages -= std::min(in_use.messages, credit.messages);
  in_use.bytes -= std::min(in_use.bytes, credit.bytes);
}

bool EarlyData::count_taken(Rank from, std::uint64_t bytes) noexcept {
  EarlyCredit& taken = taken_[from];
  ++taken.messages;
  taken.bytes += bytes;
  return taken.messages >= kTold.messages || taken.bytes >= kTold.bytes;
}

EarlyCredit EarlyData::take_out_taken(Rank from) noexcept { return std::exchange(taken_[from], {}); }

namespace {

/// Its message, or the transport, may be gone by then: only the part is touched.
void note_arrival(lane::DataPart& part, Status status) noexcept {
  part.status = status;
  part.under_way = false;
}

}  // namespace

Status EarlyData::fetch(am::Message& message, const Consignment& consignment) noexcept {
  message.scratch[0] = 0;
  const auto bytes = static_cast<std::size_t>(consignment.bytes);
  lane::LandingPool& landings = lanes_.landings();
  const Result<lane::LandingBlock*> block = landings.take(landings.landing_kind(consignment.kind, false), bytes);
  if (!block) return block.status();
  lane::DataPart* part = lanes_.take_part();
  if (part == nullptr) {
    lane::LandingPool::drop(**block);
    return lanes_.part_refusal();
  }
  part->block = *block;
  part->landing = part->block->view(bytes);
  part->ended = &note_arrival;
  part->under_way = true;
  const Status status = lanes_.receive(*part, message.peer, consignment.number);
  if (status != Status::in_progress) note_arrival(*part, status);
  message.scratch[0] = reinterpret_cast<std::uintptr_t>(part);
  return Status::ok;
}

lane::DataOrigin* EarlyData::as_source(lane::DataPart& part) noexcept {
  lane::DataOrigin* origin = lanes_.take_origin();
  if (origin != nullptr) {
    origin->buffer = part.landing;
    origin->block = std::exchange(part.block, nullptr);
  }
  lanes_.give_back(part);
  return origin;
}

}  // namespace brant::mpi
