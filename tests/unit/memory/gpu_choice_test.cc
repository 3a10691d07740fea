#include "port/memory/gpu_choice.h"

#include <string>

#include <gtest/gtest.h>

namespace brant::port::memory {
namespace {

/// The text of the Error that the choice throws; empty if it throws none.
std::string refusal(const DeviceRequest& request, const GpuScene& scene) {
  try {
    choose_gpu(request, scene);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(GpuChoice, each_process_of_a_host_gets_its_own) {
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(choose_gpu({.local_rank = rank, .local_size = 4}, {.gpus = 4}), rank);
    EXPECT_EQ(choose_gpu({.local_rank = rank, .local_size = 4}, {.gpus = 8}), rank);
  }
}

TEST(GpuChoice, more_processes_than_gpus_is_refused_with_the_cure) {
  EXPECT_EQ(refusal({.local_rank = 3, .local_size = 4}, {.gpus = 2}),
            "4 processes on this host but 2 GPUs: start at most 2 processes per host, or set BRANT_SHARE_GPU=1 to "
            "share (about 150 us "
            "per operation, time slicing)");
  EXPECT_EQ(refusal({.local_rank = 0, .local_size = 2}, {.gpus = 1}),
            "2 processes on this host but 1 GPU: start at most 1 process per host, or set BRANT_SHARE_GPU=1 to share "
            "(about 150 us "
            "per operation, time slicing)");
}

TEST(GpuChoice, sharing_deals_the_processes_out) {
  for (int rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(choose_gpu({.local_rank = rank, .local_size = 5, .share_gpu = true}, {.gpus = 2}), rank % 2);
  }
}

TEST(GpuChoice, a_process_that_was_given_one_gpu_takes_it) {
  EXPECT_EQ(choose_gpu({.local_rank = 3, .local_size = 4}, {.gpus = 1, .assigned = true}), 0);
}

TEST(GpuChoice, an_ordinal_asked_for_is_taken_or_refused) {
  EXPECT_EQ(choose_gpu({.local_rank = 0, .local_size = 4, .ordinal = 1}, {.gpus = 2}), 1);
  EXPECT_NE(refusal({.ordinal = 2}, {.gpus = 2}).find("GPU 2 was asked for, but this process sees only 2 GPUs"),
            std::string::npos);
}

TEST(GpuChoice, refuses_ranks_that_cannot_be) {
  EXPECT_FALSE(refusal({.local_rank = 2, .local_size = 2}, {.gpus = 4}).empty());
  EXPECT_FALSE(refusal({.local_rank = -1, .local_size = 2}, {.gpus = 4}).empty());
  EXPECT_FALSE(refusal({.local_rank = 0, .local_size = 0}, {.gpus = 4}).empty());
}

}  // namespace
}  // namespace brant::port::memory
