// Five ranks send to things that move, in many orders by chance. Whatever the order: what one rank sends to one thing
// comes there once and in its order, and when nothing is under way any more, nothing waits and nothing is left over.
// BRANT_PLACE_SEED and BRANT_PLACE_STEPS choose other runs.
#include <cstdlib>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "support/effort.h"
#include "unit/place/world.h"

namespace brant::place {
namespace {

using test::World;
using test::WorldOptions;

struct Life {
  std::string name;
  WorldOptions world;
  unsigned moves;    ///< Of 1000 steps.
  unsigned flushes;  ///< Ways that their senders give up, of 1000 steps.
  unsigned sends;
};
void PrintTo(const Life& life, std::ostream* out) { *out << life.name; }

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

class DeliveryModel : public testing::TestWithParam<Life> {
 protected:
  std::size_t below(std::size_t end) { return random_() % end; }
  std::int32_t rank() { return static_cast<std::int32_t>(below(World::kRanks)); }

  /// Links are stopped and go on by turns, so that one way may be much longer than another.
  void carry(World& world) {
    if (below(200) == 0) stopped_ = static_cast<std::uint32_t>(random_() & random_());
    const std::size_t first = below(kLinks);
    for (std::size_t i = 0; i < kLinks; ++i) {
      const auto link = static_cast<std::int32_t>((first + i) % kLinks);
      if ((stopped_ >> link & 1) == 0 && world.carry(link / World::kRanks, link % World::kRanks)) return;
    }
  }
  void step(World& world, const Life& life) {
    const std::size_t chance = below(1000), thing = below(world.things());
    if (chance < life.moves) {
      world.move(thing, below(3) == 0 ? world.home_of(thing) : rank());
    } else if (chance < life.moves + life.flushes) {
      world.give_up(rank(), thing);
    } else if (chance < life.moves + life.flushes + life.sends && world.under_way() < kUnderWayMax) {
      world.send(rank(), thing);
    } else {
      carry(world);
    }
  }
  static void go_home(World& world) {
    for (std::size_t thing = 0; thing < world.things(); ++thing) world.move(thing, world.home_of(thing));
    world.drain();
  }

  static constexpr std::size_t kLinks = std::size_t{World::kRanks} * World::kRanks;
  static constexpr std::size_t kUnderWayMax = 400;
  std::uint32_t stopped_ = 0;
  std::mt19937_64 random_{from_environment("BRANT_PLACE_SEED", 20261124)};
};

TEST_P(DeliveryModel, brings_each_call_once_and_in_its_order) {
  const Life& life = GetParam();
  const auto steps = from_environment("BRANT_PLACE_STEPS", brant::test::effort(1'000'000, 100'000));
  World world(life.world);
  for (std::uint64_t i = 1; i <= steps; ++i) {
    step(world, life);
    if (i % 64 == 0) world.check_bounds();
    if (i % 5'000 == 0) {
      world.drain();
      world.check_rest();
    }
    if (i % 20'000 == 0) {
      go_home(world);
      world.check_forgotten();
    }
    ASSERT_EQ(world.error(), "") << "in step " << i;
  }
  world.drain();
  world.check_rest();
  go_home(world);
  world.check_rest();
  world.check_forgotten();
  EXPECT_EQ(world.error(), "");
  // Every part of the protocol was used.
  EXPECT_GT(world.delivered, steps / 10);
  EXPECT_GT(world.moves, steps / 1000);
  EXPECT_GT(world.direct, 0u);
  EXPECT_GT(world.twice_passed_on, 0u);
  EXPECT_GT(world.parked_at_home, 0u);
}

INSTANTIATE_TEST_SUITE_P(Lives, DeliveryModel,
                         testing::Values(Life{"Calm", {.things = 5}, 2, 1, 400},
                                         Life{"Restless", {.things = 3}, 200, 5, 300},
                                         Life{"Forgetful", {.things = 12, .ways_max = 2}, 30, 50, 300},
                                         Life{"Crowded", {.things = 7, .ways_max = 3, .senders_max = 1}, 60, 20, 350}),
                         [](const auto& life) { return life.param.name; });

}  // namespace
}  // namespace brant::place
