// Runs as every rank of a job (`brant run -n N`). BRANT_GPU decides where the field lives.
#include <memory>

#include <gtest/gtest.h>

#include "field.h"
#include "job.h"
#include "models.h"
#include "together.h"

namespace jacobi {
namespace {

/// What a process of the program has.
struct Process {
  brant::Runtime runtime;
  brant::Team team = brant::Team::world(runtime);
};
std::unique_ptr<Process> g_process;

/// One process for all tests: ranks run the same tests in the same order.
class JobEnvironment final : public testing::Environment {
 public:
  void SetUp() override { g_process = std::make_unique<Process>(); }
  void TearDown() override { g_process.reset(); }
};
const testing::Environment* const g_environment = testing::AddGlobalTestEnvironment(new JobEnvironment);

/// A process's share of a grid of 8 x 8 x 8 cells, with start values.
Share filled_share(Process& process) {
  Share share;
  share.cut = decompose({8, 8, 8}, process.team.size());
  share.first = process.team.rank();
  share.blocks.push_back(
      std::make_unique<Block>(process.runtime, share.cut, share.first, process.runtime.device_kind()));
  share.stencils.push_back(make_stencil(process.runtime, *share.blocks[0]));
  share.stencils[0]->fill();
  return share;
}

Options checked(const Extent& size) {
  Options options;
  options.size = size;
  options.plan = {.iterations = 6, .warmup = 1};
  options.plan.residual_every = 3;
  options.check = true;
  return options;
}

void run(const Options& options) { run_job(g_process->runtime, g_process->team, options); }

TEST(Together, processes_compare_what_each_of_them_has) {
  brant::Team& team = g_process->team;
  const std::vector<int> all = gathered(team, team.rank() + 7);
  ASSERT_EQ(all.size(), static_cast<std::size_t>(team.size()));
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<int>(i) + 7);
  EXPECT_EQ(g_process->runtime.run(largest_in(team, team.rank() + 0.5)), team.size() - 0.5);
}

TEST(Job, agrees_with_a_serial_run_on_every_path) {
  for (const bool overlap : {false, true}) {
    Options options = checked({19, 22, 17});
    options.plan.overlap = overlap;
    options.compare = true;
    EXPECT_NO_THROW(run(options));
  }
}

TEST(Job, agrees_as_chares) {
  for (const int chares : {1, 3}) {
    Options options = checked({19, 22, 17});
    options.plan.overlap = chares == 3;
    options.model = Model::message;
    options.chares_per_process = chares;
    EXPECT_NO_THROW(run(options));
  }
}

TEST(Job, agrees_by_halo_exchanges_of_every_mode) {
  const bool host = brant::host_accessible(g_process->runtime.device_kind());
  for (const auto& [mode, name] : brant::kHaloModes) {
    if (host && needs_device(mode)) continue;
    for (const bool overlap : {false, true}) {
      Options options = checked({19, 22, 17});
      options.model = Model::halo;
      options.halo = mode;
      options.plan.overlap = overlap;
      EXPECT_NO_THROW(run(options)) << name;
      if (overlap) continue;
      options.plan.residual_every = 0;  // a kernel that stays makes all iterations
      EXPECT_NO_THROW(run(options)) << name << " without residuals";
      options.computes = false;
      EXPECT_NO_THROW(run(options)) << name << " without sweeps";
    }
  }
}

TEST(Check, finds_ghosts_that_have_not_come) {
  Process& process = *g_process;
  const Share share = filled_share(process);
  if (process.team.rank() == 0) {
    EXPECT_THROW(check_ghosts(share, process.team), brant::Error);
  } else {
    EXPECT_NO_THROW(check_ghosts(share, process.team));
  }
}

TEST(Job, blocks_of_a_single_layer_have_no_interior) {
  Options options = checked({3, 2, g_process->team.size()});
  options.plan.overlap = true;
  EXPECT_NO_THROW(run(options));
}

TEST(Job, goes_on_after_sizes_that_are_impossible) {
  Options options = checked({1, 1, 1});
  EXPECT_THROW(run(options), brant::Error);
  options = checked({2000, 2000, 2000});  // too large to check
  EXPECT_THROW(run(options), brant::Error);
  options = checked({400'000, 400'000, 400'000});  // to hold
  options.check = false;
  EXPECT_THROW(run(options), brant::Error);
  EXPECT_NO_THROW(run(checked({8, 8, 8})));
}

TEST(Check, finds_an_iteration_that_was_not_made) {
  Process& process = *g_process;
  const Share share = filled_share(process);
  EXPECT_NO_THROW(check_field(share, process.team, 0, {}));
  if (process.team.rank() == 0) {
    EXPECT_THROW(check_field(share, process.team, 1, {}), brant::Error);
  } else {
    EXPECT_NO_THROW(check_field(share, process.team, 1, {}));
  }
}

TEST(Check, finds_a_residual_of_another_iteration) {
  Process& process = *g_process;
  Share share = filled_share(process);
  const Plan plan{.iterations = 4, .warmup = 0, .residual_every = 2};
  const auto solutions = solve_with_channels(process.runtime, process.team, share, plan, brant::Path::automatic);
  ASSERT_TRUE(solutions[0].residual);
  const Residual right = *solutions[0].residual;
  EXPECT_EQ(right.iteration, 4);
  EXPECT_NO_THROW(check_field(share, process.team, 4, right));
  const Residual wrong{3, right.value};
  if (process.team.rank() == 0) {
    EXPECT_THROW(check_field(share, process.team, 4, wrong), brant::Error);
  } else {
    EXPECT_NO_THROW(check_field(share, process.team, 4, wrong));
  }
}

}  // namespace
}  // namespace jacobi
