// Memory that is mapped by means of an open file, which its owner hands over: CUDA's of pools and of cuMemCreate.
#include <sys/resource.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "unit/mapping/mapping_pair.h"

namespace brant {
namespace {

using test::MappingPair;

struct FilePair : MappingPair {
  FilePair() : MappingPair(GpuChoice::emulated, true) {}
  bool takes(const ExportedPlace& place) { return take(place).address != nullptr; }
  /// Nothing is mapped any more, and the box is open.
  void settle() {
    describe(allocate());
    ASSERT_TRUE(run_until([&] { return exports().count() == 0; }));
    job().run(20);
    job().rank(0).tidy();
    ASSERT_EQ(table(0).mapped(), 0u);
  }
  /// Tells of it, and lets nobody answer yet.
  ExportedPlace tell(const Memory& memory) {
    const Result<ExportedPlace> place = exports().describe(memory.data());
    EXPECT_TRUE(place.ok());
    return place.ok() ? *place : ExportedPlace{};
  }
};

std::ptrdiff_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return std::distance(begin(files), end(files));
}

/// No descriptor can be had while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_ = {};
};

TEST(FileMapping, is_there_once_its_owner_has_handed_the_file_over_and_not_before) {
  FilePair pair;
  const Memory memory = pair.allocate();
  const ExportedPlace place = pair.tell(memory);
  pair.job().rank(0).worker().progress();
  EXPECT_FALSE(pair.takes(place)) << "its owner has not looked";
  EXPECT_TRUE(pair.imports().awaits(place.buffer_id));
  pair.job().run(10);
  EXPECT_FALSE(pair.imports().awaits(place.buffer_id));
  for (int time = 0; time < 10; ++time) EXPECT_TRUE(pair.takes(place));
  EXPECT_EQ(pair.device().imported, 1u);
  EXPECT_EQ(pair.table(0).mapped(), 1u);
  EXPECT_EQ(place.bytes, MappingPair::kBytes);
}

TEST(FileMapping, what_its_owner_has_freed_is_unmapped_and_what_comes_at_its_address_is_another) {
  FilePair pair;
  for (unsigned round = 0; round < 20; ++round) {
    const Memory memory = pair.allocate();
    const ExportedPlace place = pair.describe(memory);
    ASSERT_TRUE(pair.takes(place)) << round;
    EXPECT_EQ(pair.device().imported, round + 1);
    EXPECT_EQ(pair.exports().count(), 1u);
  }
  ASSERT_TRUE(pair.run_until([&] { return pair.exports().count() == 0; }));
  pair.job().run(10);
  pair.job().rank(0).tidy();
  EXPECT_EQ(pair.device().closed, 20u);
  EXPECT_EQ(pair.imports().known(), 0u);
}

TEST(FileMapping, memory_freed_while_its_file_is_on_its_way_is_not_mapped_and_leaves_no_file_open) {
  FilePair pair;
  pair.settle();
  testing::internal::CaptureStderr();  // which opens a file too
  const std::ptrdiff_t before = open_files();
  for (bool handed : {false, true}) {
    std::optional<Memory> memory = pair.allocate();
    const ExportedPlace place = pair.tell(*memory);
    pair.job().rank(0).worker().progress();  // it asks
    if (handed) pair.job().rank(1).worker().progress();
    memory.reset();
    ASSERT_TRUE(pair.run_until([&] { return pair.exports().count() == 0; }));
    pair.job().run(20);
    EXPECT_FALSE(pair.takes(place)) << handed;
    pair.job().rank(0).tidy();
    EXPECT_EQ(pair.table(0).mapped(), 0u);
    EXPECT_EQ(open_files(), before);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "nothing went wrong";
}

TEST(FileMapping, a_flood_of_allocations_is_fetched_in_turns) {
  FilePair pair;
  std::vector<Memory> memory;
  std::vector<ExportedPlace> places;
  for (unsigned i = 0; i < 5 * FileFetches::kAtOnce; ++i) {
    memory.push_back(pair.allocate());
    places.push_back(pair.tell(memory.back()));
  }
  const std::ptrdiff_t before = open_files();
  ASSERT_TRUE(pair.run_until([&] { return pair.table(0).mapped() == memory.size(); }));
  for (const ExportedPlace& place : places) EXPECT_TRUE(pair.takes(place));
  // The emulated device keeps one for each mapping; beyond that there is the box.
  EXPECT_LE(open_files() - before, static_cast<std::ptrdiff_t>(memory.size()) + 1);
}

TEST(FileMapping, beyond_the_bound_of_what_is_told_further_allocations_go_other_ways) {
  FilePair pair;
  std::vector<Memory> memory;
  for (unsigned i = 0; i < Exports::kMax; ++i) {
    memory.push_back(pair.allocate());
    ASSERT_TRUE(pair.exports().describe(memory.back().data()).ok());
    if (i % 32 == 0) pair.job().run(5);
  }
  const Memory more = pair.allocate();
  EXPECT_EQ(pair.exports().describe(more.data()).status(), Status::limit_reached);
  ASSERT_TRUE(pair.run_until([&] { return pair.table(0).mapped() == memory.size(); }));
}

TEST(FileMapping, an_owner_without_descriptors_says_so_and_is_asked_again_later) {
  FilePair pair;
  const Memory first = pair.allocate(), second = pair.allocate();
  const ExportedPlace place = pair.tell(first);
  pair.owners_device().files = Status::limit_reached;
  testing::internal::CaptureStderr();
  pair.job().run(20);
  EXPECT_FALSE(pair.takes(place));
  EXPECT_EQ(pair.exports().describe(second.data()).status(), Status::limit_reached) << "not now, and not never";
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("4096 bytes of emulated memory of rank 1"), std::string::npos) << log;
  EXPECT_NE(log.find("ulimit -n"), std::string::npos) << log;
  pair.owners_device().files = Status::ok;
  const ExportedPlace other = pair.describe(second);
  EXPECT_TRUE(pair.takes(other));
  pair.job().run(10);
  EXPECT_FALSE(pair.takes(place)) << "nothing has changed for this one";
}

