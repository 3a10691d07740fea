#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "brant/base/api.h"
#include "brant/notify/bell.h"

namespace brant {

struct NotifierOptions {
  std::uint32_t bells = 1024;  ///< Open at once that this process's device rings and the host sees: 8 bytes each.
  std::uint32_t others = 512;  ///< Open at once of all other sorts: 128 bytes each.
  std::uint32_t waits = 8192;  ///< Operations under way.
  /// Of waits that say nothing else. Worker::kForever: none.
  std::chrono::nanoseconds patience = std::chrono::seconds(60);
};

/// Makes bells between the device of a process and its CPU, or other processes, and keeps their words. One or more for
/// a Runtime; movable, of the worker's thread, and destroyed before it. Docs: docs/how-it-works/notify.md.
class BRANT_API Notifier {
 public:
  /// Allocates all memory that bells will need: do it before kernels run that end late. Throws Error: not_supported (no
  /// device, or one that does not reach memory of the host), no_memory, invalid_argument (options).
  explicit Notifier(Runtime& runtime, const NotifierOptions& options = {});
  Notifier(Notifier&& other) noexcept : board_(std::exchange(other.board_, nullptr)) {}
  Notifier& operator=(Notifier&& other) noexcept {
    if (this != &other) {
      close();
      board_ = std::exchange(other.board_, nullptr);
    }
    return *this;
  }
  /// Closes its bells; their memory goes when the device is idle and nobody waits.
  ~Notifier() { close(); }

  /// Throws Error: limit_reached, invalid_argument (options that contradict each other; a rank that the job does not
  /// have), not_supported (BellPlace::bar1 where the CPU reaches no memory of the device). Bells in device memory cost
  /// some calls of the driver.
  Bell make(const BellOptions& options = {});
  /// A bell of `arrivals` for each ring: see notify::arrive. Kept until the Notifier goes. Throws Error:
  /// invalid_argument (0, or more than 65535), limit_reached.
  notify::FanIn fan_in(std::uint32_t arrivals);

  void close() noexcept;
  /// The inner side.
  [[nodiscard]] BellBoard& board() const noexcept { return *board_; }

 private:
  BellBoard* board_ = nullptr;
};

}  // namespace brant
