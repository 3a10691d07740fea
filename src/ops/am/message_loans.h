#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/mapped_file.h"
#include "brant/base/status.h"
#include "core/engine.h"
#include "ops/am/loans.h"
#include "ops/am/message.h"
#include "ops/am/message_pool.h"
#include "ops/am/messenger_link.h"

namespace brant::am {

/// Large messages between processes of one host (see Loans): what this process lends, and what it was lent.
class MessageLoans {
 public:
  /// `lent_max`: messages that may be lent to one peer at a time.
  MessageLoans(Engine& engine, MessagePool& pool, std::size_t lent_max) noexcept
      : engine_(engine), pool_(pool), lent_max_(lent_max) {}
  MessageLoans(const MessageLoans&) = delete;
  MessageLoans& operator=(const MessageLoans&) = delete;

  /// From now on large blocks of the pool come from memory that others can map, if there may be such.
  void open_region() noexcept;

  /// False: this one goes another way.
  bool lend(MessengerLink& link, Message& message) noexcept;
  /// A message that lies in the memory of its sender. Null: there is no such place, and the peer is distrusted, or no
  /// memory for its record (`no_memory`).
  Message* borrow(MessengerLink& link, const WireHeader& header, std::span<const std::byte> payload,
                  Status& why) noexcept;
  /// It was released here.
  void hand_back(MessengerLink& link, std::uint64_t place) noexcept;

  /// What a record says that names no service.
  void on_note(MessengerLink& link, const WireHeader& header, std::span<const std::byte> payload) noexcept;
  /// Of a process that is no more.
  void take_all_back(MessengerLink& link) noexcept;

 private:
  bool post_note(MessengerLink& link, const LoanNote& note) noexcept;
  void map_theirs(MessengerLink& link, std::span<const std::byte> payload) noexcept;
  void agree(MessengerLink& link, bool mapped) noexcept;
  void take_back(MessengerLink& link, std::uint64_t place) noexcept;
  void distrust(const MessengerLink& link, const char* what) noexcept { engine_.peers().distrust(*link.peer, what); }

  Engine& engine_;
  std::optional<MappedFile> region_;  ///< For the large blocks of the pool.
  MessagePool& pool_;
  const std::size_t lent_max_;
};

}  // namespace brant::am
