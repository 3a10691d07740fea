// Reductions, sections, callbacks, barriers.
#include <numeric>

#include "port/memory.h"
#include "unit/chare/program.h"

namespace brant {
namespace {

using test::Program;

struct Hit {
  double distance = 0;
  int who = -1;
};
Hit closer(const Hit& left, const Hit& right) { return right.distance < left.distance ? right : left; }
struct Longest {
  std::string operator()(const std::string& left, const std::string& right) const {
    return left.size() > right.size() || (left.size() == right.size() && left < right) ? left : right;
  }
};

class Summand : public Chare<Summand> {
 public:
  int i() const { return index()[0]; }

  Task<void> all_kinds(int count) {
    const int sum = co_await all_reduce<reduce::Sum>(i());
    EXPECT_EQ(sum, count * (count - 1) / 2);
    const long product = co_await all_reduce<reduce::Product>(long{1 + i() % 2});
    EXPECT_EQ(product, 1L << (count / 2));
    const double least = co_await all_reduce<reduce::Min>(10.5 - i());
    EXPECT_EQ(least, 10.5 - (count - 1));
    const int most = co_await all_reduce<reduce::Max>(-i());
    EXPECT_EQ(most, 0);
    const bool all = co_await all_reduce<reduce::And>(i() >= 0);
    const bool any = co_await all_reduce<reduce::Or>(i() == 3);
    const bool odd = co_await all_reduce<reduce::Xor>(i() == 2);
    EXPECT_TRUE(all && any && odd);
    const unsigned both = co_await all_reduce<reduce::BitAnd>(0xf0u | static_cast<unsigned>(i()));
    const unsigned either = co_await all_reduce<reduce::BitOr>(1u << i());
    const unsigned parity = co_await all_reduce<reduce::BitXor>(1u << i());
    EXPECT_EQ(both, 0xf0u);
    EXPECT_EQ(either, (1u << count) - 1);
    EXPECT_EQ(parity, (1u << count) - 1);
    const std::vector<int> gathered = co_await all_reduce<reduce::Gather>(i() * i());
    EXPECT_EQ(gathered.size(), static_cast<std::size_t>(count));
    for (int k = 0; k < count; ++k) EXPECT_EQ(gathered[static_cast<std::size_t>(k)], k * k);
    const std::string text = co_await all_reduce<reduce::Concat>(std::string(1, static_cast<char>('a' + i())));
    EXPECT_EQ(text, std::string("abcdefghijklmnop").substr(0, static_cast<std::size_t>(count)));
    const std::vector<double> mine(3, i() * 1.0);
    const std::vector<double> arrays = co_await all_reduce<reduce::Sum>(std::span<const double>(mine));
    EXPECT_EQ(arrays, std::vector<double>(3, count * (count - 1) / 2.0));
    const auto pair = co_await all_reduce<reduce::Each<reduce::Sum, reduce::Max>>(std::make_tuple(1, 2.0 * i()));
    EXPECT_EQ(pair, std::make_tuple(count, 2.0 * (count - 1)));
    const Hit hit = co_await all_reduce<reduce::By<&closer>>(Hit{std::abs(i() - 2.25), i()});
    EXPECT_EQ(hit.who, 2);
    const std::string longest = co_await all_reduce<Longest>(std::string(static_cast<std::size_t>(i()), 'x'));
    EXPECT_EQ(longest.size(), static_cast<std::size_t>(count - 1));
    co_await barrier();
  }

  /// Several under way: nothing is awaited in between.
  void burst(int rounds, Callback<int> sum, Callback<std::vector<int>> list) {
    for (int round = 0; round < rounds; ++round) {
      contribute<reduce::Sum>(round * 100 + i(), sum);
      contribute<reduce::Gather>(round, list);
    }
  }
  void total(int value) { totals_.push_back(value); }
  std::vector<int> totals() { return totals_; }
  void lists(const std::vector<int>& values) { totals_.push_back(static_cast<int>(values.size())); }

  void mixed(Callback<int> to) {
    if (i() == 2) {
      contribute<reduce::Max>(i(), to);
    } else {
      contribute<reduce::Sum>(i(), to);
    }
  }
  void lengths(Callback<std::vector<int>> to) { contribute<reduce::Sum>(std::vector<int>(i() == 1 ? 4 : 3, 1), to); }
  void targets(Callback<int> one, Callback<int> other) { contribute<reduce::Sum>(1, i() == 1 ? one : other); }

