#pragma once

#include <cstdint>

#include "brant/base/status.h"
#include "ops/courier/desk.h"
#include "ops/courier/order.h"

namespace brant::courier {

/// The CPU's side of the orders: which are in the ring, which are done, which a courier that left did not take.
///
/// Orders go into the ring only while a kernel runs that has said so. When it leaves, it says which order it did not
/// take; from that one on the orders belong to the CPU again (they are *left over*): taken back by the caller, or
/// written into the ring anew, under new numbers, for the next launch. A launch begins behind all numbers ever used, so
/// it cannot meet what was left over before. One thread.
template <typename Machine>
class OrderBook {
 public:
  /// Orders go into the rings of so many dispatchers.
  OrderBook(Machine& machine, HostDesk& desk, unsigned dispatchers) noexcept
      : machine_(machine), desk_(desk), dispatchers_(dispatchers) {}

  enum class Courier { away, starting, resident };
  [[nodiscard]] Courier courier() const noexcept { return courier_; }
  /// Accepted orders, and how many of them, from the first on, are done or were taken back.
  [[nodiscard]] std::uint64_t posted() const noexcept { return posted_; }
  [[nodiscard]] std::uint64_t done() const noexcept { return done_; }
  [[nodiscard]] unsigned left_over() const noexcept { return left_over_; }
  /// Orders in the ring that are not left over and not known to be done.
  [[nodiscard]] unsigned taken() const noexcept { return static_cast<unsigned>(next_ - oldest_) - left_over_; }

  /// False if the ring is full or no courier is there.
  bool post(const CourierOrder& order) noexcept {
    if (courier_ != Courier::resident || left_over_ != 0) return false;
    if (!put(entry_of(order))) return false;
    ++posted_;
    return true;
  }
  /// The courier leaves when it has taken what was posted before. The last thing ever posted: nobody reports it as
  /// done. False as for `post`.
  bool post_stop() noexcept {
    OrderRing::Entry stop{};
    stop.words[OrderWords::flag] = kStopBit;
    return courier_ == Courier::resident && left_over_ == 0 && put(stop);
  }

  /// A kernel is about to be launched: what it has to know. Only while it is away.
  void launch(Launch& launch) noexcept {
    launch.number = ++launches_ & 0xffff;
    launch.first = next_;
    launch.dispatchers = dispatchers_;
    courier_ = Courier::starting;
  }
  [[nodiscard]] std::uint64_t launches() const noexcept { return launches_; }
  /// The launch failed; nothing runs.
  void launch_failed() noexcept {
    --launches_;
    courier_ = Courier::away;
  }

  /// Looks what the kernel has written: started, done, left. Returns how many orders were done since the last look.
  unsigned look() noexcept {
    const std::uint64_t before = done_;
    if (courier_ == Courier::starting && machine_.load_acquire(&desk_.started) == (launches_ & 0xffff)) begin();
    if (courier_ == Courier::resident) notice_leaving();
    collect();
    return static_cast<unsigned>(done_ - before);
  }

  /// The oldest order left over goes back to the caller and counts as done, and so do all before it, of some of which
  /// that may be news. Which one it is, counted from 1; 0: there is none, or orders before it are not done yet.
  std::uint64_t take_back(CourierOrder& order) noexcept {
    if (left_over_ == 0 || courier_ == Courier::resident) return 0;
    collect();
    if (oldest_ != next_ - left_over_) return 0;
    order = order_of(read(oldest_));
    ++oldest_;
    --left_over_;
    return ++done_;
  }

 private:
  bool put(const OrderRing::Entry& entry) noexcept {
    if (next_ != oldest_) collect();
    if (next_ - oldest_ == OrderRing::kSlots) return false;
    write(entry);
    return true;
  }
  /// So often all rings get every order of a lap: what stands in their slots is never so old that its lap could be
  /// taken for the present one.
  static constexpr std::uint64_t kLapsToRenew = 64;
  static_assert(2 * kLapsToRenew < kLapsTold);

  /// Into all rings, so that it is seen soon. Behind others that are under way into the first one only: then what
  /// counts is how many orders the CPU can write, and how many one look finds.
  void write(OrderRing::Entry entry) noexcept {
    const bool lone = next_ == oldest_;
    entry.words[OrderWords::flag] = (entry.words[OrderWords::flag] & ~kLoneBit) | (lone ? kLoneBit : 0);
    const bool renewed = next_ / OrderRing::kSlots % kLapsToRenew == 0;
    const unsigned rings = lone || renewed ? dispatchers_ : 1;
    for (unsigned i = 0; i < rings; ++i) put_entry(machine_, desk_.orders[i], next_, entry);
    ++next_;
  }
  OrderRing::Entry read(std::uint64_t number) const noexcept {
    OrderRing::Entry entry;
    for (unsigned i = 0; i < OrderRing::kWords; ++i) {
      entry.words[i] = machine_.load_acquire(&desk_.orders[0].words[number % OrderRing::kSlots][i]) & kPayloadMask;
    }
    return entry;
  }

  /// Orders done, in the order they were posted; groups end them in any order.
  void collect() noexcept {
    const std::uint64_t end = next_ - left_over_;
    for (; oldest_ != end && machine_.load_acquire(&desk_.marks[oldest_ % OrderRing::kSlots]) == oldest_; ++oldest_)
      ++done_;
  }

  /// A new kernel runs, so those before it have ended, with everything they had taken.
  void begin() noexcept {
    courier_ = Courier::resident;
    const std::uint64_t from = next_ - left_over_;
    const unsigned count = left_over_;
    done_ += from - oldest_;
    oldest_ = next_;
    left_over_ = 0;
    // Upwards and at most one round further: an entry is read before it can be overwritten.
    for (unsigned i = 0; i < count; ++i) write(read(from + i));
  }

  void notice_leaving() noexcept {
    const std::uint64_t word = machine_.load_acquire(&desk_.left);
    if (word >> 48 != (launches_ & 0xffff)) return;
    constexpr std::uint64_t mask = (std::uint64_t{1} << 48) - 1;
    left_over_ = static_cast<unsigned>((next_ - word) & mask);
    courier_ = Courier::away;
  }

  Machine& machine_;
  HostDesk& desk_;
  const unsigned dispatchers_;
  Courier courier_ = Courier::away;
  std::uint64_t launches_ = 0;
  std::uint64_t next_ = OrderRing::kFirst;    ///< The next order's number in the ring.
  std::uint64_t oldest_ = OrderRing::kFirst;  ///< The oldest number in the ring that is not known to be done.
  unsigned left_over_ = 0;                    ///< The last so many numbers were not taken.
  std::uint64_t posted_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace brant::courier
