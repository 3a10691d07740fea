// Runs as every rank of a job: graphs as topologies, and collectives of neighbourhoods along graphs and grids.
#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "mpi_job.h"

namespace brant::mpi {
namespace {

class Graphs : public testing::Test {
 protected:
  /// Every rank is the neighbour of the one before it and of the one behind it, which may be one and the same, or
  /// itself.
  [[nodiscard]] MPI_Comm ring_graph() const {
    std::vector<int> ends, edges;
    for (int i = 0; i < size_; ++i) {
      edges.insert(edges.end(), {(i + size_ - 1) % size_, (i + 1) % size_});
      ends.push_back(static_cast<int>(edges.size()));
    }
    MPI_Comm graph = MPI_COMM_NULL;
    EXPECT_EQ(MPI_Graph_create(MPI_COMM_WORLD, size_, ends.data(), edges.data(), 0, &graph), 0);
    return graph;
  }
  [[nodiscard]] MPI_Comm ring_grid(std::vector<int> extents) const {
    const std::vector<int> periodic(extents.size(), 1);
    MPI_Comm grid = MPI_COMM_NULL;
    EXPECT_EQ(
        MPI_Cart_create(MPI_COMM_WORLD, static_cast<int>(extents.size()), extents.data(), periodic.data(), 0, &grid),
        0);
    return grid;
  }
  [[nodiscard]] static MPI_Comm adjacent(const std::vector<int>& sources, const std::vector<int>& destinations) {
    MPI_Comm graph = MPI_COMM_NULL;
    EXPECT_EQ(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(sources.size()), sources.data(),
                                             MPI_UNWEIGHTED, static_cast<int>(destinations.size()), destinations.data(),
                                             MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph),
              0);
    return graph;
  }
  const int self_ = test::rank(), size_ = test::size();
  const int left_ = (self_ + size_ - 1) % size_, right_ = (self_ + 1) % size_;
};

TEST_F(Graphs, are_known_as_a_whole) {
  MPI_Comm graph = ring_graph();
  int kind = -1, nodes = -1, edges = -1, count = -1;
  MPI_Topo_test(graph, &kind);
  EXPECT_EQ(kind, MPI_GRAPH);
  MPI_Graphdims_get(graph, &nodes, &edges);
  EXPECT_EQ(nodes, size_);
  EXPECT_EQ(edges, 2 * size_);
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(graph, &copy);
  for (int rank = 0; rank < size_; ++rank) {
    MPI_Graph_neighbors_count(copy, rank, &count);
    EXPECT_EQ(count, 2);
    std::array<int, 2> neighbours{-1, -1};
    MPI_Graph_neighbors(copy, rank, 1, neighbours.data());
    EXPECT_EQ(neighbours, (std::array<int, 2>{(rank + size_ - 1) % size_, -1})) << "no more than there is room for";
  }
  std::vector<int> ends(static_cast<std::size_t>(size_)), list(static_cast<std::size_t>(2 * size_));
  MPI_Graph_get(copy, size_, 2 * size_, ends.data(), list.data());
  EXPECT_EQ(ends.back(), 2 * size_);
  EXPECT_EQ(list[static_cast<std::size_t>(2 * self_ + 1)], right_);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&graph);
  const std::array<int, 1> end{1};
  const std::array<int, 1> loop{0};
  int place = -1;
  MPI_Graph_map(MPI_COMM_WORLD, 1, end.data(), loop.data(), &place);
  EXPECT_EQ(place, self_ == 0 ? 0 : int{MPI_UNDEFINED});
  ASSERT_EQ(MPI_Graph_create(MPI_COMM_WORLD, 1, end.data(), loop.data(), 1, &graph), 0);
  EXPECT_EQ(graph != MPI_COMM_NULL, self_ == 0);
  if (graph != MPI_COMM_NULL) MPI_Comm_free(&graph);
  MPI_Topo_test(MPI_COMM_WORLD, &kind);
  EXPECT_EQ(kind, MPI_UNDEFINED);
}

