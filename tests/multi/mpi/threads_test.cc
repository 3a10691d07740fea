#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "brant/mpi/mpi.h"
#include "mpi_job.h"

/// Threads that call MPI at any time (MPI_THREAD_MULTIPLE).
namespace brant::mpi {
namespace {

using test::rank;
using test::size;

constexpr int kThreads = 4;

template <typename Body>
void in_threads(int count, const Body& body) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  for (int t = 0; t < count; ++t) threads.emplace_back([&body, t] { body(t); });
  for (std::thread& thread : threads) thread.join();
}

int next() { return (rank() + 1) % size(); }
int previous() { return (rank() + size() - 1) % size(); }

TEST(Threads, HaveTheHighestLevelAndOneOfThemIsTheMainThread) {
  int level = -1;
  MPI_Query_thread(&level);
  EXPECT_EQ(level, MPI_THREAD_MULTIPLE);
  std::array<int, kThreads> is_main{};
  in_threads(kThreads, [&](int t) { MPI_Is_thread_main(&is_main[static_cast<std::size_t>(t)]); });
  EXPECT_EQ(std::accumulate(is_main.begin(), is_main.end(), 0), 0);
  int main = 0;
  MPI_Is_thread_main(&main);
  EXPECT_EQ(main, 1);
}

TEST(Threads, ExchangeMessagesOfAllSizesByTheirOwnTags) {
  in_threads(kThreads, [](int t) {
    for (int round = 0; round < 200; ++round) {
      const int count = round % 10 == 0 ? 20'000 : round;
      std::vector<int> given(static_cast<std::size_t>(count), rank() * 1000 + t + round);
      std::vector<int> got(given.size(), -1);
      MPI_Status status;
      MPI_Sendrecv(given.data(), count, MPI_INT, next(), t, got.data(), count, MPI_INT, previous(), t, MPI_COMM_WORLD,
                   &status);
      const bool all = std::ranges::all_of(got, [&](int one) { return one == previous() * 1000 + t + round; });
      ASSERT_TRUE(all) << "thread " << t << ", round " << round;
      ASSERT_EQ(status.MPI_TAG, t);
    }
  });
}

/// Each message has one reader, whichever thread it is.
TEST(Threads, ShareTheMessagesOfAnySource) {
  constexpr int kMessages = 2'000;
  std::atomic<int> left = kMessages;
  std::atomic<std::int64_t> sum = 0;
  std::thread sender([] {
    for (int i = 0; i < kMessages; ++i) {
      const std::vector<int> data(static_cast<std::size_t>(1 + i % 7), i);
      MPI_Send(data.data(), static_cast<int>(data.size()), MPI_INT, next(), 17, MPI_COMM_WORLD);
    }
  });
  in_threads(kThreads, [&](int) {
    while (left.fetch_sub(1) > 0) {
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      MPI_Mprobe(MPI_ANY_SOURCE, 17, MPI_COMM_WORLD, &message, &status);
      int count = 0;
      MPI_Get_count(&status, MPI_INT, &count);
      std::vector<int> data(static_cast<std::size_t>(count), -1);
      MPI_Mrecv(data.data(), count, MPI_INT, &message, MPI_STATUS_IGNORE);
      EXPECT_EQ(count, 1 + data[0] % 7);
      sum += data[0];
    }
  });
  sender.join();
  EXPECT_EQ(sum, std::int64_t{kMessages} * (kMessages - 1) / 2);
}

TEST(Threads, CallCollectivesOnCommunicatorsOfTheirOwn) {
  std::array<MPI_Comm, kThreads> comms{};
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  in_threads(kThreads, [&](int t) {
    MPI_Comm comm = comms[static_cast<std::size_t>(t)];
    for (int round = 0; round < 200; ++round) {
      std::int64_t value = rank() + t * 100 + round;
      std::int64_t total = -1;
      MPI_Allreduce(&value, &total, 1, MPI_INT64_T, MPI_SUM, comm);
      ASSERT_EQ(total, std::int64_t{size()} * (size() - 1) / 2 + std::int64_t{size()} * (t * 100 + round));
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Ibarrier(comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  });
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

/// Ranks come to it in different orders: each thread of a rank starts late in its turn.
TEST(Threads, MakeCommunicatorsAtTheSameTime) {
  std::array<MPI_Comm, kThreads> parents{};
  for (MPI_Comm& comm : parents) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  in_threads(kThreads, [&](int t) {
    MPI_Comm parent = parents[static_cast<std::size_t>(t)];
    for (int round = 0; round < 40; ++round) {
      if ((rank() + t + round) % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
      MPI_Comm copy = MPI_COMM_NULL;
      if (round % 2 == 0) {
        MPI_Comm_dup(parent, &copy);
      } else {
        MPI_Comm_split(parent, 0, size() - rank(), &copy);
      }
      const int given = t * 1000 + round;
      int got = -1;
      int own = -1;
      MPI_Comm_rank(copy, &own);
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Irecv(&got, 1, MPI_INT, (own + 1) % size(), 0, copy, &request);
      MPI_Send(&given, 1, MPI_INT, (own + size() - 1) % size(), 0, copy);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      ASSERT_EQ(got, given) << "a message of another communicator";
      int total = -1;
      MPI_Allreduce(&given, &total, 1, MPI_INT, MPI_SUM, copy);
      ASSERT_EQ(total, given * size());
      MPI_Comm_free(&copy);
    }
  });
  for (MPI_Comm& comm : parents) MPI_Comm_free(&comm);
}

/// Groups of one communicator make theirs by tags alone.
TEST(Threads, MakeCommunicatorsOfOneParentByTags) {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  in_threads(kThreads, [&](int t) {
    for (int round = 0; round < 40; ++round) {
      if ((rank() + t + round) % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
      MPI_Comm made = MPI_COMM_NULL;
      MPI_Comm_create_group(MPI_COMM_WORLD, all, t, &made);
      int value = t;
      MPI_Bcast(&value, 1, MPI_INT, 0, made);
      ASSERT_EQ(value, t);
      int total = 0;
      MPI_Allreduce(&t, &total, 1, MPI_INT, MPI_SUM, made);
      ASSERT_EQ(total, t * size());
      MPI_Comm_free(&made);
    }
  });
  MPI_Group_free(&all);
}

/// One thread makes a communicator with a partner who comes only after another thread has made a later one.
TEST(Threads, MakeCommunicatorsBesideOneThatWaits) {
  std::array<MPI_Comm, 2> parents{};
  for (MPI_Comm& comm : parents) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::array<MPI_Comm, 2> copies{};
  if (rank() == 0) {
    std::thread early([&] { MPI_Comm_dup(parents[0], &copies[0]); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    MPI_Comm_dup(parents[1], &copies[1]);
    early.join();
  } else {
    MPI_Comm_dup(parents[1], &copies[1]);
    MPI_Comm_dup(parents[0], &copies[0]);
  }
  for (MPI_Comm& comm : copies) MPI_Comm_free(&comm);
  for (MPI_Comm& comm : parents) MPI_Comm_free(&comm);
}

/// A thread that sleeps in a receive hears of what another thread of its process sends.
TEST(Threads, WakeEachOther) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRounds = 20;
  Clock::duration longest{0};
  std::atomic<Clock::rep> sent_at = 0;
  std::thread receiver([&] {
    for (int round = 0; round < kRounds; ++round) {
      int got = -1;
      MPI_Recv(&got, 1, MPI_INT, rank(), 23, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      longest = std::max(longest, Clock::now().time_since_epoch() - Clock::duration(sent_at.load()));
      EXPECT_EQ(got, round);
      MPI_Send(&got, 1, MPI_INT, rank(), 24, MPI_COMM_WORLD);
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // it sleeps by then
    sent_at = Clock::now().time_since_epoch().count();
    MPI_Send(&round, 1, MPI_INT, rank(), 23, MPI_COMM_WORLD);
    int back = -1;
    MPI_Recv(&back, 1, MPI_INT, rank(), 24, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQ(back, round);
  }
  receiver.join();
  EXPECT_LT(longest, std::chrono::milliseconds(90)) << "it slept on until something else woke it";
}

/// Two threads sleep, and messages of the network come for either.
TEST(Threads, SleepBesideEachOther) {
  constexpr int kRounds = 20;
  std::thread sender([] {
    for (int round = 0; round < kRounds; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      for (const int tag : {31 + round % 2, 32 - round % 2}) MPI_Send(&round, 1, MPI_INT, next(), tag, MPI_COMM_WORLD);
    }
  });
  in_threads(2, [](int t) {
    for (int round = 0; round < kRounds; ++round) {
      int got = -1;
      MPI_Recv(&got, 1, MPI_INT, previous(), 31 + t, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      ASSERT_EQ(got, round);
    }
  });
  sender.join();
}

TEST(Threads, AddToOneWindow) {
  MPI_Win window = MPI_WIN_NULL;
  std::int64_t* base = nullptr;
  MPI_Win_allocate(2 * sizeof(std::int64_t), sizeof(std::int64_t), MPI_INFO_NULL, MPI_COMM_WORLD,
                   static_cast<void*>(&base), &window);
  base[0] = 0;
  base[1] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  constexpr int kAdds = 200;
  in_threads(kThreads, [&](int) {
    for (int i = 0; i < kAdds; ++i) {
      const std::int64_t one = 1;
      std::int64_t before = -1;
      MPI_Fetch_and_op(&one, &before, MPI_INT64_T, next(), 0, MPI_SUM, window);
      MPI_Accumulate(&one, 1, MPI_INT64_T, next(), 1, 1, MPI_INT64_T, MPI_SUM, window);
      MPI_Win_flush(next(), window);
      ASSERT_GE(before, 0);
    }
  });
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(base[0], kThreads * kAdds);
  EXPECT_EQ(base[1], kThreads * kAdds);
  MPI_Win_free(&window);
}

int copy_by_messages(MPI_Comm, int, void*, void* value, void* copy, int* flag) {
  int got = 0;
  MPI_Sendrecv(value, 1, MPI_INT, rank(), 41, &got, 1, MPI_INT, rank(), 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  *static_cast<void**>(copy) = value;
  *flag = got == *static_cast<int*>(value) ? 1 : 0;
  return MPI_SUCCESS;
}

/// A function of the program that a call calls may call MPI.
TEST(Threads, CallMpiFromFunctionsThatMpiCalls) {
  std::array<MPI_Comm, kThreads> parents{};
  for (MPI_Comm& comm : parents) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(copy_by_messages, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
  in_threads(kThreads, [&](int t) {
    int value = t;
    MPI_Comm parent = parents[static_cast<std::size_t>(t)];
    MPI_Comm_set_attr(parent, key, &value);
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(parent, &copy);
    void* found = nullptr;
    int flag = 0;
    MPI_Comm_get_attr(copy, key, static_cast<void*>(&found), &flag);
    EXPECT_EQ(flag, 1);
    EXPECT_EQ(found, &value);
    MPI_Comm_free(&copy);
    MPI_Comm_delete_attr(parent, key);
  });
  MPI_Comm_free_keyval(&key);
  for (MPI_Comm& comm : parents) MPI_Comm_free(&comm);
}

TEST(Threads, TestInLoopsWhileOthersWait) {
  in_threads(kThreads, [](int t) {
    for (int round = 0; round < 300; ++round) {
      int given = round;
      int got = -1;
      std::array<MPI_Request, 2> requests{};
      MPI_Irecv(&got, 1, MPI_INT, previous(), 50 + t, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(&given, 1, MPI_INT, next(), 50 + t, MPI_COMM_WORLD, &requests[1]);
      if (t % 2 == 0) {
        MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
      } else {
        for (int done = 0; done == 0;) MPI_Testall(2, requests.data(), &done, MPI_STATUSES_IGNORE);
      }
      ASSERT_EQ(got, round);
    }
  });
}

}  // namespace
}  // namespace brant::mpi
