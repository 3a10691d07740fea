// Who started this process is decided from its variables. The environments beside the conformance tests were captured
// from each launcher, or written from its documentation; their first lines say what must be concluded.
#include "port/boot/detect.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace brant::port {
namespace {

struct Golden {
  std::string name;
  std::string expected;
  std::string evidence;  ///< A part of what decided; empty if nothing did.
  Environment environment;
};

Golden read_golden(const std::filesystem::path& file) {
  Golden golden{.name = file.stem().string(), .expected = {}, .evidence = {}, .environment = {}};
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# expect: ")) golden.expected = line.substr(10);
    if (line.starts_with("# evidence: ")) golden.evidence = line.substr(12);
    const std::size_t equals = line.find('=');
    if (!line.starts_with('#') && equals != std::string::npos)
      golden.environment[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return golden;
}

std::vector<Golden> goldens() {
  std::vector<Golden> all;
  for (const auto& entry : std::filesystem::directory_iterator(BRANT_TEST_ENVIRONMENTS))
    all.push_back(read_golden(entry.path()));
  return all;
}

const char* name_of(Starter starter) {
  switch (starter) {
    case Starter::nobody: return "nobody";
    case Starter::brant_run: return "brant_run";
    case Starter::pmix: return "pmix";
    case Starter::pmi: return "pmi";
    case Starter::torchrun: return "torchrun";
    case Starter::not_spoken: return "not_spoken";
  }
  return "unknown";
}

TEST(DetectStarter, every_captured_environment_is_judged_right_and_says_why) {
  const std::vector<Golden> all = goldens();
  ASSERT_GT(all.size(), 20u) << "the environments are in " << BRANT_TEST_ENVIRONMENTS;
  for (const Golden& golden : all) {
    const Detection detection = detect_starter(golden.environment, false);
    EXPECT_EQ(name_of(detection.starter), golden.expected) << golden.name;
    EXPECT_EQ(detection.launcher.empty(), detection.starter != Starter::not_spoken) << golden.name;
    if (golden.evidence.empty()) {
      EXPECT_TRUE(detection.evidence.empty()) << golden.name << ": " << detection.evidence.front();
    } else {
      ASSERT_FALSE(detection.evidence.empty()) << golden.name;
      EXPECT_NE(detection.evidence.front().find(golden.evidence), std::string::npos)
          << golden.name << ": " << detection.evidence.front();
    }
  }
}

TEST(DetectStarter, brant_run_wins_over_every_other_mark) {
  for (Golden& golden : goldens()) {
    golden.environment["BRANT_BOOT_FD"] = "3";
    const Detection detection = detect_starter(golden.environment, true);
    EXPECT_EQ(detection.starter, Starter::brant_run) << golden.name;
    EXPECT_EQ(detection.evidence.front(), "BRANT_BOOT_FD=3") << golden.name;
  }
}

TEST(DetectStarter, a_descendant_of_a_rank_is_no_job_of_one) {
  const Detection detection = detect_starter({{"BRANT_BOOT_FD", "3"}}, false);
  EXPECT_EQ(detection.starter, Starter::brant_run);
  EXPECT_NE(detection.evidence.front().find("no open socket"), std::string::npos) << detection.evidence.front();
}

TEST(DetectStarter, a_descendant_of_a_rank_may_be_started_by_another_launcher) {
  const Detection detection = detect_starter(
      {{"BRANT_BOOT_FD", "3"}, {"PMIX_NAMESPACE", "job"}, {"PMIX_RANK", "0"}, {"PMIX_SERVER_URI2", "uri"}}, false);
  EXPECT_EQ(detection.starter, Starter::pmix);
}

TEST(DetectStarter, a_size_that_is_no_number_is_not_taken_for_one) {
  for (const char* size : {"", "x", "1x", "0", "-1", "99999999999999999999"}) {
    const Detection detection = detect_starter({{"PMI_FD", "9"}, {"PMI_SIZE", size}}, false);
    EXPECT_EQ(detection.starter, Starter::pmi) << size;
  }
}

}  // namespace
}  // namespace brant::port
