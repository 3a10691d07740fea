#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "core/lease.h"
#include "core/socket_address.h"

namespace brant {

/// Notices that processes of other hosts were lost: a UDP socket, and a thread that asks those that are watched and
/// answers those that ask, also while the worker computes (docs/decisions/0025). Exists only where a job spans hosts.
///
/// The worker's thread makes all calls.
class LeaseThread {
 public:
  /// Opens the socket; the thread comes with `start`. Null, with a warning, where no interface has an address: then
  /// what is lost is noticed as far as the network notices it. Throws io_error if the socket cannot be opened.
  static std::unique_ptr<LeaseThread> open(std::chrono::nanoseconds patience);
  LeaseThread(std::chrono::nanoseconds patience, const SocketAddress& own);
  ~LeaseThread();
  LeaseThread(const LeaseThread&) = delete;
  LeaseThread& operator=(const LeaseThread&) = delete;

  /// Where others ask this process.
  [[nodiscard]] const SocketAddress& address() const noexcept { return address_; }

  /// `addresses` by rank: nothing for those that cannot be watched. `probed`, if any, is asked from now on, until
  /// somebody has answered, whether datagrams get through at all. Throws io_error if there can be no thread.
  void start(int self, const Lease::Key& key, std::vector<std::optional<SocketAddress>> addresses,
             std::optional<int> probed);

  /// Has no effect on a rank without an address. May be repeated.
  void watch(int rank);
  /// It was found lost by other means, and will be told so.
  void give_up(int rank);

  /// Those that were lost since the last call. Costs one load when there are none.
  std::vector<Lease::Verdict> poll();
  /// Readable while there are such.
  [[nodiscard]] int event_fd() const noexcept { return verdict_alarm_.get(); }

  /// Datagrams that were none of this job's, or were heard before.
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  struct Order {
    int rank;
    bool watch;  ///< Or give up.
  };

  void order(Order order);
  void run() noexcept;
  void take_orders(Lease& lease);
  void rest_until(TimePoint when) noexcept;
  void hear_all(Lease& lease) noexcept;
  void take_refusals(Lease& lease) noexcept;
  void send(const Lease::Outgoing& outgoing) noexcept;
  void publish(Lease& lease);
  void complain_once(const Lease& lease) noexcept;

  const std::chrono::nanoseconds patience_;
  UniqueFd socket_;
  UniqueFd order_alarm_;    ///< Wakes the thread.
  UniqueFd verdict_alarm_;  ///< Wakes the worker.
  SocketAddress address_;
  std::vector<std::optional<SocketAddress>> peers_;
  std::optional<Lease> lease_;  ///< The thread's, once it runs.
  bool complained_ = false;

  std::mutex mutex_;  ///< Of the two lists that follow.
  std::vector<Order> orders_;
  std::vector<Lease::Verdict> verdicts_;
  std::atomic<bool> verdicts_wait_{false};
  std::atomic<bool> ending_{false};
  std::atomic<std::uint64_t> dropped_{0};
  std::thread thread_;
};

}  // namespace brant
