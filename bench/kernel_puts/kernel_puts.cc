#include "bench/kernel_puts/kernel_puts.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/kernel_puts/kernels.h"
#include "bench/runner/row.h"
#include "bench/runner/session.h"
#include "brant/pgas.h"

namespace brant::bench {
namespace {

using Word = simt::Word;
using kernel_steps::Play;

constexpr std::chrono::seconds kPatience{20};
/// What one block moves at most in a round trip.
constexpr std::size_t kOneBlockMax = 64 << 10;
/// What the lines of a message may take.
constexpr std::size_t kLinesMax = 4096;
/// Larger ones are put in a sixteenth of the rounds.
constexpr std::size_t kFewRoundsAbove = 1 << 20;
constexpr unsigned kThreads = 1024;
static_assert(kPuttingBlocksMax == kernel_steps::kBlocksMax, "each has a flag");

RuntimeOptions options_of(const KernelPutsOptions& options) {
  RuntimeOptions runtime;
  runtime.gpu = options.memory == MemoryKind::cuda ? GpuChoice::cuda : GpuChoice::emulated;
  return runtime;
}

/// One process of the benchmark.
class KernelPuts {
 public:
  explicit KernelPuts(const KernelPutsOptions& options)
      : options_(options),
        session_(options_of(options), "brant bench kernel-puts"),
        file_(session_.reports() ? options.json : std::string()),
        machine_(describe_machine(session_.runtime())),
        kernels_(session_.runtime().device()),
        notifier_(session_.runtime(), {.bells = 64, .waits = 64, .patience = kPatience}),
        space_(session_.runtime()),
        segment_(space_.create(options.memory, kernel_steps::kLanding + options.sizes.back())),
        local_(session_.runtime().allocate(options.memory, options.sizes.back())),
        result_(session_.runtime().allocate(options.memory, 2 * sizeof(Word))) {
    meet();
  }

  void run() {
    say_head();
    for (const std::size_t bytes : options_.sizes) {
      if (bytes <= kOneBlockMax)
        two_ways("kernel_put_notify", "put and notify, one way", kernels_.put_notify, bytes, bytes / 16);
    }
    for (const std::size_t bytes : options_.sizes) {
      if (bytes <= kLinesMax)
        two_ways("kernel_put_lines", "words in lines, one way", kernels_.put_lines, bytes, bytes / 8);
    }
    for (const std::size_t bytes : options_.sizes) {
      if (bytes <= kOneBlockMax) one_sided("kernel_get", "get", kernels_.get, bytes, bytes / 16);
    }
    one_sided("kernel_fetch_add", "fetch and add, one thread", kernels_.fetch_add, sizeof(Word), 1, Word{0});
    one_sided("kernel_fetch_add_relaxed", "the same without order", kernels_.fetch_add, sizeof(Word), 1, Word{1});
    one_sided("kernel_barrier", "barrier", kernels_.barrier, sizeof(Word), 1);
    for (const std::size_t bytes : options_.sizes) {
      if (bytes <= kOneBlockMax / 2) continue;
      streamed("kernel_puts", bytes, 0);
      streamed("kernel_puts_notified", bytes, 1);
    }
  }

 private:
  Runtime& runtime() noexcept { return session_.runtime(); }

  void require(Status status, const char* what) const {
    if (status != Status::ok) throw Error(status, fmt::format("{}: {}", what, status_text(status)));
  }

  /// Both places, and the window into them.
  void meet() {
    const std::size_t bytes = segment_.memory().bytes;
    const GlobalPtr<std::byte> own = segment_.begin();
    session_.partner().send_block(std::as_bytes(std::span(&own, 1)));
    const std::vector<std::byte> told = session_.partner().receive_block();
    GlobalPtr<std::byte> theirs;
    if (told.size() != sizeof(theirs)) throw Error(Status::internal, "the other process sent no pointer");
    std::memcpy(&theirs, told.data(), sizeof(theirs));
    require(runtime().wait(space_.reach(theirs)).status, "the other process's segment");
    const bool first = session_.leads();
    const std::array places{first ? own : theirs, first ? theirs : own};
    window_ = space_.window(places, bytes);
  }

  void say_head() const {
    if (!session_.reports()) return;
    fmt::print("# brant bench kernel-puts: kernels that put by themselves; {} rounds\n", options_.iterations);
    fmt::print("# brant {}, {}, {}\n", machine_.brant, machine_.cpu, machine_.gpu);
    fmt::print("{:<28} {:>10} {:>7} {:>10} {:>10}\n", "what", "bytes", "blocks", "us", "GB/s");
  }

  void clear() {
    const std::vector<std::byte> zeros(segment_.memory().bytes);
    runtime().copy(segment_.memory(), std::span(zeros));
    runtime().copy(local_, std::span(zeros).first(local_.bytes()));
    runtime().copy(result_, std::span(zeros).first(result_.bytes()));
    session_.barrier();
  }

