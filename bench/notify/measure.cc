#include "bench/notify/measure.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/notify/kernels.h"
#include "bench/runner/row.h"
#include "bench/runner/session.h"
#include "bench/runner/statistics.h"
#include "bench/runner/us_since.h"
#include "brant/ops/rma.h"
#include "port/memory.h"

namespace brant::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Word = simt::Word;

constexpr std::chrono::seconds kPatience{20};
constexpr std::uint32_t kSilentBells = 4096;

RuntimeOptions options_of(const NotifyOptions& options) {
  RuntimeOptions runtime;
  runtime.gpu = options.memory == MemoryKind::cuda ? GpuChoice::cuda : GpuChoice::emulated;
  return runtime;
}

/// One process of the benchmark.
class Notifying {
 public:
  explicit Notifying(const NotifyOptions& options)
      : options_(options),
        session_(options_of(options), "brant bench notify"),
        file_(session_.reports() ? options.json : std::string()),
        machine_(describe_machine(session_.runtime())),
        kernels_(session_.runtime().device()),
        notifier_(session_.runtime(), {.bells = 2 * kSilentBells, .waits = 2 * kSilentBells, .patience = kPatience}) {}

  void run() {
    if (session_.reports()) {
      say_head();
      if (options_.check) check_order();
      round_trip();
      round_trip_awaited();
      costs();
      stream_words();
      host_functions();
      launch_and_synchronize();
      scan();
    }
    session_.barrier();
    between_devices();
    session_.barrier();
  }

 private:
  Runtime& runtime() noexcept { return session_.runtime(); }
  Device device() const { return const_cast<Session&>(session_).runtime().device(); }

  void say_head() const {
    fmt::print("# brant bench notify: {} rounds; us\n", options_.iterations);
    fmt::print("# brant {}, {}, {}\n", machine_.brant, machine_.cpu, machine_.gpu);
    fmt::print("{:<34} {:>9} {:>9} {:>9} {:>8}\n", "what", "min us", "p50 us", "p99 us", "n");
  }

  Summary tell(const char* name, const char* text, std::vector<double> us, int ranks = 1,
               std::size_t bytes = sizeof(Word)) {
    const Summary summary = summarize(us);
    fmt::print("{:<34} {:>9.3f} {:>9.3f} {:>9.3f} {:>8}\n", text, summary.min, summary.p50, summary.p99, summary.n);
    std::fflush(stdout);
    nlohmann::ordered_json row = {
        {"bench", name},         {"model", "notify"}, {"memory", memory_kind_name(options_.memory)},
        {"trigger", "device"},   {"path", "bell"},    {"bytes", bytes},
        {"window", 1},           {"ranks", ranks},    {"n", summary.n},
        {"us", to_json(summary)}};
    add_machine(row, "", machine_);
    file_.append(row.dump());
    return summary;
  }

  void require(Status status, const char* what) const {
    if (status != Status::ok) throw Error(status, fmt::format("{}: {}", what, status_text(status)));
  }
  /// Ends as it should.
  void finish(PersistentKernel& kernel, const char* what) { require(runtime().wait(kernel.ended()).status, what); }
  void begin(PersistentKernel& kernel) { require(runtime().wait(kernel.started()).status, "the kernel does not run"); }

  /// The CPU looks at the word itself: what the least of all costs.
  void see(const Bell& bell, Word epoch) const {
    const auto until = Clock::now() + kPatience;
    for (unsigned looks = 1; static_cast<std::int64_t>(bell.epoch() - epoch) < 0; ++looks) {
      if (looks % 65536 == 0 && Clock::now() > until)
        throw Error(Status::timed_out, fmt::format("bell {} did not reach epoch {}", bell.number(), epoch));
    }
  }

  /// Rings a kernel that answers each ring, `rounds` times, and lets `answered(bell, epoch)` see the answers. Gives the
  /// microseconds of each round.
  template <typename Answered>
  std::vector<double> echo(const char* name, const notify_steps::Witness& witness, Answered&& answered,
                           bool relaxed = false, BellPlace place = BellPlace::automatic) {
    Bell go = notifier_.make({.rung_by = RungBy::host, .seen_by = SeenBy::device, .place = place});
    Bell back = notifier_.make();
    const Word rounds = options_.iterations;
    auto kernel = PersistentKernel::launch(notifier_, kernels_.echo, {}, {.name = name, .patience = kPatience},
                                           go.device(), back.device(), rounds, witness, Word{relaxed});
    begin(kernel);
    std::vector<double> us(rounds);
    for (Word epoch = 1; epoch <= rounds; ++epoch) {
      if (witness.question != nullptr)
        std::atomic_ref(*const_cast<Word*>(witness.question)).store(7 * epoch, std::memory_order_relaxed);
      const auto start = Clock::now();
      require(go.ring(epoch), "a ring");
      answered(back, epoch);
      us[epoch - 1] = us_since(start);
    }
    finish(kernel, name);
    return us;
  }

