#pragma once

#include <cstdint>
#include <optional>

#include "ops/mapping/mapping.h"
#include "ops/stream/mailbox.h"
#include "ops/stream/message.h"

namespace brant {

class StreamEnd;

/// How two ends find each other: each tells how to map its mailbox, maps the other's, and says so. They have met when
/// both have. Until then an end whose other end is closed waits for the next opening of that.
class StreamMeeting {
 public:
  explicit StreamMeeting(StreamEnd& end) noexcept : end_(end) {}
  StreamMeeting(const StreamMeeting&) = delete;
  StreamMeeting& operator=(const StreamMeeting&) = delete;

  /// Makes this end's mailbox known to the other. Once.
  Status begin() noexcept;
  /// The other end's mailbox; not once they have met.
  void on_offer(const StreamOffer& offer) noexcept;
  void on_ready(std::uint64_t opening) noexcept;
  /// What the other end opened as this number is closed. True: they had met.
  bool on_closed(std::uint64_t opening) noexcept;
  /// Nothing over there uses this end's mailbox any more.
  void on_released() noexcept { lent_ = false; }
  /// Nothing is told or mapped from now on.
  void give_up() noexcept;
  /// The same, and the other end hears that nothing comes.
  void close() noexcept;
  /// No kernel uses the other end's mailbox any more.
  void let_go() noexcept;

  [[nodiscard]] bool met() const noexcept { return mapped_ != 0 && mapped_ == ready_; }
  /// The other end's opening that is mapped; 0: none.
  [[nodiscard]] std::uint64_t other() const noexcept { return mapped_; }
  [[nodiscard]] StreamMailbox* mailbox() const noexcept { return mailbox_; }
  /// The other end may use this end's mailbox.
  [[nodiscard]] bool lent() const noexcept { return lent_; }

  /// Goes on with what there was no room for.
  void poll() noexcept;
  [[nodiscard]] bool idle() const noexcept { return !untold_ && !offer_; }

 private:
  void tell() noexcept;
  void map() noexcept;
  void drop_offer() noexcept;

  StreamEnd& end_;
  std::optional<port::ExportRecord> untold_;  ///< Of this end's mailbox, until the record has left.
  std::optional<StreamOffer> offer_;          ///< Of the other end, until it is mapped.
  std::uint64_t mapped_ = 0;
  std::uint64_t ready_ = 0;  ///< The other end's opening that has mapped this end.
  StreamMailbox* mailbox_ = nullptr;
  MappingLease lease_;
  bool lent_ = false;
};

}  // namespace brant
