// Runs as every rank of a job: messages in partitions. Each rank sends to its right neighbour, which is itself in a job
// of one.
#include <algorithm>
#include <array>

#include "brant/core/device.h"
#include "brant/mpi/partition_bells.h"
#include "mpi_job.h"
#include "port/memory.h"
#include "support/kernels/kernels.h"

namespace brant::mpi {
namespace {

using test::pattern;

class Partitioned : public testing::Test {
 protected:
  const int self_ = test::rank(), size_ = test::size();
  const int right_ = (self_ + 1) % size_, left_ = (self_ + size_ - 1) % size_;

  static void wait_for(MPI_Request receive, int partition) {
    int flag = 0;
    while (flag == 0) ASSERT_EQ(MPI_Parrived(receive, partition, &flag), 0);
  }
  static void finish(MPI_Request& send, MPI_Request& receive) {
    MPI_Status status;
    ASSERT_EQ(MPI_Wait(&receive, &status), 0);
    ASSERT_EQ(MPI_Wait(&send, MPI_STATUS_IGNORE), 0);
    EXPECT_NE(send, MPI_REQUEST_NULL) << "it is persistent";
  }
};

TEST_F(Partitioned, messages_come_partition_by_partition_as_they_are_ready) {
  constexpr int kPartitions = 4;
  for (const int bytes : {1, 1'000, 400'000}) {
    std::vector<std::uint8_t> sent(static_cast<std::size_t>(bytes * kPartitions)), got(sent.size());
    MPI_Request send, receive;
    ASSERT_EQ(
        MPI_Psend_init(sent.data(), kPartitions, bytes, MPI_BYTE, right_, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &send), 0);
    ASSERT_EQ(
        MPI_Precv_init(got.data(), kPartitions, bytes, MPI_BYTE, left_, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &receive), 0);
    for (int round = 0; round < 3; ++round) {
      std::ranges::copy(pattern(sent.size(), self_ + round * 100), sent.begin());
      ASSERT_EQ(MPI_Start(&receive), 0);
      ASSERT_EQ(MPI_Start(&send), 0);
      for (const int p : {2, 0, 3, 1}) {
        int flag = 1;
        MPI_Parrived(receive, p, &flag);
        EXPECT_EQ(flag, 0) << "it is not ready yet";
        MPI_Barrier(MPI_COMM_WORLD);
        ASSERT_EQ(MPI_Pready(p, send), 0);
        wait_for(receive, p);
        const auto place = static_cast<std::ptrdiff_t>(p) * bytes;
        const auto expected = pattern(sent.size(), left_ + round * 100);
        EXPECT_TRUE(std::equal(got.begin() + place, got.begin() + place + bytes, expected.begin() + place));
      }
      finish(send, receive);
      MPI_Barrier(MPI_COMM_WORLD);  // who is ahead must not be ready for the next round's first look
    }
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
  }
}

TEST_F(Partitioned, both_ends_may_have_partitions_of_their_own) {
  constexpr int kItems = 12'000;
  struct Case {
    int sends, receives;
  };
  for (const auto [sends, receives] : {Case{6, 4}, Case{1, 5}, Case{8, 1}}) {
    std::vector<std::int32_t> sent(kItems);
    for (int i = 0; i < kItems; ++i) sent[static_cast<std::size_t>(i)] = self_ * 1'000'000 + i;
    // Of every second element: what lies between must stay.
    std::vector<std::int32_t> got(std::size_t{2} * kItems, -7);
    MPI_Datatype every_second;
    MPI_Type_create_resized(MPI_INT, 0, 8, &every_second);
    MPI_Type_commit(&every_second);
    MPI_Request send, receive;
    ASSERT_EQ(
        MPI_Psend_init(sent.data(), sends, kItems / sends, MPI_INT, right_, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send),
        0);
    ASSERT_EQ(MPI_Precv_init(got.data(), receives, kItems / receives, every_second, left_, 0, MPI_COMM_WORLD,
                             MPI_INFO_NULL, &receive),
              0);
    MPI_Type_free(&every_second);
    MPI_Start(&send);
    MPI_Start(&receive);
    ASSERT_EQ(MPI_Pready_range(0, sends - 1, send), 0);
    wait_for(receive, receives - 1);
    EXPECT_EQ(got[2 * kItems - 2], left_ * 1'000'000 + kItems - 1);
    finish(send, receive);
    bool right = true;
    for (int i = 0; i < kItems; ++i) {
      const std::size_t place = std::size_t{2} * static_cast<std::size_t>(i);
      right = right && got[place] == left_ * 1'000'000 + i && got[place + 1] == -7;
    }
    EXPECT_TRUE(right) << sends << " partitions sent, " << receives << " received";
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
  }
}

TEST_F(Partitioned, messages_with_one_tag_find_each_other_in_the_order_in_which_they_were_made) {
  std::array<int, 2> sent{self_ * 10, self_ * 10 + 1}, got{-1, -1};
  std::array<MPI_Request, 2> sends{}, receives{};
  for (std::size_t i = 0; i < 2; ++i) {
    MPI_Psend_init(&sent[i], 1, 1, MPI_INT, right_, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &sends[i]);
    MPI_Precv_init(&got[i], 1, 1, MPI_INT, left_, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &receives[i]);
  }
  // A message of the program with this tag is another one.
  int other = 77, came = 0;
  MPI_Sendrecv(&other, 1, MPI_INT, right_, 5, &came, 1, MPI_INT, left_, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_EQ(came, 77);
  MPI_Startall(2, receives.data());
  MPI_Startall(2, sends.data());
  const int both[] = {0};
  ASSERT_EQ(MPI_Pready_list(1, both, sends[1]), 0);
  ASSERT_EQ(MPI_Pready_list(1, both, sends[0]), 0);
  ASSERT_EQ(MPI_Waitall(2, receives.data(), MPI_STATUSES_IGNORE), 0);
  ASSERT_EQ(MPI_Waitall(2, sends.data(), MPI_STATUSES_IGNORE), 0);
  EXPECT_EQ(got[0], left_ * 10);
  EXPECT_EQ(got[1], left_ * 10 + 1);
  for (std::size_t i = 0; i < 2; ++i) {
    MPI_Request_free(&sends[i]);
    MPI_Request_free(&receives[i]);
  }
}

TEST_F(Partitioned, messages_that_are_freed_before_they_start_take_their_other_ends_along) {
  int sent = self_, got = -1, unused = -1;
  MPI_Request send, receive;
  for (int round = 0; round < 2; ++round) {
    MPI_Precv_init(&unused, 1, 1, MPI_INT, left_, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
    const bool freed_first = round == 0;  // before the send is made, or after
    if (freed_first) {
      EXPECT_EQ(MPI_Request_free(&receive), 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Psend_init(&sent, 1, 1, MPI_INT, right_, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
    EXPECT_EQ(MPI_Request_free(&send), 0);
    if (!freed_first) {
      EXPECT_EQ(MPI_Request_free(&receive), 0);
    }
  }
  MPI_Psend_init(&sent, 1, 1, MPI_INT, right_, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
  MPI_Precv_init(&got, 1, 1, MPI_INT, left_, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
  MPI_Start(&receive);
  MPI_Start(&send);
  EXPECT_EQ(MPI_Pready(0, send), 0);
  finish(send, receive);
  EXPECT_EQ(got, left_);
  EXPECT_EQ(unused, -1);
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
}

TEST_F(Partitioned, messages_from_and_to_memory_of_devices_arrive_whole) {
  Runtime& owner = runtime();
  constexpr int kPartitions = 3, kBytes = 50'000;
  auto image = pattern(std::size_t{kPartitions} * kBytes, self_);
  Memory source = owner.allocate(owner.device_kind(), image.size());
  Memory landing = owner.allocate(owner.device_kind(), image.size());
  owner.copy(source, Buffer(std::span(image)));
  MPI_Request send, receive;
  MPI_Psend_init(source.data(), kPartitions, kBytes, MPI_BYTE, right_, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
  MPI_Precv_init(landing.data(), kPartitions, kBytes, MPI_BYTE, left_, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
  MPI_Start(&send);
  MPI_Start(&receive);
  MPI_Pready_range(0, kPartitions - 1, send);
  finish(send, receive);
  owner.copy(Buffer(std::span(image)), landing);
  EXPECT_EQ(image, pattern(image.size(), left_));
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
}

/// Kernels write the partitions 2, 0 and 3 and ring for them, a stream says it of 1; all while the CPU is in MPI.
TEST_F(Partitioned, kernels_and_streams_say_what_is_ready) {
  Runtime& owner = runtime();
  constexpr int kPartitions = 4, kEach = 5'000;
  constexpr std::size_t kWords = std::size_t{kPartitions} * kEach;
  Memory source = owner.allocate(owner.device_kind(), kWords * sizeof(std::uint64_t));
  std::vector<std::uint64_t> got(kWords);
  MPI_Request send, receive;
  MPI_Psend_init(source.data(), kPartitions, kEach, MPI_UINT64_T, right_, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
  MPI_Precv_init(got.data(), kPartitions, kEach, MPI_UINT64_T, left_, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
  const auto refused = [](MPI_Request request) {
    try {
      static_cast<void>(PartitionBells(request));
      return Status::ok;
    } catch (const Error& error) {
      return error.status();
    }
  };
  EXPECT_EQ(refused(receive), Status::invalid_argument);
  EXPECT_EQ(refused(MPI_REQUEST_NULL), Status::invalid_argument);
  if (owner.device().inner().kernels() == nullptr) {
    EXPECT_EQ(refused(send), Status::not_supported);
  } else {
    const PartitionBells bells(send);
    EXPECT_EQ(bells.epoch(), 0u);
    Stream stream = owner.device().create_stream();
    const brant::test::MakePartKernel kernel = brant::test::make_part_kernel(owner.device());
    for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
      MPI_Start(&receive);
      MPI_Start(&send);
      EXPECT_EQ(bells.epoch(), epoch);
      EXPECT_EQ(refused(send), Status::invalid_argument) << "it is under way";
      for (const int p : {2, 0, 3, 1}) {
        int flag = 1;
        MPI_Parrived(receive, p, &flag);
        EXPECT_EQ(flag, 0) << "it is not ready yet";
        MPI_Barrier(MPI_COMM_WORLD);
        auto* const words = source.as<std::uint64_t>() + std::ptrdiff_t{p} * kEach;
        if (p != 1) {
          ASSERT_EQ(kernel.launch({}, stream, bells.device(p), words, std::uint64_t{kEach}, epoch), Status::ok);
        } else if (epoch < 3) {
          ASSERT_EQ(bells.enqueue_ready(stream, p, epoch), Status::ok);
        } else {
          EXPECT_EQ(MPI_Pready(p, send), 0) << "the CPU may say it as well";
        }
        wait_for(receive, p);
        const std::size_t last = static_cast<std::size_t>(p + 1) * kEach - 1;
        if (p != 1) {
          EXPECT_EQ(got[last], 1000 * epoch + kEach - 1);
        }
      }
      finish(send, receive);
      MPI_Barrier(MPI_COMM_WORLD);  // who is ahead must not be ready for the next round's first look
    }
    EXPECT_EQ(bells.enqueue_ready(stream, kPartitions, 4), Status::invalid_argument);
    EXPECT_EQ(stream.synchronize(), Status::ok);
  }
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
}

TEST_F(Partitioned, messages_with_nobody_end_when_they_are_ready) {
  int value = 3;
  MPI_Request send, receive;
  MPI_Psend_init(&value, 1, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
  MPI_Precv_init(&value, 1, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
  MPI_Start(&send);
  MPI_Start(&receive);
  EXPECT_EQ(MPI_Pready(0, send), 0);
  finish(send, receive);
  EXPECT_EQ(value, 3);
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
}

TEST_F(Partitioned, messages_with_bad_arguments_are_refused_by_the_class_of_the_fault) {
  const test::ErrorsReturned returned(MPI_COMM_WORLD);
  const test::ErrorsReturned own_returned(MPI_COMM_SELF);
  std::array<int, 4> data{};
  MPI_Request send = MPI_REQUEST_NULL, receive = MPI_REQUEST_NULL;
  const auto make_send = [&](int partitions, int to) {
    return MPI_Psend_init(data.data(), partitions, 1, MPI_INT, to, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
  };
  EXPECT_EQ(make_send(0, right_), MPI_ERR_ARG);
  EXPECT_EQ(make_send(1, size_), MPI_ERR_RANK);
  EXPECT_EQ(MPI_Precv_init(data.data(), 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive),
            MPI_ERR_ARG);
  ASSERT_EQ(make_send(2, right_), 0);
  ASSERT_EQ(MPI_Precv_init(data.data() + 2, 2, 1, MPI_INT, left_, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive), 0);
  EXPECT_EQ(MPI_Pready(0, send), MPI_ERR_REQUEST) << "it is not started";
  EXPECT_EQ(MPI_Pready(0, receive), MPI_ERR_REQUEST);
  int flag = 0;
  EXPECT_EQ(MPI_Parrived(send, 0, &flag), MPI_ERR_REQUEST);
  EXPECT_EQ(MPI_Parrived(receive, 2, &flag), MPI_ERR_ARG);
  MPI_Start(&send);
  MPI_Start(&receive);
  EXPECT_EQ(MPI_Start(&send), MPI_ERR_REQUEST) << "it is under way";
  EXPECT_EQ(MPI_Pready(2, send), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Pready(0, send), 0);
  EXPECT_EQ(MPI_Pready(0, send), MPI_ERR_ARG) << "it is ready already";
  EXPECT_EQ(MPI_Pready(1, send), 0);
  finish(send, receive);
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
}

TEST_F(Partitioned, messages_that_are_longer_than_their_receive_are_errors_of_it) {
  const test::ErrorsReturned returned(MPI_COMM_WORLD);
  std::array<int, 6> sent{};
  std::array<int, 5> got{};
  got.back() = 9;
  MPI_Request send, receive;
  MPI_Psend_init(sent.data(), 3, 2, MPI_INT, right_, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
  MPI_Precv_init(got.data(), 2, 2, MPI_INT, left_, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
  MPI_Start(&send);
  MPI_Start(&receive);
  MPI_Pready_range(0, 2, send);
  EXPECT_EQ(MPI_Wait(&receive, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
  EXPECT_EQ(MPI_Wait(&send, MPI_STATUS_IGNORE), 0);
  EXPECT_EQ(got.back(), 9);
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
}

}  // namespace
}  // namespace brant::mpi
