#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "brant/core/timer.h"
#include "brant/notify/notifier.h"
#include "models/mpi/enqueue/mpi_stream.h"
#include "models/mpi/enqueue/stream_door.h"

namespace brant::mpi {

class Process;
class RankState;

/// The thread of a process that is in MPI as long as a stream has come to a call that has not ended, since the program
/// may sit in a call of the device meanwhile. It sleeps else. There is one for a process, which never goes, since
/// threads of the device may come at any time.
class EnqueueThread : private Timer {
 public:
  static constexpr std::size_t kStreamsMost = 256;

  /// Null: the program has no streams.
  [[nodiscard]] static EnqueueThread* existing() noexcept { return the_one.load(std::memory_order_acquire); }
  /// Made for the first stream. Throws Error, MPI_ERR_UNSUPPORTED_OPERATION.
  [[nodiscard]] static EnqueueThread& of(Process& process);
  EnqueueThread(const EnqueueThread&) = delete;
  EnqueueThread& operator=(const EnqueueThread&) = delete;

  /// Throw Error, MPI_ERR_OTHER.
  [[nodiscard]] std::shared_ptr<MpiStream> open(port::Stream* stream);
  [[nodiscard]] std::shared_ptr<MpiStream> open_without_device();
  /// The object of a handle; null: it is none of a stream that is open.
  [[nodiscard]] std::shared_ptr<MpiStream> find(const MpiStream* stream) const noexcept;
  void close(const std::shared_ptr<MpiStream>& stream) noexcept;

  /// In a call: the thread begins to run, if it does not yet. Throws Error.
  void start();
  /// From any thread: a stream has come to a call.
  void wake() noexcept;
  /// A call is being queued: from here on the driver is asked now and then whether the streams still work, by whoever
  /// is in MPI, since nobody hears of a stream that has failed. Throws std::bad_alloc.
  void watch_streams();
  void call_began() noexcept { ++under_way_; }
  void call_ended() noexcept { --under_way_; }

  /// Waits until all that this stream was given has been carried out, or the stream has failed.
  void drain(StreamDoor& door) noexcept;
  /// The same for all streams, and until the thread is out of MPI. The first error that nobody was told of.
  [[nodiscard]] std::optional<CallError> drain_all() noexcept;
  /// The same for the streams of communicators that derive from a session. Throws std::bad_alloc.
  [[nodiscard]] std::optional<CallError> drain_session(std::uint64_t session);
  /// Before the process of brant parts from the others, which it does without a turn: the thread is out of MPI then,
  /// whatever was under way.
  void stop() noexcept;

 private:
  explicit EnqueueThread(Process& process);
  void run() noexcept;
  void serve() noexcept;
  void look() noexcept;
  void ask_driver() noexcept;
  [[nodiscard]] bool idle() const noexcept;

  static std::atomic<EnqueueThread*> the_one;

  Process& process_;
  std::optional<Notifier> bells_;
  std::vector<std::unique_ptr<StreamDoor>> doors_;
  std::vector<std::shared_ptr<MpiStream>> streams_;  ///< Of which the program has handles.
  std::size_t under_way_ = 0;                        ///< Calls that have begun.
  bool inside_ = false;                              ///< The thread is in MPI.

  std::atomic<bool> asked_{false};          ///< The worker is to look at the doors.
  std::atomic<bool> asked_in_vain_{false};  ///< It has no room for that.
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;  ///< For what follows.
  std::condition_variable woken_;
  bool news_ = false;
  bool open_ = true;  ///< The worker is there.
  std::thread thread_;
};

/// Before others wait for all that uses a communicator: waits until its stream has carried out what it was given, or
/// has failed.
void drain_stream_of(const Communicator& communicator) noexcept;
/// A communicator is freed, behind `drain_stream_of`: its stream forgets it. What the program was not told of its
/// calls; null: nothing.
[[nodiscard]] std::unique_ptr<CallError> part_from_stream(Communicator& communicator) noexcept;

}  // namespace brant::mpi