  [[nodiscard]] Play play_of(std::size_t bytes, std::size_t rounds) const {
    Play play;
    play.window = window_;
    play.rounds = rounds;
    play.leads = session_.leads() ? 1 : 0;
    play.check = options_.check ? 1 : 0;
    play.count = bytes / sizeof(Word);
    play.words = static_cast<Word*>(local_.data());
    play.nanoseconds = static_cast<Word*>(result_.data());
    play.wrong = play.nanoseconds + 1;
    return play;
  }

  [[nodiscard]] LaunchShape shape_of(unsigned blocks, std::size_t threads) const {
    LaunchShape shape;
    shape.grid[0] = blocks;
    if (options_.memory == MemoryKind::cuda)
      shape.block[0] = static_cast<unsigned>(std::clamp<std::size_t>(threads, 32, kThreads));
    return shape;
  }

  /// Runs a kernel in both processes; gives the microseconds of all rounds.
  template <typename Kernel, typename... More>
  double play(const char* name, const Kernel& kernel, const LaunchShape& shape, std::size_t bytes, std::size_t rounds,
              More... more) {
    clear();
    auto running = PersistentKernel::launch(notifier_, kernel, shape, {.name = name, .patience = kPatience},
                                            play_of(bytes, rounds), more...);
    require(runtime().wait(running.ended()).status, name);
    std::vector<Word> told(2);
    runtime().copy(std::span(told), result_);
    if (told[1] != 0)
      throw Error(Status::internal, fmt::format("{} of {} bytes: what was put before a flag is not there behind it, or "
                                                "a sum is wrong",
                                                name, bytes));
    session_.barrier();
    return static_cast<double>(told[0]) / 1e3;
  }

  void two_ways(const char* name, const char* text, const auto& kernel, std::size_t bytes, std::size_t threads) {
    const double us = play(name, kernel, shape_of(1, threads), bytes, options_.iterations);
    tell(name, text, bytes, 1, us / static_cast<double>(options_.iterations) / 2, options_.iterations);
  }

  template <typename... More>
  void one_sided(const char* name, const char* text, const auto& kernel, std::size_t bytes, std::size_t threads,
                 More... more) {
    const double us = play(name, kernel, shape_of(1, threads), bytes, options_.iterations, more...);
    tell(name, text, bytes, 1, us / static_cast<double>(options_.iterations), options_.iterations);
  }

  void streamed(const char* name, std::size_t bytes, Word told) {
    const unsigned blocks = blocks_for(bytes);
    const std::size_t rounds =
        bytes <= kFewRoundsAbove ? options_.iterations : std::max<std::size_t>(10, options_.iterations / 16);
    const double us = play(name, kernels_.stream_puts, shape_of(blocks, kThreads), bytes, rounds, told);
    tell(name, told != 0 ? "puts, each notified" : "puts", bytes, blocks, us / static_cast<double>(rounds), rounds);
  }

  /// As many as put equal parts of whole 16 bytes, and fit.
  [[nodiscard]] unsigned blocks_for(std::size_t bytes) {
    unsigned blocks = std::min(
        options_.blocks, PersistentKernel::blocks_at_once(notifier_, kernels_.stream_puts, shape_of(1, kThreads)));
    while (blocks > 1 && bytes % (std::size_t{16} * blocks) != 0) --blocks;
    return std::max(blocks, 1u);
  }

  void tell(const char* name, const char* text, std::size_t bytes, unsigned blocks, double us, std::size_t rounds) {
    if (!session_.reports()) return;
    const bool moves = bytes > sizeof(Word);
    const double gb_s = static_cast<double>(bytes) / us / 1e3;
    fmt::print("{:<28} {:>10} {:>7} {:>10.3f} {:>10}\n", text, bytes, blocks, us,
               moves ? fmt::format("{:.1f}", gb_s) : std::string("-"));
    std::fflush(stdout);
    nlohmann::ordered_json row = {{"bench", name},
                                  {"model", "pgas"},
                                  {"memory", memory_kind_name(options_.memory)},
                                  {"trigger", "device"},
                                  {"path", "kernel"},
                                  {"bytes", bytes},
                                  {"blocks", blocks},
                                  {"window", 1},
                                  {"ranks", 2},
                                  {"n", rounds},
                                  {"us", {{"min", nullptr}, {"p50", us}, {"p99", nullptr}}},
                                  {"gb_s", moves ? nlohmann::ordered_json(gb_s) : nlohmann::ordered_json()}};
    add_machine(row, "", machine_);
    file_.append(row.dump());
  }

  const KernelPutsOptions options_;
  Session session_;
  RowFile file_;
  const Machine machine_;
  PuttingKernels kernels_;
  Notifier notifier_;
  GlobalSpace space_;
  GlobalSegment segment_;
  Memory local_;
  Memory result_;  ///< Nanoseconds, and whether something was wrong.
  pgas::DeviceWindow window_;
};

}  // namespace

void measure_kernel_puts(const KernelPutsOptions& options) { KernelPuts(options).run(); }

}  // namespace brant::bench
