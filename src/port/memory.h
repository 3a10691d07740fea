#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "brant/base/buffer.h"
#include "brant/base/kernel_source.h"
#include "brant/base/result.h"
#include "brant/base/status.h"
#include "port/memory/staying_kernels.h"

/// Memory kinds, streams and kernels: what brant needs of a device. Adapters: memory/host (host, and pinned where no
/// GPU is present), memory/cuda (driver API by dlopen), memory/emulated (threads as a device).
///
/// A `Device` is one device of one process. Thread rule: calls may come from any thread, but one stream is used by one
/// thread at a time. All calls are noexcept and return at once unless their name says synchronize. Adapters make their
/// own context current where they need one.
namespace brant::port {
namespace memory {
class AllocationMap;
}

struct DeviceCapabilities {
  std::string name;    ///< "host", "NVIDIA H200", "emulated".
  std::string id;      ///< UUID or another name unique on the host.
  std::string driver;  ///< "CUDA 13.0 (driver 580.159)", empty for host.
  int ordinal = -1;
  int architecture = 0;     ///< Of a CUDA device: ten times the major compute capability plus the minor; else 0.
  unsigned processors = 0;  ///< That run blocks of kernels, each some at once (SMs); 0: none.
  std::size_t memory_bytes = 0;
  std::uint32_t kinds = 0;  ///< Bit (1 << MemoryKind): what `allocate` offers and `query` recognises.
  bool streams = false;     ///< `Device::streams()` is not null.
  bool kernels = false;     ///< `Device::kernels()` is not null.
  bool exports = false;     ///< `export_allocation` works for the device kind.
  /// What `export_allocation` really shares: all of the blocks of this size that an allocation lies in. A block that
  /// was freed and made anew cannot be mapped while anybody has a piece of the old one.
  std::size_t export_block_bytes = 1;
  bool file_exports = false;  ///< `export_file` works.
  bool stream_words = false;  ///< `Streams::at_words` works, and what is made of it.
  bool cooperative = false;   ///< `Kernels::launch_cooperative` works.
  /// Kernels of the program itself are loaded at their first launch, which waits for those that run.
  bool loads_lazily = false;
  bool processes_take_turns = false;  ///< Several on one device never run at once.

  [[nodiscard]] bool offers(MemoryKind kind) const noexcept {
    const auto bit = static_cast<unsigned>(kind);
    return bit < static_cast<unsigned>(kMemoryKindCount) && ((kinds >> bit) & 1u) != 0;
  }
};

/// What a pointer points to.
struct PointerInfo {
  MemoryKind kind = MemoryKind::host;
  int device = -1;
  void* base = nullptr;   ///< Start of the allocation; null for memory the device does not know.
  std::size_t bytes = 0;  ///< Size of the allocation.
  /// Addresses from `base` on that were reserved together: others may be mapped side by side there (cuMemMap), as one
  /// buffer to its user. 0: the allocation stands alone.
  std::size_t reserved_bytes = 0;
  std::uint64_t buffer_id = 0;  ///< Never used twice in a process: notices a freed and re-allocated address.
};

/// What another process on this host needs to map an allocation.
struct ExportRecord {
  /// `file`: an open file goes with it, see ExportedFile.
  enum class Means : std::uint8_t { handle, file };

  MemoryKind kind = MemoryKind::detect;
  Means means = Means::handle;
  std::uint64_t buffer_id = 0;
  std::size_t bytes = 0;   ///< Of the whole allocation.
  std::size_t offset = 0;  ///< Of the exported pointer inside it.
  std::byte handle[128] = {};
};

/// An allocation as an open file, for a process of this host that is given a copy of it (SCM_RIGHTS, pidfd_getfd).
struct ExportedFile {
  UniqueFd file;        ///< The memory stays until all copies are closed and all imports: also when its owner frees it.
  ExportRecord record;  ///< By means of a file.
};

// Programs use these too (brant/device.h).
using brant::HostKernel;
using brant::HostLaunch;
using brant::KernelSource;
using brant::LaunchShape;
using brant::StreamPriority;

/// A word in memory that a stream waits for or writes, without a kernel. Of 4 or 8 bytes, aligned to its size.
struct StreamWord {
  enum class Act : std::uint8_t {
    write,          ///< After the work before it, which is visible system-wide when the value is.
    wait_equal,     ///< Until *word == value.
    wait_at_least,  ///< Until *word - value >= 0 as signed numbers: counters may wrap around.
    wait_any_bit,   ///< Until (*word & value) != 0.
  };
  Act act = Act::write;
  std::uint8_t bytes = 8;
  void* word = nullptr;
  std::uint64_t value = 0;  ///< Fits in `bytes`.

