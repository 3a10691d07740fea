// Programs of chares in which nothing moves, and which may go on all the same, say who waits for what.
#include "models/chare/core.h"
#include "unit/chare/program.h"

namespace brant {
namespace {

using namespace std::chrono_literals;

class Napper : public Chare<Napper> {
 public:
  Task<void> nap(std::chrono::milliseconds time) { co_await sleep_for(chares().runtime().worker(), time); }
};

test::JobOptions told_after(std::chrono::milliseconds silence) {
  test::JobOptions options = test::ranks(2);
  options.runtime.stall_report = silence;
  return options;
}

ChareOptions looking_often() {
  ChareOptions options;
  options.connect = false;
  options.deadlock_after = 20ms;
  return options;
}

/// Moves another rank's program from inside the progress of the first.
class Passenger final : private Poller {
 public:
  Passenger(Engine& driver, Chares& chares) : driver_(driver), chares_(chares) { driver_.pollers().attach(*this); }
  ~Passenger() { driver_.pollers().detach(*this); }

 private:
  unsigned poll() noexcept override {
    chares_.progress();
    return 0;
  }
  Engine& driver_;
  Chares& chares_;
};

/// What rank 0 says while it runs `main`, and rank 1 takes part.
template <typename Main>
std::string said_by_two(Main main, std::chrono::milliseconds silence = 100ms) {
  test::InProcessJob job(told_after(silence));
  Chares first(job.rank(0), looking_often()), second(job.rank(1), looking_often());
  first.connect();
  second.connect();
  testing::internal::CaptureStderr();
  {
    const Passenger passenger(job.rank(0).worker().engine(), second);
    EXPECT_EQ(first.run(main(first)), 0) << first.failure();
  }
  return testing::internal::GetCapturedStderr();
}

void expect_line(const std::string& said, const std::string& line) {
  EXPECT_NE(said.find(line), std::string::npos) << "no '" << line << "' in: " << said;
}

Task<void> ask_a_napper(Chares& chares) {
  const auto nappers = create_group<Napper>(chares);
  co_await nappers[1].ask<&Napper::nap>(500ms);
}

TEST(ChareStall, names_what_was_asked_of_which_rank) {
  const std::string said = said_by_two(ask_a_napper);
  expect_line(said, "nothing has moved on rank 0 for 0.");
  expect_line(said, "Who waits here:\n  the main task on rank 0\n");
  expect_line(said, "Napper[1]::nap (rank 1) on rank 0, since 0.");
}

Task<void> wait_for_quiet(Chares& chares) {
  ++chares.core().activity().data_started;
  auto quiet = chares.quiescence();
  co_await sleep_for(chares.runtime().worker(), 500ms);
  EXPECT_FALSE(quiet.ready());
  ++chares.core().activity().data_ended;
  co_await quiet;
}

/// The ranks ask each other all the time whether all is quiet.
TEST(ChareStall, is_not_hidden_by_the_waves_of_quiescence) {
  const std::string said = said_by_two(wait_for_quiet);
  expect_line(said, "the main task on rank 0");
  expect_line(said, "The next timer of this rank fires in 0.");
}

Task<void> chatter(Chares& chares) {
  const auto nappers = create_group<Napper>(chares);
  for (int i = 0; i < 80; ++i) co_await nappers[1].ask<&Napper::nap>(20ms);
}

TEST(ChareStall, is_none_while_calls_come_back) { EXPECT_EQ(said_by_two(chatter, 1s), ""); }

}  // namespace
}  // namespace brant
