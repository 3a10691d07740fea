// What goes wrong is said once, with the name of the chare, its index, the method and the rank.
#include <stdexcept>

#include "support/restless.h"
#include "unit/chare/program.h"

namespace brant {
namespace {

using test::JobOptions;
using test::Program;

class Fragile : public Chare<Fragile, Index<2>> {
 public:
  explicit Fragile(int bad_column) {
    if (index()[1] == bad_column) throw std::runtime_error("no room for this column");
  }
  int fail(int code) { throw std::runtime_error("code " + std::to_string(code)); }
  Task<int> fail_late(int code) {
    co_await this_element().ask<&Fragile::nothing>();
    throw Error(Status::device_failed, "late " + std::to_string(code));
  }
  void nothing() {}
  void reach_outside() { this_array()[{0, 99}].call<&Fragile::nothing>(); }
  void leave(int code) { chares().exit(code); }
  void run_another_program() { static_cast<void>(chares().run(do_nothing())); }

 private:
  static Task<void> do_nothing() { co_return; }
};

bool contains(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) == std::string::npos) return false;
  }
  return true;
}

Array<Fragile> make(Chares& chares, int bad_column = -1) {
  return create_array<Fragile>(chares, {2, 3}, Placement::round_robin(), bad_column);
}

Task<void> failing_futures(Chares& chares) {
  const auto fragile = make(chares);
  for (int y = 0; y < 3; ++y) {
    try {
      co_await fragile[{1, y}].ask<&Fragile::fail>(7);
      ADD_FAILURE() << "no exception";
    } catch (const Error& error) {
      EXPECT_TRUE(contains(error.what(), {"Fragile[1," + std::to_string(y) + "]", "fail", "rank", "code 7"}))
          << error.what();
    }
    try {
      co_await fragile[{1, y}].ask<&Fragile::fail_late>(8);
      ADD_FAILURE() << "no exception";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::device_failed);
      EXPECT_TRUE(contains(error.what(), {"Fragile", "fail_late", "late 8"})) << error.what();
    }
  }
}
TEST(Errors, an_exception_travels_to_the_future_of_the_caller) {
  Program program(test::reordering(1));
  EXPECT_EQ(program.run(failing_futures), 0) << program.failure();
}

Task<void> fail_unasked(Chares& chares) {
  make(chares)[{1, 1}].call<&Fragile::fail>(7);
  co_await chares.until_exit();
}
TEST(Errors, without_a_future_it_ends_the_job_with_one_text) {
  Program program(test::ranks(3));
  EXPECT_EQ(program.run(fail_unasked), 1);
  EXPECT_TRUE(contains(program.failure(), {"Fragile[1,1]", "fail", "rank 1", "code 7"})) << program.failure();
  EXPECT_EQ(program.rank(2).exit_code(), 1);
}

Task<void> fail_unasked_late(Chares& chares) {
  make(chares)[{1, 1}].call<&Fragile::fail_late>(7);
  co_await chares.until_exit();
}
TEST(Errors, an_unasked_coroutine_ends_the_job_too) {
  Program program(test::ranks(3));
  EXPECT_EQ(program.run(fail_unasked_late), 1);
  EXPECT_TRUE(contains(program.failure(), {"Fragile[1,1]", "fail_late", "rank 1", "late 7"})) << program.failure();
}

Task<void> fail_in_constructor(Chares& chares) {
  static_cast<void>(make(chares, 2));
  co_await chares.until_exit();
}
TEST(Errors, an_exception_in_a_constructor_names_the_element) {
  Program program(test::ranks(1));
  EXPECT_EQ(program.run(fail_in_constructor), 1);
  EXPECT_TRUE(contains(program.failure(), {"constructor", "Fragile[0,2]", "rank 0", "no room for this column"}))
      << program.failure();
}

Task<void> index_outside(Chares& chares) {
  const auto fragile = make(chares);
  for (const Index<2> index : {Index<2>(2, 0), Index<2>(0, 3), Index<2>(-1, 0)}) {
    try {
      fragile[index].call<&Fragile::nothing>();
      ADD_FAILURE() << "no exception";
    } catch (const Error& error) {
      EXPECT_TRUE(contains(error.what(), {"Fragile[", "outside", "[2,3]", "rank 0"})) << error.what();
    }
  }
  fragile[{1, 0}].call<&Fragile::reach_outside>();
  co_await chares.until_exit();
}
TEST(Errors, an_index_outside_is_refused_where_it_is_used) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(index_outside), 1);
  EXPECT_TRUE(contains(program.failure(), {"Fragile[1,0]", "reach_outside", "Fragile[0,99]", "outside"}))
      << program.failure();
}

