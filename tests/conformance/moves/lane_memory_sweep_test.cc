// Data beside messages, one allocation after the other failing: whoever waits for it is told, or the lane says that it
// is broken, and names the rank at its other end.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/moves/allocation_sweep.h"
#include "ops/lane/data_lanes.h"

namespace brant {
namespace {

using lane::DataLanes;
using lane::DataOrigin;
using lane::DataPart;
using test::Fails;
using test::JobOptions;
using test::pattern;
using test::ScarceJob;
using test::ScarceMemory;
using test::Space;
using test::tells_of_memory;

enum class Landing { named, lent, nobody };

struct Case {
  const char* name;
  int ranks;
  bool links;
  MemoryKind from;
  MemoryKind to;
  Landing landing;
  bool shaped = false;
};

constexpr Case kCases[] = {
    {"own_process", 1, false, MemoryKind::host, MemoryKind::emulated, Landing::named},
    {"own_process_shaped", 1, false, MemoryKind::emulated, MemoryKind::emulated, Landing::named, true},
    {"own_host", 2, true, MemoryKind::host, MemoryKind::host, Landing::named},
    {"own_host_shaped", 2, true, MemoryKind::host, MemoryKind::host, Landing::named, true},
    {"own_host_device", 2, true, MemoryKind::emulated, MemoryKind::emulated, Landing::named},
    {"own_host_lent", 2, true, MemoryKind::emulated, MemoryKind::emulated, Landing::lent},
    {"own_host_for_nobody", 2, true, MemoryKind::host, MemoryKind::host, Landing::nobody},
    {"other_host", 2, false, MemoryKind::host, MemoryKind::host, Landing::named},
    {"other_host_device", 2, false, MemoryKind::emulated, MemoryKind::emulated, Landing::named},
    {"other_host_lent", 2, false, MemoryKind::emulated, MemoryKind::emulated, Landing::lent},
    {"other_host_for_nobody", 2, false, MemoryKind::host, MemoryKind::host, Landing::nobody},
};

constexpr std::size_t kBytes = 100'000;

/// One who waits, and how often he was told.
struct Waiter {
  int told = 0;
  Status status = Status::in_progress;

  void tell(Status now) noexcept {
    ++told;
    status = now;
  }
};

/// One argument, from its source to its landing.
class Delivery {
 public:
  explicit Delivery(const Case& of)
      : case_(of),
        job_(options_of(of)),
        receiver_(of.ranks - 1),
        shape_(shape_of(of.shaped)),
        source_(job_->rank(0), of.from, room()),
        target_(job_->rank(receiver_), of.to, room()) {
    source_.fill(pattern(room(), 3));
    for (int rank = 0; rank < of.ranks; ++rank) static_cast<void>(lanes(rank));
    job_->run(20);
  }

  /// Whether the allocation was come to.
  bool run(unsigned nth, Fails fails) {
    ScarceMemory scarce(nth, fails);
    begin();
    for (int round = 0; round < kRounds && !settled(); ++round) job_->run(1);
    scarce.end();
    if (!over() && !settled()) begin();  // what was refused is asked for again
    EXPECT_TRUE(job_.run_until([this] { return over() || settled(); })) << "never ends";
    if (over()) job_.part_wholly();  // the job ends
    EXPECT_TRUE(job_.run_until([this] { return settled(); })) << "does not end with the job";
    job_->run(20);
    return scarce.failed();
  }
  void expect_told(bool failed) {
    if (broken()) {
      EXPECT_TRUE(failed);
      for (int rank = 0; rank < case_.ranks; ++rank) expect_named(lanes(rank).broken(), rank);
    }
    EXPECT_LE(free_.told, 1);
    EXPECT_LE(landed_.told, 1);
    for (const Waiter* waiter : {&free_, &landed_}) {
      if (waiter->told == 0) continue;
      EXPECT_TRUE(waiter->status == Status::ok || (failed && tells_of_memory(waiter->status)))
          << status_name(waiter->status);
    }
    if (case_.landing == Landing::named && landed_.told == 1 && landed_.status == Status::ok) expect_landed();
  }
  void expect_next_arrives() {
    if (over()) return;
    swallowed_ = false;
    free_ = landed_ = {};
    number_.reset();
    begin();
    EXPECT_TRUE(job_.run_until([this] { return settled(); })) << "the next one never ends";
    EXPECT_EQ(free_.status, Status::ok) << status_name(free_.status);
    EXPECT_TRUE(case_.landing == Landing::nobody || landed_.status == Status::ok) << status_name(landed_.status);
    EXPECT_TRUE(job_.run_until([this] { return lanes(receiver_).landings().lent() == 0; })) << "a landing stays lent";
    job_.expect_nothing_left();
  }

