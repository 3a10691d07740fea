#include "bench/interference/measure.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "bench/interference/check.h"
#include "bench/interference/rows.h"
#include "bench/interference/sweeper.h"
#include "bench/runner/session.h"
#include "bench/runner/us_since.h"

namespace brant::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Word = simt::Word;
using namespace interference_steps;

constexpr std::chrono::seconds kPatience{30};
/// The cases take turns, so that a slow moment of the machine hits all of them.
constexpr std::size_t kTurns = 4;
/// Blocks of an emulated device are threads of the CPU, which wait for each other.
constexpr unsigned kEmulatedBlocks = 4;
/// Sweeps of a round that no send ends: as many as beside the last send, but for so long that the clock of a device
/// can tell.
constexpr double kRoundMinUs = 50;
constexpr double kSweepsForClockMax = 64;
constexpr Word kSweepsMax = 4096;
constexpr Word kAnsweredSweeps = 16;

RuntimeOptions runtime_options(const InterferenceOptions& options) {
  RuntimeOptions wanted = RuntimeOptions::from_environment();
  if (options.memory == MemoryKind::cuda) wanted.gpu = GpuChoice::cuda;
  if (options.memory == MemoryKind::emulated) wanted.gpu = GpuChoice::emulated;
  return wanted;
}

/// Microseconds of one case.
struct Samples {
  std::vector<double> send;
  std::vector<double> alone;
  std::vector<double> with_bells;
  std::vector<double> with_sends;
};
using AllSamples = std::array<Samples, kInterferenceCases.size()>;

Samples& samples_of(AllSamples& all, InterferenceCase which) { return all[static_cast<std::size_t>(which)]; }

/// One process of the benchmark: the first one has the kernel and sends, the other one receives.
class Interfering {
 public:
  explicit Interfering(const InterferenceOptions& options)
      : options_(options),
        session_(runtime_options(options), "brant bench interference"),
        file_(session_.reports() ? options.json : std::string()),
        machine_(describe_machine(session_.runtime())) {
    if (!session_.runtime().device().info().kernels) {
      session_.barrier();  // whoever ends first would look dead to one that still connects
      throw Error(Status::not_supported,
                  fmt::format("no device here runs kernels beside {} memory: --memory emulated measures on threads of "
                              "the CPU, and so does BRANT_GPU=emulated with --memory pinned",
                              memory_kind_name(options.memory)));
    }
    if (!session_.reports()) return;
    notifier_.emplace(runtime(), NotifierOptions{.patience = kPatience});
    kernels_.emplace(runtime().device());
    all_blocks_ = options.blocks != 0 ? options.blocks : blocks_at_once();
  }

  void run() {
    say_head();
    for (const std::size_t bytes : options_.sizes) {
      session_.use(options_.memory, options_.path, bytes);
      measure(bytes, 1, false);
      measure(bytes, all_blocks_, true);
    }
    session_.barrier();
  }

 private:
  Runtime& runtime() noexcept { return session_.runtime(); }

  /// In memory of a GPU sends may go by kernels, which need room for a block.
  unsigned blocks_at_once() {
    if (runtime().device_kind() == MemoryKind::emulated) return kEmulatedBlocks;
    LaunchShape shape;
    shape.block[0] = 1024;
    const unsigned room = PersistentKernel::blocks_at_once(*notifier_, kernels_->play, shape);
    return std::max(options_.memory == MemoryKind::cuda && room > 1 ? room - 1 : room, 1u);
  }

  void say_head() const {
    if (!session_.reports()) return;
    fmt::print(
        "# brant bench interference: 2 ranks, {} memory, path {}, {} rounds; slowdown: of p50, to the same beside "
        "nothing (sends: to ssb)\n",
        memory_kind_name(options_.memory), path_name(options_.path), options_.iterations);
    fmt::print("# brant {}, {}, {}\n{}\n", machine_.brant, machine_.cpu, machine_.gpu, interference_header());
  }

  void measure(std::size_t bytes, unsigned blocks, bool all) {
    if (session_.reports()) {
      sweeper_.emplace(runtime(), *notifier_, *kernels_, options_.memory, bytes, blocks, rounds_);
    }
    if (options_.check) check(bytes);
    AllSamples samples;
    for (std::size_t turn = 0; turn < kTurns; ++turn) {
      const std::size_t rounds = options_.iterations * (turn + 1) / kTurns - options_.iterations * turn / kTurns;
      if (rounds == 0) continue;
      for (const InterferenceCase which : kInterferenceCases) take_turn(which, bytes, rounds, samples);
    }
    if (!session_.reports()) return;
    path_ = path_name(session_.channel().path_of(sweeper_->message()).or_throw("the path of the sends"));
    report(bytes, all, samples);
    sweeper_.reset();
  }

