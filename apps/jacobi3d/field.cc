#include "field.h"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <span>
#include <system_error>

#include <fmt/format.h>

namespace jacobi {
namespace {

constexpr double kCellsMax = 128e6;   // 2 GB on rank 0
constexpr double kUpdatesMax = 10e9;  // about a minute

std::size_t place_of(const Extent& global, const Cell& cell) noexcept {
  return static_cast<std::size_t>(cell.x + global.x * (cell.y + global.y * cell.z));
}

/// Brings the current field to rank 0, where `visit` is given every row of every block and its first cell. Collective.
void gather(const Share& share, Team& team, const std::function<void(const Cell&, std::span<const double>)>& visit) {
  const int each = static_cast<int>(share.blocks.size());
  for (int number = 0; number < share.cut.processes(); ++number) {
    const int owner = number / each;
    const bool mine = owner == team.rank();
    if (!mine && !team.leads()) continue;
    const Box box = share.cut.block(number);
    const Layout layout = make_layout(extent_of(box));
    std::vector<double> plane(static_cast<std::size_t>(layout.plane_span()));
    for (std::int64_t z = 0; z < layout.cells.z; ++z) {
      if (mine) share.blocks[static_cast<std::size_t>(number % each)]->read_plane(z, plane);
      if (!team.leads()) team.send(0, std::span(plane));
      if (!mine) team.receive(owner, std::span(plane));
      for (std::int64_t y = 0; team.leads() && y < layout.cells.y; ++y) {
        visit({box.low.x, box.low.y + y, box.low.z + z},
              std::span(plane).subspan(static_cast<std::size_t>(y * layout.row),
                                       static_cast<std::size_t>(layout.cells.x)));
      }
    }
  }
}

/// What numpy.load wants in front of the numbers.
std::string npy_header(const Extent& shape) {
  const std::string described =
      fmt::format("{{'descr': '<f8', 'fortran_order': True, 'shape': ({}, {}, {}), }}", shape.x, shape.y, shape.z);
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + fmt::format("{:<117}\n", described);  // 0x76: 118 bytes follow
}

}  // namespace

void write_field(const Share& share, Team& team, const std::string& name) {
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
  if (team.leads()) {
    file.open(temporary, std::ios::binary);
    require(static_cast<bool>(file << header));
  }
  gather(share, team, [&](const Cell& first, std::span<const double> row) {
    file.seekp(static_cast<std::streamoff>(header.size() + place_of(global, first) * sizeof(double)));
    file.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(row.size_bytes()));
    require(file.good());
  });
  if (!team.leads()) return;
  file.close();
  require(file.good() && std::rename(temporary.c_str(), name.c_str()) == 0);
}

void SerialRun::require_feasible(const Extent& global, std::int64_t iterations) {
  const double cells = static_cast<double>(global.x) * static_cast<double>(global.y) * static_cast<double>(global.z);
  if (cells <= kCellsMax && cells * static_cast<double>(iterations) <= kUpdatesMax) return;
  throw brant::Error(
      brant::Status::limit_reached,
      fmt::format(
          "--check solves the problem on rank 0 alone too, and {} cells for {} iterations (warm-up included) are too "
          "many for that: at most {:.0f} million cells and {:.0f} billion updates. Use a smaller --size or fewer "
          "--iterations to check, then measure without --check",
          to_text(global), iterations, kCellsMax / 1e6, kUpdatesMax / 1e9));
}

SerialRun::SerialRun(const Extent& global_in, std::int64_t iterations)
    : global(global_in), field(static_cast<std::size_t>(volume(global_in))) {
  const auto for_each_cell = [this](const auto& visit) {
    Cell at;
    for (at.z = 0; at.z < global.z; ++at.z) {
      for (at.y = 0; at.y < global.y; ++at.y) {
        for (at.x = 0; at.x < global.x; ++at.x) visit(at);
      }
    }
  };
  const auto value = [this](std::int64_t x, std::int64_t y, std::int64_t z) {
    const bool outside = x < 0 || y < 0 || z < 0 || x >= global.x || y >= global.y || z >= global.z;
    return outside ? boundary_value(z) : field[place_of(global, {x, y, z})];
  };
  std::vector<double> next(field.size());
  for_each_cell([&](const Cell& at) { field[place_of(global, at)] = initial_value(at.x, at.y, at.z); });
  for (std::int64_t iteration = 0; iteration < iterations; ++iteration) {
    for_each_cell([&](const Cell& at) {
      const auto [x, y, z] = at;
      next[place_of(global, at)] = average(value(x, y, z), value(x - 1, y, z), value(x + 1, y, z), value(x, y - 1, z),
                                           value(x, y + 1, z), value(x, y, z - 1), value(x, y, z + 1));
    });
    field.swap(next);
  }
  for (std::size_t i = 0; i < field.size(); ++i) residual = std::max(residual, std::fabs(field[i] - next[i]));
}

void check_field(const Share& share, Team& team, std::int64_t iterations, double residual) {
  std::optional<SerialRun> serial;
  if (team.leads()) serial.emplace(share.cut.global, iterations);
  std::int64_t differences = 0;
  std::string first;
  gather(share, team, [&](Cell at, std::span<const double> row) {
    for (const double value : row) {
      const double expected = serial->field[place_of(serial->global, at)];
      if (std::bit_cast<std::uint64_t>(value) != std::bit_cast<std::uint64_t>(expected) && differences++ == 0) {
        first = fmt::format("cell ({}, {}, {}) is {:.17g}, serially {:.17g}", at.x, at.y, at.z, value, expected);
      }
      ++at.x;
    }
  });
  if (!team.leads()) return;
  if (differences == 0 && serial->residual != residual) {
    differences = 1;
    first = fmt::format("the residual is {:.17g}, serially {:.17g}", residual, serial->residual);
  }
  if (differences == 0) return;
  throw brant::Error(brant::Status::internal,
                     fmt::format("the check failed: {} of {} cells differ from the serial run; the first: {}",
                                 differences, volume(share.cut.global), first));
}

}  // namespace jacobi
