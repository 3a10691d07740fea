#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "brant/base/api.h"
#include "brant/chare/callback.h"
#include "brant/notify/bell.h"

namespace brant {

/// Calls an entry whenever a bell is rung: what a kernel that goes on running has to say is a message like any other.
///
///     class Block : public Chare<Block, Index<1>> {
///      public:
///       void packed(std::uint64_t epoch, Status status);  // an entry: the kernel has packed its face
///       ...
///       packed_ = BellCalls(notifier.make(), callback<&Block::packed>(this_element()));
///       kernel.launch(shape, stream, packed_.bell().device(), ...);
///
///      private:
///       BellCalls packed_;
///     };
///
/// `then(epoch, ok)`: the bell has reached the epoch, which is later than that of the call before. Rings that come
/// faster than they are seen are one call, with the last of their epochs. `then(epoch, status)` with anything else is
/// the last call: nothing came for this epoch, and nothing will: timed_out, peer_lost, device_failed, canceled (the
/// notifier was closed), limit_reached, invalid_argument (no bell that the host sees). Destroyed or closed it calls
/// nothing more.
///
/// It owns the bell. Movable, of the worker's thread, and goes before its Runtime. Neither quiescence nor the end of
/// the program waits for a ring. Costs no allocation but the message of each call.
class BRANT_API BellCalls {
 public:
  BellCalls() noexcept;
  /// Calls come from the epoch `first` on; `patience` is for each of them (see Bell::post_when).
  BellCalls(Bell bell, const Callback<std::uint64_t, Status>& then, std::uint64_t first = 1,
            std::chrono::nanoseconds patience = Bell::kNotifiersPatience);
  BellCalls(BellCalls&& other) noexcept;
  BellCalls& operator=(BellCalls&& other) noexcept;
  ~BellCalls();

  /// For kernels, and for whoever else rings. It must be open.
  [[nodiscard]] Bell& bell() noexcept;
  /// It may call still.
  [[nodiscard]] bool is_open() const noexcept;
  /// Closes the bell: see Bell::close.
  void close() noexcept;

 private:
  struct Calling;
  std::unique_ptr<Calling> calling_;
};

}  // namespace brant