  void round_trip() {
    const auto look = [this](const Bell& bell, Word epoch) { see(bell, epoch); };
    round_trip_us_ = tell("notify_round_trip", "CPU, GPU, CPU", echo("echo", {}, look)).p50;
    relaxed_us_ = tell("notify_round_trip_relaxed", "the same, the epoch alone back", echo("echo", {}, look, true)).p50;
    try {
      const auto through_the_bus = [&](bool relaxed) { return echo("echo", {}, look, relaxed, BellPlace::bar1); };
      tell("notify_round_trip_bar1", "CPU through the bus, GPU, CPU", through_the_bus(false));
      tell("notify_round_trip_bar1_relaxed", "the same, the epoch alone back", through_the_bus(true));
    } catch (const Error& error) {
      if (error.status() != Status::not_supported) throw;
      fmt::print("# {}\n", error.what());
    }
  }

  /// As programs do it: with an operation that progress completes.
  void round_trip_awaited() {
    const auto wait = [this](Bell& bell, Word epoch) { require(runtime().wait(bell.when(epoch)).status, "a bell"); };
    tell("notify_round_trip_op", "the same, with an operation", echo("echo", {}, wait));
  }

  void check_order() {
    Memory words = runtime().allocate(MemoryKind::pinned, 4096);
    auto* const question = static_cast<Word*>(words.data());
    auto* const answer = question + 64;
    echo("check", {question, answer}, [&](const Bell& bell, Word epoch) {
      see(bell, epoch);
      const Word found = std::atomic_ref(*answer).load(std::memory_order_relaxed);
      if (found != 7 * epoch + 1) {
        throw Error(Status::internal, fmt::format("epoch {}: what was written before the ring is not there: {} for {}",
                                                  epoch, found, 7 * epoch + 1));
      }
    });
    fmt::print("# {} rings each way brought what was written before them\n", options_.iterations);
  }

  /// Seen from the kernel. A look at memory of the host is a round trip on the bus; what the CPU rings is seen one such
  /// look later on average, which leaves the other way.
  void costs() {
    Bell seen = notifier_.make({.rung_by = RungBy::host, .seen_by = SeenBy::device});
    Bell rung = notifier_.make();
    Memory results = runtime().allocate(options_.memory, notify_steps::kCosts * sizeof(Word));
    const Word rounds = options_.iterations;
    auto kernel = PersistentKernel::launch(notifier_, kernels_.cost, {}, {.name = "cost", .patience = kPatience},
                                           seen.device(), rung.device(), rounds, static_cast<Word*>(results.data()));
    finish(kernel, "cost");
    std::vector<Word> ns(notify_steps::kCosts);
    runtime().copy(std::span(ns), results);
    const auto each = [&](notify_steps::Cost cost) {
      return static_cast<double>(ns[cost]) / 1e3 / static_cast<double>(rounds);
    };
    const double look_us = each(notify_steps::kLooks);
    tell("notify_device_look", "a look of the GPU at the host", {look_us});
    tell("notify_device_ring", "a ring by the GPU, one of many", {each(notify_steps::kRings)});
    tell("notify_device_ring_relaxed", "a ring of the epoch alone", {each(notify_steps::kRelaxedRings)});
    tell("notify_device_release", "a release of device scope", {each(notify_steps::kDeviceReleases)});
    tell("notify_device_to_host", "GPU to CPU, by difference", {std::max(0.0, round_trip_us_ - look_us)});
    tell("notify_device_to_host_relaxed", "the same, the epoch alone", {std::max(0.0, relaxed_us_ - look_us)});
  }

  void stream_words() {
    Stream stream = device().create_stream();
    Bell ring = notifier_.make();
    if (ring.enqueue_ring(stream, 1) == Status::not_supported) {
      fmt::print("# streams of this device write no words\n");
      return;
    }
    require(stream.synchronize(), "a stream");
    Bell go = notifier_.make({.rung_by = RungBy::host, .seen_by = SeenBy::device});
    const std::size_t rounds = std::max<std::size_t>(1, options_.iterations / 10);
    std::vector<double> rung(rounds), released(rounds), behind(rounds);
    for (std::size_t i = 0; i < rounds; ++i) {
      auto start = Clock::now();
      require(ring.enqueue_ring(stream, i + 2), "a ring by a stream");
      see(ring, i + 2);
      rung[i] = us_since(start);
      require(go.enqueue_wait(stream, i + 1), "a wait of a stream");
      require(ring.enqueue_ring(stream, i + 2), "a ring by a stream");
      start = Clock::now();
      require(go.ring(i + 1), "a ring");
      require(stream.synchronize(), "a stream");
      released[i] = us_since(start);
    }
    for (std::size_t i = 0; i < rounds; ++i) {
      const auto start = Clock::now();
      require(kernels_.nothing.launch({}, stream), "a launch");
      require(ring.enqueue_ring(stream, rounds + i + 2), "a ring by a stream");
      see(ring, rounds + i + 2);
      behind[i] = us_since(start);
    }
    tell("notify_stream_ring", "a stream rings, posted by the CPU", std::move(rung));
    tell("notify_stream_wait", "a stream that waits is let go", std::move(released));
    tell("notify_launch_stream_ring", "launch, and a ring of the stream", std::move(behind));
  }

