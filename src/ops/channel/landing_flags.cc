#include "ops/channel/landing_flags.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "ops/channel/endpoint.h"

namespace brant {

std::uint64_t LandingFlags::read(std::uint16_t flag, std::memory_order order) const noexcept {
  return std::atomic_ref<std::uint64_t>(here_[flag - 1u]).load(order);
}

std::uint16_t LandingFlags::take() noexcept {
  if (free_count_ == 0) {
    std::erase_if(forsaken_, [this](std::uint16_t flag) {
      const bool set = read(flag, std::memory_order_acquire) != 0;
      if (set) free(flag);
      return set;
    });
  }
  if (free_count_ == 0) return made_ < here_.size() ? ++made_ : kNone;
  const std::uint16_t flag = free_[free_first_];
  free_first_ = (free_first_ + 1) % free_.size();
  --free_count_;
  return flag;
}

void LandingFlags::free(std::uint16_t flag) noexcept {
  free_[(free_first_ + free_count_++) % free_.size()] = flag;  // there is room for all of them
}

void LandingFlags::watch(Transfer& transfer) noexcept {
  if (watched_count_ == tuned::kAnnouncedMax) return;
  transfer.flag = take();
  if (transfer.flag == kNone) return;
  std::atomic_ref<std::uint64_t>(here_[transfer.flag - 1u]).store(0, std::memory_order_relaxed);
  watched_.push_back(transfer);
  ++watched_count_;
  engine_.pollers().attach(*this);
}

void LandingFlags::unwatch(Transfer& transfer) noexcept {
  watched_.remove(transfer);
  transfer.flag = kNone;
  if (--watched_count_ == 0) engine_.pollers().detach(*this);
}

void LandingFlags::let_go(Transfer& transfer) noexcept {
  if (transfer.flag == kNone) return;
  free(transfer.flag);
  unwatch(transfer);
}

void LandingFlags::forsake(Transfer& transfer) noexcept {
  if (transfer.flag == kNone) return;
  try {
    forsaken_.push_back(transfer.flag);
  } catch (const std::bad_alloc&) {  // one less
  }
  unwatch(transfer);
}

void LandingFlags::give_back(std::uint16_t flag) noexcept {
  if (std::erase(forsaken_, flag) != 0) free(flag);
}

unsigned LandingFlags::poll() noexcept {
  unsigned landed = 0, looks = 0;
  for (Transfer* transfer = watched_.front(); transfer != nullptr && looks < tuned::kLooks; ++looks) {
    Transfer* following = decltype(watched_)::next(*transfer);
    const std::uint64_t word = read(transfer->flag, std::memory_order_acquire);
    if (word != 0) {
      let_go(*transfer);
      transfer->endpoint.link_receiver()->on_landed_early(*transfer, Word::bytes(word), Word::acknowledged(word));
      ++landed;
      looks = 0;
    }
    transfer = following;
  }
  return landed;
}

/// Behind the alarm that a sender looks at after its flag was set: one of the two sees the other.
bool LandingFlags::lets_sleep() const noexcept {
  const Transfer* transfer = watched_.front();
  while (transfer != nullptr && read(transfer->flag, std::memory_order_seq_cst) == 0)
    transfer = decltype(watched_)::next(*transfer);
  return transfer == nullptr;
}

std::uint64_t* LandingFlags::there(std::uint16_t flag) noexcept {
  if (flag == kNone) return nullptr;
  const std::span<std::uint64_t> words = there_.words();
  return flag <= words.size() ? &words[flag - 1u] : nullptr;
}

}  // namespace brant