  // --- sections
  void add(int value) { totals_.push_back(value); }
  Task<void> in_section(Section<Summand> section, int members) {
    const int count = co_await all_reduce<reduce::Sum>(section, 1);
    EXPECT_EQ(count, members);
    co_await barrier(section);
    const std::vector<int> who = co_await all_reduce<reduce::Gather>(section, i());
    EXPECT_EQ(static_cast<int>(who.size()), members);
    EXPECT_TRUE(std::is_sorted(who.begin(), who.end()));
    contribute<reduce::Sum>(section, i(), callback<&Summand::total>(section));
  }
  void intrude(Section<Summand> section) { contribute<reduce::Sum>(section, 1, Callback<int>()); }
  void count_me(Callback<int> to) { contribute<reduce::Sum>(1, to); }

  Task<void> on_device(int count) {
    Runtime& runtime = chares().runtime();
    Memory memory = runtime.allocate(runtime.device_kind(), 64 * sizeof(float));
    std::vector<float> values(64, static_cast<float>(i()));
    co_await copy_done(runtime, memory, std::span<float>(values));
    co_await all_reduce_device<reduce::Sum, float>(memory);
    co_await copy_done(runtime, std::span<float>(values), memory);
    EXPECT_EQ(values, std::vector<float>(64, static_cast<float>(count * (count - 1) / 2)));
    co_await contribute_device<reduce::Max, float>(memory, Callback<std::vector<float>>());
  }

 private:
  std::vector<int> totals_;
};

Task<void> all_kinds(Chares& chares) {
  for (const int count : {4, 7, 16}) {
    const auto cells = create_array<Summand>(chares, count, Placement::round_robin());
    std::vector<Future<void>> done;
    for (int i = 0; i < count; ++i) done.push_back(cells[i].ask<&Summand::all_kinds>(count));
    for (auto& future : done) co_await future;
  }
}
TEST(Reduction, every_operation_in_one_process) {
  Program program(test::ranks(1));
  EXPECT_EQ(program.run(all_kinds), 0) << program.failure();
}
TEST(Reduction, every_operation_over_ranks_that_reorder) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Program program(test::reordering(seed, 2 + static_cast<int>(seed % 8)));
    EXPECT_EQ(program.run(all_kinds), 0) << "seed " << seed << ": " << program.failure();
  }
}
TEST(Reduction, every_operation_over_a_faulty_wire) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Program program(test::faulty(seed, 6));
    EXPECT_EQ(program.run(all_kinds), 0) << "seed " << seed << ": " << program.failure();
  }
}

Task<void> several_in_flight(Chares& chares) {
  constexpr int kRounds = 20, kCells = 9;
  const auto cells = create_array<Summand>(chares, kCells, Placement::round_robin());
  const auto other = create_array<Summand>(chares, 3, Placement::round_robin());
  cells.call<&Summand::burst>(kRounds, callback<&Summand::total>(other[1]), callback<&Summand::lists>(other));
  std::vector<int> totals;
  while (totals.size() < 2 * kRounds) totals = co_await other[1].ask<&Summand::totals>();
  int sums = 0, lists = 0;
  for (const int total : totals) {
    if (total == kCells) {
      ++lists;
    } else {
      sums += total;
    }
  }
  EXPECT_EQ(lists, kRounds);
  EXPECT_EQ(sums, kRounds * 36 + kCells * 100 * 190);
  while (totals.size() != kRounds) totals = co_await other[2].ask<&Summand::totals>();
}
TEST(Reduction, several_are_under_way_and_each_finds_its_own) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Program program(test::reordering(seed, 4));
    EXPECT_EQ(program.run(several_in_flight), 0) << "seed " << seed << ": " << program.failure();
  }
}

