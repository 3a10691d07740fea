// Runs as every rank of a job: performance variables, and the tools interface before MPI_Init and after MPI_Finalize.
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "around_the_job.h"
#include "mpi_job.h"

namespace brant::mpi {
namespace {

using Number = unsigned long long;

int performance_index(const std::string& name, int variable_class = MPI_T_PVAR_CLASS_COUNTER) {
  int index = -1;
  EXPECT_EQ(MPI_T_pvar_get_index(name.c_str(), variable_class, &index), MPI_SUCCESS) << name;
  return index;
}

/// A session as long as it lives.
class Watch {
 public:
  Watch() { EXPECT_EQ(MPI_T_pvar_session_create(&session_), MPI_SUCCESS); }
  ~Watch() { EXPECT_EQ(MPI_T_pvar_session_free(&session_), MPI_SUCCESS); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  [[nodiscard]] MPI_T_pvar_session session() const { return session_; }
  MPI_T_pvar_handle add(int index) {
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    int count = 0;
    EXPECT_EQ(MPI_T_pvar_handle_alloc(session_, index, nullptr, &handle, &count), MPI_SUCCESS);
    EXPECT_EQ(count, 1);
    return handle;
  }
  Number read(MPI_T_pvar_handle handle) {
    Number value = ~Number{0};
    EXPECT_EQ(MPI_T_pvar_read(session_, handle, &value), MPI_SUCCESS);
    return value;
  }
  void start(MPI_T_pvar_handle handle = MPI_T_PVAR_ALL_HANDLES) {
    EXPECT_EQ(MPI_T_pvar_start(session_, handle), MPI_SUCCESS);
  }
  void stop(MPI_T_pvar_handle handle = MPI_T_PVAR_ALL_HANDLES) {
    EXPECT_EQ(MPI_T_pvar_stop(session_, handle), MPI_SUCCESS);
  }

 private:
  MPI_T_pvar_session session_ = MPI_T_PVAR_SESSION_NULL;
};

/// One column of the counters over all paths.
class Column {
 public:
  Column(Watch& watch, const std::string& name) : watch_(watch) {
    for (const char* path : {"ucx", "shm", "staged", "copy_engine", "courier", "kernel"})
      handles_.push_back(watch.add(performance_index("brant_path_" + std::string(path) + "_" + name)));
  }
  [[nodiscard]] Number sum() {
    Number sum = 0;
    for (MPI_T_pvar_handle handle : handles_) sum += watch_.read(handle);
    return sum;
  }

 private:
  Watch& watch_;
  std::vector<MPI_T_pvar_handle> handles_;
};

// Around the job
// -------------------------------------------------------------------------------------------------------------------

MPI_T_pvar_session g_session = MPI_T_PVAR_SESSION_NULL;
MPI_T_pvar_handle g_progress_calls = MPI_T_PVAR_HANDLE_NULL;
MPI_T_pvar_handle g_requests = MPI_T_PVAR_HANDLE_NULL;

Number read_around(MPI_T_pvar_handle handle) {
  Number value = ~Number{0};
  EXPECT_EQ(MPI_T_pvar_read(g_session, handle, &value), MPI_SUCCESS);
  return value;
}

void refuse_all_outside() {
  int number = 0;
  EXPECT_EQ(MPI_T_pvar_get_num(&number), MPI_T_ERR_NOT_INITIALIZED);
  EXPECT_EQ(MPI_T_cvar_get_num(&number), MPI_T_ERR_NOT_INITIALIZED);
  EXPECT_EQ(MPI_T_category_get_num(&number), MPI_T_ERR_NOT_INITIALIZED);
  EXPECT_EQ(MPI_T_event_get_num(&number), MPI_T_ERR_NOT_INITIALIZED);
  EXPECT_EQ(MPI_T_source_get_num(&number), MPI_T_ERR_NOT_INITIALIZED);
  EXPECT_EQ(MPI_T_event_read(nullptr, 0, nullptr), MPI_T_ERR_NOT_INITIALIZED);
  EXPECT_EQ(MPI_T_pvar_session_create(&g_session), MPI_T_ERR_NOT_INITIALIZED);
  EXPECT_EQ(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
}

}  // namespace

void test::AroundTheJob::before() {
  refuse_all_outside();
  int provided = -1, flag = -1;
  ASSERT_EQ(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided), MPI_SUCCESS);
  const bool shares_process = std::getenv("BRANT_MPI_RANKS") != nullptr;
  EXPECT_EQ(provided, shares_process ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE);
  EXPECT_EQ(MPI_T_init_thread(MPI_THREAD_SINGLE, nullptr), MPI_SUCCESS);
  EXPECT_EQ(MPI_T_finalize(), MPI_SUCCESS);
  MPI_Initialized(&flag);
  EXPECT_EQ(flag, 0);

