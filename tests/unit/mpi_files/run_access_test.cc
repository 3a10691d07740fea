// Data that is written to and read from the runs of a view, against a file in memory.
#include "models/mpi/files/run_access.h"

#include <fcntl.h>

#include <random>

#include <gtest/gtest.h>

#include "fitting_types.h"
#include "support/effort.h"
#include "support/temporary_folder.h"

namespace brant::mpi::test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes some_bytes(std::size_t count, unsigned seed) {
  std::minstd_rand random(seed + 1);
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() >> 8);
  return bytes;
}

class RunAccess : public testing::Test {
 protected:
  [[nodiscard]] Bytes contents() const {
    Bytes all(static_cast<std::size_t>(disk_.size()));
    EXPECT_EQ(disk_.read(0, all), all.size());
    return all;
  }

  brant::test::TemporaryFolder folder_;
  const DiskFile disk_{folder_.path() + "/file", O_RDWR | O_CREAT, 0600};
};

TEST_F(RunAccess, writes_the_runs_and_nothing_else) {
  FittingTypes types(3);
  for (unsigned i = 0; i < brant::test::effort(200u, 20u); ++i) {
    const Twin twin = types.make();
    const FileLayout layout(types.number(0, 50), *twin.type);
    const std::vector<Count> places = twin.model.bytes(4);
    const auto begin = static_cast<std::size_t>(types.number(0, static_cast<Count>(places.size()) - 1));
    const Bytes before = some_bytes(static_cast<std::size_t>(layout.offset_of(places.size() - 1)) + 7, i);
    const Bytes data = some_bytes(places.size() - begin, i + 1000);
    disk_.resize(0);
    disk_.write(0, before);
    write_runs(disk_, layout, begin, data);
    Bytes expected = before;
    const Count displacement = layout.offset_of(0) - places[0];
    for (std::size_t k = begin; k < places.size(); ++k)
      expected[static_cast<std::size_t>(places[k] + displacement)] = data[k - begin];
    ASSERT_EQ(contents(), expected);
  }
}

TEST_F(RunAccess, reads_the_runs_up_to_the_end_of_the_file) {
  FittingTypes types(4);
  const Bytes all = some_bytes(20'000, 5);
  for (unsigned i = 0; i < brant::test::effort(400u, 40u); ++i) {
    const Twin twin = types.make();
    const FileLayout layout(types.number(0, 50), *twin.type);
    const std::vector<Count> places = twin.model.bytes(4);
    const Count displacement = layout.offset_of(0) - places[0];
    const auto length = static_cast<std::size_t>(types.number(0, places.back() + 100));
    disk_.resize(0);
    disk_.write(0, std::span(all).first(std::min(length, all.size())));
    const auto begin = static_cast<std::size_t>(types.number(0, static_cast<Count>(places.size()) - 1));
    Bytes expected;
    for (std::size_t k = begin; k < places.size() && places[k] + displacement < disk_.size(); ++k)
      expected.push_back(all[static_cast<std::size_t>(places[k] + displacement)]);
    Bytes found(places.size() - begin);
    found.resize(read_runs(disk_, layout, begin, found));
    ASSERT_EQ(found, expected);
  }
}

/// More runs than are read at once, with gaps on both sides of what is worth reading.
TEST_F(RunAccess, reads_thousands_of_runs_with_small_and_large_gaps) {
  for (const Count stride : {Count{12}, Count{5000}, Count{40'000}}) {
    const Made row = hvector_type(1, 3, 4, &predefined_type(0x247));
    const Made wide = resized_type(row.type.get(), 0, stride);
    const FileLayout layout(0, *wide.type);
    const std::size_t runs = stride < 100 ? 5000 : 500;
    const auto run = static_cast<std::size_t>(row.type->size());
    const Bytes data = some_bytes(runs * run, 6);
    disk_.resize(0);
    write_runs(disk_, layout, 0, data);
    Bytes found(data.size());
    ASSERT_EQ(read_runs(disk_, layout, 0, found), found.size());
    ASSERT_EQ(found, data) << stride;
  }
}

/// Rows that share bytes may be read.
TEST_F(RunAccess, reads_bytes_that_lie_in_several_runs) {
  const Made row = contiguous_type(8, &predefined_type(0x247));
  const Made narrow = resized_type(row.type.get(), 0, 2);
  ASSERT_EQ(FileLayout::unfit(*narrow.type), nullptr);
  const Bytes all = some_bytes(100, 7);
  disk_.write(0, all);
  const FileLayout layout(0, *narrow.type);
  const auto bytes = static_cast<std::size_t>(row.type->size());
  Bytes found(10 * bytes);
  ASSERT_EQ(read_runs(disk_, layout, 0, found), found.size());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], all[i / bytes * 2 + i % bytes]) << i;
}

}  // namespace
}  // namespace brant::mpi::test
