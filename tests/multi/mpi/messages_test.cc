// Runs as every rank of a job: messages from rank to rank, as the chapter on point-to-point communication has them.
// Each rank sends to its right neighbour, which is itself in a job of one.
#include <algorithm>
#include <array>
#include <numeric>

#include "mpi_job.h"

namespace brant::mpi {
namespace {

using test::pattern;

class Messages : public testing::Test {
 protected:
  const int self_ = test::rank(), size_ = test::size();
  const int right_ = (self_ + 1) % size_, left_ = (self_ + size_ - 1) % size_;
};

constexpr std::size_t kSizes[] = {0, 1, 8, 1000, 16'384, 16'385, 65'536, 65'537, 300'001, 5'000'000};

TEST_F(Messages, of_all_sizes_arrive_whole) {
  for (const std::size_t bytes : kSizes) {
    const auto sent = pattern(bytes, self_);
    std::vector<std::uint8_t> got(bytes + 1, 0xee);
    MPI_Request request;
    ASSERT_EQ(MPI_Irecv(got.data(), static_cast<int>(bytes), MPI_BYTE, left_, 3, MPI_COMM_WORLD, &request), 0);
    ASSERT_EQ(MPI_Send(sent.data(), static_cast<int>(bytes), MPI_BYTE, right_, 3, MPI_COMM_WORLD), 0);
    MPI_Status status;
    ASSERT_EQ(MPI_Wait(&request, &status), 0);
    EXPECT_EQ(request, MPI_REQUEST_NULL);
    EXPECT_EQ(status.MPI_SOURCE, left_);
    EXPECT_EQ(status.MPI_TAG, 3);
    int count = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    EXPECT_EQ(count, static_cast<int>(bytes));
    EXPECT_EQ(got[bytes], 0xee);
    got.resize(bytes);
    EXPECT_EQ(got, pattern(bytes, left_)) << bytes << " bytes";
  }
}

TEST_F(Messages, of_all_sizes_arrive_that_came_before_their_receive) {
  std::vector<std::vector<std::uint8_t>> sent;
  std::vector<MPI_Request> requests;
  for (const std::size_t bytes : kSizes) {
    sent.push_back(pattern(bytes, self_));
    MPI_Isend(sent.back().data(), static_cast<int>(bytes), MPI_BYTE, right_, 4, MPI_COMM_WORLD,
              &requests.emplace_back());
  }
  for (const std::size_t bytes : kSizes) {
    MPI_Status status;
    ASSERT_EQ(MPI_Probe(left_, 4, MPI_COMM_WORLD, &status), 0);
    int count = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    ASSERT_EQ(count, static_cast<int>(bytes)) << "they come in the order in which they were sent";
    std::vector<std::uint8_t> got(bytes);
    MPI_Recv(got.data(), count, MPI_BYTE, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQ(got, pattern(bytes, left_));
  }
  EXPECT_EQ(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), 0);
}

TEST_F(Messages, with_wildcards_take_the_first_that_suits) {
  std::array<int, 4> sent{10, 11, 12, 13};
  for (int i = 0; i < 4; ++i)
    MPI_Send(&sent[static_cast<std::size_t>(i)], 1, MPI_INT, right_, 20 + i % 2, MPI_COMM_WORLD);
  int got = 0;
  MPI_Status status;
  MPI_Recv(&got, 1, MPI_INT, left_, 21, MPI_COMM_WORLD, &status);
  EXPECT_EQ(got, 11);
  MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  EXPECT_EQ(got, 10);
  EXPECT_EQ(status.MPI_TAG, 20);
  EXPECT_EQ(status.MPI_SOURCE, left_);
  MPI_Recv(&got, 1, MPI_INT, left_, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  EXPECT_EQ(got, 12);
  MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 21, MPI_COMM_WORLD, &status);
  EXPECT_EQ(got, 13);
}

TEST_F(Messages, ten_thousand_without_a_receive_do_not_block_what_is_waited_for) {
  constexpr int kMany = 10'000;
  std::vector<MPI_Request> requests(kMany);
  std::vector<int> sent(kMany);
  std::iota(sent.begin(), sent.end(), self_);
  for (int i = 0; i < kMany; ++i)
    MPI_Isend(&sent[static_cast<std::size_t>(i)], 1, MPI_INT, right_, i, MPI_COMM_WORLD,
              &requests[static_cast<std::size_t>(i)]);
  int got = -1;
  for (int i = kMany - 1; i >= 0; --i) {
    MPI_Recv(&got, 1, MPI_INT, left_, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ASSERT_EQ(got, left_ + i);
  }
  EXPECT_EQ(MPI_Waitall(kMany, requests.data(), MPI_STATUSES_IGNORE), 0);
}

TEST_F(Messages, many_large_ones_without_a_receive_do_not_block_what_is_waited_for) {
  constexpr int kMany = 600;  // more than the window of a lane takes
  const auto sent = pattern(500'000, self_);
  std::vector<MPI_Request> requests(kMany + 1);
  for (int i = 0; i < kMany; ++i)
    MPI_Isend(sent.data(), 500'000, MPI_BYTE, right_, 1, MPI_COMM_WORLD, &requests[static_cast<std::size_t>(i)]);
  MPI_Isend(sent.data(), 400'000, MPI_BYTE, right_, 2, MPI_COMM_WORLD, &requests.back());
  std::vector<std::uint8_t> got(500'000);
  MPI_Recv(got.data(), 400'000, MPI_BYTE, left_, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < kMany; ++i) MPI_Recv(got.data(), 500'000, MPI_BYTE, left_, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_EQ(got, pattern(500'000, left_));
  EXPECT_EQ(MPI_Waitall(kMany + 1, requests.data(), MPI_STATUSES_IGNORE), 0);
}

TEST_F(Messages, more_than_a_window_takes_wait_their_turn) {
  constexpr int kMany = 70'000;
  MPI_Request ended;
  int word = 5;
  std::vector<MPI_Request> requests(kMany, MPI_REQUEST_NULL);
  for (MPI_Request& request : requests) MPI_Isend(&word, 1, MPI_INT, right_, 1, MPI_COMM_WORLD, &request);
  MPI_Isend(&self_, 1, MPI_INT, right_, 2, MPI_COMM_WORLD, &ended);
  int got = -1;
  MPI_Recv(&got, 1, MPI_INT, left_, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_EQ(got, left_);
  for (int i = 0; i < kMany; ++i) MPI_Recv(&got, 1, MPI_INT, left_, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(kMany, requests.data(), MPI_STATUSES_IGNORE);
  MPI_Wait(&ended, MPI_STATUS_IGNORE);
}

TEST_F(Messages, that_are_too_long_are_errors_of_the_receive_alone) {
  const test::ErrorsReturned returned(MPI_COMM_WORLD);
  for (const int bytes : {100, 16'000, 400'000}) {
    const auto sent = pattern(static_cast<std::size_t>(bytes), self_);
    std::vector<std::uint8_t> got(static_cast<std::size_t>(bytes));
    for (const int room : {0, bytes / 2}) {
      MPI_Request request;
      MPI_Isend(sent.data(), bytes, MPI_BYTE, right_, 1, MPI_COMM_WORLD, &request);
      MPI_Status status;
      EXPECT_EQ(MPI_Recv(got.data(), room, MPI_BYTE, left_, 1, MPI_COMM_WORLD, &status), MPI_ERR_TRUNCATE);
      EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), 0);
    }
    MPI_Sendrecv(sent.data(), bytes, MPI_BYTE, right_, 1, got.data(), bytes, MPI_BYTE, left_, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    EXPECT_EQ(got, pattern(static_cast<std::size_t>(bytes), left_)) << "the next message is whole";
  }
}

TEST_F(Messages, synchronous_ones_end_when_they_are_received) {
  for (const int bytes : {4, 400'000}) {
    const auto sent = pattern(static_cast<std::size_t>(bytes), self_);
    std::vector<std::uint8_t> got(static_cast<std::size_t>(bytes));
    MPI_Request request;
    MPI_Issend(sent.data(), bytes, MPI_BYTE, right_, 9, MPI_COMM_WORLD, &request);
    int flag = 1;
    for (int i = 0; i < 100; ++i) {
      MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      ASSERT_EQ(flag, 0) << "nobody has received it: the neighbour waits for a word";
    }
    MPI_Sendrecv(nullptr, 0, MPI_INT, right_, 10, nullptr, 0, MPI_INT, left_, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(got.data(), bytes, MPI_BYTE, left_, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(got, pattern(static_cast<std::size_t>(bytes), left_));
  }
}

TEST_F(Messages, buffered_ones_end_at_once_and_are_bounded_by_the_buffer) {
  const test::ErrorsReturned returned(MPI_COMM_WORLD);
  std::vector<std::uint8_t> room(400'000 + MPI_BSEND_OVERHEAD);
  MPI_Buffer_attach(room.data(), static_cast<int>(room.size()));
  auto sent = pattern(400'000, self_);
  EXPECT_EQ(MPI_Bsend(sent.data(), 400'000, MPI_BYTE, right_, 1, MPI_COMM_WORLD), 0);
  std::fill(sent.begin(), sent.end(), std::uint8_t{0});
  EXPECT_EQ(MPI_Bsend(sent.data(), MPI_BSEND_OVERHEAD, MPI_BYTE, right_, 1, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  MPI_Barrier(MPI_COMM_WORLD);  // a receive would make room
  std::vector<std::uint8_t> got(400'000);
  MPI_Recv(got.data(), 400'000, MPI_BYTE, left_, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_EQ(got, pattern(400'000, left_));
  void* buffer = nullptr;
  int bytes = 0;
  MPI_Buffer_detach(static_cast<void*>(&buffer), &bytes);
  EXPECT_EQ(buffer, room.data());
  EXPECT_EQ(bytes, static_cast<int>(room.size()));
}

TEST_F(Messages, persistent_ones_are_started_again_and_again) {
  int sent = 0;
  int got = -1;
  std::array<MPI_Request, 2> requests{};
  MPI_Send_init(&sent, 1, MPI_INT, right_, 5, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(&got, 1, MPI_INT, left_, 5, MPI_COMM_WORLD, &requests[1]);
  MPI_Status status;
  EXPECT_EQ(MPI_Wait(&requests[1], &status), 0) << "an inactive one is not waited for";
  EXPECT_EQ(status.MPI_SOURCE, MPI_ANY_SOURCE);
  for (int round = 0; round < 5; ++round) {
    sent = self_ + 100 * round;
    ASSERT_EQ(MPI_Startall(2, requests.data()), 0);
    ASSERT_EQ(MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE), 0);
    EXPECT_EQ(got, left_ + 100 * round);
    EXPECT_NE(requests[0], MPI_REQUEST_NULL);
  }
  for (MPI_Request& request : requests) {
    MPI_Request_free(&request);
    EXPECT_EQ(request, MPI_REQUEST_NULL);
  }
}

TEST_F(Messages, from_nobody_are_there_at_once) {
  MPI_Status status;
  int word = 7;
  EXPECT_EQ(MPI_Send(&word, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD), 0);
  EXPECT_EQ(MPI_Recv(&word, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status), 0);
  EXPECT_EQ(word, 7);
  EXPECT_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
  EXPECT_EQ(status.MPI_TAG, MPI_ANY_TAG);
  int count = -1;
  MPI_Get_count(&status, MPI_INT, &count);
  EXPECT_EQ(count, 0);
  MPI_Message message;
  MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, &status);
  EXPECT_EQ(message, MPI_MESSAGE_NO_PROC);
  EXPECT_EQ(MPI_Mrecv(&word, 1, MPI_INT, &message, &status), 0);
  EXPECT_EQ(message, MPI_MESSAGE_NULL);
}

TEST_F(Messages, that_a_matched_probe_took_belong_to_its_receive) {
  for (const int bytes : {100, 400'000}) {
    const auto sent = pattern(static_cast<std::size_t>(bytes), self_);
    MPI_Request request;
    MPI_Isend(sent.data(), bytes, MPI_BYTE, right_, bytes, MPI_COMM_WORLD, &request);
    MPI_Message message;
    MPI_Status status;
    MPI_Mprobe(MPI_ANY_SOURCE, bytes, MPI_COMM_WORLD, &message, &status);
    int flag = 1;
    MPI_Iprobe(MPI_ANY_SOURCE, bytes, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    EXPECT_EQ(flag, 0);
    std::vector<std::uint8_t> got(static_cast<std::size_t>(bytes));
    EXPECT_EQ(MPI_Mrecv(got.data(), bytes, MPI_BYTE, &message, &status), 0);
    EXPECT_EQ(got, pattern(static_cast<std::size_t>(bytes), left_));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

TEST_F(Messages, receives_can_be_cancelled) {
  int got = 0;
  MPI_Request request;
  MPI_Irecv(&got, 1, MPI_INT, left_, 76, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Status status;
  EXPECT_EQ(MPI_Wait(&request, &status), 0);
  int cancelled = 0;
  MPI_Test_cancelled(&status, &cancelled);
  EXPECT_EQ(cancelled, 1);
  MPI_Sendrecv(&self_, 1, MPI_INT, right_, 77, &got, 1, MPI_INT, left_, 77, MPI_COMM_WORLD, &status);
  EXPECT_EQ(got, left_);
  MPI_Test_cancelled(&status, &cancelled);
  EXPECT_EQ(cancelled, 0);
}

TEST_F(Messages, any_and_some_of_many_are_taken_as_they_end) {
  std::array<int, 8> got{};
  std::array<MPI_Request, 8> requests{};
  for (int i = 0; i < 8; ++i)
    MPI_Irecv(&got[static_cast<std::size_t>(i)], 1, MPI_INT, left_, i, MPI_COMM_WORLD,
              &requests[static_cast<std::size_t>(i)]);
  int sent = 30;
  MPI_Send(&sent, 1, MPI_INT, right_, 3, MPI_COMM_WORLD);
  int index = -1;
  MPI_Status status;
  MPI_Waitany(8, requests.data(), &index, &status);
  EXPECT_EQ(index, 3);
  EXPECT_EQ(got[3], 30);
  int flag = 1;
  MPI_Testall(8, requests.data(), &flag, MPI_STATUSES_IGNORE);
  EXPECT_EQ(flag, 0);
  MPI_Sendrecv(nullptr, 0, MPI_INT, left_, 50, nullptr, 0, MPI_INT, right_, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < 8; ++i) {
    if (i != 3) MPI_Send(&i, 1, MPI_INT, right_, i, MPI_COMM_WORLD);
  }
  int taken = 1;
  while (taken < 8) {
    int count = 0;
    std::array<int, 8> indices{};
    std::array<MPI_Status, 8> statuses{};
    MPI_Waitsome(8, requests.data(), &count, indices.data(), statuses.data());
    ASSERT_GT(count, 0);
    for (int i = 0; i < count; ++i) {
      const int which = indices[static_cast<std::size_t>(i)];
      EXPECT_EQ(got[static_cast<std::size_t>(which)], which);
      EXPECT_EQ(statuses[static_cast<std::size_t>(i)].MPI_TAG, which);
    }
    taken += count;
  }
  MPI_Waitany(8, requests.data(), &index, &status);
  EXPECT_EQ(index, MPI_UNDEFINED);
}

TEST_F(Messages, exchanges_in_place_replace_the_buffer) {
  auto data = pattern(470'000, self_);
  MPI_Status status;
  MPI_Sendrecv_replace(data.data(), 470'000, MPI_BYTE, right_, 6, left_, 6, MPI_COMM_WORLD, &status);
  EXPECT_EQ(data, pattern(470'000, left_));
}

TEST_F(Messages, with_bad_arguments_are_refused_by_the_class_of_the_fault) {
  const test::ErrorsReturned returned(MPI_COMM_WORLD);
  const test::ErrorsReturned returned_too(MPI_COMM_SELF);
  int word = 0;
  EXPECT_EQ(MPI_Send(&word, -1, MPI_INT, right_, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
  EXPECT_EQ(MPI_Send(&word, 1, MPI_DATATYPE_NULL, right_, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
  EXPECT_EQ(MPI_Send(&word, 1, MPI_INT, size_, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
  EXPECT_EQ(MPI_Send(&word, 1, MPI_INT, right_, -1, MPI_COMM_WORLD), MPI_ERR_TAG);
  EXPECT_EQ(MPI_Send(&word, 1, MPI_INT, right_, 0, MPI_COMM_NULL), MPI_ERR_COMM);
  EXPECT_EQ(MPI_Send(nullptr, 1, MPI_INT, right_, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  EXPECT_EQ(MPI_Recv(&word, 1, MPI_INT, -7, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_RANK);
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_EQ(MPI_Start(&request), MPI_ERR_REQUEST);
}

/// All pairs of kinds, above and below what goes at once.
TEST_F(Messages, from_and_to_memory_of_devices_arrive_whole) {
  Runtime& owner = runtime();
  std::vector<MemoryKind> kinds{MemoryKind::host, MemoryKind::pinned};
  if (owner.device_kind() != MemoryKind::host) kinds.push_back(owner.device_kind());
  for (const MemoryKind from : kinds) {
    for (const MemoryKind to : kinds) {
      for (const std::size_t bytes : {std::size_t{64}, std::size_t{100'000}, std::size_t{1'200'000}}) {
        auto image = pattern(bytes, self_);
        Memory source = owner.allocate(from, bytes);
        Memory landing = owner.allocate(to, bytes + 8);
        owner.copy(source, Buffer(std::span(image)));
        MPI_Status status;
        ASSERT_EQ(MPI_Sendrecv(source.data(), static_cast<int>(bytes), MPI_BYTE, right_, 1, landing.data(),
                               static_cast<int>(bytes + 8), MPI_BYTE, left_, 1, MPI_COMM_WORLD, &status),
                  0);
        owner.copy(Buffer(std::span(image)), landing.part(0, bytes));
        EXPECT_EQ(image, pattern(bytes, left_)) << memory_kind_name(from) << " to " << memory_kind_name(to);
      }
    }
  }
}

/// A block of MPI_Alloc_mem, of the kind that brant's hint names; null where there is none.
std::byte* allocate(const char* kind, MPI_Aint bytes, int& error) {
  MPI_Info info = MPI_INFO_NULL;
  void* base = nullptr;
  MPI_Info_create(&info);
  MPI_Info_set(info, "brant_memory", kind);
  error = MPI_Alloc_mem(bytes, info, static_cast<void*>(&base));
  MPI_Info_free(&info);
  return static_cast<std::byte*>(base);
}

TEST_F(Messages, from_and_to_memory_of_mpi_arrive_whole) {
  Runtime& owner = runtime();
  const std::string device(memory_kind_name(owner.device_kind()));
  for (const std::string& kind : {std::string("host"), std::string("pinned"), device}) {
    for (const int bytes : {1, 100, 16'384, 1'000'000}) {
      int error = -1;
      std::byte* source = allocate(kind.c_str(), bytes, error);
      ASSERT_EQ(error, MPI_SUCCESS) << kind;
      std::byte* landing = allocate(kind.c_str(), bytes, error);
      ASSERT_EQ(error, MPI_SUCCESS) << kind;
      const auto size = static_cast<std::size_t>(bytes);
      auto image = pattern(size, self_);
      owner.copy({source, size, MemoryKind::detect}, Buffer(std::span(image)));
      MPI_Sendrecv(source, bytes, MPI_BYTE, right_, 1, landing, bytes, MPI_BYTE, left_, 1, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      owner.copy(Buffer(std::span(image)), {landing, size, MemoryKind::detect});
      EXPECT_EQ(image, pattern(size, left_)) << kind;
      MPI_Barrier(MPI_COMM_WORLD);
      EXPECT_EQ(MPI_Free_mem(source), MPI_SUCCESS);
      EXPECT_EQ(MPI_Free_mem(landing), MPI_SUCCESS);
    }
  }
  const test::ErrorsReturned returned(MPI_COMM_SELF);
  int error = -1;
  EXPECT_EQ(MPI_Free_mem(allocate("host", 0, error)), MPI_SUCCESS);
  EXPECT_EQ(error, MPI_SUCCESS);
  EXPECT_EQ(allocate("wood", 8, error), nullptr);
  EXPECT_EQ(error, MPI_ERR_INFO_VALUE);
  EXPECT_EQ(allocate("host", -1, error), nullptr);
  EXPECT_EQ(error, MPI_ERR_ARG);
}

/// Small data of a device leaves before its receive. More of it than that is done for stands at its sender.
TEST_F(Messages, from_devices_that_came_before_their_receive_arrive_whole) {
  constexpr int kCount = 100;
  constexpr std::size_t kBytes = 3000;
  Runtime& owner = runtime();
  Memory source = owner.allocate(owner.device_kind(), kCount * kBytes);
  Memory landing = owner.allocate(owner.device_kind(), kBytes);
  auto image = pattern(kCount * kBytes, self_);
  owner.copy(source, Buffer(std::span(image)));
  std::vector<MPI_Request> requests(kCount);
  const auto at = [&](int i) { return static_cast<std::byte*>(source.data()) + static_cast<std::size_t>(i) * kBytes; };
  for (int i = 0; i < kCount; ++i)
    ASSERT_EQ(MPI_Isend(at(i), kBytes, MPI_BYTE, right_, i, MPI_COMM_WORLD, &requests[static_cast<std::size_t>(i)]), 0);
  const auto sent = pattern(kCount * kBytes, left_);
  for (int i = kCount - 1; i >= 0; --i) {
    MPI_Status status;
    ASSERT_EQ(MPI_Probe(left_, i, MPI_COMM_WORLD, &status), 0);
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    ASSERT_EQ(count, static_cast<int>(kBytes));
    std::vector<std::uint8_t> got(kBytes);
    if (i % 2 == 0) {
      ASSERT_EQ(MPI_Recv(got.data(), kBytes, MPI_BYTE, left_, i, MPI_COMM_WORLD, &status), 0);
    } else {
      ASSERT_EQ(MPI_Recv(landing.data(), kBytes, MPI_BYTE, left_, i, MPI_COMM_WORLD, &status), 0);
      owner.copy(Buffer(std::span(got)), landing);
    }
    EXPECT_TRUE(std::equal(got.begin(), got.end(), sent.begin() + static_cast<std::ptrdiff_t>(i * kBytes))) << i;
  }
  EXPECT_EQ(MPI_Waitall(kCount, requests.data(), MPI_STATUSES_IGNORE), 0);
}

TEST_F(Messages, from_devices_that_are_too_long_are_errors_of_the_receive_alone) {
  const test::ErrorsReturned returned(MPI_COMM_WORLD);
  Runtime& owner = runtime();
  Memory source = owner.allocate(owner.device_kind(), 64);
  Memory landing = owner.allocate(owner.device_kind(), 64);
  auto image = pattern(64, self_);
  owner.copy(source, Buffer(std::span(image)));
  for (const bool posted_first : {true, false}) {
    MPI_Request request = MPI_REQUEST_NULL;
    const auto receive = [&] { MPI_Irecv(landing.data(), 16, MPI_BYTE, left_, 8, MPI_COMM_WORLD, &request); };
    MPI_Barrier(MPI_COMM_WORLD);
    if (posted_first) receive();
    MPI_Request sent = MPI_REQUEST_NULL;
    MPI_Isend(source.data(), 64, MPI_BYTE, right_, 8, MPI_COMM_WORLD, &sent);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!posted_first) receive();
    EXPECT_EQ(MPI_Wait(&sent, MPI_STATUS_IGNORE), 0);
    MPI_Status status;
    int error_class = 0;
    MPI_Error_class(MPI_Wait(&request, &status), &error_class);
    EXPECT_EQ(error_class, MPI_ERR_TRUNCATE);
  }
}

}  // namespace
}  // namespace brant::mpi
