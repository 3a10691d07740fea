// Runs as every rank of a job: collectives in their three forms, with types that have gaps, in place, with functions of
// the program, and on memory of devices.
#include <algorithm>
#include <array>
#include <complex>
#include <numeric>

#include "mpi_job.h"

namespace brant::mpi {
namespace {

class Collectives : public testing::Test {
 protected:
  [[nodiscard]] int sum_of_ranks() const { return size_ * (size_ - 1) / 2; }
  const int self_ = test::rank(), size_ = test::size();
  const std::size_t count_ = static_cast<std::size_t>(size_);
};

TEST_F(Collectives, broadcasts_reach_all_from_every_root) {
  for (int root = 0; root < size_; ++root) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{5}, std::size_t{100'000}}) {
      std::vector<std::uint8_t> data = self_ == root ? test::pattern(bytes, root) : std::vector<std::uint8_t>(bytes);
      ASSERT_EQ(MPI_Bcast(data.data(), static_cast<int>(bytes), MPI_BYTE, root, MPI_COMM_WORLD), 0);
      EXPECT_EQ(data, test::pattern(bytes, root));
    }
  }
}

TEST_F(Collectives, reductions_combine_what_all_give) {
  const std::array<double, 3> given{1.0 + self_, 2.0, -1.0 * self_};
  std::array<double, 3> got{};
  ASSERT_EQ(MPI_Allreduce(given.data(), got.data(), 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), 0);
  EXPECT_EQ(got, (std::array<double, 3>{1.0 * size_ + sum_of_ranks(), 2.0 * size_, -1.0 * sum_of_ranks()}));
  got = given;
  ASSERT_EQ(MPI_Allreduce(MPI_IN_PLACE, got.data(), 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD), 0);
  EXPECT_EQ(got, (std::array<double, 3>{1.0 * size_, 2.0, 0.0}));
  for (int root = 0; root < size_; ++root) {
    int value = self_ + 1;
    int total = -1;
    const bool is_root = self_ == root;
    ASSERT_EQ(MPI_Reduce(is_root ? MPI_IN_PLACE : &value, is_root ? &value : nullptr, 1, MPI_INT, MPI_SUM, root,
                         MPI_COMM_WORLD),
              0);
    EXPECT_EQ(value, is_root ? sum_of_ranks() + size_ : self_ + 1);
    ASSERT_EQ(MPI_Reduce(&self_, is_root ? &total : nullptr, 1, MPI_INT, MPI_BOR, root, MPI_COMM_WORLD), 0);
  }
  struct {
    double value;
    int place;
  } pair{static_cast<double>((self_ * 7) % size_), self_}, best{};
  ASSERT_EQ(MPI_Allreduce(&pair, &best, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD), 0);
  EXPECT_EQ(best.value, 0.0);
  EXPECT_EQ(best.place, 0);
  const std::complex<double> number(0, 1);
  std::complex<double> product;
  ASSERT_EQ(MPI_Allreduce(&number, &product, 1, MPI_C_DOUBLE_COMPLEX, MPI_PROD, MPI_COMM_WORLD), 0);
  std::complex<double> expected(1, 0);
  for (int i = 0; i < size_; ++i) expected *= number;
  EXPECT_EQ(product, expected);
  const long double wide = 1.5L;
  long double total = 0;
  ASSERT_EQ(MPI_Allreduce(&wide, &total, 1, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD), 0);
  EXPECT_EQ(total, 1.5L * size_);
}

/// Matrices of 2 by 2, whose product depends on the order.
void multiply(void* in, void* inout, int* count, MPI_Datatype*) {
  auto* left = static_cast<long*>(in);
  auto* right = static_cast<long*>(inout);
  for (int i = 0; i < *count; ++i, left += 4, right += 4) {
    const std::array<long, 4> product{left[0] * right[0] + left[1] * right[2], left[0] * right[1] + left[1] * right[3],
                                      left[2] * right[0] + left[3] * right[2], left[2] * right[1] + left[3] * right[3]};
    std::ranges::copy(product, right);
  }
}

TEST_F(Collectives, functions_of_the_program_are_called_in_the_order_of_ranks) {
  MPI_Op op = MPI_OP_NULL;
  MPI_Datatype matrix = MPI_DATATYPE_NULL;
  MPI_Op_create(multiply, 0, &op);
  MPI_Type_contiguous(4, MPI_LONG, &matrix);
  MPI_Type_commit(&matrix);
  const std::array<long, 4> own{1, self_ + 1, self_ % 2, 1};
  std::array<long, 4> expected{1, 0, 0, 1};
  for (int rank = 0; rank < size_; ++rank) {
    std::array<long, 4> next{1, rank + 1, rank % 2, 1};
    int one = 1;
    multiply(expected.data(), next.data(), &one, &matrix);
    expected = next;
  }
  std::array<long, 4> got{};
  ASSERT_EQ(MPI_Allreduce(own.data(), got.data(), 1, matrix, op, MPI_COMM_WORLD), 0);
  EXPECT_EQ(got, expected);
  MPI_Op_free(&op);
  MPI_Type_free(&matrix);
}

TEST_F(Collectives, blocks_are_gathered_and_scattered) {
  std::vector<int> all(count_, -1);
  for (int root = 0; root < size_; ++root) {
    const bool is_root = self_ == root;
    std::ranges::fill(all, -1);
    ASSERT_EQ(MPI_Gather(&self_, 1, MPI_INT, all.data(), 1, MPI_INT, root, MPI_COMM_WORLD), 0);
    for (int i = 0; is_root && i < size_; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)], i);
    if (is_root) std::ranges::transform(all, all.begin(), [](int value) { return value * 10; });
    int own = -1;
    if (is_root) {
      ASSERT_EQ(MPI_Scatter(all.data(), 1, MPI_INT, MPI_IN_PLACE, 0, MPI_INT, root, MPI_COMM_WORLD), 0);
      own = all[static_cast<std::size_t>(root)];
    } else {
      ASSERT_EQ(MPI_Scatter(nullptr, 0, MPI_INT, &own, 1, MPI_INT, root, MPI_COMM_WORLD), 0);
    }
    EXPECT_EQ(own, 10LL * self_);
    if (is_root) all[static_cast<std::size_t>(root)] = root;
    ASSERT_EQ(MPI_Gather(is_root ? MPI_IN_PLACE : &self_, 1, MPI_INT, all.data(), 1, MPI_INT, root, MPI_COMM_WORLD), 0);
    for (int i = 0; is_root && i < size_; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)], i);
  }
  std::ranges::fill(all, -1);
  ASSERT_EQ(MPI_Allgather(&self_, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD), 0);
  for (int i = 0; i < size_; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)], i);
}

