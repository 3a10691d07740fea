// Runs as every rank of a job, with an emulated device: calls that streams carry out, or do not, and that fail. Each
// rank sends to its right neighbour.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "enqueue_lane.h"

namespace brant::mpi {
namespace {

using test::class_of;
using test::Lane;
using test::Room;
using test::text_of;

class EnqueueFailures : public testing::Test {
 protected:
  const int self_ = test::rank(), size_ = test::size();
  const int right_ = (self_ + 1) % size_, left_ = (self_ + size_ - 1) % size_;

  static Room pinned(std::size_t bytes) { return {"pinned", bytes}; }
};

/// The stream goes on, and the next call of the program on the communicator tells it, once.
TEST_F(EnqueueFailures, what_fails_behind_the_call_is_told_by_the_next_one) {
  for (const bool freed_first : {false, true}) {
    std::array<int, 4> given{1, 2, 3, 4};
    const Room room = pinned(8);
    Lane lane;
    const auto fail_once = [&] {
      MPI_Request sent;
      MPI_Isend(given.data(), 4, MPI_INT, right_, 6, lane.comm, &sent);
      MPI_Status status;
      ASSERT_EQ(MPIX_Recv_enqueue(room.data(), 2, MPI_INT, left_, 6, lane.comm, &status), 0);
      ASSERT_EQ(lane.stream.synchronize(), Status::ok);
      EXPECT_EQ(status.MPI_SOURCE, left_);
      MPI_Wait(&sent, MPI_STATUS_IGNORE);
    };
    fail_once();
    const int outcome = MPI_Barrier(lane.comm);
    EXPECT_EQ(class_of(outcome), MPI_ERR_TRUNCATE);
    EXPECT_NE(text_of(outcome).find("MPIX_Recv_enqueue"), std::string::npos) << text_of(outcome);
    ASSERT_EQ(MPI_Barrier(lane.comm), 0) << "it is told once";
    fail_once();
    if (freed_first) {
      EXPECT_EQ(class_of(MPIX_Stream_free(&lane.handle)), MPI_ERR_TRUNCATE);
      EXPECT_EQ(lane.handle, MPIX_STREAM_NULL);
      EXPECT_EQ(MPI_Comm_free(&lane.comm), 0);
    } else {
      EXPECT_EQ(class_of(MPI_Comm_free(&lane.comm)), MPI_ERR_TRUNCATE);
      EXPECT_EQ(lane.comm, MPI_COMM_NULL) << "it is freed all the same";
    }
  }
}

TEST_F(EnqueueFailures, a_communicator_that_an_attribute_keeps_keeps_what_it_is_to_tell) {
  Lane lane;
  bool refuses = true;
  int key = MPI_KEYVAL_INVALID;
  const auto ask = [](MPI_Comm, int, void* value, void*) { return *static_cast<bool*>(value) ? MPI_ERR_OTHER : 0; };
  ASSERT_EQ(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ask, &key, nullptr), 0);
  ASSERT_EQ(MPI_Comm_set_attr(lane.comm, key, &refuses), 0);
  std::array<int, 4> given{1, 2, 3, 4};
  const Room room = pinned(8);
  MPI_Request sent;
  MPI_Isend(given.data(), 4, MPI_INT, right_, 6, lane.comm, &sent);
  ASSERT_EQ(MPIX_Recv_enqueue(room.data(), 2, MPI_INT, left_, 6, lane.comm, MPI_STATUS_IGNORE), 0);
  ASSERT_EQ(lane.stream.synchronize(), Status::ok);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  EXPECT_EQ(class_of(MPI_Comm_free(&lane.comm)), MPI_ERR_OTHER);
  ASSERT_NE(lane.comm, MPI_COMM_NULL);
  refuses = false;
  EXPECT_EQ(class_of(MPIX_Stream_free(&lane.handle)), MPI_ERR_TRUNCATE) << "its stream knows it still, and its error";
  EXPECT_EQ(MPI_Comm_free(&lane.comm), 0);
  MPI_Comm_free_keyval(&key);
}

std::vector<MPI_Comm>& freed_by_handler() {
  static std::vector<MPI_Comm> all;
  return all;
}
void free_in_handler(MPI_Comm* comm, int*, ...) {
  MPI_Comm copy = *comm;
  EXPECT_EQ(MPI_Comm_free(&copy), 0);
  freed_by_handler().push_back(*comm);
}

TEST_F(EnqueueFailures, error_handlers_may_free_communicators_while_their_stream_is_freed) {
  Lane lane;
  std::array<MPI_Comm, 3> comms{};
  MPI_Errhandler handler;
  ASSERT_EQ(MPI_Comm_create_errhandler(&free_in_handler, &handler), 0);
  std::array<int, 4> given{1, 2, 3, 4};
  const Room room = pinned(8);
  for (MPI_Comm& comm : comms) {
    ASSERT_EQ(MPIX_Stream_comm_create(MPI_COMM_WORLD, lane.handle, &comm), 0);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Request sent;
    MPI_Isend(given.data(), 4, MPI_INT, right_, 6, comm, &sent);
    ASSERT_EQ(MPIX_Recv_enqueue(room.data(), 2, MPI_INT, left_, 6, comm, MPI_STATUS_IGNORE), 0);
    ASSERT_EQ(lane.stream.synchronize(), Status::ok);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
  }
  MPI_Errhandler_free(&handler);
  freed_by_handler().clear();
  EXPECT_EQ(class_of(MPIX_Stream_free(&lane.handle)), MPI_ERR_TRUNCATE);
  EXPECT_EQ(freed_by_handler(), std::vector<MPI_Comm>(comms.begin(), comms.end())) << "each is told, once";
}

TEST_F(EnqueueFailures, a_call_that_its_stream_never_comes_to_keeps_nobody) {
  Lane lane;
  int value = 1;
  MPI_Request request = MPI_REQUEST_NULL;
  lane.fail();
  ASSERT_EQ(MPIX_Send_enqueue(&value, 1, MPI_INT, right_, 0, lane.comm), 0);
  ASSERT_EQ(MPIX_Irecv_enqueue(&value, 1, MPI_INT, left_, 0, lane.comm, &request), 0);
  const int outcome = MPI_Comm_free(&lane.comm);
  EXPECT_EQ(class_of(outcome), MPI_ERR_OTHER);
  EXPECT_NE(text_of(outcome).find("its stream has failed"), std::string::npos) << text_of(outcome);
  const test::ErrorsReturned in_world(MPI_COMM_WORLD);
  EXPECT_EQ(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)), MPI_ERR_OTHER);
  EXPECT_EQ(request, MPI_REQUEST_NULL);
}

