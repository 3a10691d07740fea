#include "stencil.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "support/in_process_job.h"

namespace jacobi {
namespace {

using brant::GpuChoice;
using brant::MemoryKind;
using brant::test::InProcessJob;

brant::test::JobOptions job_options(int ranks, GpuChoice gpu) {
  brant::test::JobOptions options;
  options.ranks = ranks;
  options.gpu = gpu;
  return options;
}

/// One block of a decomposition, its stencil, and somebody to wait for it.
struct Bench {
  Bench(const Decomposition& decomposition, int rank, MemoryKind kind)
      : job(job_options(1, kind == MemoryKind::emulated ? GpuChoice::emulated : GpuChoice::none)),
        block(job.rank(0), decomposition, rank, kind),
        stencil(make_stencil(job.rank(0), block)) {
    stencil->fill();
  }

  void run(Step step) {
    stencil->start(step);
    job.rank(0).run(stencil->finish(step));
  }

  /// Ghost cells as if an exchange had happened: messages of this block come back as those of its neighbours.
  void mirror() {
    run(Step::pack);
    for (int side = 0; side < kSides; ++side) {
      if (block.has_neighbour(side)) job.rank(0).copy(block.message_in(side), block.message_out(side));
    }
    run(Step::unpack);
  }

  [[nodiscard]] std::vector<double> cells() const {
    const Layout& layout = block.layout();
    std::vector<double> plane(static_cast<std::size_t>(layout.plane_span()));
    std::vector<double> all;
    for (std::int64_t z = 0; z < layout.cells.z; ++z) {
      block.read_plane(z, plane);
      for (std::int64_t y = 0; y < layout.cells.y; ++y) {
        all.insert(all.end(), plane.begin() + y * layout.row, plane.begin() + y * layout.row + layout.cells.x);
      }
    }
    return all;
  }

  InProcessJob job;
  Block block;
  std::unique_ptr<Stencil> stencil;
};

std::string kind_name(const testing::TestParamInfo<MemoryKind>& kind) {
  return std::string(brant::memory_kind_name(kind.param));
}

class Stencils : public testing::TestWithParam<MemoryKind> {};

const Decomposition kCut{{11, 9, 10}, {3, 3, 3}};
constexpr int kMiddle = 13;  // a block with six neighbours

TEST_P(Stencils, interior_and_shell_together_are_the_whole) {
  for (const int rank : {0, 5, 12, kMiddle, 26}) {  // 3, 4, 5, 6 and 3 neighbours
    Bench whole(kCut, rank, GetParam());
    whole.mirror();
    whole.run(Step::whole);
    whole.block.swap();
    Bench parts(kCut, rank, GetParam());
    parts.mirror();
    parts.run(Step::interior);
    parts.run(Step::shell);
    parts.block.swap();
    const std::vector<double> cells = whole.cells();
    EXPECT_EQ(cells, parts.cells()) << "rank " << rank;
    for (const double value : cells) ASSERT_TRUE(std::isfinite(value)) << "rank " << rank;
  }
}

TEST_P(Stencils, without_an_exchange_the_result_is_poisoned) {
  Bench bench(kCut, kMiddle, GetParam());
  bench.run(Step::whole);
  bench.block.swap();
  std::size_t poisoned = 0;
  for (const double value : bench.cells()) poisoned += std::isnan(value) ? 1 : 0;
  EXPECT_GT(poisoned, 0u);
}

TEST_P(Stencils, messages_hold_the_outermost_cells) {
  Bench bench(kCut, kMiddle, GetParam());
  bench.run(Step::pack);
  const Layout& layout = bench.block.layout();
  const Cell& first = bench.block.place().first;
  std::vector<double> face(static_cast<std::size_t>(layout.cells.y * layout.cells.z));
  const brant::ConstBuffer message = bench.block.message_out(x_high);
  ASSERT_EQ(message.bytes, face.size() * sizeof(double));
  bench.job.rank(0).copy(brant::Buffer(std::span(face)), message);
  for (std::int64_t z = 0; z < layout.cells.z; ++z) {
    for (std::int64_t y = 0; y < layout.cells.y; ++y) {
      EXPECT_EQ(face[static_cast<std::size_t>(y + z * layout.cells.y)],
                initial_value(first.x + layout.cells.x - 1, first.y + y, first.z + z));
    }
  }
}

TEST_P(Stencils, agree_with_the_host_to_the_last_bit) {
  Bench bench(kCut, kMiddle, GetParam());
  Bench host(kCut, kMiddle, MemoryKind::host);
  for (Bench* each : {&bench, &host}) {
    for (int iteration = 0; iteration < 3; ++iteration) {
      each->mirror();
      each->run(Step::whole);
      each->block.swap();
    }
  }
  EXPECT_EQ(bench.cells(), host.cells());
}

TEST_P(Stencils, copying_a_field_leaves_it_alone) {
  Bench bench(kCut, kMiddle, GetParam());
  const std::vector<double> before = bench.cells();
  bench.block.copy_over_next();
  EXPECT_EQ(bench.cells(), before);
  bench.block.swap();
  EXPECT_EQ(bench.cells(), before);
}

TEST_P(Stencils, steps_without_work_have_finished) {
  Bench bench({{4, 4, 4}, {1, 1, 1}}, 0, GetParam());
  bench.run(Step::pack);
  bench.run(Step::unpack);
  bench.run(Step::shell);
  Bench thin({{1, 1, 3}, {1, 1, 3}}, 1, GetParam());  // all shell
  thin.run(Step::interior);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Stencils, testing::Values(MemoryKind::host, MemoryKind::pinned, MemoryKind::emulated),
                         kind_name);

}  // namespace
}  // namespace jacobi
