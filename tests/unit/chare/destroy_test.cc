// What is destroyed: everything it held is given back, and nothing that comes late reaches whoever came after it.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "brant/core/timer.h"
#include "models/chare/collection_ids.h"
#include "models/chare/core.h"
#include "support/allocated_bytes.h"
#include "unit/chare/program.h"

namespace brant {
namespace {

using test::JobOptions;
using test::Program;

class Tile : public Chare<Tile> {
 public:
  explicit Tile(int value = 0) : value_(value) {}

  void add(int value) { value_ += value; }
  int value() { return value_; }
  void sum(Callback<int> to) { contribute<reduce::Sum>(value_, to); }
  Task<int> sum_of_all() { co_return co_await all_reduce<reduce::Sum>(value_); }
  Task<void> wait_for_ever() {
    Promise<> never;
    co_await never.future();
  }

 private:
  int value_;
};

class Hermit : public Chare<Hermit, Single> {
 public:
  int nothing() { return 1; }
  /// From wherever it lives.
  void destroy_array(Array<Tile> cells) { cells.destroy(); }
  void call_cell(Element<Tile> cell) { cell.call<&Tile::add>(1); }
  Task<Status> ask_cell(Element<Tile> cell) {
    try {
      static_cast<void>(co_await cell.ask<&Tile::value>());
    } catch (const Error& error) {
      co_return error.status();
    }
    co_return Status::ok;
  }
  Task<Status> meet_cell(Element<Tile> cell) {
    try {
      static_cast<void>(co_await open_channel(*this, cell));
    } catch (const Error& error) {
      co_return error.status();
    }
    co_return Status::ok;
  }
  Task<void> meet(Element<Hermit> other, std::uint32_t number) {
    Channel channel = co_await open_channel(*this, other, {.number = number});
    channel.close();
  }
};

class Seeker : public Chare<Seeker> {
 public:
  Task<void> seek(Element<Tile> cell) { static_cast<void>(co_await open_channel(*this, cell)); }
};

template <typename T>
Task<Status> outcome_of(Future<T> future, std::string* text = nullptr) {
  try {
    static_cast<void>(co_await future);
  } catch (const Error& error) {
    if (text != nullptr) *text = error.what();
    co_return error.status();
  }
  co_return Status::ok;
}

/// Many rounds take no more memory than some.
template <typename Round>
Task<void> expect_no_growth(Chares& chares, Round round) {
  constexpr int kSome = 5'000, kMany = 15'000;
  for (int i = 0; i < kSome; ++i) co_await round(chares, i);
  co_await chares.quiescence();
  const std::size_t before = test::allocated_bytes();
  for (int i = kSome; i < kMany; ++i) co_await round(chares, i);
  co_await chares.quiescence();
  EXPECT_LE(test::allocated_bytes(), before + 50'000) << "5 bytes for each round";
}

Task<void> array_round(Chares& chares, int number) {
  const auto cells = create_array<Tile>(chares, 6, Placement::round_robin(), number);
  auto [to, sum] = future_callback<int>(chares);
  cells.call<&Tile::sum>(to);
  const int total = co_await sum;
  EXPECT_EQ(total, 6 * number);
  cells.destroy();
}
Task<void> group_round(Chares& chares, int number) {
  const auto cells = create_group<Tile>(chares, number);
  const int value = co_await cells[number % chares.size()].ask<&Tile::value>();
  EXPECT_EQ(value, number);
  cells.destroy();
}
Task<void> section_round(Chares& chares, int number) {
  const auto cells = create_array<Tile>(chares, 6, Placement::round_robin(), number);
  const Section<Tile> some = make_section(chares, cells, Index<1>(1), Index<1>(4));
  some.call<&Tile::add>(1);
  const int value = co_await cells[4].ask<&Tile::value>();
  EXPECT_EQ(value, number);
  co_await chares.quiescence();
  cells.destroy();
}
Task<void> single_round(Chares& chares, int number) {
  const auto one = create_chare<Hermit>(chares, Rank{number % chares.size()});
  static_cast<void>(co_await one.ask<&Hermit::nothing>());
  one.destroy();
}
Task<void> function_round(Chares& chares, int number) {
  Promise<int> promise;
  Future<int> future = promise.future();
  const auto to = Callback<int>::function(chares, [&](int value) { promise.deliver(value); });
  to(number);
  const int value = co_await future;
  EXPECT_EQ(value, number);
  to.destroy();
}
Task<void> future_round(Chares& chares, int) {
  auto [to, future] = future_callback<int>(chares);
  to.destroy();
  const Status status = co_await outcome_of(std::move(future));
  EXPECT_EQ(status, Status::canceled);
}

template <typename Round>
void run_rounds(Round round) {
  Program program(test::ranks(3));
  EXPECT_EQ(program.run([round](Chares& chares) { return expect_no_growth(chares, round); }), 0) << program.failure();
  EXPECT_LE(program.rank(0).counts().elements, 6u);
}

TEST(Destroy, many_arrays_one_after_another_take_no_more_memory) { run_rounds(&array_round); }
TEST(Destroy, many_groups_one_after_another_take_no_more_memory) { run_rounds(&group_round); }
TEST(Destroy, many_single_chares_one_after_another_take_no_more_memory) { run_rounds(&single_round); }
TEST(Destroy, many_functions_one_after_another_take_no_more_memory) { run_rounds(&function_round); }
TEST(Destroy, many_futures_that_are_given_up_take_no_more_memory) { run_rounds(&future_round); }

Task<void> few_sections(Chares& chares) {
  for (int i = 0; i < 100; ++i) co_await section_round(chares, i);
}
TEST(Destroy, takes_the_sections_of_an_array_along) {
  Program program(test::ranks(3));
  EXPECT_EQ(program.run(few_sections), 0) << program.failure();
}

Task<void> sparse_rounds(Chares& chares) {
  const auto cells = create_sparse<Tile>(chares, Placement::round_robin());
  co_await expect_no_growth(chares, [&](Chares&, int number) -> Task<void> {
    cells.insert(number, number);
    const int value = co_await cells[number].ask<&Tile::value>();
    EXPECT_EQ(value, number);
    cells[number].destroy();
  });
  const Status status = co_await outcome_of(cells[14'999].ask<&Tile::value>());
  EXPECT_EQ(status, Status::not_found) << "the last ones are remembered";
}
TEST(Destroy, many_elements_of_a_sparse_array_one_after_another_take_no_more_memory) {
  Program program(test::ranks(1));
  EXPECT_EQ(program.run(sparse_rounds), 0) << program.failure();
}

/// The same keys are made and deleted again and again: all of them are among the last ones.
Task<void> delete_again_and_again(Chares& chares) {
  constexpr int kKeys = 1000;
  const auto cells = create_sparse<Tile>(chares);
  for (int round = 0; round < 6; ++round) {
    for (int key = 0; key < kKeys; ++key) {
      cells.insert(key, key);
      cells[key].destroy();
    }
    co_await chares.quiescence();
  }
  int refused = 0;
  for (int key = 0; key < kKeys; ++key) {
    if (co_await outcome_of(cells[key].ask<&Tile::value>()) == Status::not_found) ++refused;
  }
  EXPECT_EQ(refused, kKeys);
}
TEST(Destroy, remembers_keys_of_a_sparse_array_that_were_deleted_more_than_once) {
  Program program(test::ranks(1));
  EXPECT_EQ(program.run(delete_again_and_again), 0) << program.failure();
}

Task<void> destroy_whom_somebody_waits_for(Chares& chares) {
  const auto one = create_chare<Hermit>(chares, Rank{0}), other = create_chare<Hermit>(chares, Rank{1});
  const auto cells = create_array<Tile>(chares, 4, Placement::round_robin(), 1);
  auto here = one.ask<&Hermit::meet_cell>(cells[1]), there = other.ask<&Hermit::meet_cell>(cells[1]);
  co_await chares.quiescence();
  cells.destroy();
  EXPECT_EQ(co_await here, Status::not_found);
  EXPECT_EQ(co_await there, Status::not_found);
}
TEST(Destroy, tells_those_who_wait_for_a_channel_with_an_element) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(destroy_whom_somebody_waits_for), 0) << program.failure();
}

/// Nobody is left to be told.
Task<void> destroy_both_who_were_to_meet(Chares& chares) {
  const auto cells = create_array<Tile>(chares, 4, Placement::round_robin(), 1);
  const auto others = create_array<Seeker>(chares, 4, Placement::round_robin());
  others[0].call<&Seeker::seek>(cells[1]);
  co_await chares.quiescence();
  others.destroy();
  cells.destroy();
  co_await chares.quiescence();
}
TEST(Destroy, of_two_who_were_to_meet_ends_no_job) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(destroy_both_who_were_to_meet), 0) << program.failure();
}

Task<void> meet_often(Chares& chares) {
  const auto one = create_chare<Hermit>(chares, Rank{0}), other = create_chare<Hermit>(chares, Rank{1});
  for (std::uint32_t i = 0; i < 500; ++i) {
    auto met = one.ask<&Hermit::meet>(other, i);
    co_await other.ask<&Hermit::meet>(one, i);
    co_await met;
  }
  EXPECT_LE(chares.core().channel_desk().named(), 64u);
}
TEST(Destroy, names_of_closed_channels_are_forgotten) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(meet_often), 0) << program.failure();
}

