#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "models/mpi/calls.h"
#include "models/mpi/checks/same_call.h"
#include "models/mpi/communicators.h"
#include "mpi_generated/api.h"

/// Graphs as topologies: those that every rank knows as a whole, and those of which each knows its own edges.
namespace brant::mpi::api {

namespace {

const Graph& graph_of(const Communicator& communicator) {
  const auto* graph = std::get_if<Graph>(&communicator.topology);
  require(graph != nullptr, MPI_ERR_TOPOLOGY, "the communicator has no graph of MPI_Graph_create");
  return *graph;
}

const DistributedGraph& distributed_graph_of(const Communicator& communicator) {
  const auto* graph = std::get_if<DistributedGraph>(&communicator.topology);
  require(graph != nullptr, MPI_ERR_TOPOLOGY, "the communicator has no graph of MPI_Dist_graph_create");
  return *graph;
}

Graph graph_from(const Communicator& parent, int nnodes, const int indx[], const int edges[]) {
  require(nnodes >= 0 && nnodes <= parent.size(), MPI_ERR_ARG,
          "a graph of {} nodes has no place on a communicator of {} ranks", nnodes, parent.size());
  require(nnodes == 0 || indx != nullptr, MPI_ERR_ARG, "the list of where neighbours end is null");
  Graph graph;
  if (nnodes == 0) return graph;
  graph.ends.assign(indx, indx + nnodes);
  require(graph.ends.front() >= 0 && std::ranges::is_sorted(graph.ends), MPI_ERR_ARG,
          "the places where the neighbours of ranks end do not grow");
  require(graph.ends.back() == 0 || edges != nullptr, MPI_ERR_ARG, "the list of edges is null");
  graph.edges.assign(edges, edges + graph.ends.back());
  for (const int rank : graph.edges) {
    require(rank >= 0 && rank < nnodes, MPI_ERR_ARG, "an edge leads to node {}, outside 0 to {}", rank, nnodes - 1);
  }
  return graph;
}

void copy_first(std::span<const int> values, int room, int* place) {
  const auto count = std::min(values.size(), static_cast<std::size_t>(std::max(room, 0)));
  std::copy_n(values.begin(), count, place);
}

std::vector<int> ranks_from(const Communicator& parent, int count, const int* ranks, const char* what) {
  require(count >= 0, MPI_ERR_ARG, "the number of {} {} is negative", what, count);
  require(count == 0 || ranks != nullptr, MPI_ERR_ARG, "the list of {} is null", what);
  for (int i = 0; i < count; ++i) require_rank(parent, ranks[i], what);
  return {ranks, ranks + count};
}

/// As many as there are edges, or none.
std::vector<int> weights_from(const int* weights, std::size_t count) {
  if (weights == MPI_UNWEIGHTED || count == 0) return {};
  require(weights != nullptr && weights != MPI_WEIGHTS_EMPTY, MPI_ERR_ARG, "{} edges have no weights", count);
  std::vector<int> list(weights, weights + count);
  for (const int weight : list) require(weight >= 0, MPI_ERR_ARG, "the weight {} is negative", weight);
  return list;
}

void give_distributed(const Communicator& parent, DistributedGraph graph, MPI_Comm* place) {
  std::unique_ptr<Communicator> made = make_communicator(current_rank(), parent.members, {parent.context});
  made->topology = std::move(graph);
  *place = publish(std::move(made), parent);
}

/// Of each edge that ends here the other end must know too: else collectives along it would wait for ever, so that
/// nobody may begin one. Empty: all know as much.
std::string fault_of_ends(Communicator& parent, const DistributedGraph& graph) {
  const auto count = static_cast<std::size_t>(parent.size());
  std::vector<std::int32_t> given(count), expected(count), told(count);
  for (const int rank : graph.destinations) ++given[static_cast<std::size_t>(rank)];
  for (const int rank : graph.sources) ++expected[static_cast<std::size_t>(rank)];
  const auto bytes_of = [](std::vector<std::int32_t>& values) { return Buffer(std::span(values)); };
  parent.team().run(alltoall(bytes_of(given), bytes_of(told))).or_throw("members did not tell their edges");
  const auto wrong = std::ranges::mismatch(told, expected);
  std::int32_t any_wrong = wrong.in1 != told.end() ? 1 : 0;
  std::string fault;
  if (any_wrong != 0) {
    const auto from = static_cast<std::size_t>(wrong.in1 - told.begin());
    fault = fmt::format("rank {} has {} edges to rank {}, which has {} from there in its list", from, told[from],
                        parent.rank, expected[from]);
  }
  const std::span<std::int32_t> value(&any_wrong, 1);
  parent.team().run(allreduce(value, value, ReduceOp::max)).or_throw("members did not tell their edges");
  if (any_wrong != 0 && fault.empty()) fault = "two other ranks do not have the same edges between them";
  return fault;
}

/// One end of an edge, told to the rank there by whoever named the edge.
struct EdgeEnd {
  std::int32_t other;
  std::int32_t weight;
  std::int32_t is_source;  ///< The rank that is told is where it begins.
};

/// How many ends a rank tells another, and what it says of weights: none, some, or that it has no edges.
struct Headline {
  enum Weights : std::int32_t { no_edges, unweighted, weighted };
  std::int32_t ends = 0;
  std::int32_t weights = no_edges;
};

/// What all have said to this rank, by who said it.
struct EdgesTold {
  std::vector<EdgeEnd> ends;
  bool weighted = false;
};

EdgesTold tell_edges(Communicator& parent, const std::vector<std::vector<EdgeEnd>>& told_to, std::int32_t weights) {
  const auto count = static_cast<std::size_t>(parent.size());
  std::vector<Headline> given(count), got(count);
  std::vector<EdgeEnd> ends;
  for (std::size_t i = 0; i < count; ++i) {
    given[i] = {static_cast<std::int32_t>(told_to[i].size()), weights};
    ends.insert(ends.end(), told_to[i].begin(), told_to[i].end());
  }
  const auto bytes_of = [](auto& items) {
    return Buffer(static_cast<void*>(items.data()), items.size() * sizeof items[0], MemoryKind::host);
  };
  constexpr const char* kFault = "members did not tell their edges";
  parent.team().run(alltoall(bytes_of(given), bytes_of(got))).or_throw(kFault);
  const auto some = [&](std::int32_t kind) {
    return std::ranges::any_of(got, [kind](const Headline& one) { return one.weights == kind; });
  };
  require(!some(Headline::weighted) || !some(Headline::unweighted), MPI_ERR_ARG,
          "some ranks give weights, and others MPI_UNWEIGHTED");
  std::vector<std::uint64_t> given_bytes, got_bytes;
  for (const Headline& one : given) given_bytes.push_back(static_cast<std::uint64_t>(one.ends) * sizeof(EdgeEnd));
  for (const Headline& one : got) got_bytes.push_back(static_cast<std::uint64_t>(one.ends) * sizeof(EdgeEnd));
  const std::uint64_t all = std::accumulate(got_bytes.begin(), got_bytes.end(), std::uint64_t{0});
  EdgesTold told{std::vector<EdgeEnd>(static_cast<std::size_t>(all) / sizeof(EdgeEnd)), some(Headline::weighted)};
  // Memory that is there even if there are no edges: null would mean that the call is in place.
  std::array<EdgeEnd, 1> nothing{};
  Buffer in = ends.empty() ? Buffer(nothing.data(), 0, MemoryKind::host) : bytes_of(ends);
  Buffer out = told.ends.empty() ? Buffer(nothing.data(), 0, MemoryKind::host) : bytes_of(told.ends);
  parent.team().run(alltoallv(in, given_bytes, out, got_bytes)).or_throw(kFault);
  return told;
}

}  // namespace

// Graphs that every rank knows
// -------------------------------------------------------------------------------------------------------------------

int graph_create(MPI_Comm comm_old, int nnodes, const int indx[], const int edges[], int,
                 MPI_Comm* comm_graph) noexcept {
  return on_communicator("MPI_Graph_create", comm_old, [&](Communicator& c) {
    require_place(static_cast<const void*>(comm_graph), "comm_graph");
    require_one_group(c);
    Graph graph = graph_from(c, nnodes, indx, edges);
    std::vector<int> ranks(static_cast<std::size_t>(nnodes));
    std::iota(ranks.begin(), ranks.end(), 0);
    require_same_call(c);
    *comm_graph = publish_part(c, ranks, std::move(graph));
  });
}

int graph_map(MPI_Comm comm, int nnodes, const int indx[], const int edges[], int* newrank) noexcept {
  return on_communicator("MPI_Graph_map", comm, [&](const Communicator& c) {
    require_place(newrank, "newrank");
    require_one_group(c);
    static_cast<void>(graph_from(c, nnodes, indx, edges));
    *newrank = c.rank < nnodes ? c.rank : MPI_UNDEFINED;
  });
}

int graphdims_get(MPI_Comm comm, int* nnodes, int* nedges) noexcept {
  return on_communicator("MPI_Graphdims_get", comm, [&](const Communicator& c) {
    require_place(nnodes, "nnodes");
    require_place(nedges, "nedges");
    *nnodes = static_cast<int>(graph_of(c).ends.size());
    *nedges = static_cast<int>(graph_of(c).edges.size());
  });
}

int graph_get(MPI_Comm comm, int maxindex, int maxedges, int indx[], int edges[]) noexcept {
  return on_communicator("MPI_Graph_get", comm, [&](const Communicator& c) {
    copy_first(graph_of(c).ends, maxindex, indx);
    copy_first(graph_of(c).edges, maxedges, edges);
  });
}

int graph_neighbors_count(MPI_Comm comm, int rank, int* nneighbors) noexcept {
  return on_communicator("MPI_Graph_neighbors_count", comm, [&](const Communicator& c) {
    require_place(nneighbors, "nneighbors");
    const Graph& graph = graph_of(c);
    require_rank(c, rank, "the rank");
    *nneighbors = static_cast<int>(graph.neighbours_of(rank).size());
  });
}

int graph_neighbors(MPI_Comm comm, int rank, int maxneighbors, int neighbors[]) noexcept {
  return on_communicator("MPI_Graph_neighbors", comm, [&](const Communicator& c) {
    const Graph& graph = graph_of(c);
    require_rank(c, rank, "the rank");
    copy_first(graph.neighbours_of(rank), maxneighbors, neighbors);
  });
}

// Graphs of which each rank knows its own edges
// -------------------------------------------------------------------------------------------------------------------

int dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[], const int* sourceweights,
                               int outdegree, const int destinations[], const int* destweights, MPI_Info, int,
                               MPI_Comm* comm_dist_graph) noexcept {
  return on_communicator("MPI_Dist_graph_create_adjacent", comm_old, [&](Communicator& c) {
    require_place(static_cast<const void*>(comm_dist_graph), "comm_dist_graph");
    require_one_group(c);
    DistributedGraph graph;
    graph.sources = ranks_from(c, indegree, sources, "sources");
    graph.destinations = ranks_from(c, outdegree, destinations, "destinations");
    const bool sources_have = sourceweights != MPI_UNWEIGHTED;
    const bool destinations_have = destweights != MPI_UNWEIGHTED;
    require(sources_have == destinations_have || indegree == 0 || outdegree == 0, MPI_ERR_ARG,
            "edges in one direction have weights, and in the other MPI_UNWEIGHTED");
    graph.weighted =
        (sources_have && indegree != 0) || (destinations_have && outdegree != 0) || (sources_have && destinations_have);
    graph.source_weights = weights_from(sourceweights, graph.sources.size());
    graph.destination_weights = weights_from(destweights, graph.destinations.size());
    *comm_dist_graph = MPI_COMM_NULL;
    graph.fault = fault_of_ends(c, graph);
    give_distributed(c, std::move(graph), comm_dist_graph);
  });
}