TEST_F(Graphs, of_own_edges_have_their_weights) {
  const std::array<int, 2> sources{left_, self_}, destinations{right_, self_};
  const std::array<int, 2> source_weights{left_, 7}, destination_weights{self_, 7};
  MPI_Comm graph = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources.data(), source_weights.data(), 2,
                                           destinations.data(), destination_weights.data(), MPI_INFO_NULL, 0, &graph),
            0);
  int in = -1, out = -1, weighted = -1, kind = -1;
  MPI_Topo_test(graph, &kind);
  EXPECT_EQ(kind, MPI_DIST_GRAPH);
  MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
  EXPECT_EQ((std::array{in, out, weighted}), (std::array{2, 2, 1}));
  std::array<int, 2> got{}, got_weights{}, given{}, given_weights{};
  MPI_Dist_graph_neighbors(graph, 2, got.data(), got_weights.data(), 2, given.data(), given_weights.data());
  EXPECT_EQ(got, sources);
  EXPECT_EQ(got_weights, source_weights);
  EXPECT_EQ(given, destinations);
  EXPECT_EQ(given_weights, destination_weights);
  MPI_Comm_free(&graph);
  ASSERT_EQ(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, nullptr, MPI_WEIGHTS_EMPTY, 0, nullptr, MPI_WEIGHTS_EMPTY,
                                           MPI_INFO_NULL, 0, &graph),
            0);
  MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
  EXPECT_EQ((std::array{in, out, weighted}), (std::array{0, 0, 1}));
  EXPECT_EQ(MPI_Neighbor_alltoall(nullptr, 1, MPI_INT, nullptr, 1, MPI_INT, graph), 0) << "nobody has neighbours";
  MPI_Comm_free(&graph);
}

/// Rank 0 names all edges: from each rank to the next one, twice, with weights 1 and 2, and to itself.
TEST_F(Graphs, may_be_described_by_a_rank_that_is_at_no_end_of_an_edge) {
  std::vector<int> sources, degrees, destinations, weights;
  for (int i = 0; self_ == 0 && i < size_; ++i) {
    sources.push_back(i);
    degrees.push_back(3);
    destinations.insert(destinations.end(), {(i + 1) % size_, i, (i + 1) % size_});
    weights.insert(weights.end(), {1, 50, 2});
  }
  MPI_Comm graph = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Dist_graph_create(MPI_COMM_WORLD, static_cast<int>(sources.size()), sources.data(), degrees.data(),
                                  destinations.data(), self_ == 0 ? weights.data() : MPI_WEIGHTS_EMPTY, MPI_INFO_NULL,
                                  0, &graph),
            0);
  int in = -1, out = -1, weighted = -1;
  MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
  EXPECT_EQ((std::array{in, out, weighted}), (std::array{3, 3, 1}));
  std::array<int, 3> got{}, got_weights{}, given{}, given_weights{};
  MPI_Dist_graph_neighbors(graph, 3, got.data(), got_weights.data(), 3, given.data(), given_weights.data());
  const auto sum = [](std::span<const int> values) { return std::accumulate(values.begin(), values.end(), 0); };
  EXPECT_EQ(sum(got), 2 * left_ + self_);
  EXPECT_EQ(sum(given), 2 * right_ + self_);
  EXPECT_EQ(sum(got_weights), 53);
  EXPECT_EQ(sum(given_weights), 53);
  // What goes along an edge arrives at the edge of the same weight, though two lead to one rank.
  std::array<int, 3> landed{};
  ASSERT_EQ(MPI_Neighbor_alltoall(given_weights.data(), 1, MPI_INT, landed.data(), 1, MPI_INT, graph), 0);
  EXPECT_EQ(landed, got_weights);
  MPI_Comm_free(&graph);
  ASSERT_EQ(
      MPI_Dist_graph_create(MPI_COMM_WORLD, 0, nullptr, nullptr, nullptr, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph), 0);
  MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
  EXPECT_EQ((std::array{in, out, weighted}), (std::array{0, 0, 0}));
  MPI_Comm_free(&graph);
}

