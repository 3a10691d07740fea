#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "brant/halo.h"
#include "models/halo/decomposition.h"
#include "support/gpu_of_tests.h"
#include "support/in_process_job.h"

/// What tests of halo exchanges between the ranks of a job in this process have in common.
namespace brant::test {

/// How it is exchanged.
struct Way {
  const char* name;
  HaloMode mode;
  HaloMessages messages = HaloMessages::per_process;
};
inline constexpr Way kShapes{"shapes", HaloMode::shapes};
inline constexpr Way kFused{"fused", HaloMode::fused};
inline constexpr Way kFusedPerBlock{"fused_per_block", HaloMode::fused, HaloMessages::per_block};
inline constexpr Way kFusedAll{"fused_all", HaloMode::fused, HaloMessages::all};
inline constexpr Way kDirect{"direct", HaloMode::direct};
inline constexpr Way kGraph{"graph", HaloMode::graph};
inline constexpr Way kResident{"resident", HaloMode::resident};
inline constexpr Way kStream{"stream", HaloMode::stream};
inline constexpr Way kStreamPerBlock{"stream_per_block", HaloMode::stream, HaloMessages::per_block};
inline constexpr Way kStreamAll{"stream_all", HaloMode::stream, HaloMessages::all};
inline constexpr Way kStacked{"stacked", HaloMode::stacked};
inline constexpr Way kStackedPerBlock{"stacked_per_block", HaloMode::stacked, HaloMessages::per_block};

inline constexpr double kUnwritten = -1;

/// One rank's part: its exchange, its fields, and what is to be in them.
class Side {
 public:
  Side(Runtime& runtime, const HaloOptions& options, MemoryKind kind)
      : runtime_(runtime),
        options_(options),
        cut_{options.grid, options.divide, options.periodic, options.ghost},
        exchange(runtime, options) {
    for (int i = 0; i < exchange.blocks(); ++i) {
      // Large enough for others to map it.
      fields_.push_back(runtime.allocate(kind, std::max<std::size_t>(exchange.field_bytes(i), 16384)));
      buffers.emplace_back(fields_.back().part(0, exchange.field_bytes(i)));
    }
  }

  /// Fields elsewhere, with the same content.
  void move_fields() {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      Memory moved = runtime_.allocate(fields_[i].kind(), fields_[i].bytes());
      old_fields_.push_back(std::exchange(fields_[i], std::move(moved)));
      buffers[i] = fields_[i].part(0, buffers[i].bytes);
    }
  }

  void drop_fields() { fields_.clear(); }

  void fill(int cycle) {
    for (int i = 0; i < exchange.blocks(); ++i) {
      std::vector<double> content = expected(i, cycle, false);
      runtime_.copy(buffers[index(i)], std::span<const double>(content));
    }
  }

  void expect_filled(int cycle) {
    for (int i = 0; i < exchange.blocks(); ++i) {
      std::vector<double> content(exchange.field_bytes(i) / sizeof(double));
      runtime_.copy(Buffer(std::span(content)), buffers[index(i)]);
      EXPECT_EQ(content, expected(i, cycle, true)) << "block " << exchange.first_block() + i;
    }
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  /// The number of each cell in the grid, and of its variable. What no block owns is unwritten before and after; the
  /// ghosts of others are only before. Ghosts beyond an edge belong to the block there, and have numbers of their own.
  std::vector<double> expected(int i, int cycle, bool after) const {
    const int block = exchange.first_block() + i;
    const halo::Box cells = cut_.cells_of(block);
    const halo::Box owned = cut_.owned_by(block);
    const auto array = exchange.array_of(i);
    std::vector<double> content(options_.lead, kUnwritten);
    for (std::size_t v = 0; v < options_.variables; ++v) {
      for (std::int64_t z = 0; z < array[2]; ++z) {
        for (std::int64_t y = 0; y < array[1]; ++y) {
          for (std::int64_t x = 0; x < array[0]; ++x) {
            const halo::Cells place{x, y, z};
            bool own = true;
            double number = static_cast<double>(v) + 10 * cycle;
            for (std::size_t d = 0; d < halo::kDims; ++d) {
              own = own && place[d] >= owned.low[d] && place[d] < owned.high[d];
              std::int64_t cell = cells.low[d] + place[d] - cut_.ghost[d];
              if (cut_.periodic[d]) cell = (cell + cut_.grid[d]) % cut_.grid[d];
              number = number * 100 + static_cast<double>(cell + 20);
            }
            content.push_back(own || after ? number : kUnwritten);
          }
          while ((content.size() - options_.lead) % options_.row_step != 0) content.push_back(kUnwritten);
        }
      }
    }
    return content;
  }

  Runtime& runtime_;
  HaloOptions options_;
  halo::Decomposition cut_;
  std::vector<Memory> fields_;
  std::vector<Memory> old_fields_;

 public:
  HaloExchange exchange;
  std::vector<Buffer> buffers;
};

inline std::deque<Side> sides_of(InProcessJob& job, int ranks, const HaloOptions& options, MemoryKind kind) {
  std::deque<Side> sides;
  for (int rank = 0; rank < ranks; ++rank) sides.emplace_back(job.rank(rank), options, kind);
  return sides;
}

inline GpuChoice gpu_of(MemoryKind kind) { return kind == device_memory() ? gpu_of_tests() : GpuChoice::none; }

/// All of them do it, to its end.
inline void together(InProcessJob& job, std::vector<Task<void>> tasks) {
  for (Task<void>& task : tasks) task.start();
  ASSERT_TRUE(job.run_until(
      [&] { return std::all_of(tasks.begin(), tasks.end(), [](const Task<void>& task) { return task.finished(); }); }));
  for (Task<void>& task : tasks) task.take();
}

inline void exchange(InProcessJob& job, std::deque<Side>& sides) {
  std::vector<Task<void>> runs;
  for (Side& side : sides) runs.push_back(side.exchange.run(side.buffers));
  together(job, std::move(runs));
}

inline void bind(InProcessJob& job, std::deque<Side>& sides) {
  std::vector<Task<void>> binds;
  for (Side& side : sides) binds.push_back(side.exchange.bind(side.buffers));
  together(job, std::move(binds));
}

}  // namespace brant::test
