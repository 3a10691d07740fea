#include "bench/interference/sweeper.h"

#include <atomic>
#include <chrono>
#include <span>
#include <string>
#include <thread>

#include <fmt/format.h>

namespace brant::bench {
namespace {

using Clock = std::chrono::steady_clock;
using interference_steps::Lap;
using Word = simt::Word;

/// Of the kernel; and of the CPU, which hears why the kernel gave up.
constexpr std::chrono::seconds kKernelPatience{15};
constexpr std::chrono::seconds kHostPatience{25};
constexpr std::chrono::seconds kEndPatience{10};
constexpr unsigned kLooksPerYield = 256;
constexpr unsigned kThreadsMax = 1024;

void require(Status status, const std::string& what) {
  if (status != Status::ok) throw Error(status, fmt::format("{}: {}", what, status_text(status)));
}

}  // namespace

Sweeper::Sweeper(Runtime& runtime, Notifier& notifier, const InterferenceKernels& kernels, MemoryKind memory,
                 std::size_t bytes, unsigned blocks, Word& rounds)
    : runtime_(runtime),
      notifier_(notifier),
      kernels_(kernels),
      bytes_(bytes),
      blocks_(blocks),
      rounds_(rounds),
      area_(runtime.allocate(memory, 2 * bytes + kFurtherOn)),
      last_(runtime.allocate(runtime.device_kind(), sizeof(Word))),
      lap_(runtime.allocate(MemoryKind::pinned, interference_steps::kLapWords * sizeof(Word))),
      rung_(notifier.make()),
      heard_(notifier.make({.rung_by = RungBy::host, .seen_by = SeenBy::device})),
      met_(notifier.make({.rung_by = RungBy::device, .seen_by = SeenBy::device})),
      arrivals_(notifier.fan_in(blocks)),
      stream_(runtime.device().create_stream()) {
  const Word none = 0;
  runtime_.copy(last_, ConstBuffer(&none, sizeof(none)));
}

LaunchShape Sweeper::shape() const noexcept {
  LaunchShape shape;
  shape.grid[0] = blocks_;
  if (runtime_.device_kind() == MemoryKind::cuda) shape.block[0] = kThreadsMax;
  return shape;
}

void Sweeper::write() {
  ++rounds_;
  const Word count = bytes_ / sizeof(Word);
  require(kernels_.write.launch(shape(), stream_, static_cast<Word*>(area_.data()), count, rounds_), "a launch");
  require(stream_.synchronize(), "a kernel that writes what is sent");
}

void Sweeper::begin(InterferenceCase which) {
  name_ = interference_case_name(which);
  interference_steps::Scene scene;
  scene.words = static_cast<Word*>(area_.data());
  scene.beside = scene.words + beside_offset(which, bytes_) / sizeof(Word);
  scene.count = bytes_ / sizeof(Word);
  scene.rung = rung_.device();
  scene.heard = heard_.device();
  scene.met = met_.device();
  scene.swept = swept_;
  scene.last = static_cast<Word*>(last_.data());
  scene.lap = static_cast<Word*>(lap_.data());
  kernel_ = PersistentKernel::launch(notifier_, kernels_.play, shape(), {.name = name_, .patience = kKernelPatience},
                                     scene, arrivals_);
  require(runtime_.wait(kernel_.started()).status, fmt::format("kernel '{}' does not run", name_));
}

Word Sweeper::start(Word sweeps, Word how) {
  const Word first = epoch_ + 1;
  if (how != interference_steps::kSilent) ++epoch_;
  if ((how & interference_steps::kRings) != 0) epoch_ += sweeps;
  require(kernel_.submit({{++rounds_, first, sweeps, how}}), fmt::format("a round of kernel '{}'", name_));
  return first;
}

void Sweeper::fail(Status status, const std::string& what) {
  static_cast<void>(runtime_.wait_for(std::chrono::seconds(1), kernel_.ended()));  // what it says is in the log
  throw Error(status, fmt::format("kernel '{}' of {} blocks, round {}: {}", name_, blocks_, rounds_, what));
}

template <typename Look>
void Sweeper::look_until(Look&& look, const char* what, Word epoch) {
  const auto until = Clock::now() + kHostPatience;
  for (unsigned looks = 1; !look(); ++looks) {
    if (looks % kLooksPerYield != 0) continue;
    std::this_thread::yield();  // blocks of an emulated device need the CPUs
    if (Clock::now() > until)
      fail(Status::timed_out, fmt::format("{} has not come after {} s: bell {} is to reach epoch {} and is at {}", what,
                                          kHostPatience.count(), rung_.number(), epoch, rung_.epoch()));
  }
}

void Sweeper::see(Word epoch) {
  look_until([&] { return static_cast<std::int64_t>(rung_.epoch() - epoch) >= 0; }, "a ring", epoch);
}

void Sweeper::hear(Word epoch) { require(heard_.ring(epoch), "a ring by the CPU"); }

SweepLap Sweeper::finish() {
  look_until([&] { return kernel_.done() == kernel_.submitted(); }, "the end of the round", epoch_);
  auto* const lap = static_cast<Word*>(lap_.data());
  const auto read = [&](Lap which) { return std::atomic_ref(lap[which]).load(std::memory_order_acquire); };
  const SweepLap found{read(Lap::kSweeps), static_cast<double>(read(Lap::kNanoseconds)) / 1e3};
  swept_ += found.sweeps + 1;  // the first one wrote what was sent
  if (found.sweeps == 0) fail(Status::internal, "it has not swept");
  return {found.sweeps, found.us / static_cast<double>(found.sweeps)};
}

void Sweeper::end() {
  kernel_.quit();
  const Status ended = runtime_.wait_for(kEndPatience, kernel_.ended()).status;
  require(ended, fmt::format("kernel '{}' has not ended as it should", name_));
}

std::vector<Word> Sweeper::words(InterferenceCase which) const {
  std::vector<Word> found(bytes_ / sizeof(Word));
  runtime_.copy(std::span(found), area_.part(beside_offset(which, bytes_), bytes_));
  return found;
}

}  // namespace brant::bench