  void take_turn(InterferenceCase which, std::size_t bytes, std::size_t rounds, AllSamples& samples) {
    const std::size_t all = options_.warmup + rounds;
    if (!session_.reports()) {
      for (std::size_t i = 0; i < all; ++i) receive(bytes);
      return;
    }
    if (which != InterferenceCase::ssb) sweeper_->begin(which);
    Samples unused;
    for (std::size_t i = 0; i < all; ++i) {
      Samples& to = i < options_.warmup ? unused : samples_of(samples, which);
      which == InterferenceCase::ssb ? send_alone(to) : send_beside(to);
    }
    if (which != InterferenceCase::ssb) sweeper_->end();
  }

  /// What the receiving process does of a round: its receive is there before the kernel begins.
  void receive(std::size_t bytes) {
    const Operation landed = session_.channel().recv(session_.landing(bytes));
    session_.barrier();
    require(runtime().wait_for(kPatience, landed).status, "a receive");
  }

  void require(Status status, const char* what) const {
    if (status != Status::ok) throw Error(status, fmt::format("{}: {}", what, status_text(status)));
  }

  double timed_send() {
    const auto start = Clock::now();
    const Operation sent = session_.channel().send(sweeper_->message());
    require(runtime().wait_for(kPatience, sent).status, "a send");
    return us_since(start);
  }

  void send_alone(Samples& to) {
    session_.barrier();
    sweeper_->write();
    to.send.push_back(timed_send());
  }

  /// A round beside a send, and two without one: all alike, but for bells.
  void send_beside(Samples& to) {
    session_.barrier();
    const Word epoch = sweeper_->start(0, kRingsOnce);
    sweeper_->see(epoch);
    to.send.push_back(timed_send());
    sweeper_->hear(epoch);
    const SweepLap beside_send = sweeper_->finish();
    to.with_sends.push_back(beside_send.us);
    const double for_clock = std::min(kRoundMinUs / std::max(beside_send.us, 1e-3), kSweepsForClockMax);
    const Word sweeps = std::clamp(beside_send.sweeps, static_cast<Word>(for_clock) + 1, kSweepsMax);
    sweeper_->start(sweeps, kSilent);
    to.alone.push_back(sweeper_->finish().us);
    sweeper_->see(sweeper_->start(sweeps, kRingsOnce | kRings) + sweeps);
    to.with_bells.push_back(sweeper_->finish().us);
  }

  // Checked
  // ------------------------------------------------------------------------------------------------------------------

  void check(std::size_t bytes) {
    for (const InterferenceCase which : kInterferenceCases) {
      if (!session_.reports()) {
        receive(bytes);
        std::vector<std::byte> landed(bytes);
        runtime().copy(std::span(landed), session_.landing(bytes));
        session_.partner().send_block(landed);
        continue;
      }
      const Word rings = which == InterferenceCase::ssb ? check_alone() : check_send(which) + check_rings(which);
      fmt::print("# {}, {} block{}, {}: {} rings were seen once each, and every word written and sent is right\n",
                 interference_case_name(which), sweeper_->blocks(), sweeper_->blocks() == 1 ? "" : "s",
                 format_size(bytes), rings);
    }
  }

  [[nodiscard]] std::vector<Word> landed() {
    const std::vector<std::byte> bytes = session_.partner().receive_block();
    std::vector<Word> words(bytes.size() / sizeof(Word));
    std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
  }

  Word check_alone() {
    session_.barrier();
    sweeper_->write();
    static_cast<void>(timed_send());
    check_words(sweeper_->words(), sweeper_->round(), 0, "what the kernel wrote");
    check_words(landed(), sweeper_->round(), 0, "what was received");
    return 0;
  }

  /// A ring is seen when its epoch is there, and that epoch is the one after the last.
  void see_once(Word epoch) {
    require(runtime().wait_for(kPatience, sweeper_->rung().when(epoch)).status, "a bell");
    expect_epoch(sweeper_->rung().epoch(), epoch);
  }
  void expect_epoch(Word found, Word epoch) {
    if (found == epoch) return;
    throw Error(Status::internal, fmt::format("bell {} is at epoch {}, where it was rung for epoch {} last",
                                              sweeper_->rung().number(), found, epoch));
  }

