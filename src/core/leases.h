#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/lease.h"
#include "core/lease_thread.h"
#include "port/boot.h"

namespace brant {

class Peers;

/// How the processes of other hosts are watched (docs/decisions/0025). In a job of one host, or where it is switched
/// off, nobody is, and nothing is heard.
class Leases {
 public:
  /// `patience`: how long a process may be silent; 0: for ever. Throws io_error.
  Leases(port::Boot& boot, bool other_hosts, std::chrono::milliseconds patience);
  Leases(const Leases&) = delete;
  Leases& operator=(const Leases&) = delete;

  /// Some process may be watched: only then may the next three be called.
  [[nodiscard]] bool held() const noexcept { return thread_ != nullptr; }
  /// Where this process answers others.
  [[nodiscard]] std::vector<std::byte> address() const { return thread_->address().bytes(); }
  /// Readable while there are verdicts.
  [[nodiscard]] int event_fd() const noexcept { return thread_->event_fd(); }

  /// Begins to answer those of other hosts. Throws.
  void start(const Peers& peers);
  void watch(int rank) {
    if (held()) thread_->watch(rank);
  }
  /// It was found lost by other means, and will be told so.
  void give_up(int rank) {
    if (held()) thread_->give_up(rank);
  }
  /// Who was lost since the last call.
  std::vector<Lease::Verdict> poll() { return held() ? thread_->poll() : std::vector<Lease::Verdict>(); }
  [[nodiscard]] std::string words_of(Lease::Why why) const;
  /// From here on others leave as well.
  void end() noexcept { thread_.reset(); }

 private:
  port::Boot& boot_;
  const std::chrono::milliseconds patience_;
  std::unique_ptr<LeaseThread> thread_;
};

}  // namespace brant
