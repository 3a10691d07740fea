#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>

namespace brant {

/// Messages that a sender may be ahead of the receiver. A power of two.
inline constexpr std::uint32_t kWindowMessages = 256;
/// Bytes that a sender may be ahead; one larger message may travel alone.
inline constexpr std::uint64_t kWindowBytes = std::uint64_t{64} << 20;

/// The receiver's account: which messages have landed, and up to where all have. Messages may land out of order.
class LandedPrefix {
 public:
  void landed(std::uint64_t number) noexcept {
    done_.set(number % kWindowMessages);
    while (done_.test(prefix_ % kWindowMessages)) {
      done_.reset(prefix_ % kWindowMessages);
      ++prefix_;
    }
  }
  /// All messages before this number have landed.
  [[nodiscard]] std::uint64_t prefix() const noexcept { return prefix_; }

 private:
  std::bitset<kWindowMessages> done_;
  std::uint64_t prefix_ = 0;
};

/// The sender's account: what is under way and not yet acknowledged.
class SendWindow {
 public:
  [[nodiscard]] bool has_room(std::uint64_t bytes) const noexcept {
    if (next_ - acknowledged_ >= kWindowMessages) return false;
    return next_ == acknowledged_ || bytes_ahead_ + bytes <= kWindowBytes;
  }
  /// Takes the next number.
  std::uint64_t take(std::uint64_t bytes) noexcept {
    sizes_[next_ % kWindowMessages] = bytes;
    bytes_ahead_ += bytes;
    return next_++;
  }
  /// Gives back the number just taken: its message was refused before it left.
  void give_back_last() noexcept { bytes_ahead_ -= sizes_[--next_ % kWindowMessages]; }
  void acknowledge(std::uint64_t prefix) noexcept {
    for (; acknowledged_ < prefix && acknowledged_ < next_; ++acknowledged_) {
      bytes_ahead_ -= sizes_[acknowledged_ % kWindowMessages];
    }
  }
  [[nodiscard]] std::uint64_t acknowledged() const noexcept { return acknowledged_; }
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }

 private:
  std::uint64_t next_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t bytes_ahead_ = 0;
  std::uint64_t sizes_[kWindowMessages] = {};
};

}  // namespace brant
