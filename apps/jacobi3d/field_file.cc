#include "field_file.h"

#include <memory>
#include <vector>

namespace jacobi {
namespace {

std::vector<double> plane_buffer(const Layout& layout) {
  return std::vector<double>(static_cast<std::size_t>(layout.plane_span()));
}

}  // namespace

void load_block(Block& block, const NpyReader& file) {
  const Layout& layout = block.layout();
  const Cell& first = block.place().first;
  std::vector<double> plane = plane_buffer(layout);
  for (std::int64_t z = 0; z < layout.cells.z; ++z) {
    block.read_plane(z, plane);  // the ghost cells between the rows stay
    for (std::int64_t y = 0; y < layout.cells.y; ++y) {
      const std::span row(plane.data() + y * layout.row, static_cast<std::size_t>(layout.cells.x));
      file.read_row(first.x, first.y + y, first.z + z, row);
    }
    block.write_plane(z, plane);
  }
}

void gather(const Blocks& blocks, const Decomposition& decomposition, Star& star,
            const std::function<void(const PlaneView&)>& visit) {
  const int each = static_cast<int>(blocks.block.size());
  for (int number = 0; number < decomposition.processes(); ++number) {
    const int rank = number / each;
    const bool mine = rank == star.rank();
    if (!mine && !star.is_root()) continue;
    const Box box = decomposition.block(number);
    const Layout layout = make_layout(extent_of(box));
    std::vector<double> plane = plane_buffer(layout);
    for (std::int64_t z = 0; z < layout.cells.z; ++z) {
      if (mine) blocks.block[static_cast<std::size_t>(number % each)]->read_plane(z, plane);
      if (!star.is_root()) {
        star.send_to_root({plane.data(), plane.size() * sizeof(double), brant::MemoryKind::host});
        continue;
      }
      if (!mine) star.receive_from(rank, {plane.data(), plane.size() * sizeof(double), brant::MemoryKind::host});
      visit({{box.low.x, box.low.y, box.low.z + z}, layout.cells.x, layout.cells.y, layout.row, plane.data()});
    }
  }
}

void write_field(const Blocks& blocks, const Decomposition& decomposition, Star& star, const std::string& name) {
  std::unique_ptr<NpyWriter> file;
  star.agree([&] {
    if (star.is_root()) file = std::make_unique<NpyWriter>(name, decomposition.global);
  });
  gather(blocks, decomposition, star, [&](const PlaneView& plane) {
    for (std::int64_t y = 0; y < plane.count_y; ++y)
      file->write_row(plane.first.x, plane.first.y + y, plane.first.z, plane.line(y));
  });
  star.agree([&] {
    if (file) file->commit();
  });
}

}  // namespace jacobi
