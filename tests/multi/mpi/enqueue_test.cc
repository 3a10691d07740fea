// Runs as every rank of a job, with an emulated device: calls that streams carry out. Each rank sends to its right
// neighbour, which is itself in a job of one.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "enqueue_lane.h"

namespace brant::mpi {
namespace {

using test::class_of;
using test::Gate;
using test::Lane;
using test::pattern;
using test::Room;
using test::text_of;

class Enqueue : public testing::Test {
 protected:
  const int self_ = test::rank(), size_ = test::size();
  const int right_ = (self_ + 1) % size_, left_ = (self_ + size_ - 1) % size_;

  static const char* kind_of_device() { return runtime().device_kind() == MemoryKind::cuda ? "cuda" : "emulated"; }
  static Room on_device(std::size_t bytes) { return {kind_of_device(), bytes}; }
  static Room pinned(std::size_t bytes) { return {"pinned", bytes}; }
  struct Filled : Room {
    explicit Filled(const std::vector<std::uint8_t>& data) : Room("pinned", data.size()) {
      std::ranges::copy(data, static_cast<std::uint8_t*>(this->data()));
    }
  };
  static Filled pinned_with(const std::vector<std::uint8_t>& data) { return Filled(data); }
  static bool holds(const Room& memory, const std::vector<std::uint8_t>& data) {
    return std::memcmp(memory.data(), data.data(), data.size()) == 0;
  }

  /// A message to the right neighbour and one from the left one, in the order of a chain.
  void pass_on(const Lane& lane, const void* source, void* landing, int count, MPI_Status* status) const {
    const auto send = [&] { ASSERT_EQ(MPIX_Send_enqueue(source, count, MPI_BYTE, right_, 3, lane.comm), 0); };
    if (self_ == 0) send();
    ASSERT_EQ(MPIX_Recv_enqueue(landing, count, MPI_BYTE, left_, 3, lane.comm, status), 0);
    if (self_ != 0) send();
  }
};

TEST_F(Enqueue, what_the_stream_wrote_before_is_sent_and_what_comes_behind_a_receive_sees_it) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{5'000}, std::size_t{60'000}, std::size_t{3'000'000}}) {
    const Room source = on_device(bytes), landing = on_device(bytes);
    const Filled sent = pinned_with(pattern(bytes, self_));
    const Room got = pinned(bytes);
    Lane lane;
    MPI_Status status;
    ASSERT_EQ(lane.stream.fill(landing, std::byte{0}), Status::ok);
    ASSERT_EQ(lane.stream.copy(source, sent), Status::ok);
    pass_on(lane, source.data(), landing.data(), static_cast<int>(bytes), &status);
    ASSERT_EQ(lane.stream.fill(source, std::byte{7}), Status::ok);  // it has left by then
    ASSERT_EQ(lane.stream.copy(got, landing), Status::ok);
    ASSERT_EQ(lane.stream.synchronize(), Status::ok);
    EXPECT_TRUE(holds(got, pattern(bytes, left_))) << bytes << " bytes";
    int count = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    EXPECT_EQ(count, static_cast<int>(bytes));
    EXPECT_EQ(status.MPI_SOURCE, left_);
    EXPECT_EQ(status.MPI_TAG, 3);
  }
}

TEST_F(Enqueue, host_memory_goes_too) {
  constexpr int kBytes = 200'000;
  const Filled sent = pinned_with(pattern(kBytes, self_));
  const Room got = pinned(kBytes);
  Lane lane;
  pass_on(lane, sent.data(), got.data(), kBytes, MPI_STATUS_IGNORE);
  ASSERT_EQ(lane.stream.synchronize(), Status::ok);
  EXPECT_TRUE(holds(got, pattern(kBytes, left_)));
}

