#include "models/halo/direct_by_host.h"

namespace brant::halo {

DirectByHost::DirectByHost(DirectCopies& plan, Transfers& transfers) : plan_(plan), transfers_(transfers) {
  for (const Neighbour& neighbour : plan.neighbours) {
    receives_.push_back(&transfers.add(neighbour.receives, sizeof word_, false));
    sends_.push_back(&transfers.add(neighbour.sends, sizeof word_, true));
  }
  heard_.resize(plan.neighbours.size());
}

void DirectByHost::swap_words() noexcept {
  for (std::size_t n = 0; n < receives_.size(); ++n) {
    transfers_.post(*receives_[n], Buffer(&heard_[n], sizeof word_, MemoryKind::host));
  }
  for (Transfer* send : sends_) transfers_.post(*send, Buffer(&word_, sizeof word_, MemoryKind::host));
}

Task<void> DirectByHost::exchange(std::uint64_t times) {
  for (std::uint64_t i = 0; i < times; ++i) co_await exchange_once();
}

Task<void> DirectByHost::exchange_once() {
  swap_words();  // the ghosts may be overwritten
  plan_.copies.run_on_cpu(plan_.own, plan_.bases);
  co_await transfers_.ended();
  for (const Phase& phase : plan_.to) plan_.copies.run_on_cpu(phase, plan_.bases);
  swap_words();  // they are written
  co_await transfers_.ended();
}

}  // namespace brant::halo
