#include "cli/explain/report.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "brant/base/status.h"

namespace brant::cli::explain {
namespace {

Facts two_gpus() {
  Facts facts;
  facts.ucx_version = "1.22.0";
  facts.wire_kinds = ~0u;
  facts.shares_memory = true;
  facts.gpus = {"GPU-a", "GPU-b"};
  facts.cuda_driver = "CUDA 13.0";
  facts.courier_bytes = 512 << 10;
  return facts;
}

Question ask(const char* from, const char* to, std::size_t bytes) {
  return {parse_place(from), parse_place(to), bytes, Path::automatic, false};
}

TEST(Explain, a_gpu_that_is_not_there_is_refused_with_those_that_are) {
  EXPECT_NO_THROW(check_devices(ask("cuda:0", "cuda:1", 8), two_gpus()));
  try {
    check_devices(ask("cuda:0", "cuda:2", 8), two_gpus());
    FAIL() << "accepted";
  } catch (const Error& fault) {
    EXPECT_EQ(fault.status(), Status::invalid_argument);
    EXPECT_NE(std::string(fault.what()).find("there is no cuda:2: this machine has cuda:0 to cuda:1"),
              std::string::npos);
  }
}

TEST(Explain, the_numbers_must_hold_for_the_gpus_asked_about) {
  const CalibratedMachine machine = machine_for(ask("cuda:1", "host", 8), two_gpus());
  EXPECT_EQ(machine.gpus, std::vector<std::string>{"GPU-b"});
  EXPECT_EQ(machine.ucx, "1.22.0");
  EXPECT_TRUE(machine_for(ask("host", "pinned", 8), two_gpus()).gpus.empty());
}

TEST(Explain, without_a_courier_or_shared_memory_the_answer_is_another) {
  Facts facts = two_gpus();
  EXPECT_EQ(make_report(ask("cuda", "cuda", 8), facts, {}).choice.path, Path::courier);
  facts.courier_bytes = 0;
  const Report report = make_report(ask("cuda", "cuda", 8), facts, {});
  EXPECT_EQ(report.choice.path, Path::copy_engine);
  ASSERT_TRUE(report.predicted_us());
  EXPECT_NEAR(*report.predicted_us(), 8.6, 0.1);
  facts.shares_memory = false;
  EXPECT_EQ(make_report(ask("cuda", "cuda", 8), facts, {}).choice.path, Path::ucx);
  facts.wire_kinds = 0;
  EXPECT_EQ(make_report(ask("cuda", "cuda", 8), facts, {}).choice.path, Path::staged);
}

TEST(Explain, where_a_landing_goes_that_others_cannot_map_is_said_too) {
  const auto says = [](const Report& report, const std::string& words) {
    return std::any_of(report.notes.begin(), report.notes.end(),
                       [&](const std::string& note) { return note.find(words) != std::string::npos; });
  };
  Facts facts = two_gpus();
  EXPECT_TRUE(says(make_report(ask("cuda", "cuda", 1 << 20), facts, {}), "several allocations, it goes by ucx"));
  facts.wire_kinds = 0;
  EXPECT_TRUE(says(make_report(ask("cuda", "cuda", 1 << 20), facts, {}), "several allocations, it goes by staged"));
  EXPECT_FALSE(says(make_report(ask("cuda", "host", 1 << 20), facts, {}), "by means of a file"));
  facts.shares_memory = false;
  EXPECT_FALSE(says(make_report(ask("cuda", "cuda", 1 << 20), facts, {}), "by means of a file"));
}

TEST(Explain, within_one_process_bytes_are_moved_without_the_network) {
  const auto path_within = [](const char* from, const char* to, Path forced = Path::automatic) {
    Question question = ask(from, to, 1 << 20);
    question.one_process = true;
    question.forced = forced;
    const Report report = make_report(question, two_gpus(), {});
    EXPECT_EQ(report.choice.status, Status::ok);
    EXPECT_FALSE(report.predicted_us());
    EXPECT_NE(to_text(report).find("within one process"), std::string::npos);
    return report.choice.path;
  };
  EXPECT_EQ(path_within("heap", "host"), Path::shm);
  EXPECT_EQ(path_within("cuda:0", "cuda:1"), Path::copy_engine);
  EXPECT_EQ(path_within("cuda", "pinned"), Path::copy_engine);
  EXPECT_EQ(path_within("heap", "cuda"), Path::staged);
  EXPECT_EQ(path_within("heap", "host", Path::ucx), Path::ucx);
}

TEST(Explain, different_kinds_of_device_do_not_map_each_other) {
  EXPECT_EQ(make_report(ask("cuda", "emulated", 1 << 20), two_gpus(), {}).choice.path, Path::ucx);
}

TEST(Explain, what_is_assumed_is_said) {
  Facts facts = two_gpus();
  facts.gpus.clear();
  facts.gpu_reason = "no driver";
  facts.wire_kinds = 0;
  const Report report = make_report(ask("cuda:0", "cuda:1", 1 << 20), facts, {});
  EXPECT_EQ(report.choice.path, Path::copy_engine);
  ASSERT_FALSE(report.notes.empty());
  EXPECT_NE(report.notes.front().find("no driver"), std::string::npos);
  EXPECT_NE(to_text(report).find(report.notes.front()), std::string::npos);
}

TEST(Explain, that_mapped_host_memory_goes_another_way_is_said_where_it_does) {
  const auto says_so = [](Question question) {
    const Report report = make_report(question, two_gpus(), {});
    return std::ranges::any_of(
        report.notes, [](const std::string& note) { return note.find("Runtime::allocate") != std::string::npos; });
  };
  EXPECT_FALSE(says_so(ask("host", "host", 2047)));
  EXPECT_TRUE(says_so(ask("host", "host", 2048)));
  EXPECT_TRUE(says_so(ask("host", "host", 1 << 20)));
  EXPECT_TRUE(says_so(ask("heap", "host", 1 << 20)));
  EXPECT_FALSE(says_so(ask("host", "cuda", 1 << 20)));
  Question far = ask("host", "host", 1 << 20);
  far.other_host = true;
  EXPECT_FALSE(says_so(far));
}

TEST(Explain, memory_of_brant_and_of_malloc_are_two_cases_with_figures_of_their_own) {
  const Report mapped = make_report(ask("host", "host", 64 << 10), two_gpus(), {});
  EXPECT_EQ(mapped.choice.path, Path::shm);
  ASSERT_TRUE(mapped.predicted_us());
  EXPECT_NEAR(*mapped.predicted_us(), 2.2, 0.1);
  const Report other = make_report(ask("heap", "host", 64 << 10), two_gpus(), {});
  EXPECT_EQ(other.choice.path, Path::ucx);
  EXPECT_NEAR(*other.predicted_us(), 5.8, 0.1);
}

TEST(Explain, built_in_numbers_are_not_given_for_emulated_memory) {
  const Report report = make_report(ask("emulated", "emulated", 8), two_gpus(), {});
  for (const PathVerdict& verdict : report.paths) EXPECT_FALSE(verdict.us) << path_name(verdict.path);
}

}  // namespace
}  // namespace brant::cli::explain
