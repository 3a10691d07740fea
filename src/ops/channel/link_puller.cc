#include "ops/channel/link_puller.h"

#include <algorithm>
#include <cstring>

#include "ops/channel/endpoint.h"

namespace brant {
namespace {

/// Some 20 us: copying must not keep the rest of the engine waiting.
constexpr std::size_t kTurnBytes = std::size_t{256} << 10;
constexpr unsigned kPollTurns = 2;

bool copy_some(Transfer& transfer) noexcept {
  const auto from = static_cast<const std::byte*>(transfer.link.bytes.data) + transfer.link.moved;
  const std::size_t bytes = std::min<std::size_t>(transfer.link.bytes.bytes - transfer.link.moved, kTurnBytes);
  // Null: nobody wants it any more, and there was no memory to keep it.
  if (transfer.link.target.data != nullptr) {
    std::memcpy(static_cast<std::byte*>(transfer.link.target.data) + transfer.link.moved, from, bytes);
  }
  transfer.link.moved += bytes;
  return transfer.link.moved == transfer.link.bytes.bytes;
}

}  // namespace

bool LinkPuller::start(Transfer& transfer) noexcept {
  if (copy_some(transfer)) return true;
  pulling_.push_back(transfer);
  engine_.attach(static_cast<Poller&>(*this));
  return false;
}

void LinkPuller::withdraw(Transfer& transfer) noexcept {
  if (pulling_.linked(transfer)) pulling_.remove(transfer);
  if (pulling_.empty()) engine_.detach(static_cast<Poller&>(*this));
}

unsigned LinkPuller::poll() noexcept {
  unsigned turns = 0;
  for (; turns < kPollTurns && !pulling_.empty(); ++turns) {
    Transfer& transfer = *pulling_.front();
    pulling_.remove(transfer);
    if (copy_some(transfer)) {
      transfer.endpoint.pulled(transfer);
    } else {
      pulling_.push_back(transfer);
    }
  }
  if (pulling_.empty()) engine_.detach(static_cast<Poller&>(*this));
  return turns;
}

}  // namespace brant