/// Rank i gives i + 1 numbers; they land two places apart, in reverse order.
TEST_F(Collectives, blocks_of_different_sizes_land_at_their_displacements) {
  std::vector<int> counts(count_), displs(count_), own(static_cast<std::size_t>(self_ + 1), self_);
  int end = 0;
  for (int i = size_ - 1; i >= 0; --i) {
    counts[static_cast<std::size_t>(i)] = i + 1;
    displs[static_cast<std::size_t>(i)] = end;
    end += i + 1 + 2;
  }
  std::vector<int> all(static_cast<std::size_t>(end), -5);
  ASSERT_EQ(
      MPI_Allgatherv(own.data(), self_ + 1, MPI_INT, all.data(), counts.data(), displs.data(), MPI_INT, MPI_COMM_WORLD),
      0);
  for (int i = 0; i < size_; ++i) {
    for (int j = 0; j <= i; ++j) EXPECT_EQ(all[static_cast<std::size_t>(displs[static_cast<std::size_t>(i)] + j)], i);
    EXPECT_EQ(all[static_cast<std::size_t>(displs[static_cast<std::size_t>(i)] + i + 1)], -5) << "gaps stay";
  }
  std::vector<int> again(own.size(), -1);
  ASSERT_EQ(MPI_Scatterv(all.data(), counts.data(), displs.data(), MPI_INT, again.data(), self_ + 1, MPI_INT, 0,
                         MPI_COMM_WORLD),
            0);
  EXPECT_EQ(again, own);
  std::ranges::fill(all, -5);
  ASSERT_EQ(MPI_Gatherv(own.data(), self_ + 1, MPI_INT, all.data(), counts.data(), displs.data(), MPI_INT, size_ - 1,
                        MPI_COMM_WORLD),
            0);
  EXPECT_EQ(all[static_cast<std::size_t>(displs[0])], self_ == size_ - 1 ? 0 : -5);
}

