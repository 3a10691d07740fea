#pragma once

#include <cstddef>

#include "models/chare/data_calls.h"
#include "models/chare/program_context.h"

namespace brant::detail {

/// The messages of one process: they are made and given back here, and those that were sent here and not delivered yet
/// are counted, since they are bounded.
class Messages {
 public:
  Messages(const ProgramContext& context, DataCalls& data_calls) noexcept
      : context_(context), data_calls_(data_calls) {}

  /// Throws no_memory.
  am::Message& make(const Envelope& envelope, std::size_t bytes);
  /// Whoever ran it, or will not, is done with it: it goes when no coroutine reads its arguments any more.
  void drop(am::Message& message) noexcept {
    Notes notes = notes_of(message);
    if (notes.holders != 0) {
      --notes.holders;
      set_notes(message, notes);
      return;
    }
    count_out(message);
    let_go(message);
  }
  /// Gives a message back that will not run.
  void let_go(am::Message& message) noexcept {
    if (message.header<Envelope>().has_data()) data_calls_.discard(message);
    context_.messenger.release(message);
  }

  void count_in(am::Message& message) noexcept {
    Notes notes = notes_of(message);
    notes.flags |= Notes::kUndelivered;
    set_notes(message, notes);
    ++undelivered_;
    undelivered_bytes_ += message.bytes;
  }
  void count_out(am::Message& message) noexcept {
    Notes notes = notes_of(message);
    if ((notes.flags & Notes::kUndelivered) == 0) return;
    notes.flags &= ~Notes::kUndelivered;
    set_notes(message, notes);
    --undelivered_;
    undelivered_bytes_ -= message.bytes;
  }
  [[nodiscard]] std::size_t undelivered() const noexcept { return undelivered_; }
  [[nodiscard]] std::size_t undelivered_bytes() const noexcept { return undelivered_bytes_; }
  /// As many as the program allows.
  [[nodiscard]] bool full() const noexcept {
    return undelivered_ >= context_.options.undelivered_max ||
           undelivered_bytes_ >= context_.options.undelivered_bytes_max;
  }

 private:
  const ProgramContext& context_;
  DataCalls& data_calls_;
  std::size_t undelivered_ = 0;
  std::size_t undelivered_bytes_ = 0;
};

}  // namespace brant::detail
