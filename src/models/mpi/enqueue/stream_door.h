#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "brant/notify/bell.h"
#include "models/mpi/call_error.h"
#include "port/memory.h"

namespace brant {
class Notifier;
}

namespace brant::mpi {

class EnqueuedCall;
class EnqueueThread;

/// Where a stream of the device and MPI meet: calls are queued in its order, the stream says when it comes to the next
/// one, and waits for the bell where it has to wait. A door is never destroyed, since a thread of the device may come
/// to it at any time; it is another stream's when nothing is to come any more.
///
/// All is of the thread whose turn it is, but for what is said otherwise.
class StreamDoor {
 public:
  explicit StreamDoor(EnqueueThread& thread) noexcept : thread_(thread) {}
  StreamDoor(const StreamDoor&) = delete;
  StreamDoor& operator=(const StreamDoor&) = delete;

  /// For a stream of this device. The bell is made once. Throws Error.
  void open(port::Device& device, port::Stream* stream, Notifier& bells);
  /// The process of brant ends.
  void close() noexcept { bell_.close(); }
  /// All that was queued has been carried out, and the stream has come to all of it.
  [[nodiscard]] bool free() const noexcept;
  /// All that was queued has been carried out.
  [[nodiscard]] bool idle() const noexcept { return open_calls_ == 0; }

  /// Behind all that the stream has been given so far. `waits`: it goes on when the call has ended. Others have turns
  /// meanwhile, since a stream that is full blocks. Throws CallError, and then nothing is carried out.
  void queue(std::unique_ptr<EnqueuedCall> call, bool waits);
  /// Begins those that the stream has come to.
  void take_arrivals() noexcept;
  void call_ended(const EnqueuedCall& call) noexcept;
  /// Drops what is queued where the stream has failed or cannot come any more. Asks the driver.
  void drop_if_dead() noexcept;

 private:
  static void arrive(void* self) noexcept;
  Status give_to_stream(EnqueuedCall& call, bool waits) noexcept;
  EnqueuedCall* next_arrived() noexcept;

  EnqueueThread& thread_;
  port::Device* device_ = nullptr;
  port::Stream* stream_ = nullptr;
  Bell bell_;
  std::size_t open_calls_ = 0;  ///< Queued, and not ended.
  bool dead_ = false;           ///< The stream carries out nothing any more.

  std::mutex order_;         ///< Of who queues: the stream and `calls_` have one order.
  std::uint64_t epoch_ = 0;  ///< The last that the stream waits for. By `order_`.

  std::atomic<std::uint64_t> arrived_{0};  ///< By threads of the device.
  mutable std::mutex mutex_;               ///< For what follows.
  std::deque<EnqueuedCall*> calls_;        ///< That the stream has not come to.
  std::uint64_t given_ = 0;                ///< Calls that the stream has got, or is just getting.
  std::uint64_t settled_ = 0;              ///< Those of them that it has got for sure.
  std::uint64_t taken_ = 0;                ///< Those that it has come to, as far as it was looked at.
};

}  // namespace brant::mpi
