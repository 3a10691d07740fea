// Runs as every rank of a job (`brant run -n N`). BRANT_GPU decides where the field lives.
#include <cmath>
#include <limits>
#include <memory>

#include <gtest/gtest.h>

#include "job.h"
#include "star.h"

namespace jacobi {
namespace {

/// What a process of the program has.
struct Process {
  brant::Runtime runtime;
  Star star{runtime};
  Job job{runtime, star};
};
std::unique_ptr<Process> g_process;

/// One process for all tests: ranks run the same tests in the same order.
class JobEnvironment final : public testing::Environment {
 public:
  void SetUp() override { g_process = std::make_unique<Process>(); }
  void TearDown() override { g_process.reset(); }
};
const testing::Environment* const g_environment = testing::AddGlobalTestEnvironment(new JobEnvironment);

Options checked(const Extent& size) {
  Options options;
  options.size = size;
  options.iterations = 6;
  options.warmup = 1;
  options.check = true;
  return options;
}

TEST(Star, reduces_and_broadcasts) {
  Star& star = g_process->star;
  const int size = star.size();
  EXPECT_EQ(star.sum(star.rank()), size * (size - 1) / 2.0);
  EXPECT_EQ(star.largest(-star.rank()), 0.0);
  EXPECT_EQ(star.from_root(star.rank() + 7), 7);
}

TEST(Star, a_nan_of_any_rank_wins) {
  Star& star = g_process->star;
  for (int rank = 0; rank < star.size(); ++rank) {
    const bool mine = rank == star.rank();
    EXPECT_TRUE(std::isnan(star.largest(mine ? std::numeric_limits<double>::quiet_NaN() : 5.0)));
  }
}

TEST(Star, what_one_rank_throws_all_ranks_throw) {
  Star& star = g_process->star;
  const int last = star.size() - 1;
  try {
    star.agree([&] {
      if (star.rank() == last) throw brant::Error(brant::Status::no_memory, "the last rank is full");
    });
    FAIL() << "nobody threw";
  } catch (const AgreedError& error) {
    EXPECT_EQ(error.status(), brant::Status::no_memory);
    EXPECT_STREQ(error.what(), "the last rank is full");
  }
  EXPECT_NO_THROW(star.agree([] {}));
}

TEST(Star, texts_too_long_for_a_message_are_cut_not_lost) {
  Star& star = g_process->star;
  try {
    star.agree([&] {
      if (star.is_root()) throw brant::Error(brant::Status::io_error, std::string(5000, 'x'));
    });
    FAIL() << "nobody threw";
  } catch (const AgreedError& error) {
    EXPECT_GT(std::string(error.what()).size(), 500u);
  }
}

TEST(Job, agrees_with_a_serial_run_on_every_path) {
  Job& job = g_process->job;
  for (const bool overlap : {false, true}) {
    Options options = checked({19, 22, 17});
    options.overlap = overlap;
    options.compare = true;
    options.residual_every = 2;
    EXPECT_NO_THROW(job.run(options));
  }
}

TEST(Job, blocks_of_a_single_layer_have_no_interior) {
  Job& job = g_process->job;
  Options options = checked({3, 2, g_process->star.size()});
  options.overlap = true;
  EXPECT_NO_THROW(job.run(options));
}

TEST(Job, goes_on_after_bad_input) {
  Job& job = g_process->job;
  Options options = checked({8, 8, 8});
  options.input = "/nonexistent/in.npy";
  EXPECT_THROW(job.run(options), AgreedError);
  options.input.clear();
  options.size = Extent{1, 1, 1};
  EXPECT_THROW(job.run(options), AgreedError);
  options.size = Extent{8, 8, 8};
  options.output = "/nonexistent/out.npy";
  EXPECT_THROW(job.run(options), AgreedError);
  options.output.clear();
  EXPECT_NO_THROW(job.run(options));
}

TEST(Job, refuses_what_is_too_large_to_check_or_to_hold) {
  Job& job = g_process->job;
  Options options = checked({2000, 2000, 2000});
  EXPECT_THROW(job.run(options), AgreedError);
  options = checked({400'000, 400'000, 400'000});
  options.check = false;
  EXPECT_THROW(job.run(options), AgreedError);
}

}  // namespace
}  // namespace jacobi