Task<void> call_the_deleted(Chares& chares) {
  const auto fragile = make(chares);
  fragile[{0, 1}].destroy();
  fragile[{0, 1}].call<&Fragile::nothing>();
  co_await chares.until_exit();
}
TEST(Errors, a_message_to_a_deleted_element_names_it) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(call_the_deleted), 1);
  EXPECT_TRUE(contains(program.failure(), {"nothing", "Fragile[0,1]", "rank 1", "from rank 0", "deleted"}))
      << program.failure();
}

class Never : public Chare<Never, Index<1>> {
 public:
  void nothing() {}
};
Task<void> leave_early(Chares& chares) {
  create_sparse<Never>(chares)[5].call<&Never::nothing>();
  co_return;
}
TEST(Errors, exit_while_messages_are_under_way_names_one) {
  Program program(test::ranks(3));
  EXPECT_EQ(program.run(leave_early), 1);
  EXPECT_TRUE(contains(program.failure(), {"exit while 1 entry", "Never[5]", "nothing", "never inserted"}))
      << program.failure();
}

Task<void> leave_with_code(Chares& chares) {
  create_sparse<Never>(chares)[5].call<&Never::nothing>();
  make(chares)[{1, 1}].call<&Fragile::leave>(42);
  co_await chares.until_exit();
}
TEST(Errors, exit_with_a_code_drops_what_is_under_way) {
  Program program(test::ranks(3));
  EXPECT_EQ(program.run(leave_with_code), 42) << program.failure();
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(program.rank(rank).exit_code(), 42);
}

Task<int> main_code(Chares& chares) {
  co_await make(chares)[{1, 1}].ask<&Fragile::nothing>();
  co_return 3;
}
TEST(Errors, the_code_of_main_is_the_code_of_all) {
  Program program(test::ranks(3));
  EXPECT_EQ(program.run(main_code), 3);
  EXPECT_EQ(program.rank(2).exit_code(), 3);
}

Task<void> main_throws(Chares&) {
  throw std::runtime_error("nothing to do");
  co_return;
}
TEST(Errors, an_exception_of_main_ends_the_job) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(main_throws), 1);
  EXPECT_TRUE(contains(program.failure(), {"main task", "nothing to do"})) << program.failure();
}

Task<void> lose_a_rank(Chares& chares, int* told) {
  const auto fragile = make(chares);
  try {
    for (;;) co_await fragile[{0, 1}].ask<&Fragile::nothing>();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::peer_lost);
    EXPECT_TRUE(contains(error.what(), {"rank 0 lost rank 1"})) << error.what();
    ++*told;
  }
}
TEST(Errors, a_lost_rank_fails_the_futures_that_wait_for_it_and_ends_the_job) {
  JobOptions options = test::ranks(2);
  options.wrap = [](int rank, std::unique_ptr<port::Wire> wire) -> std::unique_ptr<port::Wire> {
    port::FaultPolicy policy;
    if (rank == 0) {
      policy.rules = {{.point = port::FaultPoint::am_send,
                       .effect = port::FaultEffect::fail,
                       .nth = 10,
                       .status = Status::peer_lost}};
    }
    return std::make_unique<port::FaultyWire>(std::move(wire), policy);
  };
  Program program(options);
  int told = 0;
  program.rank(0).start(lose_a_rank(program.rank(0), &told));
  program.run_on(1000);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(program.rank(0).exit_code(), 1);
  EXPECT_TRUE(contains(program.rank(0).failure(), {"rank 0 lost rank 1", "peer_lost"})) << program.failure();
}

class Lonely : public Chare<Lonely, Single> {};

Task<void> bad_arrays(Chares& chares) {
  EXPECT_THROW(static_cast<void>(create_array<Fragile>(chares, {2, 0}, Placement::block(), 0)), Error);
  EXPECT_THROW(static_cast<void>(create_array<Fragile>(chares, {2, -5}, Placement::block(), 0)), Error);
  try {
    static_cast<void>(create_array<Fragile>(chares, {1 << 14, 1 << 15}, Placement::block(), 0));
    ADD_FAILURE() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::limit_reached);
    EXPECT_TRUE(contains(error.what(), {"Fragile", "[16384,32768]", "536870912 elements", "134217728"}))
        << error.what();
  }
  EXPECT_THROW(make(chares).insert({0, 0}, 1), Error);
  EXPECT_THROW(Element<Fragile>().call<&Fragile::nothing>(), Error);
  EXPECT_THROW(static_cast<void>(create_chare<Lonely>(chares, Rank{9})), Error);
  co_return;
}
TEST(Errors, arrays_without_elements_and_proxies_of_nothing_are_refused) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(bad_arrays), 0) << program.failure();
}

