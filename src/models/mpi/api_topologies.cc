#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <vector>

#include "models/mpi/calls.h"
#include "models/mpi/checks/same_call.h"
#include "models/mpi/communicators.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

const Grid& grid_of(const Communicator& communicator) {
  const auto* grid = std::get_if<Grid>(&communicator.topology);
  require(grid != nullptr, MPI_ERR_TOPOLOGY, "the communicator has no grid of MPI_Cart_create");
  return *grid;
}

int ranks_of(std::span<const int> extents, int most) {
  std::int64_t ranks = 1;
  for (const int extent : extents) {
    require(extent > 0, MPI_ERR_DIMS, "a dimension of {} is not positive", extent);
    ranks *= extent;
    require(ranks <= most, MPI_ERR_DIMS, "the grid has more places than the communicator has ranks ({})", most);
  }
  return static_cast<int>(ranks);
}

Grid grid_from(int ndims, const int dims[], const int periods[]) {
  require(ndims >= 0, MPI_ERR_DIMS, "the number of dimensions {} is negative", ndims);
  require(ndims == 0 || (dims != nullptr && periods != nullptr), MPI_ERR_ARG, "the dimensions or periods are null");
  return {{dims, dims + ndims}, {periods, periods + ndims}};
}

/// The factors of a number, the largest first.
std::vector<int> prime_factors(int number) {
  std::vector<int> factors;
  for (int factor = 2; factor <= number / factor; ++factor) {
    for (; number % factor == 0; number /= factor) factors.push_back(factor);
  }
  if (number > 1) factors.push_back(number);
  std::ranges::reverse(factors);
  return factors;
}

}  // namespace

int cart_create(MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int,
                MPI_Comm* comm_cart) noexcept {
  return on_communicator("MPI_Cart_create", comm_old, [&](Communicator& c) {
    require_place(static_cast<const void*>(comm_cart), "comm_cart");
    require_one_group(c);
    Grid grid = grid_from(ndims, dims, periods);
    std::vector<int> ranks(static_cast<std::size_t>(ranks_of(grid.extents, c.size())));
    std::iota(ranks.begin(), ranks.end(), 0);
    require_same_call(c);
    *comm_cart = publish_part(c, ranks, std::move(grid));
  });
}

int cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm* newcomm) noexcept {
  return on_communicator("MPI_Cart_sub", comm, [&](Communicator& c) {
    require_place(static_cast<const void*>(newcomm), "newcomm");
    const Grid& grid = grid_of(c);
    const std::vector<int> own = grid.place_of(c.rank);
    Grid part;
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (remain_dims[i] == 0) continue;
      part.extents.push_back(grid.extents[i]);
      part.periodic.push_back(grid.periodic[i]);
    }
    std::vector<int> ranks;
    for (int rank = 0; rank < c.size(); ++rank) {
      const std::vector<int> place = grid.place_of(rank);
      bool same = true;
      for (std::size_t i = 0; i < place.size(); ++i) same = same && (remain_dims[i] != 0 || place[i] == own[i]);
      if (same) ranks.push_back(rank);
    }
    require_same_call(c);
    *newcomm = publish_part(c, ranks, std::move(part));
  });
}

int cart_map(MPI_Comm comm, int ndims, const int dims[], const int periods[], int* newrank) noexcept {
  return on_communicator("MPI_Cart_map", comm, [&](const Communicator& c) {
    const Grid grid = grid_from(ndims, dims, periods);
    *newrank = c.rank < ranks_of(grid.extents, c.size()) ? c.rank : MPI_UNDEFINED;
  });
}

int cartdim_get(MPI_Comm comm, int* ndims) noexcept {
  return on_communicator("MPI_Cartdim_get", comm,
                         [&](const Communicator& c) { *ndims = static_cast<int>(grid_of(c).extents.size()); });
}

int cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[]) noexcept {
  return on_communicator("MPI_Cart_get", comm, [&](const Communicator& c) {
    const Grid& grid = grid_of(c);
    const std::vector<int> own = grid.place_of(c.rank);
    for (std::size_t i = 0; i < own.size() && static_cast<int>(i) < maxdims; ++i) {
      dims[i] = grid.extents[i];
      periods[i] = grid.periodic[i] != 0 ? 1 : 0;
      coords[i] = own[i];
    }
  });
}

int cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[]) noexcept {
  return on_communicator("MPI_Cart_coords", comm, [&](const Communicator& c) {
    const Grid& grid = grid_of(c);
    require_rank(c, rank, "the rank");
    const std::vector<int> place = grid.place_of(rank);
    for (std::size_t i = 0; i < place.size() && static_cast<int>(i) < maxdims; ++i) coords[i] = place[i];
  });
}

int cart_rank(MPI_Comm comm, const int coords[], int* rank) noexcept {
  return on_communicator("MPI_Cart_rank", comm, [&](const Communicator& c) {
    const Grid& grid = grid_of(c);
    *rank = grid.rank_at({coords, coords + grid.extents.size()});
    require(*rank != MPI_PROC_NULL, MPI_ERR_ARG, "the coordinates are outside a dimension that is not periodic");
  });
}

int cart_shift(MPI_Comm comm, int direction, int disp, int* rank_source, int* rank_dest) noexcept {
  return on_communicator("MPI_Cart_shift", comm, [&](const Communicator& c) {
    const Grid& grid = grid_of(c);
    require(direction >= 0 && static_cast<std::size_t>(direction) < grid.extents.size(), MPI_ERR_DIMS,
            "the direction {} is outside a grid of {} dimensions", direction, grid.extents.size());
    const auto moved = [&](int by) {
      std::vector<int> place = grid.place_of(c.rank);
      place[static_cast<std::size_t>(direction)] += by;
      return grid.rank_at(std::move(place));
    };
    *rank_source = moved(-disp);
    *rank_dest = moved(disp);
  });
}

int topo_test(MPI_Comm comm, int* status) noexcept {
  return on_communicator("MPI_Topo_test", comm, [&](const Communicator& c) {
    require_place(status, "status");
    constexpr std::array<int, 4> kKinds{MPI_UNDEFINED, MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH};
    *status = kKinds[c.topology.index()];
  });
}

/// The largest factor goes to the smallest dimension so far, so that they come out alike.
int dims_create(int nnodes, int ndims, int dims[]) noexcept {
  return call("MPI_Dims_create", [&] {
    require(nnodes > 0 && ndims >= 0, MPI_ERR_DIMS, "{} ranks in {} dimensions are no grid", nnodes, ndims);
    std::vector<int*> open;
    int rest = nnodes;
    for (int i = 0; i < ndims; ++i) {
      require(dims[i] >= 0, MPI_ERR_DIMS, "dimension {} is {}", i, dims[i]);
      if (dims[i] == 0) {
        open.push_back(&dims[i]);
      } else {
        require(rest % dims[i] == 0, MPI_ERR_DIMS, "{} ranks are no multiple of the dimensions that are given", nnodes);
        rest /= dims[i];
      }
    }
    require(!open.empty() || rest == 1, MPI_ERR_DIMS, "the dimensions that are given do not make {} ranks", nnodes);
    if (open.empty()) return;
    std::vector<int> made(open.size(), 1);
    for (const int factor : prime_factors(rest)) *std::ranges::min_element(made) *= factor;
    std::ranges::sort(made, std::ranges::greater());
    for (std::size_t i = 0; i < open.size(); ++i) *open[i] = made[i];
  });
}

}  // namespace brant::mpi::api
