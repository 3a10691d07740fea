#include "core/completions.h"

#include <vector>

#include <gtest/gtest.h>

namespace brant {
namespace {

/// A record, the layer that works on it, and what the user was told.
struct Watched {
  Watched() {
    op.source_free = {[](void* self, const OpResult& result) noexcept { told(self, result, Moment::source_free); },
                      this};
    op.delivered = {[](void* self, const OpResult& result) noexcept { told(self, result, Moment::delivered); }, this};
    owner.cancel = [](OpOwner&) noexcept {};
  }
  static void told(void* self, const OpResult& result, Moment moment) noexcept {
    static_cast<Watched*>(self)->moments.push_back(moment);
    static_cast<Watched*>(self)->last = result;
  }

  OpOwner owner;
  Op op;
  std::vector<Moment> moments;
  OpResult last;
};

const std::vector<Moment> kBoth{Moment::source_free, Moment::delivered};

TEST(Completions, tell_nobody_before_they_are_fired) {
  Counters counters;
  Completions completions(counters);
  Watched one;
  one.owner.own(completions, one.op);
  EXPECT_EQ(completions.pending(), 1u);
  EXPECT_FALSE(completions.due());
  completions.finish(one.owner, {Status::ok, 7});
  EXPECT_EQ(completions.pending(), 0u);
  EXPECT_TRUE(completions.due());
  EXPECT_TRUE(one.moments.empty());
  EXPECT_EQ(completions.fire(8), 2u);
  EXPECT_EQ(one.moments, kBoth);
  EXPECT_EQ(one.last.bytes, 7u);
  EXPECT_FALSE(one.op.pending());
}

TEST(Completions, report_a_moment_and_keep_the_operation) {
  Counters counters;
  Completions completions(counters);
  Watched one;
  one.owner.own(completions, one.op);
  completions.report(one.owner, Moment::source_free, {Status::ok, 7});
  EXPECT_EQ(completions.fire(8), 1u);
  EXPECT_TRUE(one.op.pending());
  EXPECT_FALSE(completions.due());
  completions.finish(one.owner, {Status::ok, 7});
  EXPECT_EQ(completions.fire(8), 1u) << "what was fired is not fired again";
  EXPECT_EQ(one.moments, kBoth);
}

TEST(Completions, fire_no_more_than_they_may) {
  Counters counters;
  Completions completions(counters);
  Watched one;
  one.owner.own(completions, one.op);
  completions.finish(one.owner, {});
  EXPECT_EQ(completions.fire(1), 1u);
  EXPECT_EQ(one.moments.size(), 1u);
  EXPECT_EQ(completions.fire(1), 1u);
  EXPECT_EQ(completions.fire(1), 0u);
}

TEST(Completions, of_an_operation_without_a_sink_are_none) {
  Counters counters;
  Completions completions(counters);
  Watched one;
  one.op.source_free = one.op.delivered = {};
  one.owner.own(completions, one.op);
  completions.finish(one.owner, {Status::ok, 7});
  EXPECT_FALSE(completions.due());
  EXPECT_FALSE(one.op.pending());
  EXPECT_EQ(one.op.result.bytes, 7u);
}

TEST(Completions, count_failures_and_neither_back_pressure_nor_what_was_cancelled) {
  Counters counters;
  Completions completions(counters);
  for (const Status status : {Status::ok, Status::canceled, Status::limit_reached, Status::peer_lost}) {
    Watched one;
    one.owner.own(completions, one.op);
    completions.finish(one.owner, {status, 0});
  }
  EXPECT_EQ(counters.failures.read(), 1u);
}

TEST(Completions, forget_a_record_that_is_destroyed_while_it_is_due) {
  Counters counters;
  Completions completions(counters);
  {
    Watched one;
    one.owner.own(completions, one.op);
    completions.finish(one.owner, {});
    ASSERT_TRUE(completions.due());
  }
  EXPECT_FALSE(completions.due());
  EXPECT_EQ(completions.fire(8), 0u);
}

TEST(Completions, that_are_released_leave_records_which_have_ended) {
  Counters counters;
  Watched known;
  Watched waiting;
  {
    Completions completions(counters);
    known.owner.own(completions, known.op);
    waiting.owner.own(completions, waiting.op);
    completions.finish(known.owner, {Status::ok, 7});
    completions.release();
  }
  EXPECT_FALSE(known.op.pending());
  EXPECT_EQ(known.op.result.bytes, 7u) << "its outcome was known";
  EXPECT_FALSE(waiting.op.pending());
  EXPECT_EQ(waiting.op.result.status, Status::canceled);
  EXPECT_FALSE(waiting.owner.observed());
  EXPECT_TRUE(known.moments.empty() && waiting.moments.empty());
}

}  // namespace
}  // namespace brant