/// Questions to elements on all ranks, by this rank and by another, while the array is destroyed.
Task<void> destroy_in_between(Chares& chares, int* answered, int* refused) {
  const auto one = create_chare<Hermit>(chares, Rank{chares.size() - 1});
  const auto cells = create_array<Tile>(chares, 7, Placement::round_robin(), 5);
  std::vector<Future<int>> own;
  std::vector<Future<Status>> others;
  for (int i = 0; i < 140; ++i) {
    if (i == 70) cells.destroy();
    own.push_back(cells[i % 7].ask<&Tile::value>());
    others.push_back(one.ask<&Hermit::ask_cell>(cells[i % 7]));
  }
  const auto count = [&](Status status) {
    EXPECT_TRUE(status == Status::ok || status == Status::not_found) << status_name(status);
    ++*(status == Status::ok ? answered : refused);
  };
  for (Future<int>& each : own) count(co_await outcome_of(std::move(each)));
  for (Future<Status>& each : others) count(co_await each);
}
TEST(Destroy, with_questions_under_way_answers_or_refuses_each) {
  for (const int ranks : {1, 2, 3, 6}) {
    int answered = 0, refused = 0;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      Program program(test::reordering(seed, ranks));
      EXPECT_EQ(program.run(destroy_in_between, &answered, &refused), 0) << program.failure();
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(program.rank(rank).counts().elements, rank == ranks - 1 ? 1u : 0u) << "rank " << rank;
      }
    }
    EXPECT_EQ(answered + refused, 5 * 280);
    EXPECT_GT(answered, 0);
    EXPECT_GT(refused, 0);
  }
}

