#pragma once

#include <bitset>
#include <cassert>
#include <cstddef>
#include <cstdint>

namespace brant {

/// Messages that a sender may be ahead of the receiver. A power of two.
inline constexpr std::uint32_t kWindowMessages = 256;
/// Bytes that a sender may be ahead; a larger message travels with little ahead of it.
inline constexpr std::uint64_t kWindowBytes = std::uint64_t{64} << 20;

/// An acknowledgement is a message of its own, so it goes out a few times per window only: fewer messages and fewer
/// bytes than these may have landed without the sender's knowing.
inline constexpr std::uint64_t kTellEveryMessages = kWindowMessages / 4;
inline constexpr std::uint64_t kTellEveryBytes = kWindowBytes / 8;

/// The receiver's account: which messages have landed, up to where all have, and what the sender was told. Messages may
/// land out of order: what lies behind a gap counts only once the gap is closed.
class LandedPrefix {
 public:
  /// All messages before `first` have landed, and the sender knows.
  explicit LandedPrefix(std::uint64_t first = 0) noexcept : prefix_(first), told_(first) {}
  /// Once for each.
  void landed(std::uint64_t number, std::uint64_t bytes) noexcept {
    assert(!has(number) && "a message lands once");
    if (number == prefix_ && ahead_ == 0) {
      untold_bytes_ += bytes;
      ++prefix_;
      return;
    }
    ++ahead_;
    done_.set(number % kWindowMessages);
    sizes_[number % kWindowMessages] = bytes;
    while (done_.test(prefix_ % kWindowMessages)) {
      done_.reset(prefix_ % kWindowMessages);
      --ahead_;
      untold_bytes_ += sizes_[prefix_ % kWindowMessages];
      ++prefix_;
    }
  }
  [[nodiscard]] bool has(std::uint64_t number) const noexcept {
    return number < prefix_ || (number - prefix_ < kWindowMessages && done_.test(number % kWindowMessages));
  }
  /// All messages before this number have landed.
  [[nodiscard]] std::uint64_t prefix() const noexcept { return prefix_; }
  [[nodiscard]] std::uint64_t told() const noexcept { return told_; }
  /// Messages have landed behind one that has not.
  [[nodiscard]] bool has_gaps() const noexcept { return ahead_ != 0; }
  [[nodiscard]] bool should_tell() const noexcept {
    return prefix_ - told_ >= kTellEveryMessages || untold_bytes_ >= kTellEveryBytes;
  }
  /// The sender is told of the prefix.
  void tell() noexcept {
    told_ = prefix_;
    untold_bytes_ = 0;
  }

 private:
  std::bitset<kWindowMessages> done_;
  std::uint64_t sizes_[kWindowMessages] = {};
  std::uint64_t prefix_;
  std::uint64_t told_;
  std::uint32_t ahead_ = 0;  ///< Messages in `done_`.
  std::uint64_t untold_bytes_ = 0;
};

/// The sender's account: what is under way and not yet acknowledged.
class SendWindow {
 public:
  /// All messages before `first` were sent and acknowledged.
  explicit SendWindow(std::uint64_t first = 0) noexcept : next_(first), acknowledged_(first) {}
  [[nodiscard]] bool has_room(std::uint64_t bytes) const noexcept {
    if (next_ - acknowledged_ >= kWindowMessages) return false;
    // What the receiver may keep to itself must never hold a large message back: nobody would end the wait.
    return bytes_ahead_ < kTellEveryBytes || bytes_ahead_ + bytes <= kWindowBytes;
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
  std::uint64_t next_;
  std::uint64_t acknowledged_;
  std::uint64_t bytes_ahead_ = 0;
  std::uint64_t sizes_[kWindowMessages] = {};
};

}  // namespace brant
