// Exchanges of a kernel that stays, its own source, under every schedule with a few deviations and many by chance: each
// takes what the neighbour wrote for it, and not what that wrote for the next. And faults put in are found.
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/halo/direct_steps.cuh"
#include "support/effort.h"
#include "support/model/explore.h"
#include "support/model/grid_block.h"

namespace brant::halo {
namespace {

using test::model::GridBlock;
using test::model::Scheduler;

constexpr unsigned kCells = 2;
constexpr Word kTurns = 2;

struct Faults {
  bool one_landing = false;  ///< Of exchanges that follow each other.
  bool no_fan_in = false;    ///< The first block to arrive rings.
  bool one_part = false;     ///< Of two strips, one is waited for.
};

/// How two blocks share a neighbour.
enum class Sharing : std::uint8_t {
  together,      ///< The last one rings.
  in_strips,     ///< Each rings a part,
  listed_units,  ///< and finds its cells in the list of units.
  in_lines,      ///< Nobody rings: each word carries its exchange.
};

using CellWords = std::array<Word, kCells>;

/// Two processes that write two cells each into the other's landing. What odd exchanges send differs from what even
/// ones do, and each of them notes what the ghosts were before.
class World {
 public:
  /// `strips`: 0 are as many as blocks.
  World(Scheduler& scheduler, unsigned blocks, Word times, Faults faults, Sharing sharing, unsigned strips)
      : scheduler_(scheduler),
        blocks_(blocks),
        times_(times),
        faults_(faults),
        sharing_(sharing),
        strips_(strips == 0 ? blocks : strips),
        notes_(sharing == Sharing::together || strips_ >= blocks) {
    scheduler_.on_stuck = nullptr;
  }

  std::vector<std::function<void()>> make() {
    for (unsigned p = 0; p < 2; ++p) reset(p);
    for (unsigned p = 0; p < 2; ++p) connect(sides_[p], sides_[1 - p]);
    std::vector<std::function<void()>> threads;
    for (unsigned p = 0; p < 2; ++p) {
      for (unsigned block = 0; block < blocks_; ++block) {
        threads.push_back([this, p, block] {
          GridBlock machine(scheduler_, clock_ns_, block, blocks_);
          const bool done = exchange_in_turn(machine, notify::KernelControl{}, sides_[p].plan, 1, times_);
          scheduler_.expect(done, "an exchange without a limit ended");
          static_cast<void>(machine.load_acquire(sides_[p].arrived.data()));  // it does not end with its last store
        });
      }
    }
    return threads;
  }
  void check() {
    for (unsigned p = 0; p < 2; ++p) {
      if (sides_[p].ghost != content(1 - p, times_)) wrong = "the ghosts are not those of the last exchange";
      for (Word epoch = 2; notes_ && epoch <= times_ && epoch + kTurns > times_; ++epoch) {
        if (sides_[p].noted[epoch % kTurns] != content(1 - p, epoch - 1))
          wrong = "an exchange took another one's cells";
      }
    }
  }
  std::string wrong;

 private:
  struct Side {
    std::array<CellWords, kTurns> sent{};
    std::array<CellWords, kTurns> landing{};
    std::array<CellWords, kTurns> noted{};
    std::array<std::array<notify::Line, kCells>, kTurns> lines{};
    CellWords ghost{};
    Word ready = 0;
    std::array<Word, kCells> arrived{};
    Word counts = 0;
    std::vector<CopyBox> boxes;
    std::vector<CopyChunk> chunks;
    std::vector<Word> bases;
    std::vector<CopyUnit> units;
    std::vector<CopyUnit> sends;
    std::vector<CopyUnit> takes;
    DirectNeighbour neighbour;
    DirectPlan plan;
  };
  enum Base : Word { sent, ghost, landing, far_landing, noted, bases };

  /// What a process sends in an exchange.
  static CellWords content(unsigned process, Word epoch) {
    CellWords cells;
    for (unsigned c = 0; c < kCells; ++c) cells[c] = Word{100} * (process + 1) + 10 * (epoch % kTurns) + c;
    return cells;
  }

  void reset(unsigned process) {
    sides_[process] = Side{};
    for (Word turn = 0; turn < kTurns; ++turn) sides_[process].sent[turn] = content(process, turn);
  }

  static void add_copy(Side& side, Word from, Word to, unsigned cell) {
    constexpr Word kBytes = sizeof(Word);
    CopyBox box;
    box.from = {from, cell * kBytes, kBytes, kBytes, kBytes};
    box.to = {to, cell * kBytes, kBytes, kBytes, kBytes};
    box.row_bytes = box.bytes = box.unit = kBytes;
    box.rows = box.planes = 1;
    side.chunks.push_back({side.boxes.size(), 0});
    side.boxes.push_back(box);
  }

