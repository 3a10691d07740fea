#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "brant/base/api.h"
#include "brant/base/buffer.h"
#include "brant/base/ids.h"
#include "brant/core/path.h"
#include "brant/core/runtime.h"
#include "brant/core/task.h"
#include "brant/halo/direct_steps.cuh"
#include "brant/halo/triggered_steps.cuh"
#include "brant/notify/persistent_kernel.h"

namespace brant {

namespace halo {
class Exchange;
}  // namespace halo

/// How the cells of an exchange travel. Docs: docs/guide/halo.md.
enum class HaloMode : std::uint8_t {
  shapes,  ///< Each message has a pack and an unpack of its own: those of a channel (`Channel::post_send` with a
           ///< shape).
  fused,   ///< One kernel packs all messages, they go, one kernel unpacks them; in memory of the host the CPU does so.
  direct,  ///< Cells go straight into the ghosts, in memory that is mapped; processes of one host alone. See `bind`.
  /// The same, recorded in a graph (of CUDA) when fields are bound, which is launched for each exchange: in a run of
  /// several exchanges without the CPU between them.
  graph,
  /// As `direct`, by a kernel that stays on the device from the first run on, and holds a part of it: nothing is
  /// launched for an exchange. What waits for all that a device does (cudaFree, cudaDeviceSynchronize) never ends
  /// meanwhile; a Memory of the device that goes is kept for later, see there. So it is in the modes `stream` and
  /// `stacked`.
  resident,
  /// A kernel that packs and one that unpacks stay on the device: a message leaves when it is packed, while others are,
  /// and is unpacked when it has come. In memory of the host as `fused`.
  stream,
  stacked,  ///< The same, with all blocks on one message after another, whatever its size.
};

/// What of it is one message, in the modes `fused`, `stream` and `stacked`.
enum class HaloMessages : std::uint8_t {
  /// All that goes to one process; between blocks of the same process cells are copied. In mode `stream` it is cut into
  /// four groups or less, of 64 KiB or more each, which all blocks of the kernels do one after another.
  per_process,
  per_block,  ///< What goes from one block to another, in mode `stream` done by one block; copied within a process.
  all,        ///< The same, and within a process a message as well, as LLNL's Comb has it.
};

/// Where the time of an exchange went, in microseconds, as this process's CPU saw it.
struct HaloPhases {
  double pack = 0;    ///< Until the kernel that packs was launched, or the CPU had packed.
  double sync = 0;    ///< Until that kernel had ended.
  double comm = 0;    ///< Until all messages had come, and all sends had gone.
  double unpack = 0;  ///< Until the kernel that unpacks had ended.
};

/// How a grid is cut into blocks, and what their ghost cells are. All of these are the same at every process.
struct HaloOptions {
  std::array<std::int64_t, 3> grid{1, 1, 1};  ///< Cells along x, y, z; in two dimensions 1 along z, without ghosts.
  std::array<int, 3> divide{1, 1, 1};  ///< Parts along each; their product is a multiple of the number of processes.
  std::array<bool, 3> periodic{};
  std::array<std::int64_t, 3> ghost{1, 1, 1};  ///< Ghost cells on either side; not wider than the narrowest block.
  std::size_t variables = 1;
  std::size_t cell_bytes = 8;  ///< Of one variable in one cell.
  ChannelId first_channel{};   ///< It uses as many channel ids as there are processes, from this one on.
  Path path = Path::automatic;
  HaloMode mode = HaloMode::fused;
  HaloMessages messages = HaloMessages::per_process;
  /// Of a kernel that waits for a neighbour: then the exchange fails. Worker::kForever: none.
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
  /// For arrays whose rows begin at aligned places: the rows are a multiple of so many cells apart, and the first array
  std::size_t row_step = 1;
  std::size_t lead = 0;  ///< begins so many cells behind the begin of its field.
  /// Mode `direct`, in memory of a device: kernels of the program do all exchanges, in every process (see `device` and
  /// `accompany`), and `run` is refused. Then little for a neighbour, in cells of whole words of 8 bytes, is sent word
  /// by word with the number of its exchange: no fence and no bell behind it, so about half the time.
  bool own_kernels = false;
};

/// Fills the ghost cells of the blocks of a grid from the blocks that own them: across faces, edges and corners. Blocks
/// are numbered with z the fastest, as MPI_Cart_create numbers processes, and each process has as many of them, in
/// order. The memory of a block (a *field*) holds its variables one after another, each an array with ghosts and x the
/// fastest. Ghosts beyond an edge of the grid that is not periodic are never written by it; they travel with the
/// block's own cells. `HaloOptions::row_step` and `lead` leave room between rows, and before the first one. How the
/// cells travel is `HaloOptions::mode`, the same at every process.
///
///     HaloExchange exchange(runtime, {.grid = {200, 200, 200}, .divide = {4, 4, 4}, .periodic = {true, true, true}});
///     std::vector<Memory> fields = ...;   // exchange.field_bytes(0), exchange.field_bytes(1), ...
///     co_await exchange.run(buffers);
///
/// Belongs to the worker's thread of its runtime, and goes before it.
class BRANT_API HaloExchange {
 public:
  /// Opens one channel to each process it exchanges with, itself included. Every process makes one, with the same
  /// options. Throws Error: invalid_argument (options that do not fit one another or the number of processes, ids in
  /// use), peer_lost.
  HaloExchange(Runtime& runtime, const HaloOptions& options);
  HaloExchange(HaloExchange&&) noexcept;
  HaloExchange& operator=(HaloExchange&&) noexcept;
  /// Not while a `run` is under way.
  ~HaloExchange();