 private:
  static constexpr int kRounds = 2'000;

  static JobOptions options_of(const Case& of) {
    JobOptions options;
    options.ranks = of.ranks;
    options.gpu = GpuChoice::emulated;
    options.links = of.links;
    return options;
  }
  static Shape shape_of(bool shaped) {
    if (!shaped) return Shape::contiguous(kBytes);
    const ShapeDim dim{.count = kBytes / 8, .stride = 24};
    return *Shape::strided(0, 8, {&dim, 1});
  }
  [[nodiscard]] std::size_t room() const { return shape_.end(); }
  DataLanes& lanes(int rank) { return job_.engine(rank).service<DataLanes>(); }

  [[nodiscard]] bool broken() {
    return lanes(0).broken().status != Status::ok || lanes(receiver_).broken().status != Status::ok;
  }
  /// The job cannot go on: a lane is broken, or a peer was given up.
  [[nodiscard]] bool over() { return broken() || job_.parted(); }
  static void expect_named(const DataLanes::Break& broken, int rank) {
    if (broken.status == Status::ok) return;
    EXPECT_TRUE(tells_of_memory(broken.status)) << status_name(broken.status);
    EXPECT_EQ(broken.rank, 1 - rank);
  }
  /// All has been told that ever will be.
  [[nodiscard]] bool settled() {
    if (job_.parted()) return lanes(0).sources_idle() && part_ == nullptr;
    const bool landed = case_.landing == Landing::nobody ? swallowed_ : landed_.told != 0;
    return free_.told != 0 && landed && lanes(0).sources_idle();
  }

  /// What has not begun; what cannot for want of memory stays so.
  void begin() {
    if (case_.ranks == 1) return copy();
    if (!number_) send();
    if (!number_) return;
    if (case_.landing == Landing::nobody) {
      if (!std::exchange(swallowed_, true)) swallow();
    } else if (landed_.told == 0 && part_ == nullptr) {
      receive();
    }
  }
  DataOrigin* origin() {
    DataOrigin* origin = lanes(0).take_origin();
    if (origin == nullptr) return nullptr;
    if (case_.shaped) {
      origin->shape = lanes(0).keep(shape_);
      if (origin->shape == nullptr) {
        lanes(0).release_one(*origin, Status::canceled);
        return nullptr;
      }
    }
    origin->buffer = source_.whole();
    origin->free = {
        [](void* self, const OpResult& result) noexcept { static_cast<Waiter*>(self)->tell(result.status); }, &free_};
    return origin;
  }
  void send() {
    try {
      const std::uint64_t number = lanes(0).next_number(1);
      DataOrigin* const from = origin();
      if (from == nullptr) return;
      number_ = number;
      lanes(0).send(1, from);
    } catch (const Error& error) {
      EXPECT_TRUE(tells_of_memory(error.status())) << error.what();
    } catch (const std::bad_alloc&) {
    }
  }
  /// Null: no memory for one, or for its landing.
  DataPart* part() {
    DataPart* const part = lanes(receiver_).take_part();
    if (part == nullptr) return nullptr;
    const auto give_back = [&]() -> DataPart* {
      lanes(receiver_).give_back(*part);
      return nullptr;
    };
    part->owner = this;
    part->ended = [](DataPart& ended, Status status) noexcept {
      static_cast<Delivery*>(ended.owner)->on_ended(ended, status);
    };
    if (case_.landing == Landing::lent) {
      const Result<lane::LandingBlock*> block = lanes(receiver_).landings().take(case_.to, kBytes);
      if (!block) return give_back();
      part->block = *block;
      part->landing = part->block->view(kBytes);
      return part;
    }
    part->landing = Buffer(target_.whole().data, case_.shaped ? room() : kBytes, case_.to);
    if (!case_.shaped) return part;
    part->shape = lanes(receiver_).keep(shape_);
    return part->shape != nullptr ? part : give_back();
  }
  void receive() {
    part_ = part();
    if (part_ == nullptr) return;
    const Status status = lanes(receiver_).receive(*part_, 0, *number_);
    if (status == Status::in_progress) return;
    // As for calls: what is still to come is received for nobody, and where that fails too the lane is broken.
    if (status == Status::no_memory) swallow();
    on_ended(*part_, status);
  }
  void swallow() {
    const lane::DataMeta meta{.bytes = kBytes, .kind = case_.from};
    lanes(1).swallow(0, *number_, &meta, 1);
  }
  void copy() {
    if (part_ != nullptr || landed_.told != 0) return;
    DataOrigin* const from = origin();
    if (from == nullptr) return;
    part_ = part();
    if (part_ == nullptr) return forget(*from);
    part_->origin = from;
    const Status status = lanes(0).copy(*part_);
    if (status == Status::in_progress) return;
    if (status != Status::no_memory) return on_ended(*part_, status);
    part_->origin = nullptr;
    lanes(0).give_back(*std::exchange(part_, nullptr));
    forget(*from);
  }
  void forget(DataOrigin& origin) {
    origin.free = {};
    lanes(0).release_one(origin, Status::canceled);
  }
  void on_ended(DataPart& part, Status status) noexcept {
    part_ = nullptr;
    landed_.tell(status);
    part.lanes.give_back(part);
  }
  void expect_landed() {
    const std::vector<std::byte> image = target_.image(), sent = pattern(room(), 3);
    for (std::size_t i = 0; i < room(); ++i) {
      if (case_.shaped && i % 24 >= 8) continue;
      ASSERT_EQ(image[i], sent[i]) << "byte " << i;
    }
  }

