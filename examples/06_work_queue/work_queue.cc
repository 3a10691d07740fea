// A work queue: one chare has the jobs, and a helper on every rank asks for the next one whenever it is done with one.
// A job takes long; its helper yields between two parts of it, so that the queue, which shares rank 0 with a helper, is
// there for the others meanwhile.
//   brant run -n 4 -- work_queue [JOBS] [NUMBERS_PER_JOB]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "brant/chare.h"
using namespace brant;

/// How many steps a number takes to 1: half of it if it is even, else three times that and one.
int collatz_steps(std::uint64_t number) {
  int steps = 0;
  for (; number != 1; ++steps) number = number % 2 == 0 ? number / 2 : 3 * number + 1;
  return steps;
}

/// The numbers from `begin` up to, not including, `end`. Nothing is left to do: none.
struct Job {
  std::uint64_t begin = 0, end = 0;
};

class Queue : public Chare<Queue, Single> {
 public:
  Queue(int jobs, int numbers) : left_(jobs), numbers_(static_cast<std::uint64_t>(numbers)) {}

  Job next() {
    if (left_ == 0) return {};
    --left_;
    const std::uint64_t begin = std::exchange(begin_, begin_ + numbers_);
    return {begin, begin_};
  }

 private:
  int left_;
  std::uint64_t numbers_, begin_ = 1;
};

class Helper : public Chare<Helper> {
 public:
  /// Works until the queue is empty. Returns how many jobs it did.
  Task<int> work(Element<Queue> queue) {
    int jobs = 0;
    for (Job job = co_await queue.ask<&Queue::next>(); job.begin != job.end; job = co_await queue.ask<&Queue::next>()) {
      while (job.begin != job.end) {
        const std::uint64_t part_end = std::min(job.end, job.begin + kPart);
        for (; job.begin != part_end; ++job.begin) most_ = std::max(most_, collatz_steps(job.begin));
        co_await yield(chares().runtime().worker());  // the network moves, and whoever else waits here runs
      }
      ++jobs;
    }
    co_return jobs;
  }
  int most() { return most_; }

 private:
  static constexpr std::uint64_t kPart = 1000;  // some hundred microseconds

  int most_ = 0;
};

Task<int> work_queue(Chares& chares, int jobs, int numbers) {
  const Element<Queue> queue = create_chare<Queue>(chares, Rank{0}, jobs, numbers);
  const Group<Helper> helpers = create_group<Helper>(chares);
  std::vector<Future<int>> shares;
  for (int rank = 0; rank < chares.size(); ++rank) shares.push_back(helpers[rank].ask<&Helper::work>(queue));
  int done = 0, most = 0;
  for (int rank = 0; rank < chares.size(); ++rank) {
    const int share = co_await shares[static_cast<std::size_t>(rank)];
    std::printf("rank %d did %d jobs\n", rank, share);
    done += share;
    most = std::max(most, co_await helpers[rank].ask<&Helper::most>());
  }
  std::printf("%d jobs of %d numbers each: the longest way to 1 takes %d steps\n", done, numbers, most);
  co_return done == jobs ? 0 : 1;
}

int main(int argc, char** argv) {
  const int jobs = argc > 1 ? std::atoi(argv[1]) : 400;
  const int numbers = argc > 2 ? std::atoi(argv[2]) : 5'000;
  Runtime runtime;
  Chares chares(runtime);
  return chares.run(work_queue(chares, jobs, numbers));
}