  /// The blocks of this process: `blocks` of them, from number `first_block` on.
  [[nodiscard]] int first_block() const noexcept;
  [[nodiscard]] int blocks() const noexcept;
  /// Of the field of this process's i-th block. Throws invalid_argument for one it does not have.
  [[nodiscard]] std::size_t field_bytes(int i) const;
  /// Cells of its array along x, y, z, ghosts included. Throws likewise.
  [[nodiscard]] std::array<std::int64_t, 3> array_of(int i) const;
  /// Messages that one exchange sends from this process's blocks, and their bytes.
  [[nodiscard]] std::size_t messages() const noexcept;
  [[nodiscard]] std::size_t message_bytes() const noexcept;

  /// One exchange: ends when the ghosts of this process's blocks are there and their cells may be written again. One
  /// field per block, all of one kind of memory; what produces them on a device must be done. Every process runs as
  /// many exchanges as the others; one at a time.
  /// Throws Error: invalid_argument (fields missing or too small, an exchange under way), wrong_kind (kinds are mixed),
  /// and the first failure of a message, by the numbers of its blocks and the rank. After that failure the ghosts are
  /// undefined, the channels are closed, and further runs throw it again: the other processes see an end of it when
  /// this one ends. In modes `direct`, `graph` and `resident` of fields of a device they hear of it at once, and this
  /// throws when all neighbours that live have said that they no longer write into the fields: where one has not within
  /// a second, since it does not progress, the log names it. The fields may be others in each run. In mode `fused` the
  /// first run with a kind of memory allocates buffers for all messages in that kind; later ones allocate nothing but
  /// coroutine frames. `times`: so many exchanges after each other, the same at every process; in modes `graph` and
  /// `resident` without the CPU between them.
  Task<void> run(std::span<const Buffer> fields, std::uint64_t times = 1);
  /// Mode `direct` writes into the fields of other processes, which have to know them: the first `run` binds the
  /// exchange to its fields, and those of later runs are the same ones until all processes call this with others. The
  /// fields are memory of Runtime::allocate (of the host 16 KB or more), and stay until the exchange is destroyed or
  /// bound to others. In modes `stream` and `stacked` it makes the buffers and tells the device the addresses, for
  /// `device_messages`; in other modes it does nothing. Throws as `run`, and not_supported: memory that other processes
  /// cannot map; another host.
  Task<void> bind(std::span<const Buffer> fields);
  /// Mode `direct`, bound to fields of a device: what a kernel of the program's own needs to do the
  /// exchanges by itself, with brant/halo/direct_steps.cuh and so many blocks. Valid until the next `bind` or
  /// `device`: copies to the device, so ask before the kernel is launched. Throws Error: not_supported (another mode;
  /// memory of the host), invalid_argument (not bound; no blocks, or more than 65535).
  [[nodiscard]] halo::DirectPlan device(unsigned blocks);
  /// Modes `stream` and `stacked`, likewise, with brant/halo/triggered_steps.cuh: the kernel packs and unpacks, and the
  /// CPU sends and receives. Valid until the next `bind`, `run` or `device_messages`. Throws likewise.
  [[nodiscard]] halo::MessagePlan device_messages(unsigned blocks);
  /// Beside `work`, in which `kernel`, which stays, does so many exchanges: they count like those of `run`. A neighbour
  /// that leaves or dies meanwhile aborts the kernel. In modes `stream` and `stacked` the messages move in it. `work`
  /// ends when they are done (true), or the kernel has ended (false): then this throws what `run` does. The kernel
  /// lives until this has ended, and ends before the exchange is destroyed. Throws what `device` does.
  Task<void> accompany(PersistentKernel& kernel, std::uint64_t times, Task<bool> work);
  /// Of the last `run` that ended well; all 0 but in mode `fused`.
  [[nodiscard]] HaloPhases phases() const noexcept;

 private:
  std::unique_ptr<halo::Exchange> exchange_;
};

}  // namespace brant