/// What goes in one direction comes from the opposite one, also where both lead to one rank or to oneself.
TEST_F(Graphs, neighbours_in_grids_get_what_is_sent_towards_them) {
  for (const std::vector<int>& extents : {std::vector{size_}, std::vector{1, size_}, std::vector{1, 1}}) {
    MPI_Comm grid = ring_grid(extents);
    if (grid == MPI_COMM_NULL) continue;  // ranks outside a grid of one place
    const auto dimensions = extents.size();
    std::vector<int> given(2 * dimensions), got(2 * dimensions, -1), gathered(2 * dimensions, -1);
    for (std::size_t i = 0; i < given.size(); ++i) given[i] = 10 * self_ + static_cast<int>(i);
    const auto expect = [&](const std::vector<int>& values) {
      for (std::size_t d = 0; d < dimensions; ++d) {
        int before = -1, behind = -1;
        MPI_Cart_shift(grid, static_cast<int>(d), 1, &before, &behind);
        EXPECT_EQ(values[2 * d], 10 * before + static_cast<int>(2 * d) + 1);
        EXPECT_EQ(values[2 * d + 1], 10 * behind + static_cast<int>(2 * d));
      }
    };
    ASSERT_EQ(MPI_Neighbor_alltoall(given.data(), 1, MPI_INT, got.data(), 1, MPI_INT, grid), 0);
    expect(got);
    MPI_Request request = MPI_REQUEST_NULL;
    std::ranges::fill(got, -1);
    ASSERT_EQ(MPI_Ineighbor_alltoall(given.data(), 1, MPI_INT, got.data(), 1, MPI_INT, grid, &request), 0);
    ASSERT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), 0);
    expect(got);
    ASSERT_EQ(MPI_Neighbor_allgather(&self_, 1, MPI_INT, gathered.data(), 1, MPI_INT, grid), 0);
    int before = -1, behind = -1;
    MPI_Cart_shift(grid, static_cast<int>(dimensions) - 1, 1, &before, &behind);
    EXPECT_EQ(gathered[2 * dimensions - 2], before);
    EXPECT_EQ(gathered[2 * dimensions - 1], behind);
    MPI_Comm_free(&grid);
  }
}

TEST_F(Graphs, places_at_the_rim_of_a_grid_stay_as_they_are) {
  const int periodic = 0;
  MPI_Comm grid = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size_, &periodic, 0, &grid);
  std::array<int, 2> got{-7, -7};
  const std::array<int, 2> given{100 + self_, 200 + self_};
  ASSERT_EQ(MPI_Neighbor_alltoall(given.data(), 1, MPI_INT, got.data(), 1, MPI_INT, grid), 0);
  EXPECT_EQ(got[0], self_ == 0 ? -7 : 200 + left_);
  EXPECT_EQ(got[1], self_ == size_ - 1 ? -7 : 100 + right_);
  MPI_Comm_free(&grid);
}

TEST_F(Graphs, several_edges_between_two_ranks_keep_their_order) {
  MPI_Comm graph = adjacent({left_, self_, left_, left_}, {right_, right_, self_, right_});
  const std::array<int, 4> given{10 * self_, 10 * self_ + 1, 10 * self_ + 2, 10 * self_ + 3};
  std::array<int, 4> got{-1, -1, -1, -1};
  ASSERT_EQ(MPI_Neighbor_alltoall(given.data(), 1, MPI_INT, got.data(), 1, MPI_INT, graph), 0);
  if (size_ > 1) {
    EXPECT_EQ(got, (std::array<int, 4>{10 * left_, 10 * self_ + 2, 10 * left_ + 1, 10 * left_ + 3}));
  } else {
    EXPECT_EQ(got, given) << "all edges lead to one rank";
  }
  MPI_Comm_free(&graph);
}

