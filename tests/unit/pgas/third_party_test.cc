// Copies between two other processes, none of whose memory is mapped where they are asked for.
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/pgas.h"
#include "core/engine.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using test::InProcessJob;

test::JobOptions apart() {
  test::JobOptions options = test::ranks(3);
  options.exportable = [](const port::PointerInfo&) { return false; };
  options.links = false;
  return options;
}

/// Moves another rank on while one waits for it.
class Beside final : public Poller {
 public:
  Beside(InProcessJob& job, int waiting, int other) : pollers_(pollers_of(job, waiting)), other_(job.rank(other)) {
    pollers_.attach(*this);
  }
  ~Beside() { pollers_.detach(*this); }

 private:
  static Pollers& pollers_of(InProcessJob& job, int rank) { return job.rank(rank).worker().engine().pollers(); }
  unsigned poll() noexcept override {
    static_cast<void>(other_.worker().progress());
    return 0;
  }

  Pollers& pollers_;
  Runtime& other_;
};

TEST(ThirdParty, one_whose_source_goes_with_its_space_finds_nothing) {
  InProcessJob job(apart());
  std::optional<GlobalSpace> owner(job.rank(0));
  GlobalSpace user(job.rank(1)), target(job.rank(2));
  GlobalSegment to = target.create(MemoryKind::host, 4096);
  GlobalSegment from = owner->create(MemoryKind::host, 4096);
  ASSERT_TRUE(job.outcome(user.reach(to.begin())).ok());
  ASSERT_TRUE(job.outcome(user.reach(from.begin())).ok());
  const Operation copy = user.copy<std::byte>(from.begin(), to.begin(), 1000);
  const auto all_but_the_target = [&](int turns) {
    for (int turn = 0; turn < turns; ++turn) {
      static_cast<void>(job.rank(1).worker().progress());
      static_cast<void>(job.rank(0).worker().progress());
    }
  };
  all_but_the_target(50);
  ASSERT_FALSE(copy.done()) << "the owner of the source asks the target first";
  from = {};
  {
    const Beside beside(job, 0, 1);
    owner.reset();
  }
  EXPECT_EQ(job.outcome(copy).status, Status::not_found);
  to = {};
  job.run(200);
}

TEST(ThirdParty, a_forced_path_is_the_owners_too) {
  InProcessJob job(apart());
  GlobalSpace owner(job.rank(0)), user(job.rank(1)), target(job.rank(2));
  GlobalSegment from = owner.create(MemoryKind::host, 4096), to = target.create(MemoryKind::host, 4096);
  const auto outcome = [&](Path path) {
    CopyOptions options;
    options.path = path;
    return job.outcome(user.copy<std::byte>(from.begin(), to.begin(), 1000, std::move(options))).status;
  };
  EXPECT_EQ(outcome(Path::shm), Status::not_supported) << "nothing is mapped";
  EXPECT_EQ(outcome(Path::ucx), Status::ok);
  EXPECT_EQ(outcome(Path::automatic), Status::ok);
  // Those who let go come first.
  from = {};
  to = {};
  job.run(200);
}

TEST(ThirdParty, shapes_that_are_too_long_to_travel_are_refused) {
  InProcessJob job(apart());
  GlobalSpace owner(job.rank(0)), user(job.rank(1)), target(job.rank(2));
  constexpr std::size_t kRuns = 20'000;
  GlobalSegment from = owner.create(MemoryKind::host, 2 * kRuns), to = target.create(MemoryKind::host, kRuns);
  std::vector<ByteRun> runs(kRuns);
  for (std::size_t i = 0; i < kRuns; ++i) runs[i] = {2 * i, 1};
  const auto outcome = [&](std::size_t count) {
    const TransferShapes shapes{*Shape::indexed(std::span(runs).first(count)), Shape::contiguous(count)};
    CopyOptions options;
    options.shapes = &shapes;
    return job.outcome(user.copy<std::byte>(from.begin(), to.begin(), 2 * kRuns, std::move(options)));
  };
  EXPECT_EQ(outcome(kRuns).status, Status::not_supported);
  const OpResult result = outcome(10'000);
  EXPECT_EQ(result.status, Status::ok);
  EXPECT_EQ(result.bytes, 10'000u);
  from = {};
  to = {};
  job.run(200);
}

TEST(ThirdParty, a_source_is_free_with_the_bytes_it_has_wherever_the_flag_is) {
  InProcessJob job(apart());
  GlobalSpace owner(job.rank(0)), user(job.rank(1));
  GlobalSegment own = user.create(MemoryKind::host, 4096), flags = owner.create(MemoryKind::host, 4096);
  OpResult freed;
  Op op;
  op.source_free = {[](void* to, const OpResult& result) noexcept { *static_cast<OpResult*>(to) = result; }, &freed};
  const int value = 1;
  ASSERT_EQ(user.post_put(own.begin(), ConstBuffer(&value, sizeof(value)), op,
                          {.at_target = AtTarget::set(flags.begin().as<std::uint64_t>(), 7)}),
            Status::in_progress);
  ASSERT_TRUE(job.run_until([&] { return !op.pending(); }));
  EXPECT_EQ(freed.status, Status::ok);
  EXPECT_EQ(freed.bytes, sizeof(value));
  EXPECT_EQ(*flags.local(flags.begin().as<std::uint64_t>()), 7u);
  flags = {};
  job.run(200);
}

}  // namespace
}  // namespace brant
