// Collections: dimensions, placement, sparse arrays, groups, single chares.
#include "models/chare/core.h"
#include "unit/chare/program.h"

namespace brant {
namespace {

using test::Program;

template <int N>
class Point : public Chare<Point<N>, Index<N>> {
 public:
  int number() {
    int number = 0;
    for (int i = 0; i < N; ++i) number = number * 3 + this->index()[i];
    return number;
  }
  int where() { return this->chares().rank().value; }
};

template <int N>
Task<void> dimension(Chares& chares) {
  Index<N> extent;
  int total = 1;
  for (int i = 0; i < N; ++i) {
    extent[i] = 3;
    total *= 3;
  }
  const auto points = create_array<Point<N>>(chares, extent, Placement::block());
  int last_rank = 0;
  for (int number = 0; number < total; ++number) {
    Index<N> index;
    for (int i = N, rest = number; i-- > 0; rest /= 3) index[i] = rest % 3;
    const int got = co_await points[index].template ask<&Point<N>::number>();
    EXPECT_EQ(got, number);
    const int rank = co_await points[index].template ask<&Point<N>::where>();
    EXPECT_GE(rank, last_rank) << "a block placement is contiguous";
    last_rank = rank;
  }
  EXPECT_EQ(last_rank, chares.size() - 1);
}

TEST(Array, has_one_to_six_dimensions) {
  EXPECT_EQ(Program(test::ranks(3)).run(dimension<1>), 0);
  EXPECT_EQ(Program(test::ranks(3)).run(dimension<2>), 0);
  EXPECT_EQ(Program(test::ranks(3)).run(dimension<3>), 0);
  EXPECT_EQ(Program(test::ranks(2)).run(dimension<4>), 0);
  EXPECT_EQ(Program(test::ranks(2)).run(dimension<5>), 0);
  EXPECT_EQ(Program(test::ranks(2)).run(dimension<6>), 0);
}

int diagonal(const Index<2>& index, int ranks) { return (index[0] + index[1]) % ranks; }

Task<void> placements(Chares& chares) {
  const auto mapped = create_array<Point<2>>(chares, {3, 3}, Placement::by<diagonal>());
  const int known = co_await mapped[{0, 0}].ask<&Point<2>::where>();
  EXPECT_EQ(known, 0);
  const auto bound = create_array<Point<2>>(chares, {3, 3}, Placement::like(mapped));
  for (int x = 0; x < 3; ++x) {
    for (int y = 0; y < 3; ++y) {
      const int first = co_await mapped[{x, y}].ask<&Point<2>::where>();
      EXPECT_EQ(first, (x + y) % chares.size());
      const int second = co_await bound[{x, y}].ask<&Point<2>::where>();
      EXPECT_EQ(second, first);
    }
  }
}
TEST(Array, is_placed_by_a_function_of_the_user_and_like_another) {
  Program program(test::reordering(4));
  EXPECT_EQ(program.run(placements), 0) << program.failure();
}

Task<void> listed(Chares& chares) {
  const std::vector<std::int32_t> ranks{2, 0, 0, 2, 1, 2};
  const auto points = create_array<Point<2>>(chares, {2, 3}, Placement::listed(ranks));
  const auto bound = create_array<Point<2>>(chares, {2, 3}, Placement::like(points));
  for (int x = 0; x < 2; ++x) {
    for (int y = 0; y < 3; ++y) {
      const int first = co_await points[{x, y}].ask<&Point<2>::where>();
      EXPECT_EQ(first, ranks[static_cast<std::size_t>(x * 3 + y)]);
      const int second = co_await bound[{x, y}].ask<&Point<2>::where>();
      EXPECT_EQ(second, first);
    }
  }
}
TEST(Array, is_placed_by_a_list_and_like_another_that_is) {
  Program program(test::reordering(4));
  EXPECT_EQ(program.run(listed), 0) << program.failure();
}

void expect_refused(Chares& chares, const Index<2>& extent, std::vector<std::int32_t> ranks, const std::string& text) {
  try {
    create_array<Point<2>>(chares, extent, Placement::listed(std::move(ranks)));
    ADD_FAILURE() << "not refused: " << text;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}
Task<void> wrong_lists(Chares& chares) {
  expect_refused(chares, {1, 2}, {0, 2}, "puts [0,1] on rank 2: the job has ranks 0 to 1");
  expect_refused(chares, {2, 1}, {-1, 0}, "puts [0,0] on rank -1: the job has ranks 0 to 1");
  expect_refused(chares, {2, 2}, {0, 1}, "has 4 elements, and the list of its placement 2");
  expect_refused(chares, {1 << 12, (1 << 12) + 1}, {0, 1}, "a list places 16777216 at most");
  EXPECT_THROW(create_sparse<Point<2>>(chares, Placement::listed({0})), Error);
  const auto points = create_array<Point<2>>(chares, {1, 2}, Placement::listed({0, 1}));
  EXPECT_THROW(create_sparse<Point<2>>(chares, Placement::like(points)), Error);
  const int there = co_await points[{0, 1}].ask<&Point<2>::where>();
  EXPECT_EQ(there, 1);
}
TEST(Array, refuses_lists_that_are_none) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(wrong_lists), 0) << program.failure();
}

Task<void> placed_by_default(Chares& chares) {
  const auto unnamed = create_array<Point<1>>(chares, {8});
  const auto blocks = create_array<Point<1>>(chares, {8}, Placement::block());
  for (int x = 0; x < 8; ++x) {
    const int there = co_await unnamed[x].ask<&Point<1>::where>();
    const int wanted = co_await blocks[x].ask<&Point<1>::where>();
    EXPECT_EQ(there, wanted);
  }
}
TEST(Array, is_placed_in_blocks_unless_another_placement_is_named) {
  Program program(test::ranks(3));
  EXPECT_EQ(program.run(placed_by_default), 0) << program.failure();
}

Task<void> with_news(Chares& chares) {
  const auto points = create_array<Point<2>>(chares, {2, 4});
  detail::Collection& collection = *chares.core().collections().find(points.collection());
  const auto key = detail::ElementKey::of(Index<2>{1, 2}), other = detail::ElementKey::of(Index<2>{1, 1});
  const std::int32_t home = collection.home_of(key);
  EXPECT_EQ(home, 2);
  EXPECT_EQ(collection.rank_of(key), home);
  const place::Identity id = collection.identity_of(key);
  EXPECT_EQ(id, place::Identity::of(2, 6));
  EXPECT_EQ(collection.places(), nullptr) << "what never moved costs nothing";
  place::Directory& directory = chares.core().following().places_of(collection).directory;
  EXPECT_TRUE(directory.add_way(id, {1, 1}));
  EXPECT_EQ(collection.rank_of(key), 1);
  EXPECT_EQ(collection.home_of(key), home) << "that never changes";
  EXPECT_EQ(collection.rank_of(other), collection.home_of(other));
  directory.forget_way(id);
  EXPECT_EQ(collection.rank_of(key), home);
  const int there = co_await points[{1, 2}].ask<&Point<2>::where>();
  EXPECT_EQ(there, home);
}
TEST(Array, asks_the_directory_who_has_moved) {
  Program program(test::ranks(3));
  EXPECT_EQ(program.run(with_news), 0) << program.failure();
}

struct Star {
  std::int32_t galaxy = 0;
  std::int32_t number = 0;
  std::int64_t catalogue = 0;
};

class Body : public Chare<Body, Star> {
 public:
  Body() = default;
  Body(std::string name, double mass) : name_(std::move(name)), mass_(mass) {}
  std::string describe() { return name_ + " " + std::to_string(index().number); }
  double mass() { return mass_; }
  void forget() { this_element().destroy(); }

