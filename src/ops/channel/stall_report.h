#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/engine.h"
#include "ops/channel/traffic.h"

namespace brant {

class ChannelTable;

/// A wait in which nothing happens: says what this process waits for, and finds out whether two ends wait for each
/// other.
class StallReport {
 public:
  explicit StallReport(ChannelTable& table);

  /// False: this process waits for nothing that is of channels. See Service::stalled.
  bool tell(std::chrono::nanoseconds idle, bool for_ever) noexcept;

 private:
  struct Account : port::WireOp {
    bool under_way = false;
  };

  static void on_account(void* self, port::AmMessage& message) noexcept;
  [[nodiscard]] bool waits_only_for(const Peer& peer) const;
  [[nodiscard]] std::vector<ChannelEnd> ends_with(const Peer& peer) const;
  void send_account(Peer& peer, bool is_answer);
  void judge(Peer& peer, std::vector<ChannelEnd> theirs);
  [[nodiscard]] std::string unopened_text(const std::vector<ChannelWait>& waits) const;

  ChannelTable& table_;
  Engine& engine_;
  Account account_;
  bool deadlock_told_ = false;
};

}  // namespace brant