Task<void> nothing(Chares&) { co_return; }
TEST(Chares, a_second_one_on_a_runtime_is_refused_until_the_first_is_gone) {
  test::InProcessJob job(test::ranks(1));
  for (int round = 0; round < 2; ++round) {
    Chares first(job.rank(0), ChareOptions{.connect = false});
    try {
      const Chares second(job.rank(0), ChareOptions{.connect = false});
      ADD_FAILURE() << "no exception";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("has a Chares already"), std::string::npos) << error.what();
    }
    first.connect();
    EXPECT_EQ(first.run(nothing(first)), 0) << first.failure();
  }
}

TEST(Chares, give_up_in_time_on_others_that_do_not_come_while_the_network_is_never_still) {
  Status fence = Status::ok;
  test::JobOptions options = test::ranks(1);
  options.fence = [&] { return fence; };
  options.runtime.boot_timeout = std::chrono::milliseconds(10);
  test::InProcessJob job(options);
  test::RestlessPoller network;
  job.rank(0).worker().engine().pollers().attach(network);
  fence = Status::timed_out;
  try {
    const Chares chares(job.rank(0));
    ADD_FAILURE() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::timed_out);
  }
  EXPECT_FALSE(network.rests()) << "it waited as long as anything moved";
  job.rank(0).worker().engine().pollers().detach(network);
}

Task<int> run_inside(Chares& chares) {
  const auto fragile = make(chares);
  for (int y = 0; y < 2; ++y) {  // on both ranks
    try {
      co_await fragile[{0, y}].ask<&Fragile::run_another_program>();
      ADD_FAILURE() << "no exception";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      EXPECT_TRUE(contains(error.what(), {"Fragile[0,", "run_another_program", "runs already"})) << error.what();
    }
  }
  EXPECT_THROW(static_cast<void>(chares.run(nothing(chares))), Error);
  EXPECT_THROW(chares.start(nothing(chares)), Error);
  co_return 5;
}
TEST(Chares, a_run_inside_the_program_is_refused_and_the_program_goes_on) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(run_inside), 5) << program.failure();
  EXPECT_EQ(program.rank(0).run(nothing(program.rank(0))), 5) << "of a program that has ended";
}

/// Waits for another rank for ever.
Task<void> wait_for_rank_1(Chares& chares) { co_await make(chares)[{0, 1}].ask<&Fragile::nothing>(); }

/// The chares of all ranks of one thread, each of which may go before the others.
struct Ranks {
  explicit Ranks(int count) : job(test::ranks(count)) {
    for (int rank = 0; rank < count; ++rank) {
      chares.push_back(std::make_unique<Chares>(job.rank(rank), ChareOptions{.connect = false}));
    }
    for (auto& rank : chares) rank->connect();
  }
  void progress_until_all_ended() {
    bool all = false;
    for (int round = 0; round < 100'000 && !all; ++round) {
      all = true;
      for (auto& rank : chares) {
        if (rank == nullptr) continue;
        rank->progress();
        all = all && rank->ended();
      }
    }
    EXPECT_TRUE(all) << "somebody still waits";
  }
  test::InProcessJob job;
  std::vector<std::unique_ptr<Chares>> chares;
};

TEST(Chares, that_go_without_having_run_end_the_program_of_the_others_at_once) {
  for (const std::size_t leaver : {1, 0, 2}) {
    Ranks ranks(3);
    if (leaver != 0) ranks.chares[0]->start(wait_for_rank_1(*ranks.chares[0]));
    ranks.chares[leaver].reset();
    ranks.progress_until_all_ended();
    std::string failures;
    for (const auto& rank : ranks.chares) {
      if (rank == nullptr) continue;
      EXPECT_EQ(rank->exit_code(), 1);
      failures += rank->failure();
    }
    const std::string told = "rank " + std::to_string(leaver) + "'s program ended without running its chares";
    EXPECT_NE(failures.find(told), std::string::npos) << failures;
  }
}

TEST(Chares, that_go_when_the_program_has_ended_disturb_nobody) {
  Ranks ranks(2);
  Chares& main = *ranks.chares[0];
  main.start(nothing(main));
  for (int round = 0; round < 100'000 && !ranks.chares[1]->ended(); ++round) {
    main.progress();
    ranks.chares[1]->progress();
  }
  ranks.chares[1].reset();
  ranks.progress_until_all_ended();
  EXPECT_EQ(main.exit_code(), 0) << main.failure();
  EXPECT_EQ(main.failure(), "");
}

}  // namespace
}  // namespace brant
