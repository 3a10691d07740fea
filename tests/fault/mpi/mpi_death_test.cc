// A rank of an MPI job dies by SIGKILL. Whatever waits for it ends with MPI_ERR_PROC_ABORTED within a second, through
// the error handler; the survivors go on with each other.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "brant/core/device.h"
#include "brant/core/stream.h"
#include "brant/mpi/mpi.h"
#include "brant/mpi/runtime.h"
#include "support/environment.h"
#include "support/killed_process.h"

namespace brant {
namespace {

using test::fail;

constexpr int kDying = 1;

int rank_here() {
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/// In the dying rank: lets the others come to where they wait.
void move_on(std::chrono::milliseconds time) {
  static_cast<void>(mpi::runtime().worker().wait_until([] { return false; }, time));
}

void expect_aborted(int code, const char* what) {
  int error_class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
  if (error_class == MPI_ERR_PROC_ABORTED) return;
  std::fprintf(stderr, "the error class is %d\n", error_class);
  fail(rank_here(), what);
}

void receives(int self) {
  if (self == kDying) {
    move_on(std::chrono::milliseconds(50));
    test::die();
  }
  std::array<MPI_Request, 4> requests;
  std::array<int, 4> values{};
  MPI_Irecv(&values[0], 1, MPI_INT, kDying, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&values[1], 1, MPI_INT, kDying, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[1]);
  MPI_Irecv(&values[2], 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &requests[2]);
  MPI_Issend(&values[3], 1, MPI_INT, kDying, 3, MPI_COMM_WORLD, &requests[3]);
  for (MPI_Request& request : requests) expect_aborted(MPI_Wait(&request, MPI_STATUS_IGNORE), "a wait did not fail");
}

void probes(int self) {
  if (self == kDying) {
    move_on(std::chrono::milliseconds(50));
    test::die();
  }
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  int flag = 0;
  expect_aborted(MPI_Probe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status), "a probe for anybody was not told");
  expect_aborted(MPI_Probe(kDying, 1, MPI_COMM_WORLD, &status), "a probe did not fail");
  expect_aborted(MPI_Mprobe(kDying, 1, MPI_COMM_WORLD, &message, &status), "a matched probe did not fail");
  expect_aborted(MPI_Iprobe(kDying, 1, MPI_COMM_WORLD, &flag, &status), "a look did not fail");
}

void partitions(int self) {
  std::array<int, 4> values{};
  MPI_Request request = MPI_REQUEST_NULL;
  if (self == kDying) {
    MPI_Psend_init(values.data(), 4, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    move_on(std::chrono::milliseconds(50));
    test::die();
  }
  MPI_Precv_init(values.data(), 4, 1, MPI_INT, kDying, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  int flag = 0;
  int code = MPI_SUCCESS;
  while (code == MPI_SUCCESS && flag == 0) code = MPI_Parrived(request, 2, &flag);
  expect_aborted(code, "a partition that nobody sent has come");
  expect_aborted(MPI_Wait(&request, MPI_STATUS_IGNORE), "a receive of partitions did not fail");
  MPI_Request_free(&request);
}

void large_messages(int self) {
  std::vector<char> data(std::size_t{8} << 20);
  const auto count = static_cast<int>(data.size());
  if (self == kDying) {
    MPI_Request request;
    MPI_Irecv(data.data(), count, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &request);  // may be on its way
    int flag = 0;
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    test::die();
  }
  std::vector<char> landing(data.size());
  std::array<MPI_Request, 2> requests;
  MPI_Irecv(landing.data(), count, MPI_CHAR, kDying, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(data.data(), count, MPI_CHAR, kDying, 1, MPI_COMM_WORLD, &requests[1]);
  for (MPI_Request& request : requests) {
    const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (&request != &requests[1] || code != MPI_SUCCESS) expect_aborted(code, "a large message did not fail");
  }
}

/// Small messages leave at once, until the window is full; none of the sends may hang.
void flood(int self) {
  if (self == kDying) {
    move_on(std::chrono::milliseconds(100));
    test::die();
  }
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::vector<char> data(1000);
  int code = MPI_SUCCESS;
  while (code == MPI_SUCCESS) {
    code = MPI_Send(data.data(), static_cast<int>(data.size()), MPI_CHAR, kDying, 1, MPI_COMM_WORLD);
    if (std::chrono::steady_clock::now() > give_up) fail(self, "the death was never told");
  }
  expect_aborted(code, "a send of the flood failed for another reason");
}

void collectives(int self) {
  int value = self;
  int sum = 0;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (sum != 3) fail(self, "the sum is wrong");
  if (self == kDying) {
    move_on(std::chrono::milliseconds(50));
    test::die();
  }
  expect_aborted(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), "a reduction did not fail");
  MPI_Request request;
  const int code = MPI_Ibarrier(MPI_COMM_WORLD, &request);
  expect_aborted(code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE), "a barrier did not fail");
}

/// The dying rank has locked the others' memory.
void locks(int self) {
  int* memory = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&memory), &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  *memory = 7;
  MPI_Barrier(MPI_COMM_WORLD);
  if (self == kDying) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, window);
    MPI_Win_flush_all(window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (self == kDying) test::die();
  const int other = 2 - self;
  int value = 0;
  if (MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, window) != MPI_SUCCESS) fail(self, "the lock of a dead rank stays");
  MPI_Get(&value, 1, MPI_INT, other, 0, 1, MPI_INT, window);
  if (MPI_Win_unlock(other, window) != MPI_SUCCESS || value != 7) fail(self, "the survivors' memory is gone");
  const int code = MPI_Win_lock(MPI_LOCK_SHARED, kDying, 0, window);
  expect_aborted(code != MPI_SUCCESS ? code : MPI_Win_unlock(kDying, window), "a dead rank gave a lock");
}

/// Streams wait for the dead: they go on, and the program is told.
void streams(int self) {
  Stream stream = mpi::runtime().device().create_stream();
  void* const native = stream.native();
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "type", "cudaStream_t");
  MPIX_Info_set_hex(info, "value", static_cast<const void*>(&native), sizeof native);
  MPIX_Stream handle = MPIX_STREAM_NULL;
  MPIX_Stream_create(info, &handle);
  MPI_Info_free(&info);
  MPI_Comm comm = MPI_COMM_NULL;
  MPIX_Stream_comm_create(MPI_COMM_WORLD, handle, &comm);
  if (self == kDying) {
    move_on(std::chrono::milliseconds(50));
    test::die();
  }
  int value = 0;
  MPIX_Recv_enqueue(&value, 1, MPI_INT, kDying, 1, comm, MPI_STATUS_IGNORE);
  if (stream.synchronize() != Status::ok) fail(self, "the stream failed");
  expect_aborted(MPI_Send(&value, 1, MPI_INT, self, 1, comm), "the receive was not told of");
  int sum = 0;
  MPIX_Allreduce_enqueue(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
  if (stream.synchronize() != Status::ok) fail(self, "the stream failed");
  expect_aborted(MPI_Comm_free(&comm), "the collective was not told of");
  if (MPIX_Stream_free(&handle) != MPI_SUCCESS) fail(self, "the stream was not freed");
}

struct Scene {
  std::string_view name;
  void (*play)(int self);
};
constexpr Scene kScenes[] = {{"receives", receives},     {"probes", probes},
                             {"partitions", partitions}, {"large_messages", large_messages},
                             {"flood", flood},           {"collectives", collectives},
                             {"locks", locks},           {"streams", streams}};

/// A communicator of the survivors works as any other.
void go_on(int self) {
  const int other = 2 - self;
  int got = -1;
  MPI_Sendrecv(&self, 1, MPI_INT, other, 9, &got, 1, MPI_INT, other, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (got != other) fail(self, "the survivors lost each other");
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group survivors = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_excl(all, 1, &kDying, &survivors);
  MPI_Comm rest = MPI_COMM_NULL;
  if (MPI_Comm_create_group(MPI_COMM_WORLD, survivors, 1, &rest) != MPI_SUCCESS) fail(self, "no communicator is made");
  int sum = 0;
  if (MPI_Allreduce(&self, &sum, 1, MPI_INT, MPI_SUM, rest) != MPI_SUCCESS || sum != 2) fail(self, "the sum is wrong");
  MPI_Comm_free(&rest);
  MPI_Group_free(&survivors);
  MPI_Group_free(&all);
}

int play(const std::string& name) {
  MPI_Init(nullptr, nullptr);
  const int self = rank_here();
  if (name != "fatal") MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const std::string_view scene = name == "fatal" ? "receives" : std::string_view(name);
  std::ranges::find(kScenes, scene, &Scene::name)->play(self);
  test::say_if_late();
  go_on(self);
  MPI_Finalize();
  std::printf("survived\n");
  return 0;
}

TEST(MpiDeath, what_waits_for_its_messages_ends) { test::expect_survivors("receives"); }
TEST(MpiDeath, what_looks_for_its_messages_ends) { test::expect_survivors("probes"); }
TEST(MpiDeath, partitions_that_it_has_not_sent_do_not_come) { test::expect_survivors("partitions"); }
TEST(MpiDeath, large_messages_end) { test::expect_survivors("large_messages"); }
TEST(MpiDeath, whoever_floods_it_is_told) { test::expect_survivors("flood"); }
TEST(MpiDeath, collectives_end) { test::expect_survivors("collectives"); }
TEST(MpiDeath, its_locks_are_let_go) { test::expect_survivors("locks"); }

TEST(MpiDeath, streams_that_wait_for_it_go_on) {
  const test::ScopedVariable device("BRANT_GPU", "emulated");
  test::expect_survivors("streams");
}

TEST(MpiDeath, is_the_end_of_a_job_that_handles_no_errors) {
  test::expect_of_plays("fatal", 3, [](const std::string& text, int code) {
    EXPECT_EQ(text.find("survived"), std::string::npos) << text;
    EXPECT_NE(text.find("MPI_ERR_PROC_ABORTED"), std::string::npos) << text;
    EXPECT_NE(code, 0) << text;
  });
}

/// The child processes of the test play their scene before any test runs.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): without it there is no test
const testing::Environment* const g_environment = testing::AddGlobalTestEnvironment(new test::SceneEnvironment(play));

}  // namespace
}  // namespace brant
