#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace brant::mpi {

struct Communicator;

/// A grid of MPI_Cart_create. Ranks go through the last dimension first.
struct Grid {
  std::vector<int> extents;
  std::vector<int> periodic;

  [[nodiscard]] std::vector<int> place_of(int rank) const;
  /// MPI_PROC_NULL outside a dimension that is not periodic.
  [[nodiscard]] int rank_at(std::vector<int> place) const noexcept;
};

/// A graph of MPI_Graph_create, which every rank knows as a whole.
struct Graph {
  std::vector<int> ends;  ///< By rank: where its neighbours end in `edges`, and those of the next one begin.
  std::vector<int> edges;

  [[nodiscard]] std::span<const int> neighbours_of(int rank) const noexcept;
};

/// A graph of which each rank knows its own edges.
struct DistributedGraph {
  std::vector<int> sources;
  std::vector<int> source_weights;
  std::vector<int> destinations;
  std::vector<int> destination_weights;
  bool weighted = false;  ///< If not, there are no weights.
  std::string fault;      ///< Why there are no collectives along it; empty: there are.
};

/// What the ranks of a communicator are arranged in, if in anything.
using Topology = std::variant<std::monostate, Grid, Graph, DistributedGraph>;

/// A rank at the other end of an edge; MPI_PROC_NULL at the rim of a grid.
struct Neighbour {
  int rank;
  /// Tells edges between the same two ranks apart, the same at both ends; equal where they are told apart by order: the
  /// first in one list of neighbours is the first in the other.
  int edge;
};

/// Whom a rank gets blocks from in collectives of its neighbourhood, and whom it gives blocks to, in their order.
struct Neighbourhood {
  std::vector<Neighbour> sources;
  std::vector<Neighbour> destinations;
};

/// Throws MPI_ERR_TOPOLOGY where there is none, or where a graph has an edge in one direction alone.
[[nodiscard]] Neighbourhood neighbourhood_of(const Communicator& communicator);
/// How many there are of each; 0 where there is no topology.
[[nodiscard]] std::int64_t source_count_of(const Communicator& communicator) noexcept;
[[nodiscard]] std::int64_t destination_count_of(const Communicator& communicator) noexcept;

}  // namespace brant::mpi