  /// What bells are instead of, too: a function of the CPU that the stream calls, which rings.
  void host_functions() {
    Word calls = 0;  // there as long as the stream, which may call still
    Stream stream = device().create_stream();
    port::Streams& streams = *device().inner().streams();
    const port::Streams::HostFunction count = [](void* word) noexcept {
      std::atomic_ref(*static_cast<Word*>(word)).fetch_add(1, std::memory_order_release);
    };
    const std::size_t rounds = std::max<std::size_t>(1, options_.iterations / 10);
    const auto look = [&](Word wanted) {
      const auto until = Clock::now() + kPatience;
      for (unsigned looks = 1; std::atomic_ref(calls).load(std::memory_order_acquire) != wanted; ++looks) {
        if (looks % 65536 == 0 && Clock::now() > until)
          throw Error(Status::timed_out, fmt::format("a stream has called the host {} times, not {}", calls, wanted));
      }
    };
    std::vector<double> alone(rounds), behind(rounds);
    for (std::size_t i = 0; i < rounds; ++i) {
      auto start = Clock::now();
      require(streams.call_host(count, &calls, stream), "a function of the host");
      look(2 * i + 1);
      alone[i] = us_since(start);
      start = Clock::now();
      require(kernels_.nothing.launch({}, stream), "a launch");
      require(streams.call_host(count, &calls, stream), "a function of the host");
      look(2 * i + 2);
      behind[i] = us_since(start);
    }
    require(stream.synchronize(), "a stream");
    tell("notify_host_function", "a stream calls the CPU", std::move(alone));
    tell("notify_launch_host_function", "launch, and a call of the CPU", std::move(behind));
  }

  /// What bells are instead of.
  void launch_and_synchronize() {
    Stream stream = device().create_stream();
    const std::size_t rounds = std::max<std::size_t>(1, options_.iterations / 10);
    std::vector<double> us(rounds);
    for (double& sample : us) {
      const auto start = Clock::now();
      require(kernels_.nothing.launch({}, stream), "a launch");
      require(stream.synchronize(), "a stream");
      sample = us_since(start);
    }
    tell("notify_launch_synchronize", "launch and synchronize", std::move(us));
  }

  /// What bells that do not ring cost each progress.
  void scan() {
    const auto progress_us = [&] {
      std::vector<double> us;
      constexpr int kTimes = 64;
      for (int i = 0; i < 200; ++i) {
        const auto start = Clock::now();
        for (int k = 0; k < kTimes; ++k) runtime().worker().progress();
        us.push_back(us_since(start) / kTimes);
      }
      return summarize(us).p50;
    };
    const double without = progress_us();
    std::vector<Bell> bells;
    const auto waits = std::make_unique<Op[]>(kSilentBells);
    for (std::uint32_t i = 0; i < kSilentBells; ++i) {
      bells.push_back(notifier_.make());
      const Status status = bells.back().post_when(waits[i], 1);
      if (status != Status::in_progress) throw Error(status, "a bell that nobody rings");
    }
    const double with = progress_us();
    tell("notify_scan_4096", "progress beside 4096 silent bells", {std::max(0.0, with - without)});
    bells.clear();  // what waits is canceled
    runtime().worker().progress();
  }

  /// A bell of each of the two processes, which the other's kernel rings.
  struct BellPair {
    BellPair(Notifying& self, Rank partner)
        : own(self.notifier_.make({.rung_by = RungBy::peer, .seen_by = SeenBy::device, .peer = partner})) {
      const BellTicket ticket = own.ticket();
      self.session_.partner().send_block(ticket.bytes());
      const std::vector<std::byte> theirs = self.session_.partner().receive_block();
      peers = PeerBell(self.runtime(), partner, BellTicket(theirs));
    }

    Bell own;
    PeerBell peers;
  };

