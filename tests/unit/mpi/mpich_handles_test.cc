#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "models/mpi/mpich/handle_table.h"

namespace brant::mpi::mpich {
namespace {

constexpr unsigned kRequests = 11;
constexpr unsigned kTypes = 3;

// Tables are there as long as the process.

TEST(HandleTable, a_number_is_found_until_its_object_goes) {
  static constinit HandleTable table(kRequests, false);
  int first = 0;
  int second = 0;
  const int of_first = table.add(&first);
  const int of_second = table.add(&second);
  EXPECT_NE(of_first, of_second);
  EXPECT_EQ(table.find(of_first), &first);
  EXPECT_EQ(table.find(of_second), &second);
  table.remove(of_first);
  EXPECT_EQ(table.find(of_first), nullptr);
  EXPECT_EQ(table.find(of_second), &second);
  EXPECT_EQ(table.add(&first), of_first) << "numbers are used again";
}

TEST(HandleTable, a_number_is_one_that_mpich_could_give) {
  static constinit HandleTable table(kRequests, false);
  int object = 0;
  const auto handle = static_cast<std::uint32_t>(table.add(&object));
  EXPECT_EQ(handle >> 30, 3u);
  EXPECT_EQ(handle >> 26 & 15u, kRequests);
  EXPECT_TRUE(HandleTable::is_made(static_cast<int>(handle)));
  EXPECT_FALSE(HandleTable::is_made(0x44000000));
  EXPECT_FALSE(HandleTable::is_made(static_cast<int>(0x8c000001u)));
}

TEST(HandleTable, what_is_no_number_of_it_is_not_found) {
  static constinit HandleTable requests(kRequests, false);
  static constinit HandleTable types(kTypes, true);
  int object = 0;
  const int request = requests.add(&object);
  for (const int handle : {0, 1, -1, 0x2c000000, 0x44000000, request + 1, request - 1}) {
    EXPECT_EQ(requests.find(handle), nullptr) << handle;
    requests.remove(handle);
  }
  EXPECT_EQ(types.find(request), nullptr);
  EXPECT_EQ(requests.find(request), &object);
}

TEST(HandleTable, a_counted_object_has_one_number_until_its_last_handle_goes) {
  static constinit HandleTable table(kTypes, true);
  int object = 0;
  const int handle = table.add(&object);
  EXPECT_EQ(table.add(&object), handle);
  table.remove(handle);
  EXPECT_EQ(table.find(handle), &object);
  table.remove(handle);
  EXPECT_EQ(table.find(handle), nullptr);
  int other = 0;
  EXPECT_EQ(table.add(&other), handle);
  EXPECT_NE(table.add(&object), handle);
}

TEST(HandleTable, is_as_large_as_the_most_objects_at_a_time) {
  static constinit HandleTable table(kRequests, false);
  std::vector<int> objects(10'000);
  std::vector<int> handles;
  for (int round = 0; round < 3; ++round) {
    for (int& object : objects) handles.push_back(table.add(&object));
    for (std::size_t i = 0; i < objects.size(); ++i) ASSERT_EQ(table.find(handles[i]), &objects[i]);
    for (const int handle : handles) table.remove(handle);
    handles.clear();
    EXPECT_EQ(table.size(), objects.size());
  }
}

}  // namespace
}  // namespace brant::mpi::mpich
