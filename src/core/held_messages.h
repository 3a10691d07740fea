#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "port/wire.h"

namespace brant {

/// Active messages that came before the layer they are for: held, bounded, until it claims them.
class HeldMessages {
 public:
  static constexpr unsigned kIds = 64;
  static constexpr std::size_t kHeldMax = 4096;

  explicit HeldMessages(port::Wire& wire) noexcept;
  HeldMessages(const HeldMessages&) = delete;
  HeldMessages& operator=(const HeldMessages&) = delete;

  /// Takes over active messages of this id; those that came before are handed over now. The handler sees complete
  /// headers; payloads of held messages are refused above `am_eager_bytes_max`.
  void claim(unsigned id, port::AmHandler handler, void* context);

 private:
  struct Held {
    unsigned id;
    std::vector<std::byte> header;
    std::vector<std::byte> data;
  };
  struct Slot {
    HeldMessages* messages = nullptr;
    unsigned id = 0;
  };

  static void hold(void* slot, port::AmMessage& message) noexcept;

  port::Wire& wire_;
  std::array<Slot, kIds> slots_;
  std::vector<Held> held_;
};

}  // namespace brant
