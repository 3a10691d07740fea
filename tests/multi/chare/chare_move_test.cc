// Runs as every rank of a job (`brant run -n N`): elements that move between real processes while others call them.
// What one sender calls at one element comes there once and in its order, wherever it lives by then.
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/chare.h"
#include "models/chare/core.h"
#include "support/effort.h"
#include "support/job_runtime.h"
#include "support/own_host.h"

namespace brant {
namespace {

using detail::ConstructorOf;
using detail::Handover;
using test::job;

/// Before the runtime is opened: no memory is shared, everything goes over UCX.
const bool g_own_host =  // NOLINT(bugprone-throwing-static-initialization): the test fails then
    std::getenv("BRANT_TEST_OWN_HOSTS") != nullptr && test::become_own_host();

/// What a traveller knows, and takes along.
struct Luggage {
  std::vector<int> taken;       ///< By sender: calls.
  std::vector<int> broadcasts;  ///< By sender.
  std::vector<int> data;        ///< By sender: calls with data.
  std::vector<int> sections;    ///< By sender.
  int faults = 0;
  int moves = 0;
  void serialize(auto& archive) { archive(taken, broadcasts, data, sections, faults, moves); }
};

const Handover& traveller_handover();

class Traveller : public Chare<Traveller> {
 public:
  explicit Traveller(int senders) {
    for (auto* counts : {&luggage_.taken, &luggage_.broadcasts, &luggage_.data, &luggage_.sections}) {
      counts->assign(static_cast<std::size_t>(senders), 0);
    }
  }
  explicit Traveller(Luggage luggage) : luggage_(std::move(luggage)) { ++luggage_.moves; }

  void call(int sender, int number) { next(luggage_.taken, sender, number); }
  void broadcast(int sender, int number) { next(luggage_.broadcasts, sender, number); }
  void section(int sender, int number) { next(luggage_.sections, sender, number); }
  void data(DeviceData values, int sender, int start) {
    std::vector<int> here(values.bytes() / sizeof(int));
    job().copy(std::span(here), ConstBuffer(values));
    for (const int value : here) luggage_.faults += value != start++ ? 1 : 0;
    ++luggage_.data[static_cast<std::size_t>(sender)];
  }
  int twice(int value) { return 2 * value; }
  void count_all(const Callback<int>& to) { contribute<reduce::Sum>(1, to); }
  void count_section(const Section<Traveller>& section, const Callback<int>& to) {
    contribute<reduce::Sum>(section, 1, to);
  }
  /// Why it cannot move; empty if it can.
  std::string refusal(int to) {
    try {
      chares().core().moving().move(*this, to, traveller_handover());
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  Task<std::string> refusal_of_coroutine(int to) { co_return refusal(to); }
  void go(int to);
  Luggage luggage() { return luggage_; }

  static std::vector<std::byte> pack(ChareBase& chare) {
    auto& self = static_cast<Traveller&>(chare);
    SizeArchive size;
    size(self.luggage_);
    std::vector<std::byte> bytes(size.size());
    WriteArchive write(bytes.data());
    write(self.luggage_);
    return bytes;
  }

 private:
  void next(std::vector<int>& counts, int sender, int number) {
    int& count = counts[static_cast<std::size_t>(sender)];
    luggage_.faults += count != number ? 1 : 0;
    count = number + 1;
  }
  Luggage luggage_;
};

const Handover& traveller_handover() {
  static const Handover how{&ConstructorOf<Traveller, Luggage>::get(), &Traveller::pack};
  return how;
}

/// Moves if it can: while its last move settles it stays.
void Traveller::go(int to) {
  try {
    if (Rank{to} != chares().rank()) chares().core().moving().move(*this, to, traveller_handover());
  } catch (const Error& error) {
    if (std::string(error.what()).find("about to move already") == std::string::npos) throw;
  }
}

/// Calls every traveller again and again from its rank, and waits for the last ones.
class Sender : public Chare<Sender> {
 public:
  Task<int> flood(Array<Traveller> travellers, Section<Traveller> section, int rounds, bool data) {
    const int self = index()[0], count = travellers.extent()[0];
    Runtime& runtime = chares().runtime();
    std::vector<int> values(2000);
    std::iota(values.begin(), values.end(), 7 * self);
    Memory source = runtime.allocate(runtime.device_kind(), values.size() * sizeof(int));
    runtime.copy(source, std::span(values));
    int wrong = 0;
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < count; ++i) {
        travellers[i].call<&Traveller::call>(self, round);
        if (data && round % 8 == 0) travellers[i].call<&Traveller::data>(device(source), self, 7 * self);
        if (self == 0) travellers[i].call<&Traveller::go>((round * 7 + i) % chares().size());
      }
      if (round % 4 == 0) {
        travellers.call<&Traveller::broadcast>(self, round / 4);
        section.call<&Traveller::section>(self, round / 4);
      }
      if (round % 16 == 15) {
        const int asked = round % count;
        const int twice = co_await travellers[asked].ask<&Traveller::twice>(round);
        wrong += twice != 2 * round ? 1 : 0;
      }
    }
    memory_ = std::move(source);  // calls may still read it
    co_return wrong;
  }