  /// One ring, and the send that it allows.
  Word check_send(InterferenceCase which) {
    const bool overwritten = which == InterferenceCase::psb;
    sweeper_->begin(which);
    session_.barrier();
    const Word before = sweeper_->rung().epoch();
    const Word epoch = sweeper_->start(0, kRingsOnce);
    expect_epoch(before, epoch - 1);
    see_once(epoch);
    static_cast<void>(timed_send());
    const std::vector<Word> received = landed();
    sweeper_->hear(epoch);
    const Word sweeps = sweeper_->finish().sweeps;
    expect_epoch(sweeper_->rung().epoch(), epoch);
    sweeper_->end();
    check_words(received, sweeper_->round(), overwritten ? std::nullopt : std::optional<Word>(0), "what was received");
    check_words(sweeper_->words(which), sweeper_->round(), sweeps, "what the kernel swept");
    if (!overwritten) check_words(sweeper_->words(), sweeper_->round(), 0, "what the kernel wrote");
    return 1;
  }

  /// A ring behind each sweep, which the CPU answers.
  Word check_rings(InterferenceCase which) {
    sweeper_->begin(which);
    const Word first = sweeper_->start(kAnsweredSweeps, kRingsOnce | kRings | kAnswered);
    Word seen = 0;
    for (; seen <= kAnsweredSweeps; ++seen) {
      see_once(first + seen);
      sweeper_->hear(first + seen);
    }
    sweeper_->finish();
    expect_epoch(sweeper_->rung().epoch(), first + kAnsweredSweeps);
    sweeper_->end();
    check_words(sweeper_->words(which), sweeper_->round(), kAnsweredSweeps, "what the kernel swept");
    return seen;
  }

  // Told
  // ------------------------------------------------------------------------------------------------------------------

  void report(std::size_t bytes, bool all, AllSamples& samples) {
    InterferenceRow row;
    row.all_blocks = all;
    row.blocks = sweeper_->blocks();
    row.memory = options_.memory;
    row.bytes = bytes;
    row.check = options_.check;
    const auto tell = [&](Disturbed what, Beside beside, std::vector<double>& us) {
      row.what = what;
      row.beside = beside;
      row.us = summarize(us);
      row.path = what == Disturbed::send || beside == Beside::sends ? path_ : std::string();
      if (beside == Beside::nothing) row.baseline_p50 = row.us.p50;
      fmt::print("{}\n", interference_line(row));
      file_.append(to_json(row, machine_));
    };
    tell(Disturbed::send, Beside::nothing, samples_of(samples, InterferenceCase::ssb).send);
    const double send_alone_p50 = row.us.p50;
    for (const InterferenceCase which : kInterferenceCases) {
      if (which == InterferenceCase::ssb) continue;
      Samples& of_case = samples_of(samples, which);
      row.which = which;
      row.baseline_p50 = send_alone_p50;
      tell(Disturbed::send, Beside::sweeps, of_case.send);
      tell(Disturbed::sweep, Beside::nothing, of_case.alone);
      tell(Disturbed::sweep, Beside::bells, of_case.with_bells);
      tell(Disturbed::sweep, Beside::sends, of_case.with_sends);
    }
    std::fflush(stdout);
  }

  const InterferenceOptions options_;
  Session session_;
  RowFile file_;
  const Machine machine_;
  std::optional<Notifier> notifier_;
  std::optional<InterferenceKernels> kernels_;
  std::optional<Sweeper> sweeper_;
  unsigned all_blocks_ = 1;
  Word rounds_ = 0;
  std::string path_;
};

}  // namespace

void require_sense(const InterferenceOptions& options) {
  for (const std::size_t bytes : options.sizes) {
    if (bytes == 0 || bytes % sizeof(Word) != 0) {
      throw Error(Status::invalid_argument,
                  fmt::format("--sizes: the kernels write words of {} bytes, and {} is no multiple of that: use {}",
                              sizeof(Word), bytes, (bytes / sizeof(Word) + 1) * sizeof(Word)));
    }
    if (bytes > kInterferenceBytesMax) {
      throw Error(Status::invalid_argument,
                  fmt::format("--sizes: {} is more than {}, of which there must be room for two beside each other: use "
                              "smaller sizes",
                              format_size(bytes), format_size(kInterferenceBytesMax)));
    }
  }
}

void measure_interference(const InterferenceOptions& options) { Interfering(options).run(); }

}  // namespace brant::bench