  static StreamWord write(std::uint64_t* word, std::uint64_t value) noexcept { return {Act::write, 8, word, value}; }
  static StreamWord write(std::uint32_t* word, std::uint32_t value) noexcept { return {Act::write, 4, word, value}; }
  static StreamWord wait(Act act, std::uint64_t* word, std::uint64_t value) noexcept { return {act, 8, word, value}; }
  static StreamWord wait(Act act, std::uint32_t* word, std::uint32_t value) noexcept { return {act, 4, word, value}; }

  [[nodiscard]] bool well_formed() const noexcept {
    const bool sized = bytes == 8 || (bytes == 4 && value >> 32 == 0);
    return sized && act <= Act::wait_any_bit && word != nullptr && reinterpret_cast<std::uintptr_t>(word) % bytes == 0;
  }
};

struct Stream;
struct Event;
struct Graph;
struct Module;
struct Kernel;

class Streams;
class Kernels;

class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  [[nodiscard]] virtual const DeviceCapabilities& capabilities() const noexcept = 0;

  /// At least 256-byte aligned. 0 bytes is invalid_argument. Contents undefined.
  virtual Result<void*> allocate(MemoryKind kind, std::size_t bytes) noexcept = 0;
  /// `pointer` as returned by allocate. Work in flight that uses it must have completed. Memory that the device reaches
  /// may take until all work of the device has ended: not within a `ProgressScope`.
  virtual Status free(void* pointer) noexcept = 0;
  /// not_found if the device knows nothing about the pointer (then it is ordinary host memory, or freed).
  virtual Result<PointerInfo> query(const void* pointer) noexcept = 0;
  /// The host memory among what `allocate` gave out and has not taken back: for checks of every message, which cannot
  /// afford `query`. Null if nobody keeps account. Valid as long as the device.
  [[nodiscard]] virtual const memory::AllocationMap* host_allocations() const noexcept { return nullptr; }

  /// For another process of this host. Device memory where `exports` says so, and host memory of this device that it
  /// made to be shared (kinds host and pinned, large allocations). wrong_kind: other memory; not_found.
  virtual Result<ExportRecord> export_allocation(const void* pointer) noexcept = 0;
  /// As a file. GPU memory that `export_allocation` cannot name: of cuMemCreate and of pools (cudaMallocAsync), where
  /// it was made with a POSIX file descriptor as a handle type. Memory of a pool must be closed by importers before its
  /// owner frees it: the pool uses it again. not_supported: memory made otherwise, and the log says why and what to do;
  /// or the capabilities lack file_exports.
  virtual Result<ExportedFile> export_file(const void* pointer) noexcept = 0;
  /// Maps it; `file` stays the caller's. Each import is closed with close_import, and is a mapping of its own, but for
  /// memory of a pool: the same place is found at the same address each time.
  virtual Result<void*> import_file(const ExportRecord& record, int file) noexcept = 0;
  /// Maps another process's allocation; the result points at the exported pointer. Close with close_import.
  /// in_progress: not while this process has mapped memory of the same block that was freed (see export_block_bytes).
  virtual Result<void*> import_allocation(const ExportRecord& record) noexcept = 0;
  /// Device memory may take until all work of the device has ended: not within a `ProgressScope`.
  virtual Status close_import(void* imported) noexcept = 0;

  /// Where the CPU reaches memory of this device, through the bus: for words that the CPU writes and kernels look at.
  /// Both are whole pages. Writes are gathered and leave with `_mm_sfence` (port/memory/window_store.h); reads take a
  /// microsecond. Close it before the memory is freed. not_supported: the device has none, or no driver that maps it
  /// (the log says why); invalid_argument.
  virtual Result<void*> open_host_window(void* pointer, std::size_t bytes) noexcept {
    static_cast<void>(pointer), static_cast<void>(bytes);
    return Status::not_supported;
  }
  virtual void close_host_window(void* window, std::size_t bytes) noexcept {
    static_cast<void>(window), static_cast<void>(bytes);
  }

  virtual Streams* streams() noexcept = 0;
  virtual Kernels* kernels() noexcept = 0;

  /// Kernels that stay on it: counted by whoever launches them.
  [[nodiscard]] StayingKernels& staying_kernels() noexcept { return staying_kernels_; }
  [[nodiscard]] const StayingKernels& staying_kernels() const noexcept { return staying_kernels_; }

 private:
  StayingKernels staying_kernels_;
};

/// In-order queues of device work.
class Streams {
 public:
  Streams() = default;
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  virtual ~Streams() = default;

  /// Does not synchronise with any other stream, the legacy default stream included.
  virtual Result<Stream*> create_stream(StreamPriority priority) noexcept = 0;
  virtual void destroy_stream(Stream* stream) noexcept = 0;  ///< Waits for the work queued on it.