int dist_graph_create(MPI_Comm comm_old, int n, const int sources[], const int degrees[], const int destinations[],
                      const int* weights, MPI_Info, int, MPI_Comm* comm_dist_graph) noexcept {
  return on_communicator("MPI_Dist_graph_create", comm_old, [&](Communicator& c) {
    require_place(static_cast<const void*>(comm_dist_graph), "comm_dist_graph");
    require_one_group(c);
    const std::vector<int> from = ranks_from(c, n, sources, "sources");
    require(n == 0 || degrees != nullptr, MPI_ERR_ARG, "the list of degrees is null");
    std::int64_t edges = 0;
    for (int i = 0; i < n; ++i) {
      require(degrees[i] >= 0, MPI_ERR_ARG, "the degree {} is negative", degrees[i]);
      edges += degrees[i];
    }
    require(edges <= std::numeric_limits<int>::max(), MPI_ERR_ARG, "{} edges are more than an int counts", edges);
    const std::vector<int> to = ranks_from(c, static_cast<int>(edges), destinations, "destinations");
    const std::vector<int> weight = weights_from(weights, to.size());
    std::vector<std::vector<EdgeEnd>> told_to(static_cast<std::size_t>(c.size()));
    std::size_t edge = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
      for (int j = 0; j < degrees[i]; ++j, ++edge) {
        const int heavy = weight.empty() ? 0 : weight[edge];
        told_to[static_cast<std::size_t>(from[i])].push_back({to[edge], heavy, 1});
        told_to[static_cast<std::size_t>(to[edge])].push_back({from[i], heavy, 0});
      }
    }
    *comm_dist_graph = MPI_COMM_NULL;
    // What a rank without edges says of weights counts where nobody has any.
    const bool own_weighted = weights != MPI_UNWEIGHTED;
    const std::int32_t kind = edges == 0     ? Headline::no_edges
                              : own_weighted ? Headline::weighted
                                             : Headline::unweighted;
    const EdgesTold told = tell_edges(c, told_to, kind);
    DistributedGraph graph;
    graph.weighted = told.weighted || (told.ends.empty() && own_weighted && edges == 0);
    for (const EdgeEnd& end : told.ends) {
      (end.is_source != 0 ? graph.destinations : graph.sources).push_back(end.other);
      if (told.weighted) (end.is_source != 0 ? graph.destination_weights : graph.source_weights).push_back(end.weight);
    }
    give_distributed(c, std::move(graph), comm_dist_graph);
  });
}

