// Bootstrap through an exchange that a program gives: here threads that meet in memory, each as a process would.
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "port/boot/given/given_boot.h"

namespace brant::port {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<std::byte>;

Bytes bytes_of(const std::string& text) {
  Bytes bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

/// Where they meet. Everybody takes part in every round.
struct Meeting {
  explicit Meeting(int members) : size(members), given(static_cast<std::size_t>(members)) {}

  std::vector<Bytes> gather(int rank, std::span<const std::byte> mine) {
    std::unique_lock lock(mutex);
    given[static_cast<std::size_t>(rank)].assign(mine.begin(), mine.end());
    const int round = rounds;
    if (++here == size) {
      here = 0;
      ++rounds;
      result = given;
      all_here.notify_all();
    }
    all_here.wait(lock, [&] { return rounds != round; });
    return result;
  }

  const int size;
  std::mutex mutex;
  std::condition_variable all_here;
  int here = 0;
  int rounds = 0;
  int barriers_begun = 0;
  std::vector<Bytes> given, result;
};

class ThreadExchange : public Exchange {
 public:
  ThreadExchange(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  int rank() override { return rank_; }
  int size() override { return meeting_.size; }
  std::vector<Bytes> allgather(std::span<const std::byte> mine) override { return meeting_.gather(rank_, mine); }
  void start_barrier() override {
    const std::lock_guard lock(meeting_.mutex);
    ++meeting_.barriers_begun;
    ++mine_;
  }
  bool barrier_done() override {
    const std::lock_guard lock(meeting_.mutex);
    return meeting_.barriers_begun >= mine_ * meeting_.size;
  }

 private:
  Meeting& meeting_;
  int rank_;
  int mine_ = 0;
};

void as_ranks(int size, const std::function<void(Exchange&)>& body) {
  Meeting meeting(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadExchange exchange(meeting, rank);
      body(exchange);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(GivenBoot, all_see_what_all_put_and_agree_on_the_job) {
  std::mutex mutex;
  std::vector<std::string> ids;
  as_ranks(3, [&](Exchange& exchange) {
    const auto boot = open_given_boot(exchange);
    EXPECT_EQ(boot->job().local_size, 3);
    EXPECT_EQ(boot->job().local_rank, boot->job().rank);
    for (int round = 0; round < 5; ++round) {
      const std::string key = "round." + std::to_string(round % 2);
      const auto records = allgather(*boot, key, bytes_of(std::to_string(boot->job().rank + round)), 20s);
      for (int rank = 0; rank < 3; ++rank)
        EXPECT_EQ(records[static_cast<std::size_t>(rank)], bytes_of(std::to_string(rank + round)));
      ASSERT_EQ(boot->fence(20s), Status::ok);
    }
    EXPECT_EQ(boot->get(1, "nobody.put.this").status(), Status::not_found);
    EXPECT_EQ(boot->get(3, "round.0").status(), Status::invalid_argument);
    const std::lock_guard lock(mutex);
    ids.push_back(boot->job().job_id);
  });
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(ids[0], ids[2]);
}

TEST(GivenBoot, a_fence_that_timed_out_is_taken_up_again) {
  as_ranks(2, [](Exchange& exchange) {
    const auto boot = open_given_boot(exchange);
    ASSERT_EQ(boot->put("key", bytes_of("value")), Status::ok);
    if (boot->job().rank == 0) {
      std::this_thread::sleep_for(300ms);
    } else {
      EXPECT_EQ(boot->fence(50ms), Status::timed_out);
      EXPECT_NE(boot->last_error().find("longer than 50 ms"), std::string::npos) << boot->last_error();
    }
    ASSERT_EQ(boot->fence(20s), Status::ok);
    EXPECT_TRUE(boot->get(1 - boot->job().rank, "key").ok());
  });
}

class Broken : public ThreadExchange {
 public:
  Broken(Meeting& meeting, int rank) : ThreadExchange(meeting, rank) {}
  std::vector<Bytes> allgather(std::span<const std::byte> mine) override {
    if (throws) throw std::runtime_error("the network is down");
    std::vector<Bytes> all = ThreadExchange::allgather(mine);
    if (change) change(all);
    return all;
  }
  bool throws = false;
  std::function<void(std::vector<Bytes>&)> change{};
};

std::string refusal(Exchange& exchange) {
  try {
    static_cast<void>(open_given_boot(exchange));
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(GivenBoot, an_exchange_that_is_wrong_is_refused_and_says_why) {
  Meeting meeting(1);
  Broken exchange(meeting, 0);
  exchange.change = [](std::vector<Bytes>& all) { all.front() = bytes_of("something else"); };
  EXPECT_NE(refusal(exchange).find("record of rank 0 something else"), std::string::npos) << refusal(exchange);
  exchange.change = [](std::vector<Bytes>& all) { all.push_back(all.front()); };
  EXPECT_NE(refusal(exchange).find("has 1 processes, and its allgather brought 2"), std::string::npos);
  exchange.change = [](std::vector<Bytes>& all) { all.front().pop_back(); };
  EXPECT_NE(refusal(exchange).find("something else"), std::string::npos);
  exchange.throws = true;
  EXPECT_NE(refusal(exchange).find("the network is down"), std::string::npos);
  Broken outside(meeting, 1);
  EXPECT_NE(refusal(outside).find("rank 1 of 1"), std::string::npos);
}

TEST(GivenBoot, a_failure_later_is_a_status_with_its_text) {
  Meeting meeting(1);
  Broken exchange(meeting, 0);
  const auto boot = open_given_boot(exchange);
  exchange.throws = true;
  EXPECT_EQ(boot->fence(1s), Status::io_error);
  EXPECT_NE(boot->last_error().find("the network is down"), std::string::npos);
  exchange.throws = false;
  exchange.change = [](std::vector<Bytes>& all) { all.front() = bytes_of("x"); };
  EXPECT_EQ(boot->fence(1s), Status::peer_rejected);
}

}  // namespace
}  // namespace brant::port
