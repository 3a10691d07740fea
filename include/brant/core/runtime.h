#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "brant/base/api.h"
#include "brant/base/buffer.h"
#include "brant/base/ids.h"
#include "brant/core/future.h"
#include "brant/core/joining.h"
#include "brant/core/operation.h"
#include "brant/core/path.h"
#include "brant/core/task.h"
#include "brant/core/window.h"
#include "brant/core/worker.h"

namespace brant {

namespace port {
struct Adapters;
class Device;
}  // namespace port

class Device;
class LateFrees;

/// Which device a process works with.
enum class GpuChoice : std::uint8_t {
  automatic,  ///< The CUDA GPU of its local rank if there is one, else none.
  none,
  emulated,  ///< A device made of threads: everything but the speed.
  cuda,      ///< A CUDA GPU or an error.
};

struct BRANT_API RuntimeOptions {
  GpuChoice gpu = GpuChoice::automatic;
  bool share_gpu = false;       ///< Let several processes use one GPU: about 150 us an operation.
  Path path = Path::automatic;  ///< Forced for all transfers.
  bool sleep = true;            ///< An idle worker sleeps; false spins for ever.
  std::chrono::milliseconds boot_timeout{60'000};
  /// What the paths of this machine cost: a file of `brant calibrate`; "auto": the one in the user's cache folder, if
  /// it fits; empty or "off": the numbers built into brant. A file that is broken or of another machine is named in the
  /// log and not used.
  std::string calibration;
  /// Publish what this process has sent and received, per path: `brant info --jobs` reads it from outside while the
  /// process runs. A file of one page in a folder of this user alone; costs the message path nothing. Off in options
  /// that a program makes itself; on in those of `from_environment`, which a Runtime without options takes, unless
  /// BRANT_STATISTICS=off.
  bool statistics = false;
  /// A wait in which nothing happens for so long says once, on standard error, what the process waits for; the next
  /// such report takes a silence of twice that length. 0: never.
  std::chrono::milliseconds stall_report{5'000};
  /// Between hosts: a process that has not answered for so long, because it was stopped or cut off, is lost, and all
  /// operations with it end as peer_lost. One that only computes answers. Below a second, packets that are lost by
  /// chance begin to matter. 0: never, and others do not watch this process either, as a debugger needs it.
  std::chrono::milliseconds lease{10'000};
  /// Who may be joined after the start: see Runtime::address and Runtime::join.
  Joining joining = Joining::off;
  /// Which of the GPUs that this process may use, from 0 (`list_gpus`); -1: that of its local rank. The program then
  /// answers for it that each process has one of its own.
  int gpu_ordinal = -1;

  /// BRANT_GPU=auto|none|emulated|cuda, BRANT_SHARE_GPU, BRANT_PATH, BRANT_SLEEP, BRANT_BOOT_TIMEOUT_MS,
  /// BRANT_CALIBRATION=FILE|auto|off (default auto), BRANT_STATISTICS=on|off (default on), BRANT_STALL_REPORT_MS,
  /// BRANT_LEASE (whole seconds), BRANT_JOIN=off|host|network. Throws on a value that is none of these.
  static RuntimeOptions from_environment();
};

/// Memory that a runtime allocated. Freed when it goes; the transfers that use it must have completed. While a kernel
/// stays on the device (`PersistentKernel`, some modes of `HaloExchange`) the driver could not free what the device
/// reaches: it is kept, given to the next `allocate` of the same kind and size, and freed when the kernels have ended
/// and the program waits or calls `Runtime::tidy`. Any thread may let it go.
class BRANT_API Memory {
 public:
  Memory() noexcept = default;
  Memory(Memory&& other) noexcept : owner_(other.owner_), view_(std::exchange(other.view_, {})) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(view_, other.view_);
    return *this;
  }
  ~Memory();

  [[nodiscard]] void* data() const noexcept { return view_.data; }
  [[nodiscard]] std::size_t bytes() const noexcept { return view_.bytes; }
  [[nodiscard]] MemoryKind kind() const noexcept { return view_.kind; }
  operator Buffer() const noexcept { return view_; }       // NOLINT(google-explicit-constructor)
  operator ConstBuffer() const noexcept { return view_; }  // NOLINT(google-explicit-constructor)
  /// A part of it. Throws invalid_argument past the end.
  [[nodiscard]] Buffer part(std::size_t offset, std::size_t bytes) const;
  template <typename T>
  [[nodiscard]] T* as() const noexcept {
    return static_cast<T*>(view_.data);
  }

 private:
  friend class Runtime;
  Memory(LateFrees& owner, Buffer view) noexcept : owner_(&owner), view_(view) {}

  LateFrees* owner_ = nullptr;
  Buffer view_;
};

/// One process's part in the job: its rank, its device, its connections and the worker that moves them. Made by the
/// thread that will call progress. Making and destroying it are collective over the job.
class BRANT_API Runtime {
 public:
  /// Finds out who started this process, opens device and network, and exchanges addresses. Throws Error. From the
  /// first of these calls on, an Error that nobody catches ends the process with its text and exit code 1 instead of a
  /// core file: by a terminate handler, which passes everything else on to the one that was there.
  explicit Runtime(const RuntimeOptions& options = RuntimeOptions::from_environment());
  /// With given adapters; `connect` must follow. For tests and embedders.
  Runtime(port::Adapters adapters, const RuntimeOptions& options);
  /// Waits for the other processes: some 20 s at most, up to twice that while bytes still move; not where one is lost,
  /// nor while an exception is under way.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// What the destructor does first: says farewell and waits for the other processes. Afterwards nothing moves any
  /// more, but memory that was allocated stays what it is until the Runtime is destroyed: for those who cannot say who
  /// still looks at it, as at the end of an interpreter. Once, by the worker's thread; only the destructor may follow.
  void leave() noexcept;

  /// The exchange of addresses. Collective. Done by the first constructor.
  void connect();

  /// Text by which a process that is not of this job joins this one: to be printed, put into a file or sent by a
  /// socket. Some thousand characters, 16,384 at most. It has a key in it, and whoever has that may write to this
  /// process what a process of its job may write: give it to nobody else. From the first call on this process may be
  /// joined, until `stop_accepting`. Throws not_supported without RuntimeOptions::joining, limit_reached.
  [[nodiscard]] std::string address();
  /// Joins the process that has this address, of another job on this host or, with Joining::network, on another. The
  /// rank that it gives is above those of the job, and good for whatever takes a peer: channels, segments, messages. It
  /// is not counted in `size`, and has no part in barriers, quiescence and chares of either job. Each call makes a
  /// connection of its own, with a rank that no other has later; for a process of the own job it gives the rank that it
  /// has. Costs milliseconds. Waits for the answer, which takes progress over there, and lets the network move, but no
  /// completion fire. Throws Error: invalid_argument (no address, or a damaged one), version_mismatch (of brant or the
  /// network library), timed_out (no answer in `limit`), peer_lost (it has ended), limit_reached (1024 have joined),
  /// not_supported (no RuntimeOptions::joining here, or neither could see the other die: containers that share IPC but
  /// not process numbers), and what the network reports.
  Rank join(std::string_view address, std::chrono::nanoseconds limit = std::chrono::seconds(10));
  /// The next process that has joined this one, in the order in which they came; nothing if none does in time. Nobody
  /// else need call it: who joins may send and receive as soon as `join` returns, and what comes first waits.
  std::optional<Rank> accept(std::chrono::nanoseconds limit = Worker::kForever);
  /// Nobody joins any more with the addresses that were given until now; the next call of `address` makes another key.
  void stop_accepting() noexcept;
  /// Parts from a process that has joined, or that was joined. What is under way with it ends as peer_lost at both
  /// ends: wait for `delivered`, or for an answer, first. Its channels and segments are of no use any more; its rank
  /// goes when they are closed. The other process sees that this one has left, which is no loss. Waits for its answer;
  /// without one in `limit` this process leaves all the same. No effect on one that has left or died already. The end
  /// of the runtime does it for all. Throws invalid_argument for a rank of the job.
  void leave(Rank peer, std::chrono::nanoseconds limit = std::chrono::seconds(5));

  [[nodiscard]] Rank rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  [[nodiscard]] int local_rank() const noexcept;
  [[nodiscard]] int local_size() const noexcept;
  [[nodiscard]] Worker& worker() noexcept { return *worker_; }
  /// The network library, its version and where it was loaded from: "UCX 1.22.0 (/path)".
  [[nodiscard]] const std::string& network() const noexcept;
  /// What the program should know of that library, with the cure: another library of the process, often MPI, brought
  /// it. Empty: nothing. The log has said it.
  [[nodiscard]] const std::string& network_remark() const noexcept;
  /// By which paths this process has sent so far. Cost: a few loads.
  [[nodiscard]] PathUse path_use() const noexcept;
  /// The device this process works with; "host" without one. What it can do is in brant/device.h.
  [[nodiscard]] Device device() noexcept;
  /// The kind `device` allocates for kernels: cuda, emulated, or host.
  [[nodiscard]] MemoryKind device_kind() noexcept;

  /// At least 256-byte aligned, contents undefined. Throws no_memory, not_supported (this process has no such device).
  /// Host memory of 16 KiB and more can be mapped by the other processes of this host, up to 256 allocations: a message
  /// from there is copied once. One of 2 to 8 KiB from a smaller allocation is copied twice and takes several times as
  /// long, so buffers of that size are best parts of one larger allocation (`Memory::part`).
  Memory allocate(MemoryKind kind, std::size_t bytes);

  /// Copies between any two memories of this process and waits for it. For set-up and checks, not for the message path.
  /// Throws Error: invalid_argument (the source is larger than the destination), wrong_kind, not_supported (device
  /// memory without a device), and what the device reports.
  void copy(Buffer destination, ConstBuffer source);

  /// Gives back now what was kept for later because it may wait for the device: memory of other processes that they
  /// have freed and that is still mapped here, memory of the device that nobody uses any more. Waits that find nothing
  /// to do, and the end of the runtime, do so by themselves; a program that only calls `progress` calls this now and
  /// then. Waits for all that the device does: not while a kernel runs that waits for this process. While one stays
  /// that the runtime knows (`PersistentKernel`), it does nothing, and the log says so.
  void tidy() noexcept;

  /// Waits in plain code until all have ended, moving the network: the first failure (in argument order), or ok with
  /// the sum of the bytes.
  template <std::same_as<Operation>... More>
  OpResult wait(const Operation& first, const More&... more) noexcept {
    return wait_for(Worker::kForever, first, more...);
  }
  /// The same for so long at most. timed_out: not all have ended, and those go on.
  template <std::same_as<Operation>... More>
  OpResult wait_for(std::chrono::nanoseconds limit, const Operation& first, const More&... more) noexcept {
    auto ended = [&] { return first.done() && (more.done() && ...); };
    if (const Status status = worker().wait_until(ended, limit); status != Status::ok) return {status, 0};
    OpResult total = first.result();
    (total.join(more.result()), ...);
    return total;
  }
  /// Waits for a window: `window.slot()` or `window.drain()`. Gives what a `co_await` of it would.
  OpResult wait(const Window::Wait& window) noexcept { return wait_for(Worker::kForever, window); }
  /// The same for so long at most. timed_out: the operations go on, and the window keeps what it has counted.
  OpResult wait_for(std::chrono::nanoseconds limit, const Window::Wait& window) noexcept {
    const Status status = worker().wait_until([&] { return window.done(); }, limit);
    return status == Status::ok ? window.take() : OpResult{status, 0};
  }
  /// Waits for a value. Throws what the promise was failed with.
  template <typename T>
  T wait(Future<T>& future) {
    static_cast<void>(worker().wait_until([&] { return future.ready(); }));
    return future.get();
  }

  /// Runs a coroutine to its end on the worker. Throws what it threw, and invalid_argument if it was started before.
  template <typename T>
  T run(Task<T> task) {
    task.start();
    static_cast<void>(worker().wait_until([&] { return task.finished(); }));
    return task.take();
  }

 private:
  friend class JoinSteps;
  std::unique_ptr<Worker> worker_;  ///< Goes after the engine: what that resumes as it ends may use it.
  std::unique_ptr<Engine> engine_;
  int exceptions_at_start_ = 0;  ///< kHasLeft: there is nobody to wait for any more.
  static constexpr int kHasLeft = -1;
};

}  // namespace brant
