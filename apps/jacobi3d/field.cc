#include "field.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <numeric>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "together.h"

namespace jacobi {
namespace {

std::size_t place_of(const Extent& global, const Cell& cell) noexcept {
  return static_cast<std::size_t>(cell.x + global.x * (cell.y + global.y * cell.z));
}

using Visit = std::function<void(const Cell&, std::span<const double>)>;

void visit_rows(const Box& box, const Layout& layout, std::int64_t z, std::span<const double> plane,
                const Visit& visit) {
  for (std::int64_t y = 0; y < layout.cells.y; ++y) {
    visit({box.low.x, box.low.y + y, box.low.z + z},
          plane.subspan(static_cast<std::size_t>(y * layout.row), static_cast<std::size_t>(layout.cells.x)));
  }
}

/// Brings plane z of one block of each process to rank 0: of the blocks that have so many.
void gather_planes(const Share& share, brant::Team& team, std::size_t number, std::int64_t z, const Visit& visit) {
  const std::size_t each = share.blocks.size();
  std::vector<std::uint64_t> bytes;
  std::vector<std::pair<Box, Layout>> blocks;
  for (int process = 0; process < team.size(); ++process) {
    const Box box = share.cut.block(process * static_cast<int>(each) + static_cast<int>(number));
    const Layout layout = make_layout(extent_of(box));
    const auto doubles = static_cast<std::uint64_t>(z < layout.cells.z ? layout.plane_span() : 0);
    blocks.emplace_back(box, layout);
    bytes.push_back(doubles * sizeof(double));
  }
  const auto doubles_of = [&](int process) { return bytes[static_cast<std::size_t>(process)] / sizeof(double); };
  std::vector<double> mine(doubles_of(team.rank()));
  if (!mine.empty()) share.blocks[number]->read_plane(z, mine);
  const std::uint64_t all_bytes = std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
  std::vector<double> all(team.rank() == 0 ? all_bytes / sizeof(double) : 0);
  const brant::Buffer landing(all.data(), all.size() * sizeof(double), brant::MemoryKind::host);
  team.run(
          brant::gatherv(brant::ConstBuffer(std::span<const double>(mine), brant::MemoryKind::host), landing, bytes, 0))
      .or_throw("the field could not be gathered");
  for (std::size_t process = 0, first = 0; first < all.size(); first += bytes[process++] / sizeof(double)) {
    const auto& [box, layout] = blocks[process];
    if (bytes[process] == 0) continue;
    visit_rows(box, layout, z, std::span(all).subspan(first, bytes[process] / sizeof(double)), visit);
  }
}

/// Brings the current field to rank 0, where `visit` is given every row of every block and its first cell. Collective.
void gather(const Share& share, brant::Team& team, const Visit& visit) {
  std::int64_t planes = 0;
  for (int number = 0; number < share.cut.processes(); ++number)
    planes = std::max(planes, extent_of(share.cut.block(number)).z);
  for (std::size_t number = 0; number < share.blocks.size(); ++number) {
    for (std::int64_t z = 0; z < planes; ++z) gather_planes(share, team, number, z, visit);
  }
}

template <typename Visit>
void for_each_cell(const Box& box, Visit&& visit) {
  for (std::int64_t z = box.low.z; z < box.high.z; ++z) {
    for (std::int64_t y = box.low.y; y < box.high.y; ++y) {
      for (std::int64_t x = box.low.x; x < box.high.x; ++x) visit(x, y, z);
    }
  }
}

struct Solved {
  std::vector<double> field;  ///< x is contiguous.
  double largest_change = 0;  ///< In one of the iterations.
};

double largest_change(std::span<const double> now, std::span<const double> before) noexcept {
  double largest = 0;
  for (std::size_t i = 0; i < now.size(); ++i) largest = std::max(largest, std::abs(now[i] - before[i]));
  return largest;
}

/// After so many iterations; `observed` is the number of that whose change is wanted, from 1 on.
Solved solve_serially(const Extent& global, std::int64_t iterations, std::int64_t observed) {
  Solved solved{std::vector<double>(static_cast<std::size_t>(volume(global)))};
  std::vector<double>& field = solved.field;
  std::vector<double> next(field.size());
  const auto renew = [&](const auto& visit) {
    for_each_cell({{0, 0, 0}, {global.x, global.y, global.z}}, [&](std::int64_t x, std::int64_t y, std::int64_t z) {
      next[place_of(global, {x, y, z})] = visit(x, y, z);
    });
    field.swap(next);
  };
  const auto at = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    const bool outside = x < 0 || y < 0 || z < 0 || x >= global.x || y >= global.y || z >= global.z;
    return outside ? boundary_value(z) : field[place_of(global, {x, y, z})];
  };
  renew(initial_value);
  for (std::int64_t iteration = 0; iteration < iterations; ++iteration) {
    renew([&](std::int64_t x, std::int64_t y, std::int64_t z) {
      return average(at(x, y, z), at(x - 1, y, z), at(x + 1, y, z), at(x, y - 1, z), at(x, y + 1, z), at(x, y, z - 1),
                     at(x, y, z + 1));
    });
    if (iteration + 1 == observed) solved.largest_change = largest_change(field, next);
  }
  return solved;
}

/// What numpy.load wants in front of the numbers.
std::string npy_header(const Extent& shape) {
  const std::string described =
      fmt::format("{{'descr': '<f8', 'fortran_order': True, 'shape': ({}, {}, {}), }}", shape.x, shape.y, shape.z);
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + fmt::format("{:<117}\n", described);  // 0x76: 118 bytes follow
}

}  // namespace

