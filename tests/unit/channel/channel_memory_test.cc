// No memory for the end of a channel that a message is for. This program refuses memory by itself, so it stands alone.
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "ops/channel/table.h"
#include "support/in_process_job.h"

namespace {
std::size_t g_refused_bytes = 0;  // allocations of this size fail
unsigned g_refusals = 0;
}  // namespace

// Not inlined: the compiler would see one of a pair, and take it for a mistake.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (bytes == g_refused_bytes) {
    ++g_refusals;
    throw std::bad_alloc();
  }
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace brant {
namespace {

using test::InProcessJob;
using test::JobOptions;

TEST(ChannelMemory, that_is_short_leaves_no_end_that_is_none) {
  JobOptions options;
  options.links = true;
  InProcessJob job(options);
  Channel other = Channel::open(job.rank(1), Rank{0}, ChannelId{6});
  Channel left = Channel::open(job.rank(0), Rank{1}, ChannelId{7});
  const int values[2] = {1, 2};
  g_refused_bytes = sizeof(ChannelEndpoint);
  Operation lost = left.send(ConstBuffer(&values[0], sizeof(int)));
  job.run(20);
  g_refused_bytes = 0;
  ASSERT_EQ(g_refusals, 1u);
  // The peer whose message is lost is given up here, so that nobody waits for it; what it sends goes nowhere.
  Operation kept = left.send(ConstBuffer(&values[1], sizeof(int)));
  job.run(20);
  try {
    Channel::open(job.rank(1), Rank{0}, ChannelId{7});
    ADD_FAILURE() << "a peer that was given up is one again";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::peer_lost) << error.what();
  }
  job.run(20);
}

}  // namespace
}  // namespace brant
