#pragma once

#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "support/model/scheduler.h"

namespace brant::test::model {

/// All schedules with one deviation, a share of those with two, and many by chance, of the world that `world_of` makes
/// for a scheduler: it has make() and check() as the scheduler wants them, and says in `wrong` what the check found.
/// The fault found, or nothing.
template <typename WorldOf>
std::string explore(const WorldOf& world_of) {
  std::size_t tried = 0;
  for (const unsigned deviations : {1u, 2u, 0u}) {
    Scheduler scheduler(deviations);
    auto world = world_of(scheduler);
    const auto make = [&] { return world.make(); };
    const auto check = [&] { world.check(); };
    if (deviations != 0) {
      scheduler.explore(make, check, deviations == 1 ? 40000 : 6000);
      if (deviations == 1) {
        EXPECT_TRUE(scheduler.complete() || !scheduler.fault().empty());
      }
    } else {
      for (const unsigned one_in : {3u, 10u, 40u}) {
        if (scheduler.fault().empty() && world.wrong.empty()) scheduler.sample(make, check, 2000, one_in, 7 * one_in);
        tried += scheduler.schedules();
      }
    }
    if (deviations != 0) tried += scheduler.schedules();
    if (!scheduler.fault().empty()) return scheduler.fault();
    if (!world.wrong.empty()) return world.wrong;
  }
  testing::Test::RecordProperty("schedules", static_cast<int>(tried));
  std::printf("             %zu schedules\n", tried);
  return "";
}

}  // namespace brant::test::model
