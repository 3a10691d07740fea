// Which UCX is loaded, and what is said when there is none. Each case runs in a process of its own, since UCX is loaded
// once per process.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "brant/base/status.h"
#include "port/wire/ucx/open.h"

namespace brant::port::test {
namespace {

/// Loads UCX with BRANT_UCX set; prints what came of it and ends with the status.
[[noreturn]] void load(const std::string& wanted) {
  ::setenv("BRANT_UCX", wanted.c_str(), 1);
  try {
    std::fprintf(stderr, "loaded %s from %s\n", ucx_version().c_str(), ucx_library_path().c_str());
    std::_Exit(0);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::_Exit(static_cast<int>(error.status()) % 256);
  }
}

constexpr int kNotFound = static_cast<int>(Status::not_found);

class UcxLibrary : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(UcxLibrary, a_wrong_path_says_what_was_tried_and_the_cure) {
  EXPECT_EXIT(load("/nowhere/at/all"), testing::ExitedWithCode(kNotFound), "/nowhere/at/all/lib/libucp.so.0.*Cure:");
}

TEST_F(UcxLibrary, a_second_attempt_gives_the_same_reason) {
  const auto twice = [] {
    ::setenv("BRANT_UCX", "/nowhere/at/all", 1);
    std::string reasons[2];
    for (std::string& reason : reasons) {
      try {
        ucx_version();
      } catch (const Error& error) {
        reason = error.what();
      }
    }
    std::_Exit(!reasons[0].empty() && reasons[0] == reasons[1] ? 0 : 1);
  };
  EXPECT_EXIT(twice(), testing::ExitedWithCode(0), "");
}

TEST_F(UcxLibrary, a_file_that_is_no_library_is_refused) {
  const auto file = std::filesystem::temp_directory_path() / ("brant_no_ucx_" + std::to_string(::getpid()));
  std::ofstream(file) << "not a library";
  EXPECT_EXIT(load(file.string()), testing::ExitedWithCode(kNotFound), "Cure:");
  std::filesystem::remove(file);
}

TEST_F(UcxLibrary, file_folder_and_prefix_name_the_same_library) {
  std::string path;
  try {
    path = ucx_library_path();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const std::filesystem::path file = path;
  EXPECT_EXIT(load(path), testing::ExitedWithCode(0), "loaded .* from .*libucp");
  EXPECT_EXIT(load(file.parent_path().string()), testing::ExitedWithCode(0), "loaded .* from .*libucp");
  EXPECT_EXIT(load(file.parent_path().parent_path().string()), testing::ExitedWithCode(0), "loaded .* from .*libucp");
}

TEST_F(UcxLibrary, options_out_of_range_are_refused) {
  try {
    ucx_library_path();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const auto refused = [](const UcxOptions& options) {
    try {
      open_ucx_wire(options);
      return Status::ok;
    } catch (const Error& error) {
      return error.status();
    }
  };
  UcxOptions none, queue, eager;
  none.requests_max = 0;
  queue.messages_max = 0;
  eager.am_eager_bytes_max = std::size_t{1} << 30;
  EXPECT_EQ(refused(none), Status::invalid_argument);
  EXPECT_EQ(refused(queue), Status::invalid_argument);
  EXPECT_EQ(refused(eager), Status::invalid_argument);
}

TEST_F(UcxLibrary, operations_in_flight_are_bounded_and_the_bound_is_an_answer) {
  UcxOptions options;
  options.requests_max = 300;
  std::unique_ptr<Wire> wire;
  try {
    wire = open_ucx_wire(options);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  std::vector<WireOp> ops(301);
  std::vector<std::uint64_t> in(301);
  for (std::size_t i = 0; i < 300; ++i) {
    ASSERT_EQ(wire->tag_recv(i, ~std::uint64_t{0}, Buffer{&in[i], 8, MemoryKind::host}, ops[i]), Status::in_progress)
        << i;
  }
  EXPECT_EQ(wire->tag_recv(300, ~std::uint64_t{0}, Buffer{&in[300], 8, MemoryKind::host}, ops[300]),
            Status::limit_reached);
  wire->cancel(ops[7]);
  while (wire->deliver(16) > 0) {
  }
  EXPECT_EQ(wire->tag_recv(300, ~std::uint64_t{0}, Buffer{&in[300], 8, MemoryKind::host}, ops[300]),
            Status::in_progress);
}

TEST_F(UcxLibrary, a_full_inbox_pauses_the_intake_and_loses_nothing) {
  UcxOptions options;
  options.messages_max = 10;
  std::unique_ptr<Wire> left, right;
  try {
    left = open_ucx_wire(options);
    right = open_ucx_wire(options);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  int handled = 0;
  right->set_am_handler(1, [](void* context, AmMessage&) noexcept { ++*static_cast<int*>(context); }, &handled);
  WireEndpoint* to_right = *left->connect(right->address());
  std::vector<WireOp> ops(2000);
  for (WireOp& op : ops) ASSERT_NE(left->am_send(to_right, 1, {}, ConstBuffer{}, op), Status::limit_reached);
  for (int i = 0; i < 1000; ++i) {
    left->progress();
    right->progress();
  }
  EXPECT_EQ(handled, 0);
  for (int i = 0; i < 2000000 && handled < 2000; ++i) {
    left->progress();
    left->deliver(8);
    right->progress();
    EXPECT_LE(right->deliver(100), 100u);
  }
  EXPECT_EQ(handled, 2000);
}

}  // namespace
}  // namespace brant::port::test
