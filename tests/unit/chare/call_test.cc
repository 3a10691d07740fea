// Calls, replies, coroutines, priorities: over ranks that reorder and a wire that misbehaves.
#include <numeric>

#include "brant/core/timer.h"
#include "unit/chare/program.h"

namespace brant {
namespace {

using test::Program;

class Cell : public Chare<Cell, Index<2>> {
 public:
  explicit Cell(int base) : base_(base) {}

  void add(int value) { sum_ += value; }
  int sum() const { return sum_; }
  int where() { return chares().rank().value; }
  void append(int number) { order_.push_back(number); }
  std::vector<int> order() { return order_; }
  double dot(std::span<const double> left, const std::vector<double>& right) {
    return std::inner_product(left.begin(), left.end(), right.begin(), 0.0);
  }
  std::string text(std::string_view prefix) { return std::string(prefix) + std::to_string(base_ + index()[1]); }
  /// Asks its right neighbour, who asks his.
  Task<int> chain(int left) {
    if (left == 0) co_return sum_;
    const Index<2> next(index()[0], (index()[1] + 1) % this_array().extent()[1]);
    co_return sum_ + co_await this_array()[next].ask<&Cell::chain>(left - 1);
  }
  /// Reads its span argument after it has waited.
  Task<double> late_sum(std::span<const double> values) {
    co_await sleep_for(chares().runtime().worker(), std::chrono::microseconds(200));
    co_return std::accumulate(values.begin(), values.end(), 0.0);
  }
  void greet(Element<Cell> from, int value) { from.call<&Cell::add>(value); }

 private:
  int base_;
  int sum_ = 0;
  std::vector<int> order_;
};

// g++ 12 cannot take a braced list inside a coroutine.
std::vector<int> run_of(int first, int last) {
  std::vector<int> numbers(static_cast<std::size_t>(last - first + 1));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}
const std::vector<double> kLeft{1, 2, 3}, kRight{4, 5, 6};

Task<void> everything(Chares& chares) {
  const Array<Cell> cells = create_array<Cell>(chares, {3, 4}, Placement::round_robin(), 100);
  cells.call<&Cell::add>(5);
  for (int i = 0; i < 30; ++i) cells[{1, 2}].call<&Cell::append>(i);
  const std::vector<int> order = co_await cells[{1, 2}].ask<&Cell::order>();
  EXPECT_EQ(order, run_of(0, 29));
  for (int x = 0; x < 3; ++x) {
    for (int y = 0; y < 4; ++y) {
      const int sum = co_await cells[{x, y}].ask<&Cell::sum>();
      EXPECT_EQ(sum, 5);
      const int rank = co_await cells[{x, y}].ask<&Cell::where>();
      EXPECT_EQ(rank, (x * 4 + y) % chares.size());
    }
  }
  const double dot = co_await cells[{2, 3}].ask<&Cell::dot>(kLeft, kRight);
  EXPECT_EQ(dot, 32);
  const std::string text = co_await cells[{0, 3}].ask<&Cell::text>("cell ");
  EXPECT_EQ(text, "cell 103");
  const int chained = co_await cells[{0, 0}].ask<&Cell::chain>(10);
  EXPECT_EQ(chained, 55);
  const std::vector<double> many(40'000, 0.5);  // larger than the wire takes at once
  const double late = co_await cells[{0, 1}].ask<&Cell::late_sum>(many);
  EXPECT_EQ(late, 20'000);
  co_await cells[{0, 2}].ask<&Cell::greet>(cells[{2, 0}], 7);
  int greeted = 0;
  while (greeted != 12) greeted = co_await cells[{2, 0}].ask<&Cell::sum>();
}

TEST(Call, everything_works_in_one_process) {
  Program program(test::ranks(1));
  EXPECT_EQ(program.run(everything), 0) << program.failure();
}
TEST(Call, everything_works_over_ranks_whose_messages_overtake_each_other) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Program program(test::reordering(seed, 2 + static_cast<int>(seed % 4)));
    EXPECT_EQ(program.run(everything), 0) << "seed " << seed << ": " << program.failure();
  }
}
TEST(Call, everything_works_over_a_wire_that_repeats_refuses_and_delays) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Program program(test::faulty(seed));
    EXPECT_EQ(program.run(everything), 0) << "seed " << seed << ": " << program.failure();
  }
}