enum class Wrong { operation, length, target };
Task<void> wrong_use(Chares& chares, Wrong what) {
  const auto cells = create_array<Summand>(chares, 4, Placement::round_robin());
  if (what == Wrong::operation) {
    cells.call<&Summand::mixed>(Callback<int>());
  } else if (what == Wrong::length) {
    cells.call<&Summand::lengths>(Callback<std::vector<int>>());
  } else {
    cells.call<&Summand::targets>(callback<&Summand::total>(cells[0]), callback<&Summand::total>(cells[3]));
  }
  co_await chares.until_exit();
}
bool contains(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) == std::string::npos) return false;
  }
  return true;
}
TEST(Reduction, contributions_that_do_not_fit_are_an_error_that_names_both) {
  for (const int ranks : {1, 4}) {
    Program operations(test::ranks(ranks));
    EXPECT_EQ(operations.run(wrong_use, Wrong::operation), 1);
    EXPECT_TRUE(
        contains(operations.failure(), {"reduction 0 of", "Summand[2]", "reduce::Max of int", "reduce::Sum of int"}))
        << operations.failure();
    Program lengths(test::ranks(ranks));
    EXPECT_EQ(lengths.run(wrong_use, Wrong::length), 1);
    EXPECT_TRUE(contains(lengths.failure(), {"Summand[1]", "3 values", "contributed 4", "one length"}))
        << lengths.failure();
    Program targets(test::ranks(ranks));
    EXPECT_EQ(targets.run(wrong_use, Wrong::target), 1);
    EXPECT_TRUE(contains(targets.failure(), {"another target", "Summand[0]", "Summand[3]"})) << targets.failure();
  }
}

Task<void> sections(Chares& chares) {
  const auto cells = create_array<Summand>(chares, 20, Placement::round_robin());
  const std::vector<Index<1>> list{Index<1>(17), Index<1>(2), Index<1>(5)};
  std::vector<std::pair<Section<Summand>, int>> all;
  all.emplace_back(make_section(chares, cells, list), 3);
  all.emplace_back(make_section(chares, cells, Index<1>(4), Index<1>(16), Index<1>(3)), 4);
  all.emplace_back(make_section(chares, cells, [](const Index<1>& at) { return at[0] % 2 == 0; }), 10);
  all.emplace_back(make_section(chares, cells, Index<1>(7), Index<1>(8)), 1);
  for (const auto& [section, members] : all) {
    section.call<&Summand::in_section>(section, members);
    section.call<&Summand::add>(1000);
  }
  int expected = 0;  // of cell 2: in the first and the third
  std::vector<int> totals;
  while (totals.size() < 4) totals = co_await cells[2].ask<&Summand::totals>();
  for (const int total : totals) expected += total;
  EXPECT_EQ(expected, 2000 + (17 + 2 + 5) + 90);
  for (std::size_t all_totals = 0; all_totals != 36;) {  // two for each of the 18 memberships
    all_totals = 0;
    for (int i = 0; i < 20; ++i) {
      totals = co_await cells[i].ask<&Summand::totals>();
      all_totals += totals.size();
    }
  }
}
TEST(Section, multicasts_and_reductions_reach_the_members) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Program program(test::reordering(seed, 1 + static_cast<int>(seed % 7)));
    EXPECT_EQ(program.run(sections), 0) << "seed " << seed << ": " << program.failure();
  }
}
Task<void> intruder(Chares& chares) {
  const auto cells = create_array<Summand>(chares, 4, Placement::round_robin());
  const auto section = make_section(chares, cells, Index<1>(0), Index<1>(2));
  cells[3].call<&Summand::intrude>(section);
  co_await chares.until_exit();
}
Task<void> empty_section(Chares& chares) {
  const auto cells = create_array<Summand>(chares, 4, Placement::round_robin());
  make_section(chares, cells, [](const Index<1>&) { return false; });
  co_return;
}
TEST(Section, strangers_and_empty_sections_are_refused) {
  Program stranger(test::ranks(2));
  EXPECT_EQ(stranger.run(intruder), 1);
  EXPECT_TRUE(contains(stranger.failure(), {"Summand[3] on rank 1", "no member of"})) << stranger.failure();
  Program empty(test::ranks(2));
  EXPECT_EQ(empty.run(empty_section), 1);
  EXPECT_TRUE(contains(empty.failure(), {"without members", "Summand"})) << empty.failure();
}