/// Rank i gives i + 1 numbers, which land two places apart.
TEST_F(Graphs, blocks_of_different_sizes_and_types_land_at_their_displacements) {
  MPI_Comm graph = ring_graph();
  const std::vector<int> own(static_cast<std::size_t>(self_ + 1), self_);
  const std::array<int, 2> counts{left_ + 1, right_ + 1}, displs{1, left_ + 4};
  std::vector<int> got(static_cast<std::size_t>(left_ + right_ + 8), -5);
  const auto expect = [&] {
    std::vector<int> expected(got.size(), -5);
    std::fill_n(expected.begin() + 1, left_ + 1, left_);
    std::fill_n(expected.begin() + left_ + 4, right_ + 1, right_);
    EXPECT_EQ(got, expected);
    std::ranges::fill(got, -5);
  };
  ASSERT_EQ(
      MPI_Neighbor_allgatherv(own.data(), self_ + 1, MPI_INT, got.data(), counts.data(), displs.data(), MPI_INT, graph),
      0);
  expect();
  const std::array<int, 2> given_counts{self_ + 1, self_ + 1}, given_displs{0, 0};
  ASSERT_EQ(MPI_Neighbor_alltoallv(own.data(), given_counts.data(), given_displs.data(), MPI_INT, got.data(),
                                   counts.data(), displs.data(), MPI_INT, graph),
            0);
  expect();
  const std::array<MPI_Aint, 2> given_places{0, 0};
  const std::array<MPI_Aint, 2> places{4, 4 * (MPI_Aint{left_} + 4)};
  const std::array<MPI_Datatype, 2> types{MPI_INT, MPI_INT};
  MPI_Request request = MPI_REQUEST_NULL;
  ASSERT_EQ(MPI_Neighbor_alltoallw_init(own.data(), given_counts.data(), given_places.data(), types.data(), got.data(),
                                        counts.data(), places.data(), types.data(), graph, MPI_INFO_NULL, &request),
            0);
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(MPI_Start(&request), 0);
    ASSERT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), 0);
    expect();
  }
  MPI_Request_free(&request);
  MPI_Comm_free(&graph);
}

/// Faces of a matrix in memory of a device: columns, which have gaps, from 200 KB down to nothing.
TEST_F(Graphs, neighbours_exchange_memory_of_devices) {
  Runtime& owner = runtime();
  MPI_Comm grid = ring_grid({size_});
  constexpr int kRows = 6000, kColumns = 4;
  Memory device = owner.allocate(owner.device_kind(), std::size_t{kRows} * kColumns * sizeof(double));
  std::vector<double> image(std::size_t{kRows} * kColumns);
  std::iota(image.begin(), image.end(), 0.0);
  std::ranges::transform(image, image.begin(), [&](double value) { return value + 1e6 * self_; });
  for (const int rows : {0, 9, kRows}) {
    owner.copy(device, Buffer(std::span(image)));
    MPI_Datatype column = MPI_DATATYPE_NULL;
    MPI_Type_vector(rows, 1, kColumns, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    auto* first = device.as<double>();
    const std::array<int, 2> counts{1, 1};
    const std::array<MPI_Aint, 2> given{1 * sizeof(double), 2 * sizeof(double)}, got{0, 3 * sizeof(double)};
    const std::array<MPI_Datatype, 2> types{column, column};
    ASSERT_EQ(MPI_Neighbor_alltoallw(first, counts.data(), given.data(), types.data(), first, counts.data(), got.data(),
                                     types.data(), grid),
              0);
    std::vector<double> after(image.size());
    owner.copy(Buffer(std::span(after)), device);
    std::vector<double> expected = image;
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
      expected[row * kColumns] = 1e6 * left_ + static_cast<double>(row * kColumns + 2);
      expected[row * kColumns + 3] = 1e6 * right_ + static_cast<double>(row * kColumns + 1);
    }
    EXPECT_EQ(after, expected) << rows << " rows";
    MPI_Type_free(&column);
  }
  MPI_Comm_free(&grid);
}