TEST_F(EnqueueFailures, a_communicator_whose_stream_has_failed_is_disconnected) {
  Lane lane;
  int value = 1;
  lane.fail();
  ASSERT_EQ(MPIX_Send_enqueue(&value, 1, MPI_INT, right_, 0, lane.comm), 0);
  const int outcome = MPI_Comm_disconnect(&lane.comm);
  EXPECT_EQ(class_of(outcome), MPI_ERR_OTHER);
  EXPECT_NE(text_of(outcome).find("its stream has failed"), std::string::npos) << text_of(outcome);
  EXPECT_EQ(lane.comm, MPI_COMM_NULL);
}

/// Whoever waits is told, though no stream comes any more: by each call that waits for requests.
TEST_F(EnqueueFailures, a_request_whose_stream_has_failed_ends) {
  using Wait = int (*)(MPI_Request*);
  const auto wait = [](MPI_Request* request) { return MPI_Wait(request, MPI_STATUS_IGNORE); };
  const auto wait_any = [](MPI_Request* request) {
    int index = -1;
    return MPI_Waitany(1, request, &index, MPI_STATUS_IGNORE);
  };
  const auto test = [](MPI_Request* request) {
    int ended = 0, outcome = 0;
    while (outcome == 0 && ended == 0) outcome = MPI_Test(request, &ended, MPI_STATUS_IGNORE);
    return outcome;
  };
  for (const Wait end : {Wait(wait), Wait(wait_any), Wait(test)}) {
    const test::ErrorsReturned in_self(MPI_COMM_SELF);
    Lane lane;
    int value = 1;
    MPI_Request request = MPI_REQUEST_NULL;
    lane.fail();
    ASSERT_EQ(MPIX_Irecv_enqueue(&value, 1, MPI_INT, left_, 0, lane.comm, &request), 0);
    const int outcome = end(&request);
    EXPECT_EQ(class_of(outcome), MPI_ERR_OTHER);
    EXPECT_NE(text_of(outcome).find("its stream has failed"), std::string::npos) << text_of(outcome);
    EXPECT_EQ(request, MPI_REQUEST_NULL);
    const int refused = MPIX_Irecv_enqueue(&value, 1, MPI_INT, left_, 0, lane.comm, &request);
    EXPECT_NE(text_of(refused).find("has failed before"), std::string::npos) << text_of(refused);
  }
}

}  // namespace
}  // namespace brant::mpi
