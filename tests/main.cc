// Main function of every test program. In a multi-process test each rank writes a result file of its own, and skipped
// tests leave their reason there (tools/run_tests.py lists them).
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

// The rank as the starter of this process announced it; null in a test of one process.
const char* rank_text() {
  for (const char* name : {"BRANT_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (const char* text = std::getenv(name)) {
      return text;
    }
  }
  return nullptr;
}

// Turns "--gtest_output=json:x.json" into "--gtest_output=json:x.RANK.json". GoogleTest opens its result file while it
// is initialised, so the argument is rewritten before that.
std::vector<std::string> arguments_of_rank(int argc, char** argv, const std::string& rank) {
  std::vector<std::string> arguments(argv, argv + argc);
  const std::string suffix = ".json";
  for (std::string& argument : arguments) {
    if (argument.starts_with("--gtest_output=") && argument.ends_with(suffix)) {
      argument.insert(argument.size() - suffix.size(), "." + rank);
    }
  }
  return arguments;
}

// Writes the reason of a skip into the result file: GoogleTest 1.12 itself keeps only the fact.
class SkipReasonRecorder : public testing::EmptyTestEventListener {
 public:
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.skipped()) testing::Test::RecordProperty("skip_reason", result.message());
  }
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  if (const char* rank = rank_text()) {
    arguments = arguments_of_rank(argc, argv, rank);
  }
  std::vector<char*> pointers;
  for (std::string& argument : arguments) {
    pointers.push_back(argument.data());
  }
  pointers.push_back(nullptr);
  testing::InitGoogleMock(&argc, pointers.data());
  testing::UnitTest::GetInstance()->listeners().Append(new SkipReasonRecorder);  // the list owns it
  return RUN_ALL_TESTS();
}
