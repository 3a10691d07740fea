#pragma once

#include <array>
#include <bitset>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

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
    landed_bytes_ += bytes;
    if (number == prefix_ && ahead_ == 0) {
      ++prefix_;
      return;
    }
    ++ahead_;
    ahead_bytes_ += bytes;
    done_.set(number % kWindowMessages);
    while (done_.test(prefix_ % kWindowMessages)) {
      done_.reset(prefix_ % kWindowMessages);
      --ahead_;
      ++prefix_;
    }
    if (ahead_ == 0) ahead_bytes_ = 0;
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
    return prefix_ - told_ >= kTellEveryMessages ||
           (prefix_ != told_ && landed_bytes_ - told_bytes_ >= kTellEveryBytes);
  }
  /// The sender is told of the prefix.
  void tell() noexcept {
    told_ = prefix_;
    told_bytes_ = landed_bytes_ - ahead_bytes_;
  }

 private:
  std::bitset<kWindowMessages> done_;
  std::uint64_t prefix_;
  std::uint64_t told_;
  std::uint32_t ahead_ = 0;         ///< Messages in `done_`.
  std::uint64_t landed_bytes_ = 0;  ///< Of all messages that have landed.
  /// At least those of the messages in `done_`; exact again once there is no gap. Too many only make the receiver tell
  /// sooner, and no size of each message has to be kept.
  std::uint64_t ahead_bytes_ = 0;
  std::uint64_t told_bytes_ = 0;  ///< At most those of the messages before `told_`.
};

/// The sizes of the messages of a window that moves on, by number. The first few take no memory of their own; for more
/// it grows to as many as were ever under way at a time.
class MessageSizes {
 public:
  /// There is a place for one more behind `count` of them, which begin at `first`. False: no memory.
  [[nodiscard]] bool fits(std::uint64_t first, std::uint64_t count) noexcept {
    return count < capacity_ || grow(first, count);
  }
  [[nodiscard]] std::uint64_t& at(std::uint64_t number) noexcept { return sizes()[number & (capacity_ - 1)]; }

 private:
  static constexpr std::uint32_t kFirst = 8;

  [[nodiscard]] std::uint64_t* sizes() noexcept { return grown_ ? grown_.get() : few_.data(); }
  bool grow(std::uint64_t first, std::uint64_t count) noexcept {
    const std::uint32_t capacity = 2 * capacity_;
    std::unique_ptr<std::uint64_t[]> grown(new (std::nothrow) std::uint64_t[capacity]);
    if (grown == nullptr) return false;
    for (std::uint64_t number = first; number != first + count; ++number) grown[number & (capacity - 1)] = at(number);
    grown_ = std::move(grown);
    capacity_ = capacity;
    return true;
  }

  std::array<std::uint64_t, kFirst> few_{};
  std::unique_ptr<std::uint64_t[]> grown_;
  std::uint32_t capacity_ = kFirst;  ///< A power of two.
};

/// The sender's account: what is under way and not yet acknowledged.
class SendWindow {
 public:
  /// All messages before `first` were sent and acknowledged.
  explicit SendWindow(std::uint64_t first = 0) noexcept : next_(first), acknowledged_(first) {}
  /// Also false while memory is exhausted and others are under way.
  [[nodiscard]] bool has_room(std::uint64_t bytes) noexcept {
    if (next_ - acknowledged_ >= kWindowMessages || !sizes_.fits(acknowledged_, next_ - acknowledged_)) return false;
    // What the receiver may keep to itself must never hold a large message back: nobody would end the wait.
    return bytes_ahead_ < kTellEveryBytes || bytes_ahead_ + bytes <= kWindowBytes;
  }
  /// Takes the next number, if there is room.
  std::uint64_t take(std::uint64_t bytes) noexcept {
    sizes_.at(next_) = bytes;
    bytes_ahead_ += bytes;
    return next_++;
  }
  /// Gives back the number just taken: its message was refused before it left.
  void give_back_last() noexcept { bytes_ahead_ -= sizes_.at(--next_); }
  void acknowledge(std::uint64_t prefix) noexcept {
    for (; acknowledged_ < prefix && acknowledged_ < next_; ++acknowledged_) bytes_ahead_ -= sizes_.at(acknowledged_);
  }
  [[nodiscard]] std::uint64_t acknowledged() const noexcept { return acknowledged_; }
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }

 private:
  std::uint64_t next_;
  std::uint64_t acknowledged_;
  std::uint64_t bytes_ahead_ = 0;
  MessageSizes sizes_;
};

}  // namespace brant