  void between_devices() {
    const Rank partner = session_.channel_partner();
    play(partner);
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{1024}, Landing::kBytes}) put_and_ring(partner, bytes);
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{1024}}) lines(partner, bytes);
  }

  void play(Rank partner) {
    const BellPair bells(*this, partner);
    Memory result = runtime().allocate(options_.memory, sizeof(Word));
    session_.barrier();
    auto kernel = PersistentKernel::launch(notifier_, kernels_.play, {}, {.name = "play", .patience = kPatience},
                                           bells.own.device(), bells.peers.device(), Word{options_.iterations},
                                           Word{session_.leads()}, static_cast<Word*>(result.data()));
    finish(kernel, "play");
    tell_one_way("notify_device_to_device", "GPU to GPU, one way", sizeof(Word), result);
  }

  /// Device memory of the two processes, each of which reaches the other's.
  struct Landing {
    static constexpr std::size_t kBytes = 65536;

    Landing(Notifying& self, Rank partner)
        : memory(self.runtime().allocate(self.options_.memory, kBytes)),
          local(self.runtime().allocate(self.options_.memory, kBytes)),
          result(self.runtime().allocate(self.options_.memory, 2 * sizeof(Word))),
          segment(expose(self.runtime(), memory)) {
      const std::vector<std::byte> zeros(kBytes);
      self.runtime().copy(memory, std::span(zeros));
      self.runtime().copy(local, std::span(zeros));
      self.runtime().copy(result, std::span(zeros).first(2 * sizeof(Word)));
      const SegmentTicket ticket = segment.ticket();
      self.session_.partner().send_block(ticket.bytes());
      const std::vector<std::byte> theirs = self.session_.partner().receive_block();
      remote = RemoteSegment(self.runtime(), partner, SegmentTicket(theirs));
      if (remote.device_pointer() == nullptr) {
        throw Error(Status::not_supported, "kernels do not reach memory of the other device: they need a mapping");
      }
    }

    Memory memory, local, result;
    Segment segment;
    RemoteSegment remote;
  };

  void tell_one_way(const char* name, const char* text, std::size_t bytes, const Memory& nanoseconds) {
    std::vector<Word> ns(nanoseconds.bytes() / sizeof(Word));
    runtime().copy(std::span(ns), nanoseconds);
    if (ns.size() > 1 && ns[1] != 0) {
      throw Error(Status::internal, fmt::format("{}: what was written before a ring is not there behind it", text));
    }
    const double one_way = static_cast<double>(ns[0]) / 1e3 / static_cast<double>(options_.iterations) / 2;
    if (session_.reports()) tell(name, text, {one_way}, 2, bytes);
    session_.barrier();
  }

  /// A block with a thread for each 16 bytes, as far as they go.
  [[nodiscard]] LaunchShape shape_for(std::size_t bytes) const {
    LaunchShape shape;
    if (options_.memory == MemoryKind::cuda) {
      shape.block[0] = static_cast<unsigned>(std::clamp<std::size_t>(bytes / 16, 32, 1024));
    }
    return shape;
  }

  [[nodiscard]] notify_steps::Play play_of(const Landing& landing, std::size_t bytes) const {
    notify_steps::Play play;
    play.rounds = options_.iterations;
    play.leads = session_.leads();
    play.check = options_.check;
    play.count = bytes / sizeof(Word);
    play.words = static_cast<Word*>(landing.local.data());
    play.nanoseconds = static_cast<Word*>(landing.result.data());
    play.wrong = play.nanoseconds + 1;
    return play;
  }

  void put_and_ring(Rank partner, std::size_t bytes) {
    const BellPair bells(*this, partner);
    const Landing landing(*this, partner);
    session_.barrier();
    auto kernel = PersistentKernel::launch(notifier_, kernels_.play_put, shape_for(bytes),
                                           {.name = "put and ring", .patience = kPatience}, bells.own.device(),
                                           bells.peers.device(), landing.remote.device_pointer(),
                                           static_cast<const Word*>(landing.memory.data()), play_of(landing, bytes));
    finish(kernel, "put and ring");
    tell_one_way("notify_put_and_ring", fmt::format("put {} B and ring, one way", bytes).c_str(), bytes,
                 landing.result);
  }

  void lines(Rank partner, std::size_t bytes) {
    const Landing landing(*this, partner);
    session_.barrier();
    auto kernel = PersistentKernel::launch(
        notifier_, kernels_.play_lines, shape_for(2 * bytes), {.name = "lines", .patience = kPatience},
        static_cast<notify::Line*>(landing.remote.device_pointer()),
        static_cast<const notify::Line*>(landing.memory.data()), play_of(landing, bytes));
    finish(kernel, "lines");
    tell_one_way("notify_put_lines", fmt::format("{} B in lines, one way", bytes).c_str(), bytes, landing.result);
  }

  const NotifyOptions options_;
  Session session_;
  RowFile file_;
  const Machine machine_;
  NotifyKernels kernels_;
  Notifier notifier_;
  double round_trip_us_ = 0;
  double relaxed_us_ = 0;
};

}  // namespace

void measure_notify(const NotifyOptions& options) { Notifying(options).run(); }

}  // namespace brant::bench