 private:
  std::string name_;
  double mass_ = 0;
};

Task<void> sparse(Chares& chares) {
  const auto bodies = create_sparse<Body>(chares);
  // The question comes before the element: it waits.
  auto early = bodies[{1, 7, 9}].ask<&Body::describe>();
  for (int i = 0; i < 50; ++i) bodies.insert({1, i, 9}, "sun", i * 0.5);
  const std::string described = co_await early;
  EXPECT_EQ(described, "sun 7");
  for (int i = 0; i < 50; ++i) {
    const double mass = co_await bodies[{1, i, 9}].ask<&Body::mass>();
    EXPECT_EQ(mass, i * 0.5);
  }
  bodies[{1, 7, 9}].destroy();
  try {
    co_await bodies[{1, 7, 9}].ask<&Body::mass>();
    ADD_FAILURE() << "a deleted element answered";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::not_found);
    EXPECT_NE(std::string(error.what()).find("mass"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("Body[0x01000000"), std::string::npos) << error.what();
  }
  bodies.insert({1, 7, 9}, "nova", 3.0);
  const double mass = co_await bodies[{1, 7, 9}].ask<&Body::mass>();
  EXPECT_EQ(mass, 3.0);
  co_await bodies[{1, 8, 9}].ask<&Body::forget>();
  try {
    co_await bodies[{1, 8, 9}].ask<&Body::mass>();
    ADD_FAILURE() << "an element that deleted itself answered";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::not_found);
  }
}
TEST(Array, of_a_user_index_grows_and_shrinks) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Program program(test::faulty(seed));
    EXPECT_EQ(program.run(sparse), 0) << program.failure();
  }
}