 private:
  Memory memory_;
};

struct Plan {
  int rounds;
  bool data;
};

Task<void> roam(Chares& chares, Plan plan) {
  constexpr int count = 6;
  const auto travellers = create_array<Traveller>(chares, count, Placement::round_robin(), chares.size());
  const auto senders = create_group<Sender>(chares);
  const auto section = make_section(chares, travellers, std::vector<Index<1>>{0, 3, 4});
  std::vector<Future<int>> floods;
  floods.reserve(static_cast<std::size_t>(chares.size()));
  for (int rank = 0; rank < chares.size(); ++rank) {
    floods.push_back(senders[rank].ask<&Sender::flood>(travellers, section, plan.rounds, plan.data));
  }
  for (auto& flood : floods) {
    const int wrong = co_await std::move(flood);
    EXPECT_EQ(wrong, 0);
  }
  co_await chares.quiescence();
  int moves = 0;
  for (int i = 0; i < count; ++i) {
    const Luggage luggage = co_await travellers[i].ask<&Traveller::luggage>();
    EXPECT_EQ(luggage.faults, 0) << "of traveller " << i;
    moves += luggage.moves;
    for (const int taken : luggage.taken) EXPECT_EQ(taken, plan.rounds) << "by traveller " << i;
    for (const int taken : luggage.broadcasts) EXPECT_EQ(taken, (plan.rounds + 3) / 4) << "by traveller " << i;
    for (const int taken : luggage.data) EXPECT_EQ(taken, plan.data ? (plan.rounds + 7) / 8 : 0) << i;
    const bool member = i == 0 || i == 3 || i == 4;
    for (const int taken : luggage.sections) EXPECT_EQ(taken, member ? (plan.rounds + 3) / 4 : 0) << i;
  }
  EXPECT_GT(moves, 2 * count);
  testing::Test::RecordProperty("moves", moves);
}

Task<void> count(Chares& chares) {
  const auto travellers = create_array<Traveller>(chares, 6, Placement::round_robin(), chares.size());
  for (int step = 0; step < 5; ++step) {
    for (int i = 0; i < 6; ++i) travellers[i].call<&Traveller::go>((i + step) % chares.size());
    co_await chares.quiescence();
    auto [to, sum] = future_callback<int>(chares);
    travellers.call<&Traveller::count_all>(to);
    const int all = co_await std::move(sum);
    EXPECT_EQ(all, 6);
  }
}

Task<void> ask_the_pinned(Chares& chares) {
  const auto travellers = create_array<Traveller>(chares, 2, Placement::round_robin(), chares.size());
  const std::string coroutine = co_await travellers[0].ask<&Traveller::refusal_of_coroutine>(1);
  EXPECT_NE(coroutine.find("Traveller[0] cannot move from rank 0 to rank 1: a coroutine of it has not ended"),
            std::string::npos)
      << coroutine;
  const std::string nowhere = co_await travellers[0].ask<&Traveller::refusal>(1000);
  EXPECT_NE(nowhere.find("the job has ranks 0 to"), std::string::npos) << nowhere;
  const std::string here = co_await travellers[0].ask<&Traveller::refusal>(0);
  EXPECT_NE(here.find("it is there"), std::string::npos) << here;
  const std::string may = co_await travellers[0].ask<&Traveller::refusal>(1);
  EXPECT_EQ(may, "");
}

Task<void> count_a_section(Chares& chares) {
  const auto travellers = create_array<Traveller>(chares, 2, Placement::round_robin(), chares.size());
  const auto section = make_section(chares, travellers, std::vector<Index<1>>{0});
  travellers[0].call<&Traveller::go>(1);
  co_await chares.quiescence();
  auto [to, sum] = future_callback<int>(chares);
  travellers[0].call<&Traveller::count_section>(section, to);
  co_await std::move(sum);
}

}  // namespace

TEST(ChareMoves, reductions_between_moves_count_everybody_once) {
  Chares chares(job());
  EXPECT_EQ(chares.run(count(chares)), 0) << chares.failure();
}

TEST(ChareMoves, what_cannot_be_taken_along_is_named) {
  Chares chares(job());
  EXPECT_EQ(chares.run(ask_the_pinned(chares)), 0) << chares.failure();
}

TEST(ChareMoves, reductions_of_sections_refuse_who_moved) {
  Chares chares(job());
  EXPECT_EQ(chares.run(count_a_section(chares)), 1);
  if (chares.rank() == Rank{1}) {
    EXPECT_NE(chares.failure().find("but it has moved from rank 0"), std::string::npos) << chares.failure();
  }
}

TEST(ChareMoves, every_call_follows_once_and_in_its_order) {
  Chares chares(job());
  EXPECT_EQ(chares.run(roam(chares, Plan{test::effort(2000, 300), false})), 0) << chares.failure();
}

TEST(ChareMoves, data_arguments_follow_as_well) {
  Chares chares(job());
  EXPECT_EQ(chares.run(roam(chares, Plan{test::effort(400, 100), true})), 0) << chares.failure();
}

}  // namespace brant