/// All of it is sent before the array has elements.
Task<void> mixed(Chares& chares) {
  const Array<Cell> cells = create_array<Cell>(chares, {1, 4}, Placement::round_robin(), 0);
  for (int i = 0; i < 10; ++i) {
    cells.call<&Cell::append>(2 * i);
    for (int y = 0; y < 4; ++y) cells[{0, y}].call<&Cell::append>(2 * i + 1);
  }
  std::vector<Future<std::vector<int>>> orders;
  for (int y = 0; y < 4; ++y) orders.push_back(cells[{0, y}].ask<&Cell::order>());
  for (auto& future : orders) {
    const std::vector<int> order = co_await future;
    EXPECT_EQ(order, run_of(0, 19));
  }
}
TEST(Call, on_few_ranks_calls_and_broadcasts_of_the_maker_keep_their_order) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Program program(test::reordering(seed, 1 + static_cast<int>(seed % 4)));
    EXPECT_EQ(program.run(mixed), 0) << "seed " << seed << ": " << program.failure();
  }
}

Task<void> deep_broadcast(Chares& chares) {
  const Array<Cell> cells = create_array<Cell>(chares, {7, 9}, Placement::block(), 0);
  for (int i = 1; i <= 10; ++i) cells.call<&Cell::append>(i);
  for (int x = 0; x < 7; ++x) {
    for (int y = 0; y < 9; ++y) {
      std::vector<int> order;  // a call may overtake a broadcast, which goes by other ranks
      while (order.size() < 10) order = co_await cells[{x, y}].ask<&Cell::order>();
      EXPECT_EQ(order, run_of(1, 10));
    }
  }
}
TEST(Call, broadcasts_reach_every_element_once_and_in_order_through_the_tree) {
  Program program(test::faulty(3, 12));
  EXPECT_EQ(program.run(deep_broadcast), 0) << program.failure();
}

struct Pair {
  Element<Cell> left, right;
  int value = 0;
  void serialize(auto& archive) { archive(left, right, value); }
};
class Broker : public Chare<Broker> {
 public:
  void add_to_all(const std::vector<Element<Cell>>& cells, const std::array<Element<Cell>, 2>& more, Pair pair) {
    for (const auto& cell : cells) cell.call<&Cell::add>(1);
    for (const auto& cell : more) cell.call<&Cell::add>(10);
    pair.left.call<&Cell::add>(pair.value);
    pair.right.call<&Cell::add>(pair.value);
  }
};
Task<void> send_proxies(Chares& chares) {
  const Array<Cell> cells = create_array<Cell>(chares, {1, 4}, Placement::round_robin(), 0);
  const Array<Broker> brokers = create_array<Broker>(chares, 2, Placement::round_robin());
  std::vector<Element<Cell>> list;
  std::array<Element<Cell>, 2> more;
  for (int i = 0; i < 4; ++i) list.push_back(cells[{0, i}]);
  for (int i = 0; i < 2; ++i) more[static_cast<std::size_t>(i)] = cells[{0, 2 + i}];
  co_await brokers[1].ask<&Broker::add_to_all>(list, more, Pair{cells[{0, 0}], cells[{0, 3}], 100});
  for (int i = 0; i < 4; ++i) {
    const int expected = 1 + (i >= 2 ? 10 : 0) + (i == 0 || i == 3 ? 100 : 0);
    int sum = 0;
    while (sum != expected) {
      sum = co_await cells[{0, i}].ask<&Cell::sum>();
      if (sum > expected) break;
    }
    EXPECT_EQ(sum, expected);
  }
}
TEST(Call, proxies_travel_in_containers_and_structs) {
  static_assert(!std::is_trivially_copyable_v<Element<Cell>> && !std::is_trivially_copyable_v<Array<Cell>>);
  Program program(test::reordering(5, 2));
  EXPECT_EQ(program.run(send_proxies), 0) << program.failure();
}

