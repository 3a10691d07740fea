#pragma once

#include <chrono>

#include "core/engine.h"
#include "ops/channel/transfer.h"

namespace brant {

/// Sends to one peer that wait for word of their receives before they ask for it. A receiver that tells of its receives
/// by itself mostly does so soon, and a question would cost both ends a record.
class LinkQuestions final : private Poller {
 public:
  /// So long nothing is heard: some times what a record takes, and little beside what a late receive costs anyway.
  static constexpr auto kPatience = std::chrono::microseconds(3);
  /// So long a send waits in any case: what is heard may be of other channels.
  static constexpr auto kPatienceMost = std::chrono::microseconds(100);

  explicit LinkQuestions(Engine& engine) noexcept : engine_(engine) {}
  LinkQuestions(const LinkQuestions&) = delete;
  LinkQuestions& operator=(const LinkQuestions&) = delete;
  ~LinkQuestions() { engine_.pollers().detach(*this); }

  /// `LinkSender::ask_late` follows, unless the send is forgotten before.
  void put_off(Transfer& transfer) noexcept;
  /// The peer told of a receive.
  void heard() noexcept { heard_ = true; }
  /// Nothing happens if it does not wait. Not after it was asked for.
  void forget(Transfer& transfer) noexcept;

 private:
  unsigned poll() noexcept override;

  Engine& engine_;
  IntrusiveList<Transfer, &Transfer::watch_hook> waiting_;  ///< Oldest first.
  bool heard_ = false;                                      ///< Since the last poll.
  TimePoint heard_at_{};
};

}  // namespace brant
