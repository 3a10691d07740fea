#include "models/mpi/parting.h"

#include <algorithm>

#include "models/mpi/process.h"

namespace brant::mpi {

namespace {

bool goes_on(const Peer& peer) noexcept {
  return peer.endpoint != nullptr && !peer.same_process && !peer.ended && !peer.lost;
}

}  // namespace

int count_others(Process& process) noexcept {
  return static_cast<int>(std::ranges::count_if(process.engine().peers(), goes_on));
}

void part_from_others(Process& process) noexcept {
  auto all_have_ended = [&]() noexcept {
    process.engine().say_farewell();  // to those that found no room for it before
    return count_others(process) == 0;
  };
  static_cast<void>(process.runtime().worker().wait_until(all_have_ended));
}

}  // namespace brant::mpi