Task<void> make_a_successor(Chares& chares) {
  const auto old = create_array<Tile>(chares, 4, Placement::round_robin(), 1);
  static_cast<void>(co_await old[3].ask<&Tile::value>());
  old.destroy();
  const auto cells = create_array<Tile>(chares, 4, Placement::round_robin(), 2);
  for (int i = 0; i < 4; ++i) {
    const int value = co_await cells[i].ask<&Tile::value>();
    EXPECT_EQ(value, 2);
    std::string text;
    const Status status = co_await outcome_of(old[i].ask<&Tile::value>(), &text);
    EXPECT_EQ(status, Status::not_found);
    EXPECT_NE(text.find("::Tile (array"), std::string::npos) << text;
    EXPECT_NE(text.find("after the array was destroyed"), std::string::npos) << text;
  }
}
TEST(Destroy, a_late_message_does_not_reach_the_successor) {
  for (const int ranks : {1, 3}) {
    Program program(test::reordering(3, ranks));
    EXPECT_EQ(program.run(make_a_successor), 0) << program.failure();
  }
}

TEST(Destroy, numbers_of_arrays_say_whether_they_have_gone_or_are_to_come) {
  detail::CollectionIds giver(64, 2), taker(64, 2);  // 31 numbers for each rank
  std::vector<std::uint32_t> made;
  for (int i = 0; i < 100; ++i) {
    const std::uint32_t id = giver.next(1);
    EXPECT_GT(id, 32u);
    EXPECT_LT(id, 64u);
    EXPECT_FALSE(taker.has_gone(id)) << i;
    taker.note_made(id);
    made.push_back(id);
    for (int age = 0; age < std::min(i, 15); ++age)
      EXPECT_TRUE(taker.has_gone(made[made.size() - 1 - static_cast<std::size_t>(age)]));
  }
  EXPECT_EQ(made[31], made[0]) << "from the start again";
}

