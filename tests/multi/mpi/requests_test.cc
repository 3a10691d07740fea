// Runs as every rank of a job: what the chapters on requests and on buffered and combined messages have beside those of
// messages_test.cc. Each rank sends to its right neighbour, which is itself in a job of one.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "mpi_job.h"

namespace brant::mpi {
namespace {

using test::pattern;

class Requests : public testing::Test {
 protected:
  const int self_ = test::rank(), size_ = test::size();
  const int right_ = (self_ + 1) % size_, left_ = (self_ + size_ - 1) % size_;
};

TEST_F(Requests, of_a_send_and_a_receive_end_as_one) {
  for (const std::size_t bytes : {0, 1, 5'000, 40'000, 3'000'000}) {
    const auto sent = pattern(bytes, self_);
    std::vector<std::uint8_t> got(bytes + 1, 0xee);
    const int count = static_cast<int>(bytes);
    MPI_Request request;
    ASSERT_EQ(MPI_Isendrecv(sent.data(), count, MPI_BYTE, right_, 3, got.data(), count, MPI_BYTE, left_, 3,
                            MPI_COMM_WORLD, &request),
              0);
    MPI_Status status;
    ASSERT_EQ(MPI_Wait(&request, &status), 0);
    EXPECT_EQ(request, MPI_REQUEST_NULL);
    EXPECT_EQ(status.MPI_SOURCE, left_);
    EXPECT_EQ(status.MPI_TAG, 3);
    int received = -1;
    MPI_Get_count(&status, MPI_BYTE, &received);
    EXPECT_EQ(received, count);
    EXPECT_EQ(got[bytes], 0xee);
    got.resize(bytes);
    EXPECT_EQ(got, pattern(bytes, left_));

    auto both = sent;
    ASSERT_EQ(
        MPI_Isendrecv_replace(both.data(), count, MPI_BYTE, right_, 4, left_, MPI_ANY_TAG, MPI_COMM_WORLD, &request),
        0);
    ASSERT_EQ(MPI_Wait(&request, &status), 0);
    EXPECT_EQ(status.MPI_TAG, 4);
    EXPECT_EQ(both, pattern(bytes, left_)) << bytes;
  }
}

TEST_F(Requests, of_a_send_and_a_receive_with_nobody_end_at_once) {
  int value = 7;
  MPI_Request request;
  ASSERT_EQ(MPI_Isendrecv_replace(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request), 0);
  MPI_Status status;
  int flag = 0;
  ASSERT_EQ(MPI_Test(&request, &flag, &status), 0);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
  EXPECT_EQ(value, 7);
}

TEST_F(Requests, of_a_send_and_a_receive_tell_that_the_message_is_too_long) {
  const test::ErrorsReturned returned(MPI_COMM_WORLD);
  const std::array<int, 2> sent{1, 2};
  int got = 0;
  MPI_Request request;
  MPI_Isendrecv(sent.data(), 2, MPI_INT, right_, 0, &got, 1, MPI_INT, left_, 0, MPI_COMM_WORLD, &request);
  EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
  EXPECT_EQ(request, MPI_REQUEST_NULL);
  EXPECT_EQ(MPI_Isendrecv_replace(&got, 1, MPI_INT, size_, 0, left_, 0, MPI_COMM_WORLD, &request), MPI_ERR_RANK);
}

TEST_F(Requests, that_have_ended_are_looked_at_without_being_taken) {
  std::array<int, 3> got{};
  std::array<MPI_Request, 4> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  for (int i = 0; i < 3; ++i)
    MPI_Irecv(&got[static_cast<std::size_t>(i)], 1, MPI_INT, left_, i, MPI_COMM_WORLD,
              &requests[static_cast<std::size_t>(i)]);
  int flag = 1, index = -1, count = -1;
  std::array<int, 4> indices{};
  std::array<MPI_Status, 4> statuses{};
  ASSERT_EQ(MPI_Request_get_status_all(4, requests.data(), &flag, statuses.data()), 0);
  EXPECT_EQ(flag, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 3; ++i) MPI_Send(&i, 1, MPI_INT, right_, i, MPI_COMM_WORLD);
  do {
    ASSERT_EQ(MPI_Request_get_status_any(4, requests.data(), &index, &flag, statuses.data()), 0);
  } while (flag == 0);
  ASSERT_TRUE(index >= 0 && index < 3);
  EXPECT_EQ(statuses[0].MPI_TAG, index);
  do {
    ASSERT_EQ(MPI_Request_get_status_some(4, requests.data(), &count, indices.data(), statuses.data()), 0);
  } while (count < 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(statuses[static_cast<std::size_t>(i)].MPI_TAG, indices[i]);
  ASSERT_EQ(MPI_Request_get_status_all(4, requests.data(), &flag, statuses.data()), 0);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(statuses[2].MPI_TAG, 2);
  EXPECT_EQ(statuses[3].MPI_SOURCE, MPI_ANY_SOURCE);
  for (int i = 0; i < 3; ++i) EXPECT_NE(requests[static_cast<std::size_t>(i)], MPI_REQUEST_NULL);
  ASSERT_EQ(MPI_Testsome(4, requests.data(), &count, indices.data(), statuses.data()), 0);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(got, (std::array{0, 1, 2}));
  ASSERT_EQ(MPI_Waitsome(4, requests.data(), &count, indices.data(), statuses.data()), 0);
  EXPECT_EQ(count, MPI_UNDEFINED);
}

/// An operation of the program, whose functions say what was asked of them.
struct OwnOperation {
  int queries = 0, frees = 0, cancels = 0;
  int complete_when_cancelled = -1;
  int answer = MPI_SUCCESS;

  static int query(void* self, MPI_Status* status) {
    MPI_Status_set_source(status, 3);
    MPI_Status_set_tag(status, 9);
    MPI_Status_set_elements(status, MPI_INT, 5);
    ++static_cast<OwnOperation*>(self)->queries;
    return static_cast<OwnOperation*>(self)->answer;
  }
  static int free(void* self) {
    ++static_cast<OwnOperation*>(self)->frees;
    return MPI_SUCCESS;
  }
  static int cancel(void* self, int complete) {
    ++static_cast<OwnOperation*>(self)->cancels;
    static_cast<OwnOperation*>(self)->complete_when_cancelled = complete;
    return MPI_SUCCESS;
  }
  MPI_Request start() {
    MPI_Request request = MPI_REQUEST_NULL;
    EXPECT_EQ(MPI_Grequest_start(query, free, cancel, this, &request), 0);
    return request;
  }
};

TEST_F(Requests, of_the_program_end_when_it_says_so) {
  OwnOperation operation;
  MPI_Request request = operation.start();
  int flag = 1;
  MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  EXPECT_EQ(flag, 0);
  MPI_Cancel(&request);
  EXPECT_EQ(operation.complete_when_cancelled, 0);
  ASSERT_EQ(MPI_Grequest_complete(request), 0);
  MPI_Cancel(&request);
  EXPECT_EQ(operation.complete_when_cancelled, 1);
  MPI_Status status;
  ASSERT_EQ(MPI_Request_get_status(request, &flag, &status), 0);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(operation.queries, 1);
  EXPECT_EQ(operation.frees, 0);
  ASSERT_EQ(MPI_Wait(&request, &status), 0);
  EXPECT_EQ(request, MPI_REQUEST_NULL);
  EXPECT_EQ(operation.queries, 2);
  EXPECT_EQ(operation.frees, 1);
  EXPECT_EQ(status.MPI_SOURCE, 3);
  EXPECT_EQ(status.MPI_TAG, 9);
  int count = -1;
  MPI_Get_count(&status, MPI_INT, &count);
  EXPECT_EQ(count, 5);
}

TEST_F(Requests, of_the_program_that_are_freed_go_when_they_have_ended) {
  OwnOperation operation;
  MPI_Request request = operation.start();
  MPI_Request kept = request;
  ASSERT_EQ(MPI_Request_free(&request), 0);
  EXPECT_EQ(operation.frees, 0);
  MPI_Grequest_complete(kept);
  EXPECT_EQ(operation.frees, 1);
  EXPECT_EQ(operation.queries, 0);
}

TEST_F(Requests, of_the_program_hand_its_errors_on) {
  const test::ErrorsReturned returned(MPI_COMM_SELF);
  OwnOperation operation;
  operation.answer = MPI_ERR_BUFFER;
  MPI_Request request = operation.start();
  EXPECT_EQ(MPI_Start(&request), MPI_ERR_REQUEST) << "it is not persistent";
  MPI_Grequest_complete(request);
  EXPECT_EQ(MPI_Grequest_complete(request), MPI_ERR_REQUEST) << "it is complete already";
  EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_BUFFER);
  EXPECT_EQ(operation.frees, 1);
  EXPECT_EQ(MPI_Grequest_complete(MPI_REQUEST_NULL), MPI_ERR_REQUEST);
}

/// Sends in the buffer of a communicator, or without one in that of the process.
class Buffered : public Requests {};

TEST_F(Buffered, messages_are_flushed_by_their_communicator) {
  MPI_Comm own;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  std::vector<std::uint8_t> room(std::size_t{3} * (1000 + MPI_BSEND_OVERHEAD));
  ASSERT_EQ(MPI_Comm_attach_buffer(own, room.data(), static_cast<int>(room.size())), 0);
  const auto sent = pattern(1000, self_);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(MPI_Bsend(sent.data(), 1000, MPI_BYTE, right_, i, own), 0);
  MPI_Request flushed;
  ASSERT_EQ(MPI_Comm_iflush_buffer(own, &flushed), 0);
  std::vector<std::uint8_t> got(1000);
  for (int i = 0; i < 3; ++i) {
    MPI_Recv(got.data(), 1000, MPI_BYTE, left_, i, own, MPI_STATUS_IGNORE);
    EXPECT_EQ(got, pattern(1000, left_));
  }
  ASSERT_EQ(MPI_Wait(&flushed, MPI_STATUS_IGNORE), 0);
  ASSERT_EQ(MPI_Comm_flush_buffer(own), 0);
  void* buffer = nullptr;
  int bytes = 0;
  ASSERT_EQ(MPI_Comm_detach_buffer(own, static_cast<void*>(&buffer), &bytes), 0);
  EXPECT_EQ(buffer, static_cast<void*>(room.data()));
  EXPECT_EQ(bytes, static_cast<int>(room.size()));
  MPI_Comm_free(&own);
}

TEST_F(Buffered, messages_that_are_large_wait_for_their_receive_and_the_flush_for_them) {
  constexpr int kBytes = 500'000;
  const auto sent = pattern(kBytes, self_);
  ASSERT_EQ(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0), 0);
  MPI_Bsend(sent.data(), kBytes, MPI_BYTE, right_, 0, MPI_COMM_WORLD);
  MPI_Request flushed;
  ASSERT_EQ(MPI_Buffer_iflush(&flushed), 0);
  MPI_Barrier(MPI_COMM_WORLD);
  int flag = 1;
  MPI_Test(&flushed, &flag, MPI_STATUS_IGNORE);
  EXPECT_EQ(flag, 0) << "nobody has received it";
  // What leaves later is not waited for.
  MPI_Bsend(sent.data(), kBytes, MPI_BYTE, right_, 1, MPI_COMM_WORLD);
  std::vector<std::uint8_t> got(kBytes);
  MPI_Recv(got.data(), kBytes, MPI_BYTE, left_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  ASSERT_EQ(MPI_Wait(&flushed, MPI_STATUS_IGNORE), 0);
  MPI_Recv(got.data(), kBytes, MPI_BYTE, left_, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_EQ(got, pattern(kBytes, left_));
  void* buffer = nullptr;
  int bytes = 0;
  ASSERT_EQ(MPI_Buffer_detach(static_cast<void*>(&buffer), &bytes), 0);
  EXPECT_EQ(buffer, MPI_BUFFER_AUTOMATIC);
}

TEST_F(Buffered, messages_need_room) {
  const test::ErrorsReturned returned(MPI_COMM_WORLD);
  const test::ErrorsReturned own_returned(MPI_COMM_SELF);
  int value = 1;
  EXPECT_EQ(MPI_Bsend(&value, 1, MPI_INT, right_, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  std::array<char, 16> small{};
  ASSERT_EQ(MPI_Comm_attach_buffer(MPI_COMM_WORLD, small.data(), 16), 0);
  EXPECT_EQ(MPI_Comm_attach_buffer(MPI_COMM_WORLD, small.data(), 16), MPI_ERR_BUFFER);
  EXPECT_EQ(MPI_Bsend(&value, 1, MPI_INT, right_, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  void* buffer = nullptr;
  int bytes = 0;
  EXPECT_EQ(MPI_Comm_detach_buffer(MPI_COMM_WORLD, static_cast<void*>(&buffer), &bytes), 0);
  EXPECT_EQ(MPI_Buffer_attach(small.data(), -1), MPI_ERR_ARG);
}

TEST(ErrorCodes, of_the_program_go_when_nothing_uses_them) {
  const test::ErrorsReturned returned(MPI_COMM_SELF);
  int error_class = 0, code = 0;
  MPI_Add_error_class(&error_class);
  MPI_Add_error_code(error_class, &code);
  MPI_Add_error_string(code, "the program's own");
  EXPECT_EQ(MPI_Remove_error_class(error_class), MPI_ERR_ARG) << "it has a code";
  EXPECT_EQ(MPI_Remove_error_code(code), MPI_ERR_ARG) << "it has a text";
  EXPECT_EQ(MPI_Remove_error_string(code), 0);
  EXPECT_EQ(MPI_Remove_error_code(code), 0);
  EXPECT_EQ(MPI_Remove_error_code(code), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Remove_error_class(error_class), 0);
}

TEST(Abi, says_how_large_its_integers_are_and_keeps_what_fortran_is) {
  const test::ErrorsReturned returned(MPI_COMM_SELF);
  MPI_Info info;
  ASSERT_EQ(MPI_Abi_get_info(&info), 0);
  std::array<char, 8> value{};
  int room = 8, flag = 0;
  MPI_Info_get_string(info, "mpi_count_size", &room, value.data(), &flag);
  EXPECT_EQ(flag, 1);
  EXPECT_STREQ(value.data(), "8");
  MPI_Info_free(&info);

  ASSERT_EQ(MPI_Abi_get_fortran_info(&info), 0);
  EXPECT_EQ(info, MPI_INFO_NULL) << "nobody has said it";
  std::int32_t yes = -1, no = 0;
  ASSERT_EQ(MPI_Abi_get_fortran_booleans(4, &yes, &no, &flag), 0);
  EXPECT_EQ(flag, 0);
  EXPECT_EQ(MPI_Abi_set_fortran_booleans(4, &yes, &no), MPI_ERR_ABI) << "brant has them as 1";
  yes = 1;
  EXPECT_EQ(MPI_Abi_set_fortran_booleans(4, &yes, &no), 0);
  yes = 5;
  ASSERT_EQ(MPI_Abi_get_fortran_booleans(4, &yes, &no, &flag), 0);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(yes, 1);

  MPI_Info sizes;
  MPI_Info_create(&sizes);
  MPI_Info_set(sizes, "mpi_integer_size", "8");
  EXPECT_EQ(MPI_Abi_set_fortran_info(sizes), MPI_ERR_ABI);
  MPI_Info_set(sizes, "mpi_integer_size", "4");
  EXPECT_EQ(MPI_Abi_set_fortran_info(sizes), 0);
  EXPECT_EQ(MPI_Abi_set_fortran_info(sizes), MPI_ERR_ABI) << "once";
  MPI_Info_free(&sizes);
}

TEST(Hosts, are_what_communicators_are_split_by) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory");
  MPI_Comm by_host, guided;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &by_host);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &guided);
  int result = -1;
  MPI_Comm_compare(by_host, guided, &result);
  EXPECT_EQ(result, MPI_CONGRUENT);
  MPI_Comm_free(&guided);
  MPI_Comm_free(&by_host);
  MPI_Info_set(info, "mpi_hw_resource_type", "no such thing");
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &guided);
  EXPECT_EQ(guided, MPI_COMM_NULL);
  MPI_Info_free(&info);
}

}  // namespace
}  // namespace brant::mpi
