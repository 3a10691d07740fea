#include "run.h"

#include <chrono>
#include <cstdio>

#include <fmt/format.h>

#include "brant/coll/collectives.h"
#include "computer.h"
#include "program.h"
#include "report.h"

namespace heat {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration time) noexcept { return std::chrono::duration<double, std::micro>(time).count(); }

void say(const brant::Team& team, const std::string& text) {
  if (team.rank() != 0) return;
  fmt::print("{}", text);
  std::fflush(stdout);
}

/// One run in one mode. Everything it has goes with it, but for the block.
class Run {
 public:
  Run(brant::GlobalSpace& space, brant::Team& team, const Block& block, const Options& options, Mode mode)
      : team_(team),
        block_(block),
        options_(options),
        computer_(make_computer(space.runtime(), block)),
        exchange_(mode == Mode::one_sided ? make_puts(space, block)
                                          : make_messages(space.runtime(), block, options.steps)) {
    outcome_.mode = mode;
    outcome_.blocks = block.cut().blocks;
    outcome_.memory = block.kind();
    outcome_.sent_bytes = block.sent_bytes();
    outcome_.steps_us.reserve(static_cast<std::size_t>(options.steps - options.warmup));
  }

  Outcome steps() {
    computer_->begin(first_temperatures(block_.cut().block(team_.rank()), options_.check));
    team_.run(brant::barrier()).or_throw("the processes did not begin together");
    printed_ = Clock::now();
    for (std::int64_t step = 0; step < options_.steps; ++step) {
      const Clock::time_point begun = Clock::now();
      one_step(step);
      if (options_.every_step_reduces()) reduce(step + 1);
      const Clock::duration spent = Clock::now() - begun;
      if (step >= options_.warmup) outcome_.steps_us.push_back(microseconds(spent));
      look(step + 1);
    }
    exchange_->end();
    team_.run(brant::barrier()).or_throw("the processes did not end together");
    return std::move(outcome_);
  }

 private:
  void one_step(std::int64_t step) {
    const double power = power_in(block_.body(), options_, step);
    exchange_->begin(step);
    computer_->start(Part::pack, step, power);
    computer_->start(Part::inner, step, power);
    computer_->finish(Part::pack);
    exchange_->send(step);
    if (computer_->works_here()) computer_->finish(Part::inner);
    exchange_->wait(step);
    computer_->start(Part::surface, step, power);
    computer_->finish(Part::surface);
    if (!computer_->works_here()) computer_->finish(Part::inner);
  }

  /// The average temperature when so many steps are done.
  void reduce(std::int64_t done) {
    double sum = computer_->sum(done);
    const std::span<double> all(&sum, 1);
    team_.run(brant::allreduce(all, all, brant::ReduceOp::sum)).or_throw("the temperatures were not added up");
    outcome_.average = sum / static_cast<double>(volume(options_.size));
  }

  void look(std::int64_t done) {
    const bool last = done == options_.steps;
    const bool prints = last || (options_.print > 0 && done % options_.print == 0);
    const bool reduces = prints || (options_.reduce > 0 && done % options_.reduce == 0);
    if (reduces && !options_.every_step_reduces()) reduce(done);
    if (!prints) return;
    const Clock::time_point now = Clock::now();
    say(team_, fmt::format("step {:>8}: average temperature {:.9f}, {:.3f} ms\n", done, outcome_.average,
                           microseconds(now - printed_) / 1e3));
    printed_ = now;
  }

  brant::Team& team_;
  const Block& block_;
  const Options& options_;
  std::unique_ptr<Computer> computer_;
  std::unique_ptr<Exchange> exchange_;  ///< Goes first: it uses the block's memory.
  Outcome outcome_;
  Clock::time_point printed_;
};

Outcome run_mode(brant::GlobalSpace& space, brant::Team& team, const Decomposition& cut, brant::MemoryKind kind,
                 const Options& options, Mode mode) {
  const Block block(space, team, cut, kind);
  say(team, fmt::format("heat3d, {}: {} cells in {} blocks, {} memory, {} steps{}\n", name_of(mode),
                        to_text(cut.global), to_text(cut.blocks), brant::memory_kind_name(kind), options.steps,
                        options.every_step_reduces() ? ", each with the average" : ""));
  const brant::PathUse before = space.runtime().path_use();
  Outcome outcome = Run(space, team, block, options, mode).steps();
  const brant::PathUse after = space.runtime().path_use();
  for (std::size_t path = 0; path < brant::kPathCount; ++path) {
    outcome.path_bytes.push_back(static_cast<double>(after.bytes[path] - before.bytes[path]));
  }
  if (!options.check) return outcome;
  check(space, team, block, options);
  say(team, fmt::format("check, {}: all {} cells agree with a serial run to the last bit after {} steps\n",
                        name_of(mode), volume(cut.global), options.steps));
  return outcome;
}

brant::MemoryKind kind_of(brant::Runtime& runtime, const Options& options) {
  const brant::MemoryKind kind = options.memory.value_or(runtime.device_kind());
  if (!options.needs_device || !brant::host_accessible(kind)) return kind;
  throw brant::Error(brant::Status::not_supported,
                     "--memory device: this process has no device; use --memory host, or emulated");
}

void require_same_averages(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) {
    if (outcome.average == outcomes[0].average) continue;
    throw brant::Error(brant::Status::internal,
                       fmt::format("the average temperatures differ: {} {}, {} {}", name_of(outcomes[0].mode),
                                   outcomes[0].average, name_of(outcome.mode), outcome.average));
  }
}

}  // namespace

double power_in(const Body& body, const Options& options, std::int64_t step) noexcept {
  return step < (options.steps + 1) / 2 ? body.power : 0.0;
}

std::vector<double> first_temperatures(const Box& box, bool noise) {
  std::vector<double> cells;
  cells.reserve(static_cast<std::size_t>(volume(extent_of(box))));
  for (std::int64_t z = box.low.z; z < box.high.z; ++z) {
    for (std::int64_t y = box.low.y; y < box.high.y; ++y) {
      for (std::int64_t x = box.low.x; x < box.high.x; ++x) cells.push_back(noise ? initial_value(x, y, z) : 0.0);
    }
  }
  return cells;
}

void run_job(brant::Runtime& runtime, const Options& options) {
  const brant::MemoryKind kind = kind_of(runtime, options);
  const Decomposition cut = decompose(options.size, runtime.size());
  const double cells = static_cast<double>(volume(extent_of(cut.block(0))));  // no other block is larger
  apps::require_memory(runtime, kind, 2 * sizeof(double) * cells, to_text(options.size) + " cells");
  if (options.check) require_checkable(options);
  brant::Team team = brant::Team::world(runtime);
  brant::GlobalSpace space(runtime);
  std::vector<Outcome> outcomes;
  for (const Mode mode : options.modes) {
    outcomes.push_back(run_mode(space, team, cut, kind, options, mode));
    say(team, summary(outcomes.back(), options));
  }
  require_same_averages(outcomes);
  if (team.rank() == 0 && !options.json.empty()) append_rows(outcomes, options, runtime);
  team.run(brant::barrier()).or_throw("the processes did not end together");
}

}  // namespace heat