void write_field(const Share& share, brant::Team& team, const std::string& name) {
  const std::string temporary = fmt::format("{}.{}.part", name, ::getpid());
  const auto require = [&](bool good) {
    if (good) return;
    const std::string why = std::generic_category().message(errno);
    std::remove(temporary.c_str());
    throw brant::Error(brant::Status::io_error, fmt::format("{}: could not write it: {}", name, why));
  };
  const Extent& global = share.cut.global;
  const std::string header = npy_header(global);
  std::ofstream file;
  if (team.rank() == 0) {
    file.open(temporary, std::ios::binary);
    require(static_cast<bool>(file << header));
  }
  gather(share, team, [&](const Cell& first, std::span<const double> row) {
    file.seekp(static_cast<std::streamoff>(header.size() + place_of(global, first) * sizeof(double)));
    file.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(row.size_bytes()));
    require(file.good());
  });
  if (team.rank() != 0) return;
  file.close();
  require(file.good() && std::rename(temporary.c_str(), name.c_str()) == 0);
}

void require_checkable(const Extent& global, std::int64_t iterations) {
  const double cells = static_cast<double>(global.x) * static_cast<double>(global.y) * static_cast<double>(global.z);
  if (cells <= 128e6 && cells * static_cast<double>(iterations) <= 10e9) return;  // 2 GB, and about a minute
  throw brant::Error(brant::Status::limit_reached,
                     fmt::format("--check solves the problem on rank 0 alone too, and {} cells for {} iterations "
                                 "(warm-up included) are too many for that: at most 128 million cells and 10 billion "
                                 "updates. Use a smaller --size or fewer --iterations to check, then measure without",
                                 to_text(global), iterations));
}

void check_field(const Share& share, brant::Team& team, std::int64_t iterations,
                 const std::optional<Residual>& residual) {
  const Extent& global = share.cut.global;
  Solved expected;
  if (team.rank() == 0) expected = solve_serially(global, iterations, residual ? residual->iteration : 0);
  std::int64_t differences = 0;
  std::string first;
  gather(share, team, [&](Cell at, std::span<const double> row) {
    for (std::size_t i = 0; i < row.size(); ++i, ++at.x) {
      const double serially = expected.field[place_of(global, at)];
      if (std::bit_cast<std::uint64_t>(row[i]) == std::bit_cast<std::uint64_t>(serially) || differences++ > 0) continue;
      first = fmt::format("cell ({}, {}, {}) is {:.17g}, serially {:.17g}", at.x, at.y, at.z, row[i], serially);
    }
  });
  if (differences == 0 && team.rank() == 0 && residual && residual->value != expected.largest_change) {
    throw brant::Error(brant::Status::internal,
                       fmt::format("the check failed: the residual of iteration {} is {:.17g}, serially {:.17g}",
                                   residual->iteration, residual->value, expected.largest_change));
  }
  if (differences == 0) return;
  throw brant::Error(brant::Status::internal,
                     fmt::format("the check failed: {} of {} cells differ from the serial run; the first, {}",
                                 differences, volume(global), first));
}

void check_ghosts(const Share& share, brant::Team& team) {
  std::int64_t wrong = 0;
  for (const auto& block : share.blocks) {
    const Layout& layout = block->layout();
    std::vector<double> field(static_cast<std::size_t>(layout.doubles));
    block->read(field);
    for (int side = 0; side < kSides; ++side) {
      if (!block->has_neighbour(side)) continue;
      const auto axis = kAxes[axis_of(side)];
      Box face = block->whole();
      face.low.*axis = is_high(side) ? layout.cells.*axis : -1;
      face.high.*axis = face.low.*axis + 1;
      const Cell& first = block->place().first;
      for_each_cell(face, [&](std::int64_t x, std::int64_t y, std::int64_t z) {
        const double expected = initial_value(first.x + x, first.y + y, first.z + z);
        wrong += field[static_cast<std::size_t>(layout.at(x, y, z))] == expected ? 0 : 1;
      });
    }
  }
  const std::vector<std::int64_t> all = gathered(team, wrong);
  for (std::size_t rank = 0; team.rank() == 0 && rank < all.size(); ++rank) {
    if (all[rank] == 0) continue;
    throw brant::Error(brant::Status::internal,
                       fmt::format("the check failed: rank {} has {} ghosts that are not the cells that they stand for",
                                   rank, all[rank]));
  }
}

}  // namespace jacobi