  void connect(Side& side, Side& other) const {
    const bool lined = sharing_ == Sharing::in_lines;
    // By who takes them: by strips another block than wrote them, and in lines the one that sends those words.
    for (unsigned c = 0; c < kCells; ++c) add_copy(side, ghost, noted, lined ? c : kCells - 1 - c);
    for (unsigned c = 0; c < kCells; ++c) add_copy(side, sent, far_landing, c);
    for (unsigned c = 0; c < kCells; ++c)
      add_copy(side, landing, ghost, kCells - 1 - c);  // by another block than wrote it
    for (Word turn = 0; turn < kTurns; ++turn) {
      const Word place = faults_.one_landing ? 0 : turn;
      for (Word* base : {side.sent[turn].data(), side.ghost.data(), side.landing[place].data(),
                         other.landing[place].data(), side.noted[turn].data()}) {
        side.bases.push_back(reinterpret_cast<Word>(base));
      }
    }
    const bool in_strips = sharing_ != Sharing::together;
    side.neighbour.tell_ready = {&other.ready};
    side.neighbour.tell_arrived = {other.arrived.data()};
    side.neighbour.ready = {&side.ready};
    side.neighbour.arrived = {side.arrived.data()};
    side.neighbour.fan_in = {&side.counts, faults_.no_fan_in ? 1 : Word{blocks_}};
    const Word listed = sharing_ == Sharing::listed_units ? 1 : 0;
    side.neighbour.cells = {2, 4, listed};
    side.neighbour.landed = {4, 6, listed};
    side.neighbour.strips = in_strips ? strips_ : 0;
    side.neighbour.arrives_in = in_strips && !faults_.one_part ? strips_ : 1;
    side.plan.table = {side.boxes.data(), side.chunks.data(), side.bases.data()};
    if (listed != 0) list_units(side);
    side.plan.neighbours = &side.neighbour;
    side.plan.count = lined ? 0 : 1;
    if (lined) connect_lines(side, other);
    if (notes_) side.plan.own = {0, kCells, listed};
    side.plan.bases_of_turn = bases;
  }

  void connect_lines(Side& side, Side& other) const {
    const auto address = [](const auto& word) { return reinterpret_cast<Word>(&word); };
    for (Word turn = 0; turn < kTurns; ++turn) {
      const Word place = faults_.one_landing ? 0 : turn;
      for (unsigned c = 0; c < kCells; ++c) {
        side.sends.push_back({address(side.sent[turn][c]), address(other.lines[place][c])});
        side.takes.push_back({address(side.lines[place][c]), address(side.ghost[c])});
      }
    }
    side.plan.lines = {side.sends.data(), side.takes.data(), kCells};
  }

  static void list_units(Side& side) {
    for (Word turn = 0; turn < kTurns; ++turn) {
      const auto address = [&](const CopyEnd& end) { return side.bases[turn * bases + end.base] + end.first; };
      for (const CopyBox& box : side.boxes) side.units.push_back({address(box.from), address(box.to)});
    }
    side.plan.table.units = side.units.data();
    side.plan.table.unit_bytes = sizeof(Word);
    side.plan.units_of_turn = side.boxes.size();
  }

  Scheduler& scheduler_;
  const unsigned blocks_;
  const Word times_;
  const Faults faults_;
  const Sharing sharing_;
  const Word strips_;
  const bool notes_;  ///< Each block notes what the ghosts were: all of them wait for some neighbour.
  std::array<Side, 2> sides_;
  std::uint64_t clock_ns_ = 0;
};

class DirectModel : public testing::Test {
 protected:
  void SetUp() override {
    if (test::kSanitized) GTEST_SKIP() << "sanitizers do not follow the scheduler's stacks; the other builds run this";
  }
};
class DirectModelFaults : public DirectModel {};

std::string explore(unsigned blocks, Word times, Faults faults = {}, Sharing sharing = Sharing::together,
                    unsigned strips = 0) {
  return test::model::explore(
      [&](Scheduler& scheduler) { return World(scheduler, blocks, times, faults, sharing, strips); });
}

TEST_F(DirectModel, exchanges_in_turn_take_their_own_cells) { EXPECT_EQ(explore(1, 4), ""); }
TEST_F(DirectModel, exchanges_in_turn_of_two_blocks_take_their_own_cells) { EXPECT_EQ(explore(2, 3), ""); }

TEST_F(DirectModel, blocks_with_strips_of_their_own_take_their_own_cells) {
  EXPECT_EQ(explore(2, 3, {}, Sharing::in_strips), "");
}
TEST_F(DirectModel, a_block_with_two_strips_takes_its_own_cells) {
  EXPECT_EQ(explore(1, 4, {}, Sharing::in_strips, 2), "");
}
TEST_F(DirectModel, a_block_without_a_strip_is_in_nobodys_way) {
  EXPECT_EQ(explore(2, 3, {}, Sharing::in_strips, 1), "");
}
TEST_F(DirectModel, blocks_that_find_their_cells_in_a_list_take_their_own_cells) {
  EXPECT_EQ(explore(2, 3, {}, Sharing::listed_units), "");
}

TEST_F(DirectModel, words_in_lines_are_those_of_their_exchange) {
  EXPECT_EQ(explore(1, 4, {}, Sharing::in_lines), "");
  EXPECT_EQ(explore(2, 4, {}, Sharing::in_lines), "");
}

TEST_F(DirectModelFaults, lines_without_a_second_place_are_found) {
  EXPECT_NE(explore(2, 3, {.one_landing = true}, Sharing::in_lines), "");
}
TEST_F(DirectModelFaults, one_landing_for_all_is_found) {
  EXPECT_EQ(explore(1, 3, {.one_landing = true}), "an exchange took another one's cells");
}
TEST_F(DirectModelFaults, a_ring_before_all_blocks_have_written_is_found) {
  EXPECT_NE(explore(2, 3, {.no_fan_in = true}), "");
}

TEST_F(DirectModelFaults, a_wait_for_one_strip_of_two_is_found) {
  EXPECT_NE(explore(2, 3, {.one_part = true}, Sharing::in_strips), "");
}
TEST_F(DirectModelFaults, one_landing_for_all_strips_is_found) {
  EXPECT_NE(explore(2, 3, {.one_landing = true}, Sharing::in_strips), "");
}

}  // namespace
}  // namespace brant::halo
