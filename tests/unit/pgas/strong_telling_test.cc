// The strong form of what happens at the target of a copy: behind all that was posted to its process before. An earlier
// put is kept under way by an owner that makes no progress, so that it cannot say how its segment is reached.
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/notify.h"
#include "brant/ops/rpc.h"
#include "brant/pgas.h"
#include "support/in_process_job.h"

namespace brant::test {
namespace {

int g_called = 0;
void arrived(int by) { g_called += by; }

/// Rank 1 puts into two segments of rank 0: one is reached, and `late` is not.
class StrongTelling : public testing::Test {
 protected:
  void SetUp() override {
    flags_ = owner_->create(MemoryKind::host, 4096);
    late_ = owner_->create(MemoryKind::host, 1 << 20);
    flag_ = flags_.allocate<std::uint64_t>();
    near_ = flags_.allocate<int>(8);
    row_ = late_.allocate<int>(items_.size());
    *flags_.local(flag_) = 0;
    ASSERT_TRUE(job_.outcome(user_->reach(flag_)).ok());
    g_called = 0;
  }
  void TearDown() override {
    flags_ = {};
    late_ = {};  // before the spaces go one after the other, in one thread
    job_.run(200);
  }

  Operation put_late() { return user_->put(row_, items_); }
  Operation put_near(AtTarget told, Moment until = Moment::delivered) {
    return user_->put(near_, few_, {.at_target = std::move(told)}, until);
  }
  AtTarget set(std::uint64_t value) { return AtTarget::set(flag_, value); }
  [[nodiscard]] std::uint64_t flag() { return *const_cast<volatile std::uint64_t*>(flags_.local(flag_)); }
  /// The owner does nothing meanwhile.
  void run_user_alone() {
    for (int i = 0; i < 300; ++i) static_cast<void>(job_.rank(1).worker().progress());
  }
  [[nodiscard]] bool late_has_come() {
    const int* const there = late_.local(row_);
    return std::vector<int>(there, there + items_.size()) == items_;
  }

