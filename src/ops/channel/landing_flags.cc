#include "ops/channel/landing_flags.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "base/log.h"
#include "ops/channel/endpoint.h"

namespace brant {

LandingFlags::~LandingFlags() {
  engine_.detach(static_cast<Poller&>(*this));
  if (there_ == There::reached) {
    static_cast<void>(engine_.device().streams()->unregister_host(peer_.link->flags_there().data()));
  }
}

void LandingFlags::watch(Transfer& transfer) noexcept {
  if (watched_count_ == kWatched) return;
  const std::span<std::uint64_t> flags = peer_.link->flags_here();
  if (!free_.empty()) {
    transfer.link.flag = free_.back();
    free_.pop_back();
  } else if (made_ < flags.size()) {
    transfer.link.flag = ++made_;
  } else {
    return;
  }
  std::atomic_ref<std::uint64_t>(flags[transfer.link.flag - 1u]).store(0, std::memory_order_relaxed);
  watched_.push_back(transfer);
  ++watched_count_;
  engine_.attach(static_cast<Poller&>(*this));
}

void LandingFlags::unwatch(Transfer& transfer) noexcept {
  if (!decltype(watched_)::linked(transfer)) return;
  watched_.remove(transfer);
  if (--watched_count_ == 0) engine_.detach(static_cast<Poller&>(*this));
}

void LandingFlags::give_back(std::uint16_t flag) noexcept {
  if (flag == kNone) return;
  try {
    free_.push_back(flag);
  } catch (const std::bad_alloc&) {  // one less
  }
}

unsigned LandingFlags::poll() noexcept {
  const std::span<std::uint64_t> flags = peer_.link->flags_here();
  unsigned landed = 0, looks = 0;
  for (Transfer* transfer = watched_.front(); transfer != nullptr && looks < kLooks; ++looks) {
    Transfer* following = decltype(watched_)::next(*transfer);
    const std::uint64_t word =
        std::atomic_ref<std::uint64_t>(flags[transfer->link.flag - 1u]).load(std::memory_order_acquire);
    if (word != 0) {
      unwatch(*transfer);
      transfer->endpoint.landed_early(*transfer, Word::bytes(word), Word::acknowledged(word));
      ++landed;
      looks = 0;
    }
    transfer = following;
  }
  return landed;
}

std::uint64_t* LandingFlags::there(std::uint16_t flag) noexcept {
  if (flag == kNone) return nullptr;
  const std::span<std::uint64_t> flags = peer_.link->flags_there();
  if (there_ == There::unknown) {
    port::Streams* streams = engine_.device().streams();
    const Status status =
        streams == nullptr ? Status::not_supported : streams->register_host(flags.data(), flags.size_bytes());
    there_ = status == Status::ok ? There::reached : There::out_of_reach;
    if (status != Status::ok) {
      log::info("the device does not reach the flags of rank {} ({}): word of its messages goes by the CPU",
                peer_.rank.value, status_text(status));
    }
  }
  return there_ == There::reached && flag <= flags.size() ? &flags[flag - 1u] : nullptr;
}

}  // namespace brant
