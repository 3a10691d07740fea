#include <bit>
#include <utility>

#include <fmt/format.h>

#include "brant/coll/collectives.h"
#include "host_kernels.h"
#include "run.h"

namespace heat {
namespace {

constexpr double kUpdatesMax = 2e9;  // some seconds
constexpr double kCellsMax = 64e6;   // half a GB, thrice

/// The whole body in one block.
std::vector<double> solve_alone(const Options& options) {
  Body body;
  body.cells = options.size;
  const Box whole{{0, 0, 0}, options.size};
  std::vector<double> field = first_temperatures(whole, true);
  std::vector<double> next(field.size());
  for (std::int64_t step = 0; step < options.steps; ++step) {
    Body now = body;
    now.power = power_in(body, options, step);
    host::conduct(next.data(), field.data(), nullptr, now, whole);
    std::swap(field, next);
  }
  return field;
}

/// Throws unless the block of a rank is that part of the whole.
void compare(const std::vector<double>& whole, const std::vector<double>& part, const Box& box, const Extent& global,
             int rank) {
  std::size_t at = 0;
  for (std::int64_t z = box.low.z; z < box.high.z; ++z) {
    for (std::int64_t y = box.low.y; y < box.high.y; ++y) {
      for (std::int64_t x = box.low.x; x < box.high.x; ++x, ++at) {
        const double right = whole[static_cast<std::size_t>(x + global.x * (y + global.y * z))];
        if (std::bit_cast<std::uint64_t>(part[at]) == std::bit_cast<std::uint64_t>(right)) continue;
        throw brant::Error(brant::Status::internal,
                           fmt::format("the check failed: cell {}, {}, {} of rank {} has {}, and {} in the serial run",
                                       x, y, z, rank, part[at], right));
      }
    }
  }
}

}  // namespace

void require_checkable(const Options& options) {
  const double cells = static_cast<double>(volume(options.size));
  if (cells <= kCellsMax && cells * static_cast<double>(options.steps) <= kUpdatesMax) return;
  throw brant::Error(brant::Status::limit_reached,
                     fmt::format("--check solves the problem on rank 0 alone too, and {} cells for {} steps are too "
                                 "many for that: at most 64 million cells and 2 billion updates. Use a smaller --size "
                                 "or fewer --steps",
                                 to_text(options.size), options.steps));
}

void check(brant::GlobalSpace& space, brant::Team& team, const Block& block, const Options& options) {
  const Decomposition& cut = block.cut();
  const std::vector<double> whole = team.rank() == 0 ? solve_alone(options) : std::vector<double>();
  for (int rank = 0; team.rank() == 0 && rank < team.size(); ++rank) {
    std::vector<double> part(static_cast<std::size_t>(volume(extent_of(cut.block(rank)))));
    const brant::Operation got = space.get(block.field_of(rank, options.steps), part);
    space.runtime().wait(got).or_throw(fmt::format("could not get the field of rank {}", rank));
    compare(whole, part, cut.block(rank), cut.global, rank);
  }
  team.run(brant::barrier()).or_throw("rank 0 has not checked the fields");
}

}  // namespace heat
