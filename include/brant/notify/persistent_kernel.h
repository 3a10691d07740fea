#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "brant/base/api.h"
#include "brant/core/device.h"
#include "brant/core/kernel.h"
#include "brant/core/operation.h"
#include "brant/notify/notifier.h"

namespace brant {

struct ResidentKernel;

struct PersistentOptions {
  std::string name = "a kernel";  ///< As errors name it.
  /// Of each wait in the kernel: then it gives up, and the CPU hears which bell did not ring. Worker::kForever: none.
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
  /// Until all its blocks run: another kernel may hold the device.
  std::chrono::nanoseconds start_patience = std::chrono::seconds(10);
};

/// A kernel that stays on the device, and is told what to do by bells and items: launched once instead of once for each
/// step. Its first argument is a notify::KernelControl, and its life a notify::KernelLife. All blocks run at once. It
/// is movable, of the worker's thread, and goes before its Notifier.
///
///     Kernel<notify::KernelControl, Field> jacobi(runtime.device(), image, "jacobi", &jacobi_on_host);
///     auto running = PersistentKernel::launch(notifier, jacobi, shape, {.name = "jacobi"}, field);
///     (co_await running.started()).or_throw("jacobi does not run");
class BRANT_API PersistentKernel {
 public:
  PersistentKernel() noexcept = default;
  PersistentKernel(PersistentKernel&& other) noexcept : kernel_(std::exchange(other.kernel_, nullptr)) {}
  PersistentKernel& operator=(PersistentKernel&& other) noexcept {
    if (this != &other) {
      close();
      kernel_ = std::exchange(other.kernel_, nullptr);
    }
    return *this;
  }
  /// Aborts it if it runs still.
  ~PersistentKernel() { close(); }

  /// So many blocks of a shape, whose grid is not looked at, can be launched: as many as run at once beside the
  /// persistent kernels that run. Throws Error: device_failed, not_supported.
  template <typename... Args>
  static unsigned blocks_at_once(Notifier& notifier, const Kernel<notify::KernelControl, Args...>& kernel,
                                 const LaunchShape& shape) {
    return room_for(notifier, kernel.inner(), shape);
  }

  /// Queues it on a stream of its own. Throws Error: limit_reached (its blocks do not fit on the device at once, beside
  /// the persistent kernels that run), invalid_argument (a fan-in among the arguments takes more arrivals than there
  /// are blocks), not_supported (no cooperative launches), no_memory, device_failed.
  template <typename... Args>
  static PersistentKernel launch(Notifier& notifier, const Kernel<notify::KernelControl, Args...>& kernel,
                                 const LaunchShape& shape, const PersistentOptions& options,
                                 std::type_identity_t<Args>... arguments) {
    std::uint64_t largest = 0;
    (note_fan_in(largest, arguments), ...);
    std::array<void*, sizeof...(Args)> addresses = {static_cast<void*>(&arguments)...};
    return start(notifier, kernel.inner(), shape, options, largest, addresses);
  }

  /// All its blocks run. timed_out: not within the start patience, and the log says what may be in the way.
  /// device_failed; canceled: it was closed.
  Status post_started(Op& op) noexcept;
  Operation started() noexcept {
    return Operation(Moment::delivered, [&](Op& op) noexcept { return post_started(op); });
  }
  /// It has ended. ok: as it was asked. timed_out: it gave up waiting for a bell, which the log names; canceled: it was
  /// aborted; device_failed.
  Status post_ended(Op& op) noexcept;
  Operation ended() noexcept {
    return Operation(Moment::delivered, [&](Op& op) noexcept { return post_ended(op); });
  }

  /// Hands an item to all blocks. ok; limit_reached: notify::kItems are under way; invalid_argument: after quit. Two
  /// stores.
  Status submit(const notify::Item& item) noexcept;
  /// Items handed out, and those that all blocks have done.
  [[nodiscard]] std::uint64_t submitted() const noexcept;
  [[nodiscard]] std::uint64_t done() const noexcept;

  /// No more items come: the kernel ends when it has done those that it has. `ended` tells.
  void quit() noexcept;
  /// Waits in the kernel and for items end at once.
  void abort() noexcept;
  /// Aborts it, and waits up to 5 s for its end: a kernel that does not look is left, with its memory, and named.
  void close() noexcept;

 private:
  explicit PersistentKernel(ResidentKernel* kernel) noexcept : kernel_(kernel) {}
  template <typename Argument>
  static void note_fan_in(std::uint64_t& largest, const Argument& argument) noexcept {
    if constexpr (std::is_same_v<Argument, notify::FanIn>) largest = argument.of > largest ? argument.of : largest;
  }
  static unsigned room_for(Notifier& notifier, port::Kernel* kernel, const LaunchShape& shape);
  static PersistentKernel start(Notifier& notifier, port::Kernel* kernel, const LaunchShape& shape,
                                const PersistentOptions& options, std::uint64_t largest_fan_in,
                                std::span<void* const> arguments);

  ResidentKernel* kernel_ = nullptr;
};

}  // namespace brant