class Log : public Chare<Log> {
 public:
  void note(int number) { notes_.push_back(number); }
  std::vector<int> notes() { return notes_; }

 private:
  std::vector<int> notes_;
};
class Writer : public Chare<Writer> {
 public:
  void write(Array<Log> logs, int at) {
    for (int i = 0; i < 8; ++i) logs[at].call<&Log::note>(i);
  }
};
/// Others write to a log while it is made: what came early must stay in front.
Task<void> write_while_inserting(Chares& chares) {
  const Group<Writer> writers = create_group<Writer>(chares);
  for (int at = 0; at < 12; ++at) {
    const Array<Log> logs = create_sparse<Log>(chares, Placement::round_robin());
    auto first = writers[1].ask<&Writer::write>(logs, at);
    auto second = writers[2].ask<&Writer::write>(logs, at);
    logs.insert(at);
    co_await first;
    co_await second;
    std::vector<int> notes;
    while (notes.size() < 16) notes = co_await logs[at].ask<&Log::notes>();
    int from_one = 0, from_other = 0;  // two runs 0 to 7, mixed
    for (const int note : notes) {
      if (note == from_one) {
        ++from_one;
      } else {
        EXPECT_EQ(note, from_other);
        ++from_other;
      }
    }
  }
}
TEST(Array, calls_that_come_before_their_element_keep_their_order) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Program program(test::reordering(seed, 3));
    EXPECT_EQ(program.run(write_while_inserting), 0) << program.failure();
  }
}

class Local : public Chare<Local> {
 public:
  explicit Local(int base) : base_(base) {}
  int rank() { return base_ + chares().rank().value; }

 private:
  int base_;
};
class Alone : public Chare<Alone, Single> {
 public:
  explicit Alone(Group<Local> locals) : locals_(locals) {}
  int here() { return locals_.local()->rank(); }

 private:
  Group<Local> locals_;
};

Task<void> groups(Chares& chares) {
  const Group<Local> locals = create_group<Local>(chares, 100);
  for (int rank = 0; rank < chares.size(); ++rank) {
    const int got = co_await locals[rank].ask<&Local::rank>();
    EXPECT_EQ(got, 100 + rank);
    const auto alone = create_chare<Alone>(chares, Rank{rank}, locals);
    const int here = co_await alone.ask<&Alone::here>();
    EXPECT_EQ(here, 100 + rank);
  }
}
TEST(Array, groups_have_one_member_a_rank_and_single_chares_stand_where_they_are_put) {
  Program program(test::reordering(2, 4));
  EXPECT_EQ(program.run(groups), 0) << program.failure();
}

class Maker : public Chare<Maker> {
 public:
  /// Every rank makes an array of its own while the others do.
  Task<int> make(int size) {
    const auto points = create_array<Point<1>>(chares(), size, Placement::round_robin());
    int sum = 0;
    for (int i = 0; i < size; ++i) sum += co_await points[i].ask<&Point<1>::number>();
    co_return sum;
  }
};
Task<void> making(Chares& chares) {
  const Group<Maker> makers = create_group<Maker>(chares);
  std::vector<Future<int>> sums;
  for (int rank = 0; rank < chares.size(); ++rank) sums.push_back(makers[rank].ask<&Maker::make>(10));
  for (Future<int>& future : sums) {
    const int sum = co_await future;
    EXPECT_EQ(sum, 45);
  }
}
TEST(Array, is_made_from_any_rank_and_messages_wait_for_it) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Program program(test::faulty(seed, 4));
    EXPECT_EQ(program.run(making), 0) << program.failure();
  }
}

}  // namespace
}  // namespace brant