  ASSERT_EQ(MPI_T_pvar_session_create(&g_session), MPI_SUCCESS);
  const int requests = performance_index("brant_requests_under_way", MPI_T_PVAR_CLASS_LEVEL);
  EXPECT_EQ(MPI_T_pvar_handle_alloc(g_session, performance_index("brant_progress_calls"), nullptr, &g_progress_calls,
                                    nullptr),
            MPI_SUCCESS);
  EXPECT_EQ(MPI_T_pvar_handle_alloc(g_session, requests, nullptr, &g_requests, nullptr), MPI_SUCCESS);
  EXPECT_EQ(MPI_T_pvar_start(g_session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
  EXPECT_EQ(read_around(g_requests), 0u);
  EXPECT_EQ(MPI_T_pvar_stop(g_session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
  EXPECT_EQ(MPI_T_pvar_start(g_session, g_progress_calls), MPI_SUCCESS);
}

void test::AroundTheJob::after() {
  int flag = 0;
  MPI_Finalized(&flag);
  EXPECT_EQ(flag, 1);
  const Number calls = read_around(g_progress_calls);
  EXPECT_GT(calls, 0u) << "counters go on counting from where they were";
  EXPECT_EQ(read_around(g_requests), 0u);
  EXPECT_EQ(MPI_T_pvar_reset(g_session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
  EXPECT_LE(read_around(g_progress_calls), calls);
  EXPECT_EQ(MPI_T_finalize(), MPI_SUCCESS);
  refuse_all_outside();

  // All handles went with the last call.
  EXPECT_EQ(MPI_T_init_thread(MPI_THREAD_SINGLE, &flag), MPI_SUCCESS);
  Number value = 0;
  EXPECT_EQ(MPI_T_pvar_read(g_session, g_progress_calls, &value), MPI_T_ERR_INVALID_SESSION);
  EXPECT_EQ(MPI_T_finalize(), MPI_SUCCESS);
}

namespace {

// Performance variables
// -------------------------------------------------------------------------------------------------------------------

TEST(ToolCounters, describe_all_performance_variables) {
  int count = 0;
  ASSERT_EQ(MPI_T_pvar_get_num(&count), MPI_SUCCESS);
  ASSERT_GT(count, 20);
  Watch watch;
  std::set<std::string> names;
  for (int i = 0; i < count; ++i) {
    char name[128], description[512];
    int name_length = sizeof name, description_length = sizeof description, verbosity = 0, variable_class = 0;
    int bind = 0, readonly = -1, continuous = -1, atomic = -1;
    MPI_Datatype datatype = MPI_DATATYPE_NULL;
    MPI_T_enum list = MPI_T_ENUM_NULL;
    ASSERT_EQ(MPI_T_pvar_get_info(i, name, &name_length, &verbosity, &variable_class, &datatype, &list, description,
                                  &description_length, &bind, &readonly, &continuous, &atomic),
              MPI_SUCCESS);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(performance_index(name, variable_class), i);
    EXPECT_NE(description[0], 0) << name;
    EXPECT_LE(description_length, static_cast<int>(sizeof description)) << name;
    EXPECT_EQ(bind, MPI_T_BIND_NO_OBJECT);
    EXPECT_EQ(datatype, MPI_UNSIGNED_LONG_LONG);

    MPI_T_pvar_handle handle = watch.add(i);
    const bool fixed = variable_class != MPI_T_PVAR_CLASS_COUNTER;
    EXPECT_EQ(readonly, fixed);
    EXPECT_EQ(continuous, fixed);
    EXPECT_EQ(atomic, !fixed);
    Number value = 5;
    const int no_start = fixed ? int{MPI_T_ERR_PVAR_NO_STARTSTOP} : int{MPI_SUCCESS};
    const int no_write = fixed ? int{MPI_T_ERR_PVAR_NO_WRITE} : int{MPI_SUCCESS};
    EXPECT_EQ(MPI_T_pvar_start(watch.session(), handle), no_start) << name;
    EXPECT_EQ(MPI_T_pvar_stop(watch.session(), handle), no_start) << name;
    EXPECT_EQ(MPI_T_pvar_reset(watch.session(), handle), no_write) << name;
    EXPECT_EQ(MPI_T_pvar_write(watch.session(), handle, &value), no_write) << name;
    EXPECT_EQ(MPI_T_pvar_readreset(watch.session(), handle, &value), no_write) << name;
    EXPECT_EQ(value, 5u) << name;
    if (!fixed) {
      EXPECT_EQ(watch.read(handle), 0u) << name;
    }
  }
}

TEST(ToolCounters, count_while_they_are_started) {
  Watch watch, other;
  const int index = performance_index("brant_progress_calls");
  MPI_T_pvar_handle handle = watch.add(index), second = watch.add(index), apart = other.add(index);
  const auto move = [] {
    int flag = 0;
    for (int i = 0; i < 10; ++i)
      ASSERT_EQ(MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE), MPI_SUCCESS);
  };
  move();
  EXPECT_EQ(watch.read(handle), 0u) << "it was not started";
  watch.start(handle);
  move();
  const Number counted = watch.read(handle);
  EXPECT_GE(counted, 10u);
  EXPECT_EQ(watch.read(second), 0u);
  watch.start(handle);  // for the second time
  EXPECT_GE(watch.read(handle), counted);
  watch.stop(handle);
  const Number stopped = watch.read(handle);
  EXPECT_GE(stopped, counted);
  move();
  EXPECT_EQ(watch.read(handle), stopped);
  watch.start();
  move();
  EXPECT_GE(watch.read(handle), stopped + 10);
  EXPECT_GE(watch.read(second), 10u);
  EXPECT_EQ(other.read(apart), 0u);

  const Number value = 1'000'000;
  watch.stop();
  EXPECT_EQ(MPI_T_pvar_write(watch.session(), handle, &value), MPI_SUCCESS);
  EXPECT_EQ(watch.read(handle), value);
  watch.start();
  move();
  EXPECT_GE(watch.read(handle), value + 10);
  Number read = 0;
  EXPECT_EQ(MPI_T_pvar_readreset(watch.session(), handle, &read), MPI_SUCCESS);
  EXPECT_GE(read, value + 10);
  EXPECT_LT(watch.read(handle), value);
  watch.stop();
  EXPECT_EQ(MPI_T_pvar_reset(watch.session(), MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
  EXPECT_EQ(watch.read(handle), 0u);
  EXPECT_EQ(watch.read(second), 0u);
}

TEST(ToolCounters, find_sessions_and_handles_that_are_none) {
  const int index = performance_index("brant_sleeps");
  Watch watch, other;
  MPI_T_pvar_handle handle = watch.add(index);
  Number value = 0;
  EXPECT_EQ(MPI_T_pvar_read(other.session(), handle, &value), MPI_T_ERR_INVALID_HANDLE) << "it is of another session";
  EXPECT_EQ(MPI_T_pvar_handle_free(other.session(), &handle), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_pvar_read(MPI_T_PVAR_SESSION_NULL, handle, &value), MPI_T_ERR_INVALID_SESSION);
  EXPECT_EQ(MPI_T_pvar_read(watch.session(), MPI_T_PVAR_HANDLE_NULL, &value), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_pvar_read(watch.session(), MPI_T_PVAR_ALL_HANDLES, &value), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_pvar_readreset(watch.session(), MPI_T_PVAR_ALL_HANDLES, &value), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_pvar_write(watch.session(), MPI_T_PVAR_ALL_HANDLES, &value), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_pvar_read(watch.session(), handle, nullptr), MPI_T_ERR_INVALID);
  EXPECT_EQ(MPI_T_pvar_write(watch.session(), handle, nullptr), MPI_T_ERR_INVALID);
  EXPECT_EQ(MPI_T_pvar_start(MPI_T_PVAR_SESSION_NULL, MPI_T_PVAR_ALL_HANDLES), MPI_T_ERR_INVALID_SESSION);

  MPI_T_pvar_handle freed = handle;
  EXPECT_EQ(MPI_T_pvar_handle_free(watch.session(), &handle), MPI_SUCCESS);
  EXPECT_EQ(handle, MPI_T_PVAR_HANDLE_NULL);
  EXPECT_EQ(MPI_T_pvar_read(watch.session(), freed, &value), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_pvar_start(watch.session(), freed), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_pvar_handle_free(watch.session(), &freed), MPI_T_ERR_INVALID_HANDLE);

  MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
  EXPECT_EQ(MPI_T_pvar_session_free(&session), MPI_T_ERR_INVALID_SESSION);
  EXPECT_EQ(MPI_T_pvar_session_free(nullptr), MPI_T_ERR_INVALID);
  EXPECT_EQ(MPI_T_pvar_session_create(nullptr), MPI_T_ERR_INVALID);
  ASSERT_EQ(MPI_T_pvar_session_create(&session), MPI_SUCCESS);
  EXPECT_EQ(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS) << "a session without handles";
  MPI_T_pvar_session gone = session;
  EXPECT_EQ(MPI_T_pvar_handle_alloc(session, -1, nullptr, &handle, nullptr), MPI_T_ERR_INVALID_INDEX);
  EXPECT_EQ(MPI_T_pvar_handle_alloc(session, index, nullptr, nullptr, nullptr), MPI_T_ERR_INVALID);
  EXPECT_EQ(MPI_T_pvar_session_free(&session), MPI_SUCCESS);
  EXPECT_EQ(MPI_T_pvar_session_free(&gone), MPI_T_ERR_INVALID_SESSION);
  EXPECT_EQ(MPI_T_pvar_handle_alloc(gone, index, nullptr, &handle, nullptr), MPI_T_ERR_INVALID_SESSION);

  int found = 0;
  EXPECT_EQ(MPI_T_pvar_get_index("brant_sleeps", MPI_T_PVAR_CLASS_LEVEL, &found), MPI_T_ERR_INVALID_NAME);
  EXPECT_EQ(MPI_T_pvar_get_index("sleeps", MPI_T_PVAR_CLASS_COUNTER, &found), MPI_T_ERR_INVALID_NAME);
  EXPECT_EQ(MPI_T_pvar_get_index(nullptr, MPI_T_PVAR_CLASS_COUNTER, &found), MPI_T_ERR_INVALID);
  EXPECT_EQ(MPI_T_pvar_get_num(nullptr), MPI_T_ERR_INVALID);
  EXPECT_EQ(MPI_T_pvar_get_info(10'000, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                nullptr, nullptr, nullptr),
            MPI_T_ERR_INVALID_INDEX);
}

/// Each rank sends to the next one, which posts its receives when all has come.
class Traffic : public testing::Test {
 protected:
  static constexpr int kMessages = 20, kBytes = 1000;

  [[nodiscard]] MPI_T_pvar_handle level(const char* name) {
    return watch_.add(performance_index(name, MPI_T_PVAR_CLASS_LEVEL));
  }
  void send_all() {
    for (int i = 0; i < kMessages; ++i)
      ASSERT_EQ(MPI_Send(data_.data(), kBytes, MPI_BYTE, right_, 5, MPI_COMM_WORLD), MPI_SUCCESS);
  }
  /// What was sent before it has come, since messages of a pair keep their order.
  void wait_for_the_last() {
    ASSERT_EQ(MPI_Send(nullptr, 0, MPI_BYTE, right_, 6, MPI_COMM_WORLD), MPI_SUCCESS);
    ASSERT_EQ(MPI_Recv(nullptr, 0, MPI_BYTE, left_, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_SUCCESS);
  }
  void receive_all() {
    std::vector<std::uint8_t> got(kBytes);
    for (int i = 0; i < kMessages; ++i)
      ASSERT_EQ(MPI_Recv(got.data(), kBytes, MPI_BYTE, left_, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(got, data_);
  }

  const int self_ = test::rank(), size_ = test::size();
  const int right_ = (self_ + 1) % size_, left_ = (self_ + size_ - 1) % size_;
  const std::vector<std::uint8_t> data_ = test::pattern(kBytes, 3);
  Watch watch_;
};

TEST_F(Traffic, that_has_no_receive_is_seen) {
  MPI_T_pvar_handle messages = level("brant_early_messages"), bytes = level("brant_early_bytes");
  EXPECT_EQ(watch_.read(messages), 0u);
  EXPECT_EQ(watch_.read(bytes), 0u);
  MPI_Barrier(MPI_COMM_WORLD);
  send_all();
  wait_for_the_last();
  EXPECT_EQ(watch_.read(messages), Number{kMessages});
  EXPECT_EQ(watch_.read(bytes), Number{kMessages} * kBytes);
  receive_all();
  EXPECT_EQ(watch_.read(messages), 0u);
  EXPECT_EQ(watch_.read(bytes), 0u);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_F(Traffic, that_is_awaited_is_seen) {
  MPI_T_pvar_handle posted = level("brant_receives_posted"), requests = level("brant_requests_under_way");
  const Number posted_before = watch_.read(posted), requests_before = watch_.read(requests);
  std::vector<MPI_Request> receives(7);
  for (MPI_Request& one : receives)
    ASSERT_EQ(MPI_Irecv(nullptr, 0, MPI_BYTE, left_, 8, MPI_COMM_WORLD, &one), MPI_SUCCESS);
  EXPECT_EQ(watch_.read(posted), posted_before + 7);
  EXPECT_EQ(watch_.read(requests), requests_before + 7);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 7; ++i) ASSERT_EQ(MPI_Send(nullptr, 0, MPI_BYTE, right_, 8, MPI_COMM_WORLD), MPI_SUCCESS);
  ASSERT_EQ(MPI_Waitall(7, receives.data(), MPI_STATUSES_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(watch_.read(posted), posted_before);
  EXPECT_EQ(watch_.read(requests), requests_before);
  MPI_Barrier(MPI_COMM_WORLD);
}

/// Ranks of one process hand messages over without a path, so only those between processes are counted.
TEST_F(Traffic, between_processes_is_counted_with_its_bytes) {
  const Number here = watch_.read(watch_.add(performance_index("brant_ranks_here", MPI_T_PVAR_CLASS_SIZE)));
  ASSERT_GE(here, 1u);
  const bool alone = here == 1 && size_ > 1;
  Column sends(watch_, "sends"), bytes_sent(watch_, "bytes_sent");
  Column receives(watch_, "receives"), bytes_received(watch_, "bytes_received");
  watch_.start();
  MPI_Barrier(MPI_COMM_WORLD);  // nobody sends before all count
  send_all();
  wait_for_the_last();
  receive_all();
  MPI_Barrier(MPI_COMM_WORLD);
  // A send over a network is counted when the network says that it has gone, which may be later than it has come.
  const auto sent = [&] { return sends.sum() >= Number{kMessages + 1}; };
  for (int looks = 0; alone && !sent() && looks < 100'000; ++looks) {
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  }
  watch_.stop();
  if (!alone) GTEST_SKIP() << "several ranks live in this process, or there is one process";
  EXPECT_GE(sends.sum(), Number{kMessages + 1});
  EXPECT_LT(sends.sum(), 3 * Number{kMessages});
  EXPECT_GE(bytes_sent.sum(), Number{kMessages} * kBytes);
  EXPECT_LT(bytes_sent.sum(), 2 * Number{kMessages} * kBytes);
  EXPECT_GE(receives.sum(), Number{kMessages + 1});
  EXPECT_GE(bytes_received.sum(), Number{kMessages} * kBytes);
}

}  // namespace
}  // namespace brant::mpi