int dist_graph_neighbors_count(MPI_Comm comm, int* indegree, int* outdegree, int* weighted) noexcept {
  return on_communicator("MPI_Dist_graph_neighbors_count", comm, [&](const Communicator& c) {
    require_place(indegree, "indegree");
    require_place(outdegree, "outdegree");
    require_place(weighted, "weighted");
    const DistributedGraph& graph = distributed_graph_of(c);
    *indegree = static_cast<int>(graph.sources.size());
    *outdegree = static_cast<int>(graph.destinations.size());
    *weighted = graph.weighted ? 1 : 0;
  });
}

int dist_graph_neighbors(MPI_Comm comm, int maxindegree, int sources[], int* sourceweights, int maxoutdegree,
                         int destinations[], int* destweights) noexcept {
  return on_communicator("MPI_Dist_graph_neighbors", comm, [&](const Communicator& c) {
    const DistributedGraph& graph = distributed_graph_of(c);
    copy_first(graph.sources, maxindegree, sources);
    copy_first(graph.destinations, maxoutdegree, destinations);
    const auto is_place = [](const int* place) { return place != MPI_UNWEIGHTED && place != MPI_WEIGHTS_EMPTY; };
    if (is_place(sourceweights)) copy_first(graph.source_weights, maxindegree, sourceweights);
    if (is_place(destweights)) copy_first(graph.destination_weights, maxoutdegree, destweights);
  });
}

}  // namespace brant::mpi::api