Task<void> dynamic(Chares& chares) {
  const auto cells = create_sparse<Summand>(chares, Placement::round_robin());
  for (int i = 0; i < 5; ++i) cells.insert(i * 3);
  for (int i = 0; i < 5; ++i) static_cast<void>(co_await cells[i * 3].ask<&Summand::totals>());
  auto first = future_callback<int>(chares);
  cells.call<&Summand::count_me>(first.to);
  int count = co_await first.future;
  EXPECT_EQ(count, 5);
  // One more on a rank that may have had none, one less.
  cells.insert(100);
  cells[3].destroy();
  static_cast<void>(co_await cells[100].ask<&Summand::totals>());
  try {  // the destruction has happened when a later message to it is refused
    static_cast<void>(co_await cells[3].ask<&Summand::totals>());
  } catch (const Error&) {
  }
  auto second = future_callback<int>(chares);
  cells.call<&Summand::count_me>(second.to);
  count = co_await second.future;
  EXPECT_EQ(count, 5);
  // One that never contributes leaves: the others' reduction ends.
  auto third = future_callback<int>(chares);
  for (const int i : {0, 6, 9, 12}) cells[i].call<&Summand::count_me>(third.to);
  cells[100].destroy();
  count = co_await third.future;
  EXPECT_EQ(count, 4);
  // Only one is left anywhere: all other ranks are empty.
  for (const int i : {0, 6, 9}) cells[i].destroy();
  for (int round = 0; round < 3; ++round) {
    auto last = future_callback<int>(chares);
    cells[12].call<&Summand::count_me>(last.to);
    count = co_await last.future;
    EXPECT_EQ(count, 1);
  }
}
TEST(Reduction, inserted_and_destroyed_elements_do_not_hang_it) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Program program(test::reordering(seed, 1 + static_cast<int>(seed % 7)));
    EXPECT_EQ(program.run(dynamic), 0) << "seed " << seed << ": " << program.failure();
  }
}

struct Note {
  Callback<int> to;
  void serialize(auto& archive) { archive(to); }
};
class Caller : public Chare<Caller> {
 public:
  void fire(Note note, int value) { note.to(value); }
  void text(Callback<int, std::string> to) { to(index()[0], "word"); }
  void keep(Callback<> to) { kept_ = to; }
  void use() { kept_(); }

 private:
  Callback<> kept_;
};
Task<void> callbacks(Chares& chares) {
  const auto callers = create_array<Caller>(chares, 3, Placement::round_robin());
  const auto cells = create_array<Summand>(chares, 3, Placement::round_robin());
  auto [to, future] = future_callback<int>(chares);
  callers[2].call<&Caller::fire>(Note{to}, 41);
  callers[1].call<&Caller::fire>(Note{to}, 41);  // the second is ignored
  const int got = co_await future;
  EXPECT_EQ(got, 41);
  auto pair = future_callback<int, std::string>(chares);
  callers[1].call<&Caller::text>(pair.to);
  const auto [number, word] = co_await pair.future;
  EXPECT_EQ(number, 1);
  EXPECT_EQ(word, "word");
  int sum = 0;
  const auto add = Callback<int>::function(chares, [&sum](int value) { sum += value; });
  for (int i = 0; i < 3; ++i) callers[i].call<&Caller::fire>(Note{add}, 1 << i);
  callers[0].call<&Caller::fire>(Note{}, 9);  // ignored
  callers[1].call<&Caller::fire>(Note{callback<&Summand::total>(cells[2])}, 5);
  callers[2].call<&Caller::fire>(Note{callback<&Summand::total>(cells)}, 6);
  std::vector<int> totals;
  while (totals.size() < 2 || sum != 7) totals = co_await cells[2].ask<&Summand::totals>();
  EXPECT_EQ(totals[0] + totals[1], 11);
  EXPECT_EQ(to, to);
  EXPECT_FALSE(to == add);
  callers[1].call<&Caller::keep>(Callback<>::exit(chares, 5));
  callers[1].call<&Caller::use>();
  co_await chares.until_exit();
}
TEST(Callbacks, every_target_from_every_rank) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Program program(test::reordering(seed, 3));
    EXPECT_EQ(program.run(callbacks), 5) << "seed " << seed << ": " << program.failure();
  }
}

Task<void> on_device(Chares& chares) {
  const auto cells = create_array<Summand>(chares, 5, Placement::round_robin());
  std::vector<Future<void>> done;
  for (int i = 0; i < 5; ++i) done.push_back(cells[i].ask<&Summand::on_device>(5));
  for (auto& future : done) co_await future;
}
TEST(Reduction, device_arrays_are_reduced_through_host_memory) {
  test::JobOptions options = test::ranks(2);
  options.gpu = GpuChoice::emulated;
  Program program(options);
  EXPECT_EQ(program.run(on_device), 0) << program.failure();
  Program host(test::ranks(2));
  EXPECT_EQ(host.run(on_device), 0) << host.failure();
}

}  // namespace
}  // namespace brant
