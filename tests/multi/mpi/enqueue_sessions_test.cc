// Runs as every rank of a job of two, with an emulated device: calls that streams carry out for sessions, and how those
// end.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "brant/core/device.h"
#include "brant/core/stream.h"
#include "brant/mpi/runtime.h"
#include "test_session.h"

namespace brant::mpi {
namespace {

using test::communicator_of;
using test::open_session;
using test::rank_in;

bool thread_is_there() {
  return std::ranges::any_of(std::filesystem::directory_iterator("/proc/self/task"), [](const auto& task) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    return name == "brant-enqueue";
  });
}

/// A communicator of a session whose calls a stream carries out. What it makes is not freed: the session ends first.
struct Lane {
  Lane() : session(open_session()), stream(runtime().device().create_stream()) {
    MPI_Comm all = communicator_of(session, "mpi://WORLD");
    MPI_Info info = MPI_INFO_NULL;
    void* const native = stream.native();
    MPI_Info_create(&info);
    MPI_Info_set(info, "type", "cudaStream_t");
    MPIX_Info_set_hex(info, "value", static_cast<const void*>(&native), sizeof native);
    EXPECT_EQ(MPIX_Stream_create(info, &handle), 0);
    EXPECT_EQ(MPIX_Stream_comm_create(all, handle, &comm), 0);
    MPI_Info_free(&info);
    MPI_Comm_free(&all);
  }

  /// Rank 0 sends late, so that the other one is at the end of its session by then.
  void exchange(int sent, int* got, int count) const {
    if (rank_in(comm) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      value = {sent, sent};
      EXPECT_EQ(MPIX_Send_enqueue(value.data(), count, MPI_INT, 1, 3, comm), 0);
    } else {
      EXPECT_EQ(MPIX_Recv_enqueue(got, 1, MPI_INT, 0, 3, comm, MPI_STATUS_IGNORE), 0);
    }
  }

  MPI_Session session;
  Stream stream;
  MPIX_Stream handle = MPIX_STREAM_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  mutable std::array<int, 2> value{};
};

TEST(EnqueueInSessions, the_end_of_a_session_waits_for_what_its_streams_were_given) {
  Lane lane;
  int got = -1;
  lane.exchange(42, &got, 1);
  const int rank = rank_in(lane.comm);
  ASSERT_EQ(MPI_Session_finalize(&lane.session), MPI_SUCCESS);
  EXPECT_EQ(lane.session, MPI_SESSION_NULL);
  EXPECT_EQ(got, rank == 1 ? 42 : -1);
}

TEST(EnqueueInSessions, the_end_of_a_session_tells_what_failed_behind_a_call) {
  Lane lane;
  int got = -1;
  lane.exchange(42, &got, 2);
  const bool receives = rank_in(lane.comm) == 1;
  EXPECT_EQ(MPI_Session_finalize(&lane.session), receives ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
  EXPECT_EQ(lane.session, MPI_SESSION_NULL) << "it is over all the same";
}

std::atomic<bool> g_ends{false};
constexpr auto kBefore = std::chrono::milliseconds(400), kUntil = std::chrono::milliseconds(1'500);

/// A process waits for the others at its end, and moves the network without turns there.
TEST(EnqueueInSessions, the_thread_is_gone_before_a_process_waits_for_the_others) {
  Lane lane;
  int got = -1;
  lane.exchange(1, &got, 1);
  const bool ends_first = rank_in(lane.comm) == 0;
  ASSERT_EQ(MPI_Session_finalize(&lane.session), MPI_SUCCESS);
  ASSERT_TRUE(thread_is_there());
  if (!ends_first) {
    ASSERT_EQ(std::atexit([] { std::this_thread::sleep_for(kUntil); }), 0);
    return;
  }
  ASSERT_EQ(std::atexit([] { g_ends.store(true); }), 0);
  std::thread([] {
    while (!g_ends.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(kBefore);
    if (!thread_is_there()) return;
    std::fputs("the thread of enqueued calls is there while the process waits for the others\n", stderr);
    ::_exit(1);
  }).detach();
}

}  // namespace
}  // namespace brant::mpi