Task<void> by_priority(Chares& chares) {
  const Array<Cell> cells = create_array<Cell>(chares, {1, 1}, Placement::block(), 0);
  const Element<Cell> cell = cells[{0, 0}];
  co_await cell.ask<&Cell::sum>();  // it exists
  cell.call<&Cell::append>(3);
  cell.with({.priority = -1}).call<&Cell::append>(5);
  cell.with({.priority = 7}).call<&Cell::append>(1);
  cell.with({.priority = 3}).call<&Cell::append>(2);
  cell.call<&Cell::append>(4);
  cell.with({.expedited = true}).call<&Cell::append>(0);
  const auto order = co_await cell.with({.priority = -9}).ask<&Cell::order>();
  EXPECT_EQ(order, run_of(0, 5));
  cell.with({.inline_when_local = true}).call<&Cell::append>(6);
  EXPECT_EQ(cell.local()->order().back(), 6) << "ran inside the call";
}
TEST(Call, priorities_decide_who_runs_first) {
  Program program(test::ranks(1));
  EXPECT_EQ(program.run(by_priority), 0) << program.failure();
}

class Sleeper : public Chare<Sleeper, Single> {
 public:
  explicit Sleeper(int* ended) : ended_(reinterpret_cast<std::uintptr_t>(ended)) {}
  explicit Sleeper(std::uintptr_t ended) : ended_(ended) {}
  ~Sleeper() { ++*reinterpret_cast<int*>(ended_); }
  Task<void> wait_for_ever(std::string) {
    struct Mark {
      int* count;
      ~Mark() { *count += 10; }
    } mark{reinterpret_cast<int*>(ended_)};
    Promise<> never;
    co_await never.future();
  }
  void ping() {}

 private:
  std::uintptr_t ended_;
};

Task<void> destroy_while_waiting(Chares& chares, int* ended) {
  const auto sleeper = create_chare<Sleeper>(chares, Rank{0}, reinterpret_cast<std::uintptr_t>(ended));
  sleeper.call<&Sleeper::wait_for_ever>("the quick brown fox that is longer than a short string");
  co_await sleeper.ask<&Sleeper::ping>();
  EXPECT_EQ(*ended, 0);
  sleeper.destroy();
  const auto other = create_chare<Sleeper>(chares, Rank{0}, reinterpret_cast<std::uintptr_t>(ended));
  co_await other.ask<&Sleeper::ping>();
  EXPECT_EQ(*ended, 11) << "its coroutine ended with it";
}
TEST(Call, a_destroyed_chare_ends_its_waiting_coroutines) {
  int ended = 0;
  {
    Program program(test::ranks(1));
    EXPECT_EQ(program.run(destroy_while_waiting, &ended), 0) << program.failure();
  }
  EXPECT_EQ(ended, 12);
}

Task<void> end_at_once(Chares& chares) {
  static_cast<void>(chares);
  co_return;
}
TEST(Chares, tell_a_foreign_loop_how_long_it_may_sleep) {
  Program program(test::ranks(1));
  Chares& chares = program.rank(0);
  EXPECT_GT(chares.longest_sleep(), std::chrono::nanoseconds(0)) << "nothing is to be done";
  int asked = 0;
  chares.wait([&asked] { return ++asked > 0; }, Worker::kForever);
  EXPECT_GT(asked, 0);
  chares.wait({}, std::chrono::nanoseconds(1));
  chares.start(end_at_once(chares));
  EXPECT_EQ(chares.longest_sleep(), std::chrono::nanoseconds(0)) << "its main task has ended";
  EXPECT_EQ(program.run_on(), 0);
  chares.wait({}, Worker::kForever);  // there is something to do for who waits: the program has ended
}

}  // namespace
}  // namespace brant
