#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "models.h"
#include "resident.h"
#include "together.h"

namespace jacobi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSamplesOfExchanges = 20;

/// Ghosts by exchanges: where those are bound, one for each of the two fields.
class ExchangedHalo final : public Halo {
 public:
  ExchangedHalo(brant::Runtime& runtime, brant::Team& team, const Block& block, const Decomposition& cut,
                brant::HaloMode mode, brant::Path path)
      : team_(team), block_(block) {
    const int count = is_bound(mode) ? 2 : 1;
    for (int field = 0; field < count; ++field)
      exchanges_.emplace_back(runtime, exchange_of_field(cut, mode, path, field));
  }

  /// Both before the first run: a kernel that stays would be in the way.
  brant::Task<void> bind() {
    const brant::Buffer fields[] = {block_.current_field(), block_.next_field()};
    for (std::size_t i = 0; i < exchanges_.size(); ++i) co_await exchanges_[i].bind(std::span(&fields[i], 1));
  }

  void receive_ghosts() override {}
  void send_faces() override {}
  brant::Task<void> finish() override {
    const brant::Buffer field[] = {block_.current_field()};
    co_await exchanges_[next_].run(field);
    next_ = (next_ + 1) % exchanges_.size();
  }
  brant::Task<double> largest_of_all(double own) override { return largest_in(team_, own); }
  [[nodiscard]] std::size_t message_bytes() const override { return exchanges_[0].message_bytes(); }

 private:
  brant::Team& team_;
  const Block& block_;
  std::vector<brant::HaloExchange> exchanges_;
  std::size_t next_ = 0;  ///< Of the current field.
};

/// It sends messages, by kernels that stay.
bool sends_from_kernels(brant::HaloMode mode) noexcept {
  return mode == brant::HaloMode::stream || mode == brant::HaloMode::stacked;
}

/// In device memory a kernel can do both, the exchange and the sweep.
bool stays(const Block& block, brant::HaloMode mode) noexcept {
  return (mode == brant::HaloMode::direct || sends_from_kernels(mode)) && !brant::host_accessible(block.kind());
}

/// Larger blocks are swept by launches: those have more threads on an SM than a kernel that stays, which is what keeps
/// the memory busy.
constexpr std::int64_t kCellsThatStay = 128 * 128 * 128;

/// The same in all processes: by the largest block there can be.
bool sweeps_stay(const Decomposition& cut) noexcept {
  std::int64_t cells = 1;
  for (const auto axis : kAxes) cells *= (cut.global.*axis + cut.blocks.*axis - 1) / (cut.blocks.*axis);
  return cells <= kCellsThatStay;
}

/// By one kernel for all iterations.
Solution solve_by_kernel(brant::Runtime& runtime, Share& share, const Plan& plan, brant::HaloMode mode,
                         brant::Path path, bool computes) {
  Block& block = *share.blocks[0];
  const auto exchange_of = [&](int field) {
    brant::HaloOptions options = exchange_of_field(share.cut, mode, path, field);
    options.own_kernels = true;
    return brant::HaloExchange(runtime, options);
  };
  std::array exchanges = {exchange_of(0), exchange_of(1)};
  const brant::Buffer fields[] = {block.current_field(), block.next_field()};
  for (std::size_t i = 0; i < 2; ++i) runtime.run(exchanges[i].bind(std::span(&fields[i], 1)));
  ResidentSolver solver(runtime, block, exchanges, mode, plan.overlap, computes);
  runtime.run(solver.run(static_cast<std::uint64_t>(plan.warmup)));
  const Clock::time_point begin = Clock::now();
  runtime.run(solver.run(static_cast<std::uint64_t>(plan.iterations)));
  Solution solution;
  solution.iteration = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  solution.sent_bytes = static_cast<double>(exchanges[0].message_bytes());
  double exchanged = 0;
  double all = 0;
  for (const Lap& lap : solver.laps()) {
    exchanged += static_cast<double>(lap.exchange);
    all += static_cast<double>(lap.all);
    solution.samples.push_back(static_cast<double>(lap.all) * 1e-3);
  }
  // What the CPU saw, shared out as the kernel says.
  solution.communication = computes ? solution.iteration * exchanged / std::max(all, 1.0) : solution.iteration;
  if (computes) solution.compute = plan.overlap ? solution.iteration : solution.iteration - solution.communication;
  return solution;
}

}  // namespace

brant::HaloOptions exchange_of_field(const Decomposition& cut, brant::HaloMode mode, brant::Path path, int field) {
  const auto parts = [](std::int64_t blocks) { return static_cast<int>(blocks); };
  return {.grid = {cut.global.x, cut.global.y, cut.global.z},
          .divide = {parts(cut.blocks.x), parts(cut.blocks.y), parts(cut.blocks.z)},
          .first_channel = {static_cast<std::uint32_t>(field * cut.processes())},
          .path = path,
          .mode = mode,
          .row_step = kRowAlignment,
          .lead = kRowAlignment - 1};
}

std::vector<Solution> solve_with_halo(brant::Runtime& runtime, brant::Team& team, Share& share, const Plan& plan,
                                      brant::HaloMode mode, brant::Path path) {
  // A kernel that does all iterations shows nothing between them.
  if (stays(*share.blocks[0], mode) && sweeps_stay(share.cut) && plan.residual_every == 0)
    return {solve_by_kernel(runtime, share, plan, mode, path, true)};
  ExchangedHalo halo(runtime, team, *share.blocks[0], share.cut, mode, path);
  runtime.run(halo.bind());
  return {runtime.run(solve(*share.blocks[0], *share.stencils[0], halo, plan))};
}

std::vector<Solution> exchange_halo(brant::Runtime& runtime, Share& share, const Plan& plan, brant::HaloMode mode,
                                    brant::Path path) {
  if (stays(*share.blocks[0], mode) && (!sends_from_kernels(mode) || sweeps_stay(share.cut)))
    return {solve_by_kernel(runtime, share, plan, mode, path, false)};
  brant::HaloExchange exchange(runtime, exchange_of_field(share.cut, mode, path, 0));
  const brant::Buffer field[] = {share.blocks[0]->current_field()};
  runtime.run(exchange.run(field, static_cast<std::uint64_t>(plan.warmup)));
  Solution solution;
  solution.sent_bytes = static_cast<double>(exchange.message_bytes());
  for (std::int64_t left = plan.iterations, samples = kSamplesOfExchanges; left > 0; --samples) {
    const std::int64_t times = std::max<std::int64_t>(left / std::max<std::int64_t>(samples, 1), 1);
    const Clock::time_point begin = Clock::now();
    runtime.run(exchange.run(field, static_cast<std::uint64_t>(times)));
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    solution.iteration += us;
    solution.samples.push_back(us / static_cast<double>(times));
    left -= times;
  }
  solution.communication = solution.iteration;
  return {solution};
}

}  // namespace jacobi
