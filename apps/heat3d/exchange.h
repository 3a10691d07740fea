#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "block.h"

namespace heat {

enum class Mode { one_sided, two_sided };
const char* name_of(Mode mode) noexcept;

/// Nobody waits longer for a neighbour.
inline constexpr std::chrono::seconds kPatience{60};

/// How the faces of a block come to its neighbours. Of each step, in this order: `begin`, the faces are packed, `send`,
/// `wait`, and then what needs the ghosts. All throw what failed, naming the neighbour.
class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  /// The faces of the step may be packed when this returns: what was sent from their memory two steps ago has gone.
  virtual void begin(std::int64_t step) = 0;
  /// They are packed, and all that read the ghosts of the step before has ended.
  virtual void send(std::int64_t step) = 0;
  /// Returns when the ghosts of the step have landed. Late ones are timed_out.
  virtual void wait(std::int64_t step) = 0;
  /// Behind the last step: nothing is on its way from here any more.
  virtual void end() = 0;
};

/// Block and space, or runtime, outlive it.
std::unique_ptr<Exchange> make_puts(brant::GlobalSpace& space, const Block& block);
/// `steps`: how many there will be.
std::unique_ptr<Exchange> make_messages(brant::Runtime& runtime, const Block& block, std::int64_t steps);

}  // namespace heat