TEST(FileMapping, a_process_without_descriptors_goes_other_ways) {
  FilePair pair;
  const Memory memory = pair.allocate();
  const ExportedPlace place = pair.tell(memory);
  testing::internal::CaptureStderr();
  {
    const NoDescriptors none;
    pair.job().run(20);
    EXPECT_FALSE(pair.takes(place));
    EXPECT_FALSE(pair.imports().awaits(place.buffer_id));
  }
  EXPECT_NE(testing::internal::GetCapturedStderr().find("ulimit -n"), std::string::npos);
}

TEST(FileMapping, an_owner_that_does_not_answer_is_waited_for_by_nobody_and_may_answer_late) {
  FilePair pair;
  MappingTable table(pair.engine(0), {.file_patience = std::chrono::milliseconds(0)});
  Imports& imports = table.with(pair.engine(0).peers().connect(Rank{1})).imports;
  const Memory memory = pair.allocate();
  const ExportedPlace place = pair.tell(memory);
  pair.job().rank(0).worker().progress();
  testing::internal::CaptureStderr();
  table.look_around();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("until it makes progress"), std::string::npos);
  EXPECT_FALSE(imports.awaits(place.buffer_id));
  EXPECT_EQ(imports.take(place.buffer_id, 0, 1, Reach::device).address, nullptr);
  pair.job().run(20);
  EXPECT_NE(imports.take(place.buffer_id, 0, 1, Reach::device).address, nullptr);
}

TEST(FileMapping, a_file_that_is_not_the_memory_is_refused) {
  FilePair pair;
  pair.device().imports = Status::invalid_argument;  // as a device says of somebody else's file
  const Memory memory = pair.allocate();
  const ExportedPlace place = pair.describe(memory);
  EXPECT_FALSE(pair.takes(place));
  EXPECT_EQ(pair.table(0).mapped(), 0u);
}

TEST(FileMapping, word_of_a_file_that_nobody_asked_for_or_that_is_not_there_changes_nothing) {
  FilePair pair;
  const Memory memory = pair.allocate();
  const ExportedPlace place = pair.describe(memory);
  MappingMessage handed;
  handed.kind = MappingMessage::Kind::handed;
  handed.buffer_id = place.buffer_id;
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    handed.number = number;
    pair.imports().on_handed(handed);
    EXPECT_TRUE(pair.takes(place));
  }
  // It says that the file is there, and it is not.
  const Memory other = pair.allocate();
  const ExportedPlace missing = pair.tell(other);
  pair.job().rank(0).worker().progress();
  handed.buffer_id = missing.buffer_id;
  handed.number = 2;
  testing::internal::CaptureStderr();
  pair.imports().on_handed(handed);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("did not come"), std::string::npos);
  EXPECT_FALSE(pair.takes(missing));
  pair.job().run(20);
  EXPECT_FALSE(pair.takes(missing)) << "the true answer came too late";
}

TEST(FileMapping, an_owner_is_asked_for_nothing_that_it_does_not_have) {
  FilePair pair;
  MappingMessage asked;
  asked.kind = MappingMessage::Kind::fetch;
  for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{4096}}) {
    asked.address = address;
    asked.buffer_id = 12345;
    pair.exports().on_fetch(asked);
  }
  const Memory memory = pair.allocate();
  asked.address = reinterpret_cast<std::uint64_t>(memory.data());
  pair.exports().on_fetch(asked);
  EXPECT_EQ(pair.exports().count(), 0u) << "another allocation lies there";
  pair.job().run(20);
}

TEST(FileMapping, of_a_peer_that_dies_while_it_is_asked_nothing_stays) {
  FilePair pair;
  pair.settle();
  Imports& imports = pair.imports();
  std::vector<Memory> memory;
  for (unsigned i = 0; i < 2 * FileFetches::kAtOnce; ++i) {
    memory.push_back(pair.allocate());
    pair.tell(memory.back());
  }
  const std::ptrdiff_t own = open_files();
  pair.job().rank(0).worker().progress();
  pair.job().rank(1).worker().progress();  // some are in the box
  pair.engine(0).peers().suspect(pair.engine(0).peers().connect(Rank{1}));
  for (int round = 0; round < 10; ++round) pair.job().rank(0).worker().progress();
  pair.job().rank(0).tidy();
  EXPECT_EQ(pair.table(0).mapped(), 0u);
  EXPECT_EQ(imports.known(), 0u);
  EXPECT_EQ(open_files(), own);
}

}  // namespace
}  // namespace brant
