// Kernels that write beside what is sent, on an emulated device: what they write, how they end, and how they are stuck.
#include <chrono>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/interference/check.h"
#include "bench/interference/measure.h"
#include "bench/interference/rows.h"
#include "bench/interference/sweeper.h"
#include "support/in_process_job.h"

namespace brant::test {
namespace {

using namespace std::chrono_literals;
using namespace bench;
using namespace bench::interference_steps;

constexpr std::size_t kBytes = 65536;

JobOptions one_device() {
  JobOptions options;
  options.ranks = 1;
  options.gpu = GpuChoice::emulated;
  return options;
}

class Interference : public testing::Test {
 protected:
  Runtime& runtime() { return job_.rank(0); }
  Sweeper sweeper(unsigned blocks) {
    return {runtime(), notifier_, kernels_, MemoryKind::emulated, kBytes, blocks, rounds_};
  }

  /// A kernel that is told of a round to which nobody answers.
  PersistentKernel unanswered(const Round& round, std::chrono::nanoseconds patience) {
    Scene scene;
    scene.words = scene.beside = words_.as<Word>();
    scene.count = kBytes / sizeof(Word);
    scene.rung = rung_.device();
    scene.heard = heard_.device();
    scene.met = met_.device();
    scene.last = last_.as<Word>();
    scene.lap = lap_.as<Word>();
    const Word none = 0;
    runtime().copy(last_, ConstBuffer(&none, sizeof(none)));
    LaunchShape shape;
    shape.grid[0] = 3;
    auto kernel = PersistentKernel::launch(notifier_, kernels_.play, shape, {.name = "sweeps", .patience = patience},
                                           scene, notifier_.fan_in(3));
    EXPECT_EQ(kernel.submit({{round.number, round.epoch, round.sweeps, round.how}}), Status::ok);
    return kernel;
  }
  void expect_gives_up(const Round& round) {
    PersistentKernel kernel = unanswered(round, 100ms);
    testing::internal::CaptureStderr();
    const Status ended = job_.outcome(kernel.ended()).status;
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(ended, Status::timed_out);
    const std::string bell = "bell " + std::to_string(heard_.number()) + " has not reached epoch 1, it saw 0";
    EXPECT_NE(log.find("kernel 'sweeps' gave up"), std::string::npos) << log;
    EXPECT_NE(log.find(bell), std::string::npos) << log;
  }