  InProcessJob job_{ranks(2, GpuChoice::emulated)};
  std::unique_ptr<GlobalSpace> owner_ = std::make_unique<GlobalSpace>(job_.rank(0));
  std::unique_ptr<GlobalSpace> user_ = std::make_unique<GlobalSpace>(job_.rank(1));
  GlobalSegment flags_, late_;
  GlobalPtr<std::uint64_t> flag_;
  GlobalPtr<int> near_, row_;
  const std::vector<int> items_ = std::vector<int>(100'000, 7), few_ = std::vector<int>(8, 5);
};

TEST_F(StrongTelling, the_weak_form_does_not_wait_for_an_earlier_put) {
  const Operation late = put_late();
  const Operation weak = put_near(set(1));
  run_user_alone();
  EXPECT_EQ(flag(), 1u);
  EXPECT_TRUE(weak.done());
  EXPECT_FALSE(late.done());
  EXPECT_TRUE(job_.outcome(late).ok());
}

TEST_F(StrongTelling, the_strong_form_comes_behind_an_earlier_put) {
  const Operation late = put_late();
  const Operation strong = put_near(set(1).behind_all());
  run_user_alone();
  EXPECT_EQ(flag(), 0u);
  EXPECT_FALSE(strong.done());
  EXPECT_EQ(flags_.local(near_)[7], 5) << "its own bytes do not wait";
  ASSERT_TRUE(job_.run_until([&] { return flag() == 1; }));
  EXPECT_TRUE(late_has_come());
  const OpResult told = job_.outcome(strong);
  EXPECT_TRUE(told.ok());
  EXPECT_EQ(told.bytes, few_.size() * sizeof(int));
  EXPECT_TRUE(job_.outcome(late).ok());
}

TEST_F(StrongTelling, nothing_is_waited_for_where_nothing_came_before) {
  const OpResult told = job_.outcome(put_near(set(3).behind_all()));
  EXPECT_TRUE(told.ok());
  EXPECT_EQ(told.bytes, few_.size() * sizeof(int));
  EXPECT_EQ(flag(), 3u);
}

TEST_F(StrongTelling, later_puts_are_not_waited_for) {
  const Operation strong = put_near(set(1).behind_all());
  const Operation late = put_late();
  run_user_alone();
  EXPECT_EQ(flag(), 1u);
  EXPECT_TRUE(strong.done());
  EXPECT_TRUE(job_.outcome(late).ok());
}

TEST_F(StrongTelling, functions_come_behind_all_too) {
  const Rpc here(job_.rank(1)), there(job_.rank(0));
  const Operation late = put_late();
  bool told_here = false;
  const Operation call = put_near(AtTarget::call(here.pack<&arrived>(Rank{0}, 4)).behind_all());
  const Operation by = put_near(AtTarget::by([&] { told_here = true; }).behind_all());
  run_user_alone();
  EXPECT_FALSE(told_here);
  EXPECT_FALSE(call.done());
  ASSERT_TRUE(job_.run_until([&] { return g_called != 0; }));
  EXPECT_TRUE(late_has_come());
  EXPECT_TRUE(job_.outcome(call).ok());
  EXPECT_TRUE(job_.outcome(by).ok());
  EXPECT_TRUE(told_here);
  EXPECT_TRUE(late.done());
}

TEST_F(StrongTelling, bells_come_behind_all_too) {
  Notifier notifier(job_.rank(0));
  Bell bell = notifier.make({.rung_by = RungBy::peer, .seen_by = SeenBy::host, .peer = Rank{1}});
  std::optional<PeerBell> ring;
  try {
    ring.emplace(job_.rank(1), Rank{0}, bell.ticket());
  } catch (const Error& fault) {
    GTEST_SKIP() << "ranks without links share no bells: " << fault.what();
  }
  const Operation rung = bell.when(1);
  const Operation late = put_late();
  const Operation strong = put_near(AtTarget::ring(*ring, 1).behind_all());
  run_user_alone();
  EXPECT_FALSE(strong.done());
  ASSERT_TRUE(job_.outcome(rung).ok());
  EXPECT_TRUE(late_has_come());
  EXPECT_TRUE(job_.outcome(strong).ok());
  EXPECT_TRUE(job_.outcome(late).ok());
}

TEST_F(StrongTelling, flags_of_strong_puts_come_in_their_order) {
  const Operation late = put_late();
  std::vector<std::unique_ptr<Operation>> strong;
  for (std::uint64_t value = 1; value <= 20; ++value)
    strong.emplace_back(new Operation(put_near(set(value).behind_all())));
  std::uint64_t seen = 0;
  ASSERT_TRUE(job_.run_until([&] {
    EXPECT_GE(flag(), seen);
    seen = flag();
    return seen == 20;
  }));
  for (const auto& each : strong) EXPECT_TRUE(job_.outcome(*each).ok());
  EXPECT_TRUE(job_.outcome(late).ok());
}

TEST_F(StrongTelling, an_earlier_put_that_fails_is_not_waited_for_any_more) {
  const Operation outside = user_->put(row_ + (1 << 20), items_);
  const Operation strong = put_near(set(1).behind_all());
  run_user_alone();
  EXPECT_EQ(flag(), 0u);
  EXPECT_TRUE(job_.outcome(strong).ok());
  EXPECT_EQ(flag(), 1u);
  EXPECT_EQ(job_.outcome(outside).status, Status::invalid_argument);
}

TEST_F(StrongTelling, the_source_is_free_before_the_target_is_told) {
  const Operation late = put_late();
  const Operation strong = put_near(set(1).behind_all(), Moment::source_free);
  run_user_alone();
  EXPECT_TRUE(strong.done());
  EXPECT_EQ(flag(), 0u);
  ASSERT_TRUE(job_.run_until([&] { return flag() == 1; }));
  EXPECT_TRUE(job_.outcome(late).ok());
}

TEST_F(StrongTelling, a_put_that_nobody_observes_any_more_tells_nevertheless) {
  const Operation late = put_late();
  {
    const Operation strong = put_near(set(1).behind_all());
  }
  run_user_alone();
  EXPECT_EQ(flag(), 0u);
  EXPECT_TRUE(job_.run_until([&] { return flag() == 1; }));
  EXPECT_TRUE(job_.outcome(late).ok());
}

TEST_F(StrongTelling, a_space_that_ends_ends_what_waits) {
  const Operation late = put_late();
  const Operation strong = put_near(set(1).behind_all());
  user_.reset();
  run_user_alone();
  EXPECT_TRUE(late.done());
  EXPECT_TRUE(strong.done());
}

TEST_F(StrongTelling, a_get_is_refused) {
  std::vector<int> landing(8);
  const Operation get = user_->get(near_, std::span(landing), {.at_target = set(1).behind_all()});
  EXPECT_EQ(job_.outcome(get).status, Status::invalid_argument);
  EXPECT_EQ(flag(), 0u);
}

}  // namespace
}  // namespace brant::test