TEST_F(Enqueue, a_call_returns_at_once_and_is_carried_out_when_the_stream_comes_there) {
  const Room word = pinned(sizeof(int)), got = pinned(sizeof(int));
  auto& value = *static_cast<int*>(word.data());
  Lane lane;
  value = -1;
  Gate gate(lane.stream);
  ASSERT_EQ(MPIX_Send_enqueue(&value, 1, MPI_INT, right_, 3, lane.comm), 0);
  int there = 1;
  for (int look = 0; look < 20; ++look) {
    ASSERT_EQ(MPI_Iprobe(left_, 3, lane.comm, &there, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(there, 0) << "no stream has come to the send";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  value = 1000 + self_;
  gate.open();
  ASSERT_EQ(MPIX_Recv_enqueue(got.data(), 1, MPI_INT, left_, 3, lane.comm, MPI_STATUS_IGNORE), 0);
  ASSERT_EQ(lane.stream.synchronize(), Status::ok);
  EXPECT_EQ(*static_cast<int*>(got.data()), 1000 + left_);
}

TEST_F(Enqueue, two_streams_do_not_wait_for_each_other) {
  const Room late = pinned(sizeof(int)), got = pinned(5'000);
  const Filled sent = pinned_with(pattern(5'000, self_));
  Lane waits, works;
  ASSERT_EQ(MPIX_Recv_enqueue(late.data(), 1, MPI_INT, left_, 1, waits.comm, MPI_STATUS_IGNORE), 0);
  for (int round = 0; round < 20; ++round) {
    std::memset(got.data(), 0, 5'000);
    pass_on(works, sent.data(), got.data(), 5'000, MPI_STATUS_IGNORE);
    ASSERT_EQ(works.stream.synchronize(), Status::ok);
    ASSERT_TRUE(holds(got, pattern(5'000, left_)));
  }
  EXPECT_EQ(waits.stream.poll(), Status::in_progress);
  MPI_Barrier(MPI_COMM_WORLD);
  const int number = 77 + self_;
  ASSERT_EQ(MPI_Send(&number, 1, MPI_INT, right_, 1, waits.comm), 0);  // a call of the host meets one of a stream
  ASSERT_EQ(waits.stream.synchronize(), Status::ok);
  EXPECT_EQ(*static_cast<int*>(late.data()), 77 + left_);
}

TEST_F(Enqueue, a_stream_goes_on_while_the_program_waits_in_MPI) {
  const Filled sent = pinned_with(pattern(100'000, self_));
  const Room got = pinned(100'000);
  Lane lane;
  pass_on(lane, sent.data(), got.data(), 100'000, MPI_STATUS_IGNORE);
  for (int round = 0; round < 100; ++round) {
    int given = self_ + round, came = -1;
    MPI_Sendrecv(&given, 1, MPI_INT, right_, 9, &came, 1, MPI_INT, left_, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ASSERT_EQ(came, left_ + round);
    int sum = 0;
    MPI_Allreduce(&given, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ASSERT_EQ(sum, size_ * (size_ - 1) / 2 + round * size_);
  }
  ASSERT_EQ(lane.stream.synchronize(), Status::ok);
  EXPECT_TRUE(holds(got, pattern(100'000, left_)));
}

/// More than the queue of a stream has room for: the device makes the call wait, and MPI goes on meanwhile.
TEST_F(Enqueue, thousands_of_calls_may_be_queued) {
  constexpr int kMessages = 3'000;
  const Room given = pinned(kMessages * sizeof(int)), got = pinned(kMessages * sizeof(int));
  auto* const sent = static_cast<int*>(given.data());
  auto* const came = static_cast<int*>(got.data());
  Lane lane;
  for (int i = 0; i < kMessages; ++i) {
    sent[i] = self_ * kMessages + i;
    pass_on(lane, &sent[i], &came[i], sizeof(int), MPI_STATUS_IGNORE);
  }
  ASSERT_EQ(lane.stream.synchronize(), Status::ok);
  bool right = true;
  for (int i = 0; i < kMessages; ++i) right = right && came[i] == left_ * kMessages + i;
  EXPECT_TRUE(right);
}

// Requests
// -------------------------------------------------------------------------------------------------------------------

TEST_F(Enqueue, a_stream_begins_several_and_waits_for_all_of_them) {
  constexpr std::size_t kBytes = 150'000;
  const Room source = on_device(kBytes), landing = on_device(kBytes);
  const Filled sent = pinned_with(pattern(kBytes, self_));
  const Room got = pinned(kBytes);
  Lane lane;
  for (int round = 0; round < 5; ++round) {
    std::array<MPI_Request, 3> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    std::array<MPI_Status, 3> statuses;
    for (MPI_Status& status : statuses) status.MPI_ERROR = -1;
    const auto count = static_cast<int>(kBytes);
    ASSERT_EQ(lane.stream.copy(source, sent), Status::ok);
    ASSERT_EQ(lane.stream.fill(landing, std::byte{0}), Status::ok);
    ASSERT_EQ(MPIX_Irecv_enqueue(landing.data(), count, MPI_BYTE, left_, 4, lane.comm, &requests[0]), 0);
    ASSERT_EQ(MPIX_Isend_enqueue(source.data(), count, MPI_BYTE, right_, 4, lane.comm, &requests[2]), 0);
    ASSERT_EQ(MPIX_Waitall_enqueue(3, requests.data(), statuses.data()), 0);
    for (MPI_Request request : requests) EXPECT_EQ(request, MPI_REQUEST_NULL);
    ASSERT_EQ(lane.stream.copy(got, landing), Status::ok);
    ASSERT_EQ(lane.stream.fill(source, std::byte{1}), Status::ok);
    ASSERT_EQ(lane.stream.synchronize(), Status::ok);
    EXPECT_TRUE(holds(got, pattern(kBytes, left_)));
    EXPECT_EQ(statuses[0].MPI_SOURCE, left_);
    for (const MPI_Status& status : statuses) EXPECT_EQ(status.MPI_ERROR, MPI_SUCCESS);
    int bytes = -1;
    MPI_Get_count(&statuses[0], MPI_BYTE, &bytes);
    EXPECT_EQ(bytes, count);
  }
}

TEST_F(Enqueue, a_request_may_be_waited_for_one_by_one_or_by_the_program) {
  const Room got = pinned(2 * sizeof(int));
  auto* const words = static_cast<int*>(got.data());
  Lane lane;
  const int value = 10 + self_;
  std::array<MPI_Request, 4> requests{};
  ASSERT_EQ(MPIX_Irecv_enqueue(&words[0], 1, MPI_INT, left_, 1, lane.comm, &requests[0]), 0);
  ASSERT_EQ(MPIX_Irecv_enqueue(&words[1], 1, MPI_INT, left_, 2, lane.comm, &requests[1]), 0);
  ASSERT_EQ(MPIX_Isend_enqueue(&value, 1, MPI_INT, right_, 2, lane.comm, &requests[2]), 0);
  ASSERT_EQ(MPIX_Isend_enqueue(&value, 1, MPI_INT, right_, 1, lane.comm, &requests[3]), 0);
  MPI_Status status;
  ASSERT_EQ(MPI_Wait(&requests[1], &status), 0);
  EXPECT_EQ(words[1], 10 + left_);
  EXPECT_EQ(status.MPI_TAG, 2);
  ASSERT_EQ(MPIX_Wait_enqueue(&requests[0], &status), 0);
  ASSERT_EQ(MPIX_Wait_enqueue(&requests[0], &status), 0) << "there is nothing to wait for";
  ASSERT_EQ(MPIX_Wait_enqueue(&requests[2], MPI_STATUS_IGNORE), 0);
  ASSERT_EQ(MPI_Request_free(&requests[3]), 0);
  ASSERT_EQ(lane.stream.synchronize(), Status::ok);
  EXPECT_EQ(words[0], 10 + left_);
}

TEST_F(Enqueue, requests_that_a_stream_cannot_wait_for_are_refused) {
  const test::ErrorsReturned in_world(MPI_COMM_WORLD);
  const Room got = pinned(4 * sizeof(int));
  auto* const words = static_cast<int*>(got.data());
  Lane one, other;
  const int value = 3;
  std::array<MPI_Request, 2> requests{};
  MPI_Request plain;
  MPI_Irecv(&words[2], 1, MPI_INT, left_, 8, MPI_COMM_WORLD, &plain);
  EXPECT_EQ(class_of(MPIX_Wait_enqueue(&plain, MPI_STATUS_IGNORE)), MPI_ERR_REQUEST);
  ASSERT_EQ(MPIX_Irecv_enqueue(&words[0], 1, MPI_INT, left_, 1, one.comm, &requests[0]), 0);
  ASSERT_EQ(MPIX_Irecv_enqueue(&words[1], 1, MPI_INT, left_, 1, other.comm, &requests[1]), 0);
  int outcome = MPIX_Waitall_enqueue(2, requests.data(), MPI_STATUSES_IGNORE);
  EXPECT_EQ(class_of(outcome), MPI_ERR_REQUEST);
  EXPECT_NE(text_of(outcome).find("another stream"), std::string::npos) << text_of(outcome);
  std::array<MPI_Request, 2> twice{requests[0], requests[0]};
  EXPECT_EQ(class_of(MPIX_Waitall_enqueue(2, twice.data(), MPI_STATUSES_IGNORE)), MPI_ERR_REQUEST);
  MPI_Send(&value, 1, MPI_INT, right_, 8, MPI_COMM_WORLD);
  for (MPI_Comm comm : {one.comm, other.comm}) MPI_Send(&value, 1, MPI_INT, right_, 1, comm);
  ASSERT_EQ(MPI_Wait(&plain, MPI_STATUS_IGNORE), 0);
  ASSERT_EQ(MPIX_Wait_enqueue(&requests[0], MPI_STATUS_IGNORE), 0);
  ASSERT_EQ(MPIX_Wait_enqueue(&requests[1], MPI_STATUS_IGNORE), 0);
}

TEST_F(Enqueue, an_error_of_a_request_is_in_its_status_and_told) {
  std::array<int, 4> given{1, 2, 3, 4};
  const Room room = pinned(16);
  Lane lane;
  std::array<MPI_Request, 2> requests{};
  std::array<MPI_Status, 2> statuses;
  ASSERT_EQ(MPIX_Irecv_enqueue(room.data(), 2, MPI_INT, left_, 1, lane.comm, &requests[0]), 0);
  ASSERT_EQ(MPIX_Isend_enqueue(given.data(), 4, MPI_INT, right_, 1, lane.comm, &requests[1]), 0);
  ASSERT_EQ(MPIX_Waitall_enqueue(2, requests.data(), statuses.data()), 0);
  ASSERT_EQ(lane.stream.synchronize(), Status::ok);
  EXPECT_EQ(statuses[0].MPI_ERROR, MPI_ERR_TRUNCATE);
  EXPECT_EQ(statuses[1].MPI_ERROR, MPI_SUCCESS);
  EXPECT_EQ(class_of(MPI_Barrier(lane.comm)), MPI_ERR_TRUNCATE);
}

// Collectives
// -------------------------------------------------------------------------------------------------------------------

TEST_F(Enqueue, collectives_combine_what_the_streams_wrote) {
  constexpr int kCount = 10'000;
  constexpr std::size_t kBytes = kCount * sizeof(int);
  const Room mine = pinned(kBytes), got = pinned(kBytes), given = on_device(kBytes), sum = on_device(kBytes);
  Lane lane;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kCount; ++i) static_cast<int*>(mine.data())[i] = self_ * 100 + i + round;
    ASSERT_EQ(lane.stream.copy(given, mine), Status::ok);
    ASSERT_EQ(MPIX_Allreduce_enqueue(given.data(), sum.data(), kCount, MPI_INT, MPI_SUM, lane.comm), 0);
    ASSERT_EQ(MPIX_Barrier_enqueue(lane.comm), 0);
    ASSERT_EQ(lane.stream.copy(got, sum), Status::ok);
    ASSERT_EQ(lane.stream.synchronize(), Status::ok);
    bool right = true;
    for (int i = 0; i < kCount; ++i) {
      const int expected = size_ * (size_ - 1) / 2 * 100 + size_ * (i + round);
      right = right && static_cast<int*>(got.data())[i] == expected;
    }
    EXPECT_TRUE(right) << "round " << round;
  }
}

TEST_F(Enqueue, collectives_of_all_sorts_go_in_the_order_of_the_stream) {
  const Room words = pinned(static_cast<std::size_t>(size_ + 3) * sizeof(int));
  auto* const word = static_cast<int*>(words.data());
  Lane lane;
  word[0] = self_ == 0 ? 42 : -1;
  word[1] = -1;
  ASSERT_EQ(MPIX_Bcast_enqueue(&word[0], 1, MPI_INT, 0, lane.comm), 0);
  ASSERT_EQ(MPIX_Reduce_enqueue(&word[0], &word[1], 1, MPI_INT, MPI_SUM, size_ - 1, lane.comm), 0);
  ASSERT_EQ(MPIX_Bcast_enqueue(&word[1], 1, MPI_INT, size_ - 1, lane.comm), 0);
  ASSERT_EQ(MPIX_Allgather_enqueue(&word[1], 1, MPI_INT, &word[2], 1, MPI_INT, lane.comm), 0);
  ASSERT_EQ(MPIX_Allreduce_enqueue(MPI_IN_PLACE, &word[0], 1, MPI_INT, MPI_MAX, lane.comm), 0);
  ASSERT_EQ(lane.stream.synchronize(), Status::ok);
  EXPECT_EQ(word[0], 42);
  EXPECT_EQ(word[1], 42 * size_);
  for (int r = 0; r < size_; ++r) EXPECT_EQ(word[2 + r], 42 * size_);
  EXPECT_EQ(class_of(MPIX_Bcast_enqueue(&word[0], 1, MPI_INT, size_, lane.comm)), MPI_ERR_ROOT);
}

TEST_F(Enqueue, nobody_is_a_partner_too) {
  Lane lane;
  int value = 5;
  MPI_Status status;
  ASSERT_EQ(MPIX_Send_enqueue(&value, 1, MPI_INT, MPI_PROC_NULL, 0, lane.comm), 0);
  ASSERT_EQ(MPIX_Recv_enqueue(&value, 1, MPI_INT, MPI_PROC_NULL, 0, lane.comm, &status), 0);
  ASSERT_EQ(lane.stream.synchronize(), Status::ok);
  EXPECT_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
  EXPECT_EQ(value, 5);
}

TEST_F(Enqueue, a_communicator_says_which_stream_it_has) {
  Lane lane;
  MPIX_Stream found = MPIX_STREAM_NULL;
  ASSERT_EQ(MPIX_Comm_get_stream(lane.comm, 0, &found), 0);
  EXPECT_EQ(found, lane.handle);
  EXPECT_EQ(class_of(MPIX_Comm_get_stream(lane.comm, 1, &found)), MPI_ERR_ARG);
  ASSERT_EQ(MPIX_Comm_get_stream(MPI_COMM_WORLD, 0, &found), 0);
  EXPECT_EQ(found, MPIX_STREAM_NULL);
  MPI_Comm plain;
  ASSERT_EQ(MPIX_Stream_comm_create(MPI_COMM_WORLD, MPIX_STREAM_NULL, &plain), 0);
  ASSERT_EQ(MPIX_Comm_get_stream(plain, 0, &found), 0);
  EXPECT_EQ(found, MPIX_STREAM_NULL);
  MPI_Comm_free(&plain);
}

// Errors
// -------------------------------------------------------------------------------------------------------------------

TEST_F(Enqueue, what_names_no_stream_is_refused) {
  const test::ErrorsReturned in_world(MPI_COMM_WORLD), in_self(MPI_COMM_SELF);
  MPIX_Stream stream = MPIX_STREAM_NULL;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "type", "hipStream_t");
  int outcome = MPIX_Stream_create(info, &stream);
  EXPECT_EQ(class_of(outcome), MPI_ERR_INFO_VALUE);
  EXPECT_NE(text_of(outcome).find("hipStream_t"), std::string::npos);
  MPI_Info_set(info, "type", "cudaStream_t");
  EXPECT_EQ(class_of(MPIX_Stream_create(info, &stream)), MPI_ERR_INFO_NOKEY);
  for (const char* const wrong : {"12", "0123456789abcdeg", "0000000000000000"}) {
    MPI_Info_set(info, "value", wrong);
    EXPECT_EQ(class_of(MPIX_Stream_create(info, &stream)), MPI_ERR_INFO_VALUE) << wrong;
  }
  EXPECT_EQ(class_of(MPIX_Info_set_hex(info, "value", nullptr, 8)), MPI_ERR_INFO_VALUE);
  EXPECT_EQ(class_of(MPIX_Info_set_hex(MPI_INFO_NULL, "value", static_cast<const void*>(&info), 8)), MPI_ERR_INFO);
  MPI_Info_free(&info);
  EXPECT_EQ(stream, MPIX_STREAM_NULL);
  EXPECT_EQ(class_of(MPIX_Stream_free(&stream)), MPI_ERR_ARG);
  MPI_Comm made = MPI_COMM_NULL;
  MPIX_Stream other = reinterpret_cast<MPIX_Stream>(MPI_COMM_WORLD);
  EXPECT_EQ(class_of(MPIX_Stream_comm_create(MPI_COMM_WORLD, other, &made)), MPI_ERR_ARG);
  EXPECT_EQ(class_of(MPIX_Stream_comm_create(MPI_COMM_NULL, MPIX_STREAM_NULL, &made)), MPI_ERR_COMM);
}

TEST_F(Enqueue, calls_need_a_communicator_with_a_stream_of_a_device) {
  const test::ErrorsReturned in_world(MPI_COMM_WORLD), in_self(MPI_COMM_SELF);
  int value = 0;
  int outcome = MPIX_Send_enqueue(&value, 1, MPI_INT, right_, 0, MPI_COMM_WORLD);
  EXPECT_EQ(class_of(outcome), MPI_ERR_COMM);
  EXPECT_NE(text_of(outcome).find("MPIX_Stream_comm_create"), std::string::npos) << text_of(outcome);
  EXPECT_EQ(class_of(MPIX_Send_enqueue(&value, 1, MPI_INT, right_, 0, MPI_COMM_NULL)), MPI_ERR_COMM);
  MPIX_Stream plain = MPIX_STREAM_NULL;
  ASSERT_EQ(MPIX_Stream_create(MPI_INFO_NULL, &plain), 0);
  MPI_Comm comm = MPI_COMM_NULL;
  ASSERT_EQ(MPIX_Stream_comm_create(MPI_COMM_WORLD, plain, &comm), 0);
  outcome = MPIX_Recv_enqueue(&value, 1, MPI_INT, left_, 0, comm, MPI_STATUS_IGNORE);
  EXPECT_EQ(class_of(outcome), MPI_ERR_COMM);
  EXPECT_NE(text_of(outcome).find("none of a device"), std::string::npos) << text_of(outcome);
  MPI_Comm_free(&comm);
  EXPECT_EQ(MPIX_Stream_free(&plain), 0);
  Lane lane;
  EXPECT_EQ(class_of(MPIX_Send_enqueue(&value, 1, MPI_INT, size_, 0, lane.comm)), MPI_ERR_RANK);
  EXPECT_EQ(class_of(MPIX_Send_enqueue(&value, 1, MPI_INT, right_, -5, lane.comm)), MPI_ERR_TAG);
  EXPECT_EQ(class_of(MPIX_Send_enqueue(&value, -1, MPI_INT, right_, 0, lane.comm)), MPI_ERR_COUNT);
  EXPECT_EQ(class_of(MPIX_Recv_enqueue(&value, 1, MPI_DATATYPE_NULL, left_, 0, lane.comm, MPI_STATUS_IGNORE)),
            MPI_ERR_TYPE);
  ASSERT_EQ(MPIX_Stream_free(&lane.handle), 0);
  outcome = MPIX_Send_enqueue(&value, 1, MPI_INT, right_, 0, lane.comm);
  EXPECT_EQ(class_of(outcome), MPI_ERR_COMM);
  EXPECT_NE(text_of(outcome).find("was freed"), std::string::npos) << text_of(outcome);
  ASSERT_EQ(MPI_Barrier(lane.comm), 0) << "it is a communicator all the same";
}

TEST_F(Enqueue, a_call_while_its_stream_is_captured_is_refused) {
  Lane lane;
  port::Streams& streams = *runtime().device().inner().streams();
  int value = 7 + self_, got = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  ASSERT_EQ(streams.begin_capture(lane.stream), Status::ok);
  const int outcome = MPIX_Send_enqueue(&value, 1, MPI_INT, right_, 3, lane.comm);
  EXPECT_EQ(class_of(outcome), MPI_ERR_UNSUPPORTED_OPERATION);
  for (const char* const said : {"MPIX_Send_enqueue", "captured", "cudaStreamEndCapture"})
    EXPECT_NE(text_of(outcome).find(said), std::string::npos) << text_of(outcome);
  EXPECT_EQ(class_of(MPIX_Irecv_enqueue(&got, 1, MPI_INT, left_, 3, lane.comm, &request)),
            MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT_EQ(class_of(MPIX_Barrier_enqueue(lane.comm)), MPI_ERR_UNSUPPORTED_OPERATION);
  const Result<port::Graph*> graph = streams.end_capture(lane.stream);
  ASSERT_TRUE(graph.ok());
  streams.destroy_graph(*graph);
  pass_on(lane, &value, &got, sizeof(int), MPI_STATUS_IGNORE);
  ASSERT_EQ(lane.stream.synchronize(), Status::ok);
  EXPECT_EQ(got, 7 + left_) << "nothing is left of the calls that were refused";
}

TEST_F(Enqueue, freeing_a_communicator_waits_for_its_stream) {
  const Filled sent = pinned_with(pattern(40'000, self_));
  const Room got = pinned(40'000);
  Lane lane;
  pass_on(lane, sent.data(), got.data(), 40'000, MPI_STATUS_IGNORE);
  ASSERT_EQ(MPI_Comm_free(&lane.comm), 0);
  EXPECT_TRUE(holds(got, pattern(40'000, left_)));
}

// The thread
// -------------------------------------------------------------------------------------------------------------------

/// Nanoseconds of the CPU that the thread has had so far; -1: there is none.
std::int64_t time_of_thread() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    std::int64_t used = -1;
    if (name == "brant-enqueue" && std::ifstream(task.path() / "schedstat") >> used) return used;
  }
  return -1;
}

TEST_F(Enqueue, the_thread_sleeps_where_there_is_nothing_to_carry_out) {
  const Filled sent = pinned_with(pattern(10, self_));
  const Room got = pinned(10);
  Lane lane;
  pass_on(lane, sent.data(), got.data(), 10, MPI_STATUS_IGNORE);
  ASSERT_EQ(lane.stream.synchronize(), Status::ok);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it goes to sleep
  const std::int64_t before = time_of_thread();
  ASSERT_GE(before, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(time_of_thread(), before);
}

}  // namespace
}  // namespace brant::mpi