  InProcessJob job_{one_device()};
  InterferenceKernels kernels_{runtime().device()};
  Notifier notifier_{runtime(), {.bells = 16, .others = 64}};
  Word rounds_ = 0;
  Bell rung_ = notifier_.make();
  Bell heard_ = notifier_.make({.rung_by = RungBy::host, .seen_by = SeenBy::device});
  Bell met_ = notifier_.make({.rung_by = RungBy::device, .seen_by = SeenBy::device});
  Memory words_ = runtime().allocate(MemoryKind::emulated, kBytes);
  Memory last_ = runtime().allocate(MemoryKind::emulated, sizeof(Word));
  Memory lap_ = runtime().allocate(MemoryKind::pinned, kLapWords * sizeof(Word));
};

TEST_F(Interference, a_kernel_that_ends_writes_what_is_sent) {
  Sweeper two = sweeper(2);
  two.write();
  check_words(two.words(), 1, 0, "a kernel that ends");
}

TEST_F(Interference, rounds_end_when_the_cpu_says_so_and_leave_the_words_of_their_last_sweep) {
  for (const unsigned blocks : {1u, 3u}) {
    Sweeper some = sweeper(blocks);
    for (const InterferenceCase which : {InterferenceCase::psb, InterferenceCase::pcb, InterferenceCase::p2ab}) {
      SCOPED_TRACE(testing::Message() << interference_case_name(which) << " by " << blocks);
      some.begin(which);
      for (int i = 0; i < 20; ++i) {
        const Word epoch = some.start(0, kRingsOnce);
        some.see(epoch);
        EXPECT_EQ(some.rung().epoch(), epoch);
        if (which != InterferenceCase::psb) check_words(some.words(), some.round(), 0, "what was rung for");
        some.hear(epoch);
        const SweepLap lap = some.finish();
        EXPECT_GE(lap.sweeps, 1u);
        check_words(some.words(which), some.round(), lap.sweeps, "what was swept");
        if (which != InterferenceCase::psb) check_words(some.words(), some.round(), 0, "what is sent");
      }
      some.end();
    }
  }
}

TEST_F(Interference, rounds_of_so_many_sweeps_ring_behind_each_or_not_at_all) {
  Sweeper three = sweeper(3);
  three.begin(InterferenceCase::pcb);
  three.start(20, kSilent);
  EXPECT_EQ(three.finish().sweeps, 20u);
  EXPECT_EQ(three.rung().epoch(), 0u);
  const Word first = three.start(20, kRingsOnce | kRings);
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(three.finish().sweeps, 20u);
  EXPECT_EQ(three.rung().epoch(), first + 20);
  const Word answered = three.start(20, kRingsOnce | kRings | kAnswered);
  for (Word i = 0; i <= 20; ++i) {
    EXPECT_EQ(job_.outcome(three.rung().when(answered + i)).status, Status::ok);
    EXPECT_EQ(three.rung().epoch(), answered + i) << "no sweep goes ahead of its answer";
    three.hear(answered + i);
  }
  EXPECT_EQ(three.finish().sweeps, 20u);
  three.end();
  check_words(three.words(InterferenceCase::pcb), 3, 20, "what was swept");
}

TEST_F(Interference, a_kernel_that_is_not_answered_gives_up_and_names_the_bell) {
  expect_gives_up({.number = 1, .epoch = 1, .sweeps = 0, .how = kRingsOnce});
}

TEST_F(Interference, a_kernel_whose_ring_is_not_answered_gives_up_and_names_the_bell) {
  expect_gives_up({.number = 1, .epoch = 1, .sweeps = 10, .how = kRingsOnce | kRings | kAnswered});
}

TEST_F(Interference, a_kernel_that_is_aborted_ends) {
  PersistentKernel kernel = unanswered({.number = 1, .epoch = 1, .sweeps = ~Word{0} >> 1, .how = kSilent}, 60s);
  EXPECT_EQ(job_.outcome(kernel.started()).status, Status::ok);
  kernel.abort();
  EXPECT_EQ(job_.outcome(kernel.ended()).status, Status::canceled);
}

TEST_F(Interference, more_blocks_than_run_at_once_are_refused) {
  Sweeper many = sweeper(60'000);
  EXPECT_THROW(many.begin(InterferenceCase::pcb), Error);
}

TEST(InterferenceCheck, finds_a_word_of_another_round_or_sweep) {
  std::vector<Word> words;
  for (Word i = 0; i < 8; ++i) words.push_back(value_of(3, 5, i));
  check_words(words, 3, 5, "words");
  check_words(words, 3, std::nullopt, "words");
  EXPECT_THROW(check_words(words, 3, 4, "words"), Error);
  EXPECT_THROW(check_words(words, 4, std::nullopt, "words"), Error);
  words[7] = value_of(3, 4, 7);
  check_words(words, 3, std::nullopt, "words");
  try {
    check_words(words, 3, 5, "what was swept");
    FAIL() << "the last word is of the sweep before";
  } catch (const Error& fault) {
    EXPECT_NE(std::string(fault.what()).find("what was swept: word 7 of 8"), std::string::npos) << fault.what();
  }
}

TEST(InterferenceOptions, that_make_no_sense_are_refused_with_a_cure) {
  const auto refusal = [](std::size_t bytes) -> std::string {
    try {
      InterferenceOptions options;
      options.sizes = {64, bytes};
      require_sense(options);
    } catch (const Error& fault) {
      return fault.what();
    }
    return {};
  };
  EXPECT_EQ(refusal(4096), "");
  EXPECT_NE(refusal(60).find("60 is no multiple of that: use 64"), std::string::npos) << refusal(60);
  EXPECT_NE(refusal(0).find("use 8"), std::string::npos) << refusal(0);
  EXPECT_NE(refusal(std::size_t{1} << 30).find("1G is more than 256M"), std::string::npos);
}

TEST(InterferenceRows, say_what_was_slowed_down_by_what) {
  InterferenceRow row;
  row.which = InterferenceCase::p2ab;
  row.beside = Beside::sweeps;
  row.blocks = 264;
  row.all_blocks = true;
  row.bytes = 4096;
  row.path = "shm";
  row.us = {.n = 10, .min = 1, .p50 = 3, .p99 = 9, .max = 9};
  row.baseline_p50 = 2;
  const auto json = nlohmann::json::parse(to_json(row, Machine{}));
  EXPECT_EQ(json["bench"], "interference_send");
  EXPECT_EQ(json["case"], "p2ab");
  EXPECT_EQ(json["grid"], "all");
  EXPECT_EQ(json["trigger"], "device");
  EXPECT_EQ(json["slowdown"], 1.5);
  EXPECT_EQ(json["us"]["p99"], 9);
  row.what = Disturbed::sweep;
  row.beside = Beside::nothing;
  row.path.clear();
  const auto alone = nlohmann::json::parse(to_json(row, Machine{}));
  EXPECT_EQ(alone["bench"], "interference_sweep");
  EXPECT_TRUE(alone["path"].is_null());
  EXPECT_EQ(interference_line(row).size(), interference_header().size()) << "columns stand below their names";
}

}  // namespace
}  // namespace brant::test