TEST_F(Collectives, everybody_exchanges_with_everybody) {
  std::vector<int> given(count_), got(count_, -1), counts(count_, 1), displs(count_);
  for (int i = 0; i < size_; ++i) given[static_cast<std::size_t>(i)] = 100 * self_ + i;
  std::iota(displs.begin(), displs.end(), 0);
  const auto expect = [&] {
    for (int i = 0; i < size_; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], 100 * i + self_);
  };
  ASSERT_EQ(MPI_Alltoall(given.data(), 1, MPI_INT, got.data(), 1, MPI_INT, MPI_COMM_WORLD), 0);
  expect();
  got = given;
  ASSERT_EQ(MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, got.data(), 1, MPI_INT, MPI_COMM_WORLD), 0);
  expect();
  std::ranges::fill(got, -1);
  ASSERT_EQ(MPI_Alltoallv(given.data(), counts.data(), displs.data(), MPI_INT, got.data(), counts.data(), displs.data(),
                          MPI_INT, MPI_COMM_WORLD),
            0);
  expect();
  std::vector<int> places(count_);
  for (int i = 0; i < size_; ++i) places[static_cast<std::size_t>(i)] = 4 * i;
  const std::vector<MPI_Datatype> types(count_, MPI_INT);
  std::ranges::fill(got, -1);
  ASSERT_EQ(MPI_Alltoallw(given.data(), counts.data(), places.data(), types.data(), got.data(), counts.data(),
                          places.data(), types.data(), MPI_COMM_WORLD),
            0);
  expect();
}

TEST_F(Collectives, parts_of_reductions_go_where_they_belong) {
  std::vector<int> given(count_, self_ + 1), counts(count_, 1);
  int got = -1;
  ASSERT_EQ(MPI_Reduce_scatter_block(given.data(), &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), 0);
  EXPECT_EQ(got, sum_of_ranks() + size_);
  ASSERT_EQ(MPI_Reduce_scatter(given.data(), &got, counts.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD), 0);
  EXPECT_EQ(got, sum_of_ranks() + size_);
  ASSERT_EQ(MPI_Reduce_scatter_block(MPI_IN_PLACE, given.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), 0);
  EXPECT_EQ(given[0], sum_of_ranks() + size_);
  const int value = self_ + 1;
  ASSERT_EQ(MPI_Scan(&value, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), 0);
  EXPECT_EQ(got, (self_ + 1) * (self_ + 2) / 2);
  got = -7;
  ASSERT_EQ(MPI_Exscan(&value, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), 0);
  EXPECT_EQ(got, self_ == 0 ? -7 : self_ * (self_ + 1) / 2);
}

TEST_F(Collectives, that_were_begun_end_in_any_order) {
  const int mine = self_ + 1;
  int total = 0, highest = 0, word = self_ == 0 ? 42 : 0;
  std::vector<int> all(count_, -1);
  std::array<MPI_Request, 5> requests{};
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
  MPI_Iallreduce(&mine, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  MPI_Ibcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[2]);
  MPI_Iallgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD, &requests[3]);
  MPI_Ireduce(&mine, &highest, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD, &requests[4]);
  for (int i = 4; i >= 0; --i) ASSERT_EQ(MPI_Wait(&requests[static_cast<std::size_t>(i)], MPI_STATUS_IGNORE), 0);
  EXPECT_EQ(total, sum_of_ranks() + size_);
  EXPECT_EQ(word, 42);
  EXPECT_EQ(all.back(), size_);
  EXPECT_EQ(highest, self_ == 0 ? size_ : 0);
}

TEST_F(Collectives, that_are_persistent_are_started_again) {
  int value = 0, total = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Allreduce_init(&value, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int round = 1; round < 4; ++round) {
    value = round * (self_ + 1);
    ASSERT_EQ(MPI_Start(&request), 0);
    ASSERT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(total, static_cast<long long>(round) * (sum_of_ranks() + size_));
  }
  MPI_Request_free(&request);
}

