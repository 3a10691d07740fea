#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "brant/base/buffer.h"
#include "brant/core/path.h"

namespace brant::bench {

/// `bidirectional`: bandwidth of windows that go both ways at once.
enum class Kind { latency, bandwidth, bidirectional };

/// What the messages are: of a channel, or invocations of chares; or puts, gets and atomics, which only one side
/// makes; or puts that tell their target, which both sides make in turns; or calls of functions, which one side
/// answers; or sends and receives of MPI.
enum class Model { channel, message, put, get, fetch_add, told_put, rpc, mpi };

[[nodiscard]] constexpr bool is_one_sided(Model model) noexcept {
  return model == Model::put || model == Model::get || model == Model::fetch_add;
}

/// One side acts, and times all of what it began: a round trip that is not to be halved.
[[nodiscard]] constexpr bool is_timed_whole(Model model) noexcept { return is_one_sided(model) || model == Model::rpc; }

/// Who starts a transfer or a call: the CPU, a stream that it is queued on, or one in which it was captured. (Transfers
/// that streams trigger are always measured in graphs, and called `stream`.)
enum class Trigger { host, stream, graph };

/// Who made the memory that is exchanged. `library`: Runtime::allocate. `malloc`: plain host memory. `cuda`: plain
/// `cuMemAlloc`. `torch_like`: one large block of malloc or `cuMemAlloc`, of which messages are slices that begin at
/// odd addresses.
enum class Alloc { library, malloc, cuda, torch_like };

/// Whom to measure beside brant, in the same processes and in turns.
enum class Rival { none, ucx, nccl };

/// What the user asked for.
struct Options {
  Kind kind = Kind::latency;
  Model model = Model::channel;
  Trigger trigger = Trigger::host;
  std::vector<std::size_t> sizes;  ///< Bytes, ascending, each once.
  MemoryKind memory = MemoryKind::host;
  Alloc alloc = Alloc::library;
  Path path = Path::automatic;
  std::size_t window = 64;     ///< Bandwidth: messages before a reply.
  std::size_t iterations = 0;  ///< Timed ones per size; 0: by size.
  long warmup = -1;            ///< Not timed ones before them; -1: by size.
  bool pairs = false;          ///< More than 2 ranks: rank i with rank i + n/2, all at once.
  bool check = false;          ///< Every byte of every message, in a pass that is not timed.
  Rival rival = Rival::none;
  bool coroutines = false;  ///< co_await instead of posts: what the comfort costs.
  bool spin = false;        ///< Never sleep while waiting.
  std::string json;         ///< File to append rows to.
};

[[nodiscard]] constexpr const char* kind_name(Kind kind) noexcept {
  return kind == Kind::latency ? "latency" : kind == Kind::bandwidth ? "bandwidth" : "bidirectional";
}
/// The command that measures it, without its options.
[[nodiscard]] constexpr const char* command_name(Kind kind) noexcept {
  return kind == Kind::latency ? "bench latency" : kind == Kind::bandwidth ? "bench bandwidth" : "bench bidirectional";
}

[[nodiscard]] constexpr const char* model_name(Model model) noexcept {
  switch (model) {
    case Model::channel: return "channel";
    case Model::message: return "message";
    case Model::put: return "put";
    case Model::get: return "get";
    case Model::fetch_add: return "fetch-add";
    case Model::told_put: return "told-put";
    case Model::rpc: return "rpc";
    case Model::mpi: return "mpi";
  }
  return "";
}

[[nodiscard]] constexpr const char* trigger_name(Trigger trigger) noexcept {
  return trigger == Trigger::host ? "host" : trigger == Trigger::stream ? "stream" : "graph";
}

[[nodiscard]] constexpr const char* alloc_name(Alloc alloc) noexcept {
  switch (alloc) {
    case Alloc::library: return "library";
    case Alloc::malloc: return "malloc";
    case Alloc::cuda: return "cuda";
    case Alloc::torch_like: return "torch-like";
  }
  return "";
}

/// As rows and tables name it; empty for none.
[[nodiscard]] constexpr const char* rival_name(Rival rival) noexcept {
  return rival == Rival::none ? "" : rival == Rival::ucx ? "ucx" : "nccl";
}

/// Throws Error invalid_argument for options that do not go together.
void require_sense(const Options& options);

/// "8", "64K", "1M", "2G" (binary multiples; "64KiB" too). Throws Error invalid_argument naming the text.
std::size_t parse_size(const std::string& text);
/// "8,64K,1M": ascending, each once. Throws Error.
std::vector<std::size_t> parse_sizes(const std::string& list);
/// The powers of two from `min` to `max`, with both ends. Throws Error if min > max.
std::vector<std::size_t> sizes_between(std::size_t min, std::size_t max);

/// "8", "64K", "1M": as parse_size reads it.
std::string format_size(std::size_t bytes);

}  // namespace brant::bench