TEST_F(Graphs, with_bad_arguments_are_refused_by_the_class_of_the_fault) {
  const test::ErrorsReturned returned(MPI_COMM_WORLD);
  MPI_Comm made = MPI_COMM_NULL;
  const std::array<int, 2> ends{1, 2}, falling{2, 1}, edges{0, 0}, outside{0, 9};
  EXPECT_EQ(MPI_Graph_create(MPI_COMM_WORLD, size_ + 1, ends.data(), edges.data(), 0, &made), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Graph_create(MPI_COMM_WORLD, -1, ends.data(), edges.data(), 0, &made), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Graph_create(MPI_COMM_WORLD, 1, nullptr, edges.data(), 0, &made), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Graph_create(MPI_COMM_WORLD, 1, ends.data(), &outside[1], 0, &made), MPI_ERR_ARG);
  if (size_ > 1) {
    EXPECT_EQ(MPI_Graph_create(MPI_COMM_WORLD, 2, falling.data(), edges.data(), 0, &made), MPI_ERR_ARG);
  }
  const auto create = [&](int in, const int* from, const int* in_weights, int out, const int* to,
                          const int* out_weights) {
    return MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, from, in_weights, out, to, out_weights, MPI_INFO_NULL, 0,
                                          &made);
  };
  const int negative = -4;
  EXPECT_EQ(create(-1, nullptr, MPI_UNWEIGHTED, 0, nullptr, MPI_UNWEIGHTED), MPI_ERR_ARG);
  EXPECT_EQ(create(1, &size_, MPI_UNWEIGHTED, 0, nullptr, MPI_UNWEIGHTED), MPI_ERR_RANK);
  EXPECT_EQ(create(1, nullptr, MPI_UNWEIGHTED, 0, nullptr, MPI_UNWEIGHTED), MPI_ERR_ARG);
  EXPECT_EQ(create(1, &self_, MPI_WEIGHTS_EMPTY, 1, &self_, MPI_WEIGHTS_EMPTY), MPI_ERR_ARG);
  EXPECT_EQ(create(1, &self_, MPI_UNWEIGHTED, 1, &self_, &self_), MPI_ERR_ARG);
  EXPECT_EQ(create(1, &self_, &negative, 1, &self_, &negative), MPI_ERR_ARG);
  int value = 0;
  ASSERT_EQ(create(1, &left_, MPI_UNWEIGHTED, 0, nullptr, MPI_UNWEIGHTED), 0) << "edges without a beginning";
  EXPECT_EQ(MPI_Neighbor_allgather(&value, 1, MPI_INT, &value, 1, MPI_INT, made), MPI_ERR_TOPOLOGY);
  MPI_Comm_free(&made);
  const int degree = 1;
  EXPECT_EQ(
      MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &self_, &negative, &self_, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made),
      MPI_ERR_ARG);
  EXPECT_EQ(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &self_, &degree, &size_, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made),
            MPI_ERR_RANK);
  if (size_ > 1) {
    EXPECT_EQ(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &self_, &degree, &self_, self_ == 0 ? MPI_UNWEIGHTED : &degree,
                                    MPI_INFO_NULL, 0, &made),
              MPI_ERR_ARG)
        << "weights of some alone";
  }
  EXPECT_EQ(MPI_Neighbor_alltoall(&value, 1, MPI_INT, &value, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_TOPOLOGY);
  EXPECT_EQ(MPI_Graph_neighbors_count(MPI_COMM_WORLD, 0, &value), MPI_ERR_TOPOLOGY);
  EXPECT_EQ(MPI_Dist_graph_neighbors_count(MPI_COMM_WORLD, &value, &value, &value), MPI_ERR_TOPOLOGY);
  MPI_Comm graph = ring_graph();
  EXPECT_EQ(MPI_Cartdim_get(graph, &value), MPI_ERR_TOPOLOGY);
  EXPECT_EQ(MPI_Graph_neighbors_count(graph, size_, &value), MPI_ERR_RANK);
  std::array<int, 2> two{};
  EXPECT_EQ(MPI_Neighbor_alltoall(MPI_IN_PLACE, 1, MPI_INT, two.data(), 1, MPI_INT, graph), MPI_ERR_BUFFER);
  EXPECT_EQ(MPI_Neighbor_alltoall(two.data(), -1, MPI_INT, two.data(), 1, MPI_INT, graph), MPI_ERR_COUNT);
  EXPECT_EQ(MPI_Neighbor_alltoallv(two.data(), nullptr, nullptr, MPI_INT, two.data(), nullptr, nullptr, MPI_INT, graph),
            MPI_ERR_ARG);
  MPI_Comm_free(&graph);
  if (size_ > 1) {
    const std::array<int, 2> one_way_ends{1, 1};
    const int there = 1;
    ASSERT_EQ(MPI_Graph_create(MPI_COMM_WORLD, 2, one_way_ends.data(), &there, 0, &graph), 0);
    if (self_ == 0) {
      EXPECT_EQ(MPI_Neighbor_allgather(&value, 1, MPI_INT, &value, 1, MPI_INT, graph), MPI_ERR_TOPOLOGY);
    }
    if (graph != MPI_COMM_NULL) MPI_Comm_free(&graph);
  }
}