/// An array of which others hear while it is made.
Task<void> destroy_elsewhere(Chares& chares) {
  const auto one = create_chare<Hermit>(chares, Rank{1});
  const auto cells = create_array<Tile>(chares, 6, Placement::round_robin(), 1);
  co_await one.ask<&Hermit::destroy_array>(cells);
  co_await chares.quiescence();
}
TEST(Destroy, before_the_array_is_made_everywhere_waits_for_that) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Program program(test::reordering(seed, 4));
    EXPECT_EQ(program.run(destroy_elsewhere), 0) << program.failure();
    for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(program.rank(rank).counts().elements, rank == 1 ? 1u : 0u);
  }
}

Task<void> destroy_an_open_reduction(Chares& chares) {
  const auto cells = create_array<Tile>(chares, 6, Placement::round_robin(), 1);
  auto [to, sum] = future_callback<int>(chares);
  for (int i = 0; i < 5; ++i) cells[i].call<&Tile::sum>(to);  // one is missing
  auto forever = cells[2].ask<&Tile::wait_for_ever>();
  for (int i = 0; i < 6; ++i) static_cast<void>(co_await cells[i].ask<&Tile::value>());
  cells.destroy();
  std::string text;
  const Status status = co_await outcome_of(std::move(sum), &text);
  EXPECT_EQ(status, Status::not_found);
  EXPECT_NE(text.find("reduction 0 of"), std::string::npos) << text;
  const Status unanswered = co_await outcome_of(std::move(forever), &text);
  EXPECT_EQ(unanswered, Status::not_found);
  EXPECT_NE(text.find("::wait_for_ever on rank"), std::string::npos) << text;
}
TEST(Destroy, with_a_reduction_open_fails_who_waits_for_it) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Program program(test::reordering(seed, 3));
    EXPECT_EQ(program.run(destroy_an_open_reduction), 0) << program.failure();
  }
}

Task<void> destroy_with_results_awaited(Chares& chares) {
  const auto cells = create_array<Tile>(chares, 6, Placement::round_robin(), 1);
  std::vector<Future<int>> sums;
  for (int i = 0; i < 5; ++i) sums.push_back(cells[i].ask<&Tile::sum_of_all>());
  for (int i = 0; i < 6; ++i) static_cast<void>(co_await cells[i].ask<&Tile::value>());
  cells.destroy();
  for (Future<int>& sum : sums) {
    const Status status = co_await outcome_of(std::move(sum));
    EXPECT_EQ(status, Status::not_found);
  }
}
TEST(Destroy, with_coroutines_in_a_reduction_ends_them_and_tells_who_asked) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Program program(test::reordering(seed, 3));
    EXPECT_EQ(program.run(destroy_with_results_awaited), 0) << program.failure();
  }
}

Task<void> destroy_with_a_question_to_nobody(Chares& chares) {
  const auto cells = create_sparse<Tile>(chares, Placement::round_robin());
  auto nobody = cells[1].ask<&Tile::value>();
  cells.insert(0, 1);
  static_cast<void>(co_await cells[0].ask<&Tile::value>());
  co_await chares.quiescence();
  cells.destroy();
  const Status status = co_await outcome_of(std::move(nobody));
  EXPECT_EQ(status, Status::not_found);
}
TEST(Destroy, refuses_what_waits_for_an_element_that_was_never_inserted) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(destroy_with_a_question_to_nobody), 0) << program.failure();
}

