// Copies between two other processes, none of whose memory is mapped where they are asked for.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/pgas.h"
#include "core/engine.h"
#include "models/pgas/kept_shapes.h"
#include "models/pgas/words.h"
#include "ops/am/messenger.h"
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

/// Shapes of a copy, in memory that can be taken away.
class FleetingShapes {
 public:
  explicit FleetingShapes(std::size_t runs) {
    void* const page = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || runs > kRunsMost) throw std::bad_alloc();
    shapes_ = new (page) TransferShapes;
    auto* const list = reinterpret_cast<ByteRun*>(static_cast<std::byte*>(page) + kBytes / 2);
    for (std::size_t i = 0; i < runs; ++i) new (list + i) ByteRun{2 * i, 1};
    *shapes_ = {*Shape::indexed(std::span(list, runs)), Shape::contiguous(runs)};
  }
  FleetingShapes(const FleetingShapes&) = delete;
  FleetingShapes& operator=(const FleetingShapes&) = delete;
  ~FleetingShapes() { ::munmap(shapes_, kBytes); }

  [[nodiscard]] const TransferShapes* get() const noexcept { return shapes_; }
  /// Whoever looks at them now is killed.
  void take_away() { ASSERT_EQ(::mprotect(shapes_, kBytes, PROT_NONE), 0); }

 private:
  static constexpr std::size_t kBytes = 8192, kRunsMost = kBytes / 2 / sizeof(ByteRun);
  TransferShapes* shapes_ = nullptr;
};

TEST(ThirdParty, of_one_that_nobody_waits_for_the_shapes_may_go) {
  InProcessJob job(apart());
  GlobalSpace owner(job.rank(0)), user(job.rank(1)), target(job.rank(2));
  constexpr std::size_t kRuns = 200;
  GlobalSegment from = owner.create(MemoryKind::host, 2 * kRuns), to = target.create(MemoryKind::host, kRuns);
  auto* const source = static_cast<unsigned char*>(from.memory().data);
  auto* const landing = static_cast<unsigned char*>(to.memory().data);
  for (std::size_t i = 0; i < 2 * kRuns; ++i) source[i] = static_cast<unsigned char>(1 + i % 251);
  std::memset(landing, 0, kRuns);
  ASSERT_TRUE(job.outcome(user.reach(from.begin())).ok());
  ASSERT_TRUE(job.outcome(user.reach(to.begin())).ok());
  FleetingShapes shapes(kRuns);
  {
    Op op;
    CopyOptions options;
    options.shapes = shapes.get();
    ASSERT_EQ(user.post_copy(from.begin(), to.begin(), 2 * kRuns, op, std::move(options)), Status::in_progress);
  }
  shapes.take_away();
  job.run(500);
  for (std::size_t i = 0; i < kRuns; ++i) ASSERT_EQ(landing[i], source[2 * i]) << i;
  from = {};
  to = {};
  job.run(200);
}

/// What a process may say that is of this job, and not this code.
TEST(ThirdParty, shapes_beyond_the_bound_are_refused_by_the_owner_as_well) {
  InProcessJob job(apart());
  GlobalSpace owner(job.rank(0)), user(job.rank(1)), target(job.rank(2));
  constexpr std::size_t kRuns = 20'000;
  GlobalSegment from = owner.create(MemoryKind::host, kRuns), to = target.create(MemoryKind::host, kRuns);
  auto* const landing = static_cast<unsigned char*>(to.memory().data);
  std::memset(from.memory().data, 1, kRuns);
  std::memset(landing, 0, kRuns);
  std::vector<ByteRun> runs(kRuns);
  for (std::size_t i = 0; i < kRuns; ++i) runs[i] = {i, 1};
  auto& messenger = job.rank(1).worker().engine().service<am::Messenger>();
  const auto ask = [&](std::size_t count) {
    const pgas::CopyRequest request{from.begin(), to.begin(), count, Path::automatic, 1, {}};
    std::vector<std::byte> payload(sizeof(request));
    std::memcpy(payload.data(), &request, sizeof(request));
    KeptShapes::pack({*Shape::indexed(std::span(runs).first(count)), Shape::contiguous(count)}, payload);
    am::Message* const message = messenger.make(payload.size());
    message->set_header(pgas::WordHeader{.word = pgas::SpaceWord::copy, .id = 12345});
    std::memcpy(message->data, payload.data(), payload.size());
    ASSERT_EQ(messenger.send(Rank{0}, am::ServiceId::pgas, *message), Status::ok);
  };
  ask(kRuns);
  job.run(5000);
  EXPECT_EQ(std::count(landing, landing + kRuns, 0), static_cast<std::ptrdiff_t>(kRuns)) << "nothing is copied";
  ask(1000);
  EXPECT_TRUE(job.run_until([&] { return std::count(landing, landing + kRuns, 1) == 1000; })) << "it serves the next";
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
