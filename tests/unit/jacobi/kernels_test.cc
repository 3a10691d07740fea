#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "decomposition.h"
#include "host_kernels.h"

namespace jacobi {
namespace {

struct Field {
  explicit Field(const Extent& cells, const Place& place)
      : layout(make_layout(cells)), values(static_cast<std::size_t>(layout.doubles), -7.0) {
    host::fill(values.data(), layout, place);
  }
  [[nodiscard]] double& at(std::int64_t x, std::int64_t y, std::int64_t z) {
    return values[static_cast<std::size_t>(layout.at(x, y, z))];
  }

  Layout layout;
  std::vector<double> values;
};

Field lone_field(const Extent& cells) { return Field(cells, {{0, 0, 0}, cells}); }

TEST(Layout, rows_start_on_cache_lines_and_everything_fits) {
  for (const Extent& cells :
       {Extent{1, 1, 1}, Extent{14, 3, 2}, Extent{15, 3, 2}, Extent{16, 16, 16}, Extent{33, 2, 5}}) {
    const Layout layout = make_layout(cells);
    EXPECT_EQ(layout.at(0, 0, 0) % kRowAlignment, 0);
    EXPECT_EQ(layout.row % kRowAlignment, 0);
    EXPECT_GE(layout.at(-1, -1, -1), 0);
    EXPECT_LT(layout.at(cells.x + 1, cells.y, cells.z), layout.doubles);  // the GPU reads pairs
    EXPECT_LT(layout.at(cells.x, 0, 0), layout.at(-1, 1, 0)) << "ghost cells of neighbouring rows must not coincide";
  }
}

TEST(Field, boundary_is_one_below_and_zero_elsewhere) {
  Field field = lone_field({3, 4, 5});
  EXPECT_EQ(field.at(1, 1, -1), 1.0);
  EXPECT_EQ(field.at(1, 1, 5), 0.0);
  EXPECT_EQ(field.at(-1, 1, 1), 0.0);
  EXPECT_EQ(field.at(3, 1, 1), 0.0);
  EXPECT_EQ(field.at(1, -1, 1), 0.0);
  EXPECT_EQ(field.at(1, 4, 1), 0.0);
}

TEST(Field, ghost_cells_of_neighbours_start_as_nan) {
  Field field({3, 3, 3}, {{0, 0, 3}, {3, 3, 9}});
  EXPECT_TRUE(std::isnan(field.at(1, 1, -1)));
  EXPECT_TRUE(std::isnan(field.at(1, 1, 3)));
  EXPECT_EQ(field.at(-1, 1, 1), 0.0);
}

TEST(Field, initial_values_depend_on_the_global_place_alone) {
  Field whole = lone_field({6, 5, 4});
  Field part({2, 3, 2}, {{3, 1, 2}, {6, 5, 4}});
  EXPECT_EQ(part.at(1, 2, 1), whole.at(4, 3, 3));
  EXPECT_NE(whole.at(0, 1, 2), whole.at(2, 1, 0));
  for (const double value : {whole.at(0, 0, 0), whole.at(5, 4, 3)}) {
    EXPECT_GE(value, 0.0);
    EXPECT_LT(value, 1.0);
  }
}

/// The formula once more, from the definition.
double expected(Field& f, std::int64_t x, std::int64_t y, std::int64_t z) {
  double sum = f.at(x, y, z);
  sum += f.at(x - 1, y, z);
  sum += f.at(x + 1, y, z);
  sum += f.at(x, y - 1, z);
  sum += f.at(x, y + 1, z);
  sum += f.at(x, y, z - 1);
  sum += f.at(x, y, z + 1);
  return sum * (1.0 / 7.0);
}

TEST(Sweep, equals_the_definition_bit_for_bit) {
  for (const Extent& cells : {Extent{1, 1, 1}, Extent{7, 5, 3}, Extent{64, 3, 2}, Extent{33, 1, 9}}) {
    Field current = lone_field(cells);
    Field next = lone_field(cells);
    host::sweep(next.values.data(), current.values.data(), current.layout, {{0, 0, 0}, cells});
    for (std::int64_t z = 0; z < cells.z; ++z) {
      for (std::int64_t y = 0; y < cells.y; ++y) {
        for (std::int64_t x = 0; x < cells.x; ++x)
          ASSERT_EQ(next.at(x, y, z), expected(current, x, y, z)) << x << ' ' << y << ' ' << z;
      }
    }
  }
}

TEST(Sweep, writes_its_box_only) {
  const Extent cells{6, 6, 6};
  Field current = lone_field(cells);
  Field next = lone_field(cells);
  const std::vector<double> before = next.values;
  const Box box{{1, 2, 3}, {4, 5, 5}};
  host::sweep(next.values.data(), current.values.data(), current.layout, box);
  std::int64_t changed = 0;
  for (std::size_t index = 0; index < before.size(); ++index) changed += before[index] != next.values[index] ? 1 : 0;
  EXPECT_EQ(changed, volume(extent_of(box)));
}

TEST(Sweep, a_nan_spreads_to_its_six_neighbours) {
  const Extent cells{5, 5, 5};
  Field current = lone_field(cells);
  Field next = lone_field(cells);
  current.at(2, 2, 2) = std::numeric_limits<double>::quiet_NaN();
  host::sweep(next.values.data(), current.values.data(), current.layout, {{0, 0, 0}, {5, 5, 5}});
  int spread = 0;
  for (std::int64_t z = 0; z < 5; ++z) {
    for (std::int64_t y = 0; y < 5; ++y) {
      for (std::int64_t x = 0; x < 5; ++x) spread += std::isnan(next.at(x, y, z)) ? 1 : 0;
    }
  }
  EXPECT_EQ(spread, 7);
}

TEST(Faces, packing_then_unpacking_moves_a_face_to_the_ghost_layer) {
  const Extent cells{4, 3, 5};
  Field field = lone_field(cells);
  const Layout& layout = field.layout;
  PackedFaces out;
  out.count = 2;
  out.face[0] = {layout.at(3, 0, 0), layout.row, layout.plane, cells.y, cells.z, 0};
  out.face[1] = {layout.at(0, 0, 0), 1, layout.plane, cells.x, cells.z, 32};
  PackedFaces in = out;
  in.face[0].first = layout.at(-1, 0, 0);
  in.face[1].first = layout.at(0, 3, 0);
  std::vector<double> buffer(64, -1.0);
  host::pack(buffer.data(), field.values.data(), out);
  EXPECT_EQ(buffer[15], -1.0) << "one past the first face";
  host::unpack(field.values.data(), buffer.data(), in);
  for (std::int64_t z = 0; z < cells.z; ++z) {
    for (std::int64_t y = 0; y < cells.y; ++y) EXPECT_EQ(field.at(-1, y, z), field.at(3, y, z));
    for (std::int64_t x = 0; x < cells.x; ++x) EXPECT_EQ(field.at(x, 3, z), field.at(x, 0, z));
  }
}

}  // namespace
}  // namespace jacobi