/// Copies that were begun: nobody waits for anybody, messages go as soon as the copy is there, and collectives too.
TEST_F(Graphs, are_copied_without_waiting) {
  MPI_Comm grid = ring_grid({size_});
  MPI_Comm copy = MPI_COMM_NULL, second = MPI_COMM_NULL;
  std::array<MPI_Request, 2> requests{};
  int word = 1;
  if (self_ == 0) {
    ASSERT_EQ(MPI_Comm_idup(grid, &copy, &requests[0]), 0);
    for (int i = 1; i < size_; ++i) MPI_Send(&word, 1, MPI_INT, i, 0, grid);
  } else {
    MPI_Recv(&word, 1, MPI_INT, 0, 0, grid, MPI_STATUS_IGNORE);
    ASSERT_EQ(MPI_Comm_idup(grid, &copy, &requests[0]), 0);
  }
  MPI_Info info = MPI_INFO_NULL, used = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "color", "blue");
  ASSERT_EQ(MPI_Comm_idup_with_info(grid, info, &second, &requests[1]), 0);
  MPI_Info_free(&info);
  ASSERT_EQ(MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE), 0);
  int result = -1, kind = -1, keys = -1;
  MPI_Comm_compare(copy, grid, &result);
  EXPECT_EQ(result, MPI_CONGRUENT);
  MPI_Topo_test(copy, &kind);
  EXPECT_EQ(kind, MPI_CART);
  MPI_Comm_get_info(second, &used);
  MPI_Info_get_nkeys(used, &keys);
  EXPECT_EQ(keys, 2) << "what was given, and mpi_memory_alloc_kinds";
  MPI_Info_free(&used);
  // Each has messages of its own.
  std::array<MPI_Request, 3> sends{};
  const std::array<int, 3> given{1, 2, 3};
  MPI_Isend(&given[0], 1, MPI_INT, right_, 0, grid, &sends[0]);
  MPI_Isend(&given[1], 1, MPI_INT, right_, 0, copy, &sends[1]);
  MPI_Isend(&given[2], 1, MPI_INT, right_, 0, second, &sends[2]);
  int got = -1;
  for (const auto& [comm, expected] : {std::pair{second, 3}, std::pair{copy, 2}, std::pair{grid, 1}}) {
    MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
    EXPECT_EQ(got, expected);
  }
  MPI_Waitall(3, sends.data(), MPI_STATUSES_IGNORE);
  std::array<int, 2> around{-1, -1};
  ASSERT_EQ(MPI_Neighbor_allgather(&self_, 1, MPI_INT, around.data(), 1, MPI_INT, copy), 0);
  EXPECT_EQ(around, (std::array<int, 2>{left_, right_}));
  int total = -1;
  ASSERT_EQ(MPI_Allreduce(&self_, &total, 1, MPI_INT, MPI_SUM, copy), 0);
  EXPECT_EQ(total, size_ * (size_ - 1) / 2);
  MPI_Comm third = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  ASSERT_EQ(MPI_Comm_idup(second, &third, &request), 0) << "a copy of a copy";
  ASSERT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), 0);
  ASSERT_EQ(MPI_Barrier(third), 0);
  for (MPI_Comm* comm : {&third, &second, &copy, &grid}) MPI_Comm_free(comm);
}

}  // namespace
}  // namespace brant::mpi
