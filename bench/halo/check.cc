#include "bench/halo/check.h"

#include <cstdint>

#include <fmt/format.h>

#include "models/halo/decomposition.h"

namespace brant::bench {
namespace {

std::vector<double> content_of(const HaloOptions& options, int block, bool exchanged) {
  const halo::Decomposition cut{options.grid, options.divide, options.periodic, options.ghost};
  const halo::Box cells = cut.cells_of(block);
  const halo::Box owned = cut.owned_by(block);
  const halo::Cells array = cut.array_of(block);
  std::vector<double> content;
  content.reserve(static_cast<std::size_t>(array[0] * array[1] * array[2]) * options.variables);
  halo::Cells place;
  for (std::size_t v = 0; v < options.variables; ++v) {
    for (place[2] = 0; place[2] < array[2]; ++place[2]) {
      for (place[1] = 0; place[1] < array[1]; ++place[1]) {
        for (place[0] = 0; place[0] < array[0]; ++place[0]) {
          bool own = true;
          std::int64_t number = 0;
          for (std::size_t d = 0; d < halo::kDims; ++d) {
            own = own && place[d] >= owned.low[d] && place[d] < owned.high[d];
            std::int64_t cell = cells.low[d] + place[d] - cut.ghost[d];
            if (cut.periodic[d]) cell = (cell + cut.grid[d]) % cut.grid[d];
            number = number * (cut.grid[d] + 2 * cut.ghost[d]) + cell + cut.ghost[d];
          }
          content.push_back(own || exchanged ? static_cast<double>(number + static_cast<std::int64_t>(v) + 1) : -1);
        }
      }
    }
  }
  return content;
}

}  // namespace

void fill_fields(Runtime& runtime, const HaloOptions& options, const HaloExchange& exchange,
                 const std::vector<Buffer>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto content = content_of(options, exchange.first_block() + static_cast<int>(i), false);
    runtime.copy(fields[i], ConstBuffer(content.data(), content.size() * sizeof(double)));
  }
}

void check_fields(Runtime& runtime, const HaloOptions& options, const HaloExchange& exchange,
                  const std::vector<Buffer>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const int block = exchange.first_block() + static_cast<int>(i);
    const auto expected = content_of(options, block, true);
    std::vector<double> found(expected.size());
    runtime.copy(Buffer(found.data(), found.size() * sizeof(double)), fields[i]);
    for (std::size_t cell = 0; cell < found.size(); ++cell) {
      if (found[cell] == expected[cell]) continue;
      throw Error(Status::internal,
                  fmt::format("halo: value {} of block {} is {} and not {}", cell, block, found[cell], expected[cell]));
    }
  }
}

}  // namespace brant::bench
