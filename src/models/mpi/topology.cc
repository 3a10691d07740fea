#include "models/mpi/topology.h"

#include <algorithm>

#include "models/mpi/call_error.h"
#include "models/mpi/communicator.h"

namespace brant::mpi {

namespace {

/// What is sent in one direction of a dimension comes from the opposite one, also where both lead to one rank: so an
/// edge has the number of the place at which it comes in.
Neighbourhood neighbourhood_in(const Grid& grid, int rank) {
  Neighbourhood found;
  const std::vector<int> own = grid.place_of(rank);
  for (std::size_t dimension = 0; dimension < own.size(); ++dimension) {
    for (const int step : {-1, 1}) {
      std::vector<int> place = own;
      place[dimension] += step;
      const int neighbour = grid.rank_at(std::move(place));
      const int slot = static_cast<int>(found.sources.size());
      found.sources.push_back({neighbour, slot});
      found.destinations.push_back({neighbour, slot ^ 1});
    }
  }
  return found;
}

Neighbourhood neighbourhood_in(const Graph& graph, int rank) {
  Neighbourhood found;
  const std::span<const int> own = graph.neighbours_of(rank);
  for (const int neighbour : own) {
    const auto there = std::ranges::count(own, neighbour);
    const auto back = std::ranges::count(graph.neighbours_of(neighbour), rank);
    require(there == back, MPI_ERR_TOPOLOGY,
            "the graph has {} edges from rank {} to rank {}, and {} back: collectives of neighbourhoods need as many",
            there, rank, neighbour, back);
    found.sources.push_back({neighbour, 0});
  }
  found.destinations = found.sources;
  return found;
}

Neighbourhood neighbourhood_in(const DistributedGraph& graph, int) {
  require(graph.fault.empty(), MPI_ERR_TOPOLOGY, "{}: collectives of neighbourhoods need as many", graph.fault);
  Neighbourhood found;
  for (const int rank : graph.sources) found.sources.push_back({rank, 0});
  for (const int rank : graph.destinations) found.destinations.push_back({rank, 0});
  return found;
}

Neighbourhood neighbourhood_in(std::monostate, int) {
  fail(MPI_ERR_TOPOLOGY, "the communicator has no topology: MPI_Cart_create and others make one that has");
}

struct Degrees {
  std::size_t in = 0;
  std::size_t out = 0;
};

Degrees degrees_of(const Communicator& communicator) noexcept {
  if (const auto* grid = std::get_if<Grid>(&communicator.topology))
    return {2 * grid->extents.size(), 2 * grid->extents.size()};
  if (const auto* graph = std::get_if<Graph>(&communicator.topology)) {
    const std::size_t count = graph->neighbours_of(communicator.rank).size();
    return {count, count};
  }
  if (const auto* graph = std::get_if<DistributedGraph>(&communicator.topology))
    return {graph->sources.size(), graph->destinations.size()};
  return {};
}

}  // namespace

std::vector<int> Grid::place_of(int rank) const {
  std::vector<int> place(extents.size());
  for (std::size_t i = place.size(); i-- != 0;) {
    place[i] = rank % extents[i];
    rank /= extents[i];
  }
  return place;
}

int Grid::rank_at(std::vector<int> place) const noexcept {
  int rank = 0;
  for (std::size_t i = 0; i < place.size(); ++i) {
    const int extent = extents[i];
    if (periodic[i] != 0) place[i] = (place[i] % extent + extent) % extent;
    if (place[i] < 0 || place[i] >= extent) return MPI_PROC_NULL;
    rank = rank * extent + place[i];
  }
  return rank;
}

std::span<const int> Graph::neighbours_of(int rank) const noexcept {
  const auto place = static_cast<std::size_t>(rank);
  const int first = rank == 0 ? 0 : ends[place - 1];
  return std::span(edges).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(ends[place] - first));
}

Neighbourhood neighbourhood_of(const Communicator& communicator) {
  return std::visit([&](const auto& topology) { return neighbourhood_in(topology, communicator.rank); },
                    communicator.topology);
}

std::int64_t source_count_of(const Communicator& communicator) noexcept {
  return static_cast<std::int64_t>(degrees_of(communicator).in);
}

std::int64_t destination_count_of(const Communicator& communicator) noexcept {
  return static_cast<std::int64_t>(degrees_of(communicator).out);
}

}  // namespace brant::mpi