Task<void> call_the_destroyed(Chares& chares) {
  const auto one = create_chare<Hermit>(chares, Rank{1});
  const auto cells = create_array<Tile>(chares, 4, Placement::round_robin(), 1);
  static_cast<void>(co_await cells[3].ask<&Tile::value>());
  cells.destroy();
  co_await chares.quiescence();
  one.call<&Hermit::call_cell>(cells[0]);
  co_await chares.until_exit();
}
TEST(Destroy, a_call_that_comes_later_ends_the_job_and_says_of_what) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(call_the_destroyed), 1);
  for (const char* part : {"a call of add", "Tile", "array", "from rank 1", "was destroyed"}) {
    EXPECT_NE(program.failure().find(part), std::string::npos) << program.failure();
  }
}

Task<void> destroy_twice(Chares& chares) {
  const auto cells = create_array<Tile>(chares, 4, Placement::round_robin(), 1);
  cells.destroy();
  cells.destroy();
  co_await chares.until_exit();
}
TEST(Destroy, twice_is_an_error) {
  Program program(test::ranks(1));
  EXPECT_EQ(program.run(destroy_twice), 1);
  EXPECT_NE(program.failure().find("a destroy of array"), std::string::npos) << program.failure();
}

Task<void> call_a_destroyed_function(Chares& chares) {
  const auto old = Callback<>::function(chares, [] {});
  old.destroy();
  co_await yield(chares.runtime().worker());
  co_await chares.quiescence();
  const auto young = Callback<>::function(chares, [] { ADD_FAILURE() << "the successor was called"; });
  EXPECT_EQ(young.target().number, old.target().number);
  EXPECT_FALSE(young == old);
  old();
  co_await chares.until_exit();
}
TEST(Destroy, a_function_that_is_called_later_ends_the_job) {
  Program program(test::ranks(1));
  EXPECT_EQ(program.run(call_a_destroyed_function), 1);
  EXPECT_NE(program.failure().find("a callback was called, or destroyed, after it was destroyed"), std::string::npos)
      << program.failure();
}

TEST(Destroy, numbers_of_single_chares_do_not_come_again) {
  using detail::SingleNumber;
  for (const std::uint64_t count :
       {std::uint64_t{0}, std::uint64_t{0xff'ffff}, std::uint64_t{0x100'0000}, std::uint64_t{1} << 40}) {
    for (const std::int32_t maker : {0, 1, 65'535, 65'536, 1'000'000}) {
      const SingleNumber number{77'777, maker, count};
      const SingleNumber back = SingleNumber::of(number.key());
      EXPECT_EQ(back.rank, 77'777);
      EXPECT_EQ(back.maker, maker);
      EXPECT_EQ(back.count, count);
      EXPECT_EQ(number.key().wide(), count > 0xff'ffff || maker > 65'535);
    }
  }
}

/// Speaks to others, and to all, while it is destroyed.
class Heir : public Chare<Heir> {
 public:
  explicit Heir(std::uint64_t destroyed_here) : destroyed_here_(destroyed_here) {}
  ~Heir() {
    const Array<Heir> all = this_array();
    EXPECT_EQ(all.extent()[0], 8);
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(all[i].local(), nullptr);
      all[i].call<&Heir::take>(1);
      static_cast<void>(all[i].ask<&Heir::ask>());
    }
    all.call<&Heir::take>(2);
    contribute<reduce::Sum>(1, Callback<int>());
    ++*reinterpret_cast<int*>(destroyed_here_);
  }
  void take(int) {}
  int ask() { return 1; }

 private:
  std::uint64_t destroyed_here_;  ///< Address of a count.
};

Task<void> leave_heirs(Chares& chares, int* destroyed) {
  const auto heirs =
      create_array<Heir>(chares, 8, Placement::round_robin(), reinterpret_cast<std::uint64_t>(destroyed));
  for (int i = 0; i < 8; ++i) co_await heirs[i].ask<&Heir::ask>();
}
TEST(Destroy, a_destructor_at_the_end_of_the_program_may_call_its_array) {
  int destroyed = 0;
  {
    Program program(test::ranks(3));
    EXPECT_EQ(program.run(leave_heirs, &destroyed), 0) << program.failure();
    EXPECT_EQ(destroyed, 0);
  }
  EXPECT_EQ(destroyed, 8);
}

}  // namespace
}  // namespace brant