  /// Any kind to any kind of this device, and host memory. Pageable host memory may make the call wait for the copy.
  virtual Status copy(void* destination, const void* source, std::size_t bytes, Stream* stream) noexcept = 0;
  virtual Status fill(void* destination, std::byte value, std::size_t bytes, Stream* stream) noexcept = 0;
  static constexpr std::size_t kWordsMax = 255;  ///< Of one call: the driver's bound.
  /// The stream waits for words and writes words, in this order; none of it starts a kernel or holds up the caller.
  /// Words of device memory, pinned memory or registered memory; a wait must be for what comes without this stream, or
  /// it never ends. invalid_argument: a word that is not `well_formed`, and then nothing is queued; limit_reached: more
  /// than kWordsMax; not_supported where the capabilities lack stream_words.
  virtual Status at_words(std::span<const StreamWord> words, Stream* stream) noexcept = 0;
  /// One word of them.
  Status write_value(std::uint64_t* destination, std::uint64_t value, Stream* stream) noexcept {
    const StreamWord word = StreamWord::write(destination, value);
    return at_words({&word, 1}, stream);
  }
  Status wait_value(StreamWord::Act act, std::uint64_t* word, std::uint64_t value, Stream* stream) noexcept {
    const StreamWord one = StreamWord::wait(act, word, value);
    return at_words({&one, 1}, stream);
  }
  /// The CPU calls `function(argument)` when the stream comes there, on a thread of the device; what is queued behind
  /// it waits for its return. So it is short, does not block, and calls nothing of this interface, nor of the driver.
  /// `argument` is there until then. Not called where the stream has failed, or is closed before it comes there.
  using HostFunction = void (*)(void* argument) noexcept;
  virtual Status call_host(HostFunction function, void* argument, Stream* stream) noexcept = 0;
  /// Makes host memory that this device did not allocate reachable for it (page-locks and maps it). Undo before the
  /// memory goes.
  virtual Status register_host(void* base, std::size_t bytes) noexcept = 0;
  virtual Status unregister_host(void* base) noexcept = 0;  ///< Not within a `ProgressScope`: see `Device::free`.

  virtual Result<Event*> create_event(bool timing) noexcept = 0;
  virtual void destroy_event(Event* event) noexcept = 0;
  virtual Status record(Event* event, Stream* stream) noexcept = 0;
  virtual Status wait_event(Stream* stream, Event* event) noexcept = 0;  ///< The stream waits, not the caller.
  virtual Status poll(Event* event) noexcept = 0;                        ///< ok, in_progress, or the device's error.
  virtual Status poll(Stream* stream) noexcept = 0;
  virtual Result<double> elapsed_us(Event* from,
                                    Event* to) noexcept = 0;  ///< Both completed, both created with timing.
  virtual Status synchronize(Stream* stream) noexcept = 0;    ///< Blocks until the stream is drained.
  /// Blocks until all that this process has queued on the device, on whatever stream, is done: not within a
  /// `ProgressScope`. A capture that is under way would be spoilt.
  virtual Status synchronize_all() noexcept = 0;

  /// Copies, fills, kernels and calls of the host queued from here on are recorded and do not run; events cannot be
  /// polled meanwhile.
  virtual Status begin_capture(Stream* stream) noexcept = 0;
  /// Ends it, and makes what was recorded ready to run. Also on failure the stream works as before.
  virtual Result<Graph*> end_capture(Stream* stream) noexcept = 0;
  /// Queues all that was recorded, in one call. As often as wanted.
  virtual Status launch(Graph* graph, Stream* stream) noexcept = 0;
  virtual void destroy_graph(Graph* graph) noexcept = 0;  ///< Its runs must have ended.
  /// Whether what is queued on it now is recorded, whoever began that. Spoils no capture.
  virtual Result<bool> captures(Stream* stream) noexcept = 0;
};

class Kernels {
 public:
  Kernels() = default;
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;
  virtual ~Kernels() = default;

  /// Loads eagerly (a lazy load at first launch would wait for running kernels). Lives as long as the device.
  virtual Result<Kernel*> load(const KernelSource& source) noexcept = 0;
  /// Argument values are copied before return.
  virtual Status launch(Kernel* kernel, const LaunchShape& shape, void** arguments, Stream* stream) noexcept = 0;

  /// How many blocks of this kernel, as large as `shape` says (its grid does not matter), are resident at once while
  /// the device does nothing else. 0: not even one fits.
  virtual Result<unsigned> blocks_at_once(Kernel* kernel, const LaunchShape& shape) noexcept = 0;
  /// As `launch`, and all blocks of the grid are resident at once, so that they may wait for one another; a busy device
  /// makes the whole grid wait. limit_reached: more blocks than `blocks_at_once`, and the log says how many fit;
  /// not_supported where the capabilities lack `cooperative`.
  virtual Status launch_cooperative(Kernel* kernel, const LaunchShape& shape, void** arguments,
                                    Stream* stream) noexcept = 0;
};

}  // namespace brant::port
