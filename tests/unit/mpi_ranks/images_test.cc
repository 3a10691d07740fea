// Programs as users compile them, as images of one process: mpi_image_turns holds them. Each program compares what it
// finds with what it wrote and says "right".

#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace {

struct Outcome {
  int code = -1;
  std::string text;
  std::map<std::string, int> lines;  ///< How often each was printed.
};

/// They lie beside this one.
std::string program(const std::string& name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

Outcome shell(const std::string& command) {
  Outcome outcome;
  std::FILE* pipe = ::popen(("timeout 60 " + command).c_str(), "r");  // NOLINT(bugprone-command-processor)
  std::array<char, 4096> line = {};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    std::string text = line.data();
    outcome.text += text;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    ++outcome.lines[text];
  }
  outcome.code = ::pclose(pipe) >> 8;
  return outcome;
}

Outcome run_images(int count, const std::string& arguments) {
  return shell(program("mpi_image_turns") + " " + std::to_string(count) + " " + arguments);
}

class ImageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(program("mpi_image_turns")))
      GTEST_SKIP() << "the loader does not lie beside this test";
  }
};
class ImagesTest : public ImageTest, public ::testing::WithParamInterface<int> {};

TEST_P(ImagesTest, of_a_c_program_have_their_own_variables) {
  for (const std::string name : {"image_plain", "image_plain_fpic", "image_plain_stripped"}) {
    SCOPED_TRACE(name);
    const int count = GetParam();
    Outcome outcome = run_images(count, program(name) + " -ab -c -n5 one -a two");
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    for (const char* line : {"right", "last_given", "first_given right", "destructor right", "ended 3"})
      EXPECT_EQ(outcome.lines[line], count) << line << '\n' << outcome.text;
  }
}

TEST_P(ImagesTest, of_a_cpp_program_have_their_own_objects) {
  for (const std::string name : {"image_objects", "image_objects_fpic", "image_objects_stripped"}) {
    SCOPED_TRACE(name);
    const int count = GetParam();
    Outcome outcome = run_images(count, program(name) + " x");
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_EQ(outcome.lines["right 1 ffx"], count) << outcome.text;
    EXPECT_EQ(outcome.lines["destroyed local right"], count) << outcome.text;
    EXPECT_EQ(outcome.lines["destroyed global right"], count) << outcome.text;
    EXPECT_EQ(outcome.lines["thread-local destroyed of main"], count) << outcome.text;
    EXPECT_EQ(outcome.lines["ended 4"], count) << outcome.text;
    outcome = run_images(2, program(name));
    EXPECT_EQ(outcome.lines["right 0 ff"], 2) << outcome.text;
    EXPECT_EQ(outcome.lines["ended 5"], 2) << outcome.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Count, ImagesTest, ::testing::Values(1, 4, 64, 500),
                         [](const auto& count) { return std::to_string(count.param); });

// How each rank ends: the program's argument says.
TEST_F(ImageTest, a_rank_ends_as_it_asks_to) {
  for (const std::string way : {"_exit", "_Exit", "quick_exit"}) {
    Outcome outcome = run_images(3, program("image_endings") + " " + way);
    EXPECT_EQ(outcome.lines["ended 6"], 3) << way << '\n' << outcome.text;
    EXPECT_EQ(outcome.lines.count("atexit"), 0u) << way;
  }
  Outcome outcome = run_images(3, program("image_endings") + " exit");
  EXPECT_EQ(outcome.lines["ended 6"], 3) << outcome.text;
  EXPECT_EQ(outcome.lines["atexit"], 3) << outcome.text;
  EXPECT_EQ(outcome.lines["on_exit 6"], 3) << outcome.text;
}

/// As a program does whose first thread ends.
TEST_F(ImageTest, a_rank_whose_thread_exits_has_ended) {
  Outcome outcome = run_images(3, program("image_endings") + " pthread_exit");
  EXPECT_EQ(outcome.lines["ended 0"], 3) << outcome.text;
  EXPECT_EQ(outcome.lines["atexit"], 3) << outcome.text;
}

TEST_F(ImageTest, a_child_that_a_rank_forks_ends_as_a_process) {
  Outcome outcome = run_images(3, program("image_endings") + " fork");
  EXPECT_EQ(outcome.lines["child 9"], 3) << outcome.text;
  EXPECT_EQ(outcome.lines["ended 0"], 3) << outcome.text;
}

TEST_F(ImageTest, threads_that_run_on_do_not_keep_the_process) {
  Outcome outcome = run_images(3, program("image_endings") + " thread");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(outcome.lines["ended 0"], 3) << outcome.text;
}

TEST_F(ImageTest, ranks_parse_their_options_in_turns) {
  Outcome outcome = run_images(5, program("image_endings") + " options --alpha -vw --beta=4 x -w");
  for (const char* line : {"option a - at 3", "option v - at 3", "option w - at 4", "option b 4 at 5",
                           "option w - at 7", "operands options x"})
    EXPECT_EQ(outcome.lines[line], 5) << line << '\n' << outcome.text;
}

TEST_F(ImageTest, code_takes_memory_once_for_all_ranks) {
  const Outcome outcome = run_images(3, program("image_endings") + " files");
  int code = 0;
  int variables = 0;
  for (const auto& [line, count] : outcome.lines) {
    if (line.starts_with("code ")) {
      ++code;
      EXPECT_EQ(count, 3) << outcome.text;
    }
    variables += line.starts_with("variables ") ? 1 : 0;
  }
  EXPECT_EQ(code, 1) << outcome.text;
  EXPECT_EQ(variables, 3) << outcome.text;
}

TEST_F(ImageTest, ranks_of_two_processes_send_messages) {
  Outcome outcome = shell(program("brant") + " run -n 2 --ranks 7 --no-prefix -- " + program("image_messages"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(outcome.lines["right"], 7) << outcome.text;
  EXPECT_EQ(outcome.lines["finalized"], 7) << outcome.text;
}

TEST_F(ImageTest, the_exit_code_of_a_rank_is_that_of_the_job) {
  EXPECT_EQ(shell(program("brant") + " run -n 1 --ranks 3 -- " + program("image_messages") + " 7").code, 7);
  EXPECT_EQ(shell(program("brant") + " run -n 1 --ranks 3 -- /nowhere/program").code, 127);
}

TEST_F(ImageTest, a_library_of_the_program_itself_is_refused_unless_it_may_be_shared) {
  Outcome outcome = run_images(2, program("image_with_library"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.text.find("libimage_library.so, whose global variables its ranks would share"), std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("BRANT_MPI_SHARE_LIBRARIES=1"), std::string::npos) << outcome.text;
  outcome = run_images(2, "--share " + program("image_with_library"));
  EXPECT_EQ(outcome.lines["counted 1"], 1) << outcome.text;
  EXPECT_EQ(outcome.lines["counted 2"], 1) << outcome.text;
}

}  // namespace