/// A column of a matrix of 4 by 3.
TEST_F(Collectives, types_with_gaps_are_packed_and_unpacked) {
  MPI_Datatype column = MPI_DATATYPE_NULL, narrow = MPI_DATATYPE_NULL;
  MPI_Type_vector(4, 1, 3, MPI_INT, &column);
  MPI_Type_create_resized(column, 0, sizeof(int), &narrow);
  MPI_Type_commit(&narrow);
  std::array<int, 12> matrix{};
  if (self_ == 0) std::iota(matrix.begin(), matrix.end(), 0);
  ASSERT_EQ(MPI_Bcast(matrix.data() + 1, 1, narrow, 0, MPI_COMM_WORLD), 0);
  EXPECT_EQ(matrix[4], 4);
  EXPECT_EQ(matrix[5], self_ == 0 ? 5 : 0) << "gaps stay";
  std::vector<int> columns(12 * count_, -1);
  ASSERT_EQ(MPI_Allgather(matrix.data() + 1, 1, narrow, columns.data(), 4, MPI_INT, MPI_COMM_WORLD), 0);
  for (std::size_t i = 0; i < count_; ++i) EXPECT_EQ(columns[4 * i + 3], 10);
  std::array<int, 12> got{};
  const int right = (self_ + 1) % size_, left = (self_ + size_ - 1) % size_;
  MPI_Sendrecv(matrix.data() + 1, 1, narrow, right, 0, got.data(), 4, MPI_INT, left, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  EXPECT_EQ(got[2], 7);
  MPI_Sendrecv(got.data(), 4, MPI_INT, right, 0, matrix.data(), 1, narrow, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_EQ(matrix[9], 10);
  MPI_Type_free(&column);
  MPI_Type_free(&narrow);
}

TEST_F(Collectives, work_on_memory_of_devices) {
  Runtime& owner = runtime();
  constexpr std::size_t kCount = 5000;
  Memory device = owner.allocate(owner.device_kind(), 3 * kCount * sizeof(double));
  std::vector<double> image(3 * kCount);
  std::iota(image.begin(), image.end(), self_);
  owner.copy(device, Buffer(std::span(image)));
  auto* values = device.as<double>();
  ASSERT_EQ(MPI_Allreduce(MPI_IN_PLACE, values, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), 0);
  MPI_Request request = MPI_REQUEST_NULL;
  ASSERT_EQ(MPI_Ibcast(values + kCount, kCount, MPI_DOUBLE, 0, MPI_COMM_WORLD, &request), 0);
  ASSERT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), 0);
  MPI_Datatype column = MPI_DATATYPE_NULL;
  MPI_Type_vector(500, 1, 4, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  const int right = (self_ + 1) % size_, left = (self_ + size_ - 1) % size_;
  std::vector<double> got(500);
  ASSERT_EQ(MPI_Sendrecv(values + 2 * kCount, 1, column, right, 3, got.data(), 500, MPI_DOUBLE, left, 3, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE),
            0);
  EXPECT_EQ(got[499], 2.0 * kCount + 4 * 499 + left);
  got.assign(500, 7.0);
  ASSERT_EQ(MPI_Sendrecv(got.data(), 500, MPI_DOUBLE, right, 3, values + 2 * kCount + 1, 1, column, left, 3,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE),
            0);
  owner.copy(Buffer(std::span(image)), device);
  EXPECT_EQ(image[10], 10.0 * size_ + sum_of_ranks());
  EXPECT_EQ(image[kCount + 10], kCount + 10.0);
  EXPECT_EQ(image[std::size_t{2} * kCount + 1 + std::size_t{4} * 499], 7.0);
  EXPECT_EQ(image[std::size_t{2} * kCount + std::size_t{4} * 499], 2.0 * kCount + 4 * 499 + self_);
  MPI_Type_free(&column);
}

TEST_F(Collectives, with_bad_arguments_are_refused_by_the_class_of_the_fault) {
  const test::ErrorsReturned returned(MPI_COMM_WORLD);
  int value = 0, total = 0;
  EXPECT_EQ(MPI_Bcast(&value, 1, MPI_INT, size_, MPI_COMM_WORLD), MPI_ERR_ROOT);
  EXPECT_EQ(MPI_Allreduce(&value, &total, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD), MPI_ERR_OP);
  EXPECT_EQ(MPI_Allreduce(&value, &total, 1, MPI_FLOAT, MPI_BXOR, MPI_COMM_WORLD), MPI_ERR_OP);
  EXPECT_EQ(MPI_Allreduce(&value, &total, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_COUNT);
  EXPECT_EQ(MPI_Allreduce(&value, &total, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_TYPE);
  MPI_Datatype raw = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_INT, &raw);
  EXPECT_EQ(MPI_Bcast(&value, 1, raw, 0, MPI_COMM_WORLD), MPI_ERR_TYPE) << "it is not committed";
  MPI_Type_free(&raw);
}

}  // namespace
}  // namespace brant::mpi
