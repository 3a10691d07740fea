#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "models/chare/activity.h"
#include "models/chare/messages.h"
#include "models/chare/program_context.h"
#include "models/chare/queue.h"

namespace brant::detail {

/// The way to the other ranks: straight to the messenger, or, when a rank is behind, by its outbox; alone, or down the
/// tree over all ranks. Whom a message could not reach is noted.
class Sending {
 public:
  using Trouble = std::pair<Rank, Status>;

  Sending(const ProgramContext& context, Activity& activity, Messages& messages, ReadyQueue& queue);

  /// Takes a message to the queue of the rank where it runs, which may be this one. Throws invalid_argument.
  void deliver(std::int32_t destination, am::Message& message, const Envelope& envelope) {
    if (destination == context_.rank) return queue_.push(message, envelope);
    send_to(destination, message, envelope);
  }
  /// To another rank.
  void send_to(std::int32_t destination, am::Message& message, const Envelope& envelope);
  /// The same message for another rank.
  void send_copy(std::int32_t destination, const am::Message& message, const Envelope& envelope);
  /// To those below this rank in the tree of the message's root.
  void forward_by_tree(const am::Message& message, const Envelope& envelope);
  /// A control message to all other ranks.
  void spread(MessageKind kind, std::int64_t code);
  /// A control message to one rank.
  void send_code(std::int32_t to, MessageKind kind, std::int64_t code);
  /// One that carries a value.
  template <typename T>
  void send_value(std::int32_t to, MessageKind kind, std::uint64_t code, const T& value) {
    const Envelope envelope = control_envelope(kind, code);
    SizeArchive size;
    size(value);
    am::Message& message = messages_.make(envelope, size.size());
    WriteArchive write(message.data);
    write(value);
    send_to(to, message, envelope);
  }
  /// Of a control message.
  [[nodiscard]] Envelope control_envelope(MessageKind kind, std::uint64_t code) const noexcept;

  /// Something waits in an outbox.
  [[nodiscard]] bool holds() const noexcept { return in_outboxes_ != 0; }
  /// False: nothing could go.
  bool flush();
  /// The news of the ending that found no room must go out before this process stops moving the network.
  void drain_urgent();
  /// What will not leave any more.
  void let_all_go() noexcept;
  /// A call that has not left; null if none.
  [[nodiscard]] const am::Message* first_held_call() const noexcept;

  /// Of a rank, the first one is kept until it was taken.
  void note_trouble(Rank peer, Status status) noexcept {
    Status& known = troubles_[static_cast<std::size_t>(peer.value)];
    if (known == Status::ok) known = status;
    in_trouble_ = true;
  }
  [[nodiscard]] bool in_trouble() const noexcept { return in_trouble_; }
  std::optional<Trouble> take_trouble() noexcept;

 private:
  Status send(std::int32_t to, am::Message& message, const Envelope& envelope) {
    const am::Flow flow = envelope.urgent() ? am::Flow::urgent : am::Flow::credit;
    return envelope.has_data() ? send_with_data(to, message, envelope, flow)
                               : context_.messenger.send(Rank{to}, am::ServiceId::chare, message, flow);
  }
  Status send_with_data(std::int32_t to, am::Message& message, const Envelope& envelope, am::Flow flow);

  const ProgramContext& context_;
  Activity& activity_;
  Messages& messages_;
  ReadyQueue& queue_;
  std::vector<am::MessageList> outboxes_;  ///< Per rank: what its window does not take yet.
  std::size_t in_outboxes_ = 0;
  std::vector<Status> troubles_;  ///< By rank; ok: none.
  bool in_trouble_ = false;
};

}  // namespace brant::detail