  const Case case_;
  ScarceJob job_;
  const int receiver_;
  const Shape shape_;
  Space source_, target_;
  std::optional<std::uint64_t> number_;
  DataPart* part_ = nullptr;
  bool swallowed_ = false;
  Waiter free_, landed_;
};

class LaneMemorySweep : public testing::TestWithParam<Case> {};

TEST_P(LaneMemorySweep, both_ends_are_told_and_the_next_argument_arrives) {
  for (const Fails fails : {Fails::once, Fails::from_then_on}) {
    SCOPED_TRACE(fails == Fails::once ? "once" : "for good");
    test::sweep_allocations([&](unsigned nth) {
      Delivery delivery(GetParam());
      const bool failed = delivery.run(nth, fails);
      delivery.expect_told(failed);
      if (!testing::Test::HasFailure()) delivery.expect_next_arrives();
      return failed;
    });
  }
}

/// What its future throws says what was not delivered; where there is no memory for the text, it throws that.
TEST(LaneMemory, a_source_that_was_not_delivered_is_told_so_without_memory_too) {
  for (const Fails fails : {Fails::once, Fails::from_then_on}) {
    test::sweep_allocations([&](unsigned nth) {
      ScarceJob job((JobOptions()));
      DataLanes& lanes = job.engine(0).service<DataLanes>();
      DataOrigin* const origin = lanes.take_origin();
      const int value = 7;
      origin->buffer = ConstBuffer(&value, sizeof(value), MemoryKind::host);
      Future<ConstBuffer> future = origin->promise.emplace().future();
      lanes.release_one(*origin, Status::peer_lost);
      ScarceMemory scarce(nth, fails);
      job->run(5);
      scarce.end();
      EXPECT_TRUE(job.run_until([&] { return future.ready(); }));
      try {
        static_cast<void>(future.get());
        ADD_FAILURE() << "it was not delivered";
      } catch (const Error& error) {
        EXPECT_EQ(error.status(), Status::peer_lost);
      } catch (const std::bad_alloc&) {
        EXPECT_TRUE(scarce.failed());
      }
      return scarce.failed();
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Moves, LaneMemorySweep, testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace brant
