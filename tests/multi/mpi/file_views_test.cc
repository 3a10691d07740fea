// Runs as every rank of a job: what goes into files and comes back, by views, pointers and all sorts of accesses.
#include <cstring>
#include <limits>
#include <numeric>

#include "brant/core/runtime.h"
#include "test_file.h"

namespace brant::mpi {
namespace {

using test::count_of;
using test::TestFile;
using test::TestType;

class FileViews : public testing::Test {
 protected:
  /// `count` numbers that tell whose they are.
  [[nodiscard]] std::vector<int> own_numbers(int count) const {
    std::vector<int> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 1000 * self_);
    return numbers;
  }
  /// Every `size`th number of a file, from this rank's on.
  void set_interleaved_view(const TestFile& file) const {
    const TestType row(TestType::resized(MPI_INT, MPI_Aint{4} * size_));
    ASSERT_EQ(MPI_File_set_view(file.fh, MPI_Offset{4} * self_, MPI_INT, row.type, "native", MPI_INFO_NULL), 0);
  }
  const int self_ = test::rank(), size_ = test::size();
};

TEST_F(FileViews, of_all_bytes_have_them_at_explicit_offsets) {
  const TestFile file;
  const std::vector<int> sent = own_numbers(10);
  MPI_Status status;
  EXPECT_EQ(MPI_File_write_at(file.fh, MPI_Offset{40} * self_, sent.data(), 10, MPI_INT, &status), 0);
  EXPECT_EQ(count_of(status, MPI_INT), 10);
  file.meet();
  std::vector<int> found(10);
  EXPECT_EQ(MPI_File_read_at_all(file.fh, MPI_Offset{40} * ((self_ + 1) % size_), found.data(), 10, MPI_INT, &status),
            0);
  EXPECT_EQ(found[3], 1000 * ((self_ + 1) % size_) + 3);
  EXPECT_EQ(count_of(status, MPI_INT), 10);
  // Past the end there is nothing, and across it less.
  EXPECT_EQ(MPI_File_read_at(file.fh, 40 * size_ - 6, found.data(), 10, MPI_INT, &status), 0);
  EXPECT_EQ(count_of(status, MPI_BYTE), 6);
  EXPECT_EQ(count_of(status, MPI_INT), MPI_UNDEFINED);
  EXPECT_EQ(MPI_File_read_at(file.fh, 40 * size_ + 100, found.data(), 10, MPI_INT, &status), 0);
  EXPECT_EQ(count_of(status, MPI_INT), 0);
}

TEST_F(FileViews, leave_holes_that_read_as_zero) {
  const TestFile file;
  const char last = 'x';
  EXPECT_EQ(MPI_File_write_at_all(file.fh, 10'000 + self_, &last, 1, MPI_CHAR, MPI_STATUS_IGNORE), 0);
  file.meet();
  EXPECT_EQ(file.size(), 10'000 + size_);
  EXPECT_EQ(file.contents()[9'999], 0);
  EXPECT_EQ(file.contents()[10'000], 'x');
}

TEST_F(FileViews, are_told_as_they_were_set) {
  const TestFile file;
  MPI_Offset displacement = -1;
  MPI_Datatype etype = MPI_DATATYPE_NULL, filetype = MPI_DATATYPE_NULL;
  char name[MPI_MAX_DATAREP_STRING] = "";
  EXPECT_EQ(MPI_File_get_view(file.fh, &displacement, &etype, &filetype, name), 0);
  EXPECT_EQ(displacement, 0);
  EXPECT_EQ(etype, MPI_BYTE);
  EXPECT_EQ(filetype, MPI_BYTE);
  EXPECT_STREQ(name, "native");
  set_interleaved_view(file);
  EXPECT_EQ(MPI_File_get_view(file.fh, &displacement, &etype, &filetype, name), 0);
  EXPECT_EQ(displacement, 4 * self_);
  EXPECT_EQ(etype, MPI_INT);
  MPI_Aint low = 0, extent = 0;
  MPI_Type_get_extent(filetype, &low, &extent);
  EXPECT_EQ(extent, 4 * size_);
  EXPECT_EQ(MPI_Type_free(&filetype), 0) << "and the view still has it";
  EXPECT_EQ(MPI_File_get_byte_offset(file.fh, 7, &displacement), 0);
  EXPECT_EQ(displacement, 4 * self_ + 7 * 4 * size_);
  EXPECT_EQ(MPI_File_get_type_extent(file.fh, MPI_DOUBLE, &extent), 0);
  EXPECT_EQ(extent, 8);
}

TEST_F(FileViews, that_are_wrong_change_nothing) {
  const TestFile file;
  const TestType odd(TestType::vector(3, 1, 2, MPI_CHAR));
  const TestType backwards(TestType::vector(3, 1, -2, MPI_INT));
  MPI_Datatype open = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_INT, &open);
  const auto error_of = [&](MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, const char* name) {
    return MPI_File_set_view(file.fh, displacement, etype, filetype, name, MPI_INFO_NULL);
  };
  EXPECT_EQ(error_of(-5, MPI_INT, MPI_INT, "native"), MPI_ERR_ARG);
  EXPECT_EQ(error_of(MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native"), MPI_ERR_ARG);
  EXPECT_EQ(error_of(0, MPI_INT, odd.type, "native"), MPI_ERR_TYPE);
  EXPECT_EQ(error_of(0, MPI_INT, backwards.type, "native"), MPI_ERR_TYPE);
  EXPECT_EQ(error_of(0, MPI_INT, open, "native"), MPI_ERR_TYPE);
  EXPECT_EQ(error_of(0, MPI_DATATYPE_NULL, MPI_INT, "native"), MPI_ERR_TYPE);
  EXPECT_EQ(error_of(0, MPI_INT, MPI_INT, "goose"), MPI_ERR_UNSUPPORTED_DATAREP);
  if (size_ > 1) {
    EXPECT_EQ(error_of(self_ == 1 ? -1 : 0, MPI_INT, MPI_INT, "native"), MPI_ERR_ARG);
  }
  MPI_Datatype etype = MPI_DATATYPE_NULL, filetype = MPI_DATATYPE_NULL;
  MPI_Offset displacement = 0;
  char name[MPI_MAX_DATAREP_STRING];
  MPI_File_get_view(file.fh, &displacement, &etype, &filetype, name);
  EXPECT_EQ(etype, MPI_BYTE);
  MPI_Type_free(&open);
}

TEST_F(FileViews, of_every_nth_number_make_one_file_of_all_ranks) {
  const TestFile file;
  set_interleaved_view(file);
  const std::vector<int> sent = own_numbers(100);
  EXPECT_EQ(MPI_File_write_all(file.fh, sent.data(), 60, MPI_INT, MPI_STATUS_IGNORE), 0);
  EXPECT_EQ(MPI_File_write_all(file.fh, sent.data() + 60, 40, MPI_INT, MPI_STATUS_IGNORE), 0);
  file.meet();
  const std::vector<int> all = file.numbers();
  ASSERT_EQ(all.size(), static_cast<std::size_t>(100 * size_));
  for (int i = 0; i < 100 * size_; ++i) ASSERT_EQ(all[static_cast<std::size_t>(i)], 1000 * (i % size_) + i / size_);
  MPI_Offset position = 0;
  EXPECT_EQ(MPI_File_get_position(file.fh, &position), 0);
  EXPECT_EQ(position, 100);
  EXPECT_EQ(MPI_File_seek(file.fh, -30, MPI_SEEK_CUR), 0);
  std::vector<int> found(50);
  MPI_Status status;
  EXPECT_EQ(MPI_File_read(file.fh, found.data(), 50, MPI_INT, &status), 0);
  EXPECT_EQ(count_of(status, MPI_INT), 30);
  EXPECT_EQ(found[0], sent[70]);
  EXPECT_EQ(MPI_File_seek(file.fh, -1, MPI_SEEK_END), 0);
  EXPECT_EQ(MPI_File_get_position(file.fh, &position), 0);
  EXPECT_EQ(position, 99);
  EXPECT_EQ(MPI_File_write_at(file.fh, 0, sent.data(), 3, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_TYPE)
      << "three characters are no whole number";
}

/// Memory with gaps at one end, and a file with gaps at the other, or one that takes several pieces.
TEST_F(FileViews, take_data_with_gaps) {
  const TestFile file;
  const TestType pairs(TestType::resized(TestType::vector(2, 1, 2, MPI_INT), 16));
  constexpr std::size_t kMost = 700'000;
  std::vector<int> memory(4 * kMost);
  std::iota(memory.begin(), memory.end(), self_);
  for (const std::size_t count : {std::size_t{3000}, kMost}) {
    if (count == kMost) {
      const auto own = static_cast<MPI_Offset>(8 * kMost) * self_;
      ASSERT_EQ(MPI_File_set_view(file.fh, own, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), 0);
    } else {
      set_interleaved_view(file);
    }
    const int items = static_cast<int>(count);
    MPI_Status status;
    EXPECT_EQ(MPI_File_write(file.fh, memory.data(), items, pairs.type, &status), 0);
    EXPECT_EQ(count_of(status, pairs.type), items);
    std::vector<int> found(4 * count, -1);
    EXPECT_EQ(MPI_File_read_at(file.fh, 0, found.data(), items, pairs.type, &status), 0);
    EXPECT_EQ(count_of(status, pairs.type), items);
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], i % 2 == 0 ? memory[i] : -1) << i;
  }
  MPI_Aint address = 0;
  MPI_Get_address(memory.data() + 4, &address);
  MPI_Datatype absolute = MPI_DATATYPE_NULL;
  const int length = 1;
  MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &absolute);
  const TestType there(absolute);
  EXPECT_EQ(MPI_File_read_at(file.fh, 0, MPI_BOTTOM, 1, there.type, MPI_STATUS_IGNORE), 0);
  EXPECT_EQ(memory[4], self_);
}

TEST_F(FileViews, of_no_bytes_have_nothing) {
  const TestFile file;
  MPI_Datatype nothing = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  const TestType empty(nothing);
  ASSERT_EQ(MPI_File_set_view(file.fh, 0, MPI_INT, empty.type, "native", MPI_INFO_NULL), 0);
  int value = 3;
  MPI_Status status;
  EXPECT_EQ(MPI_File_write(file.fh, &value, 0, MPI_INT, &status), 0);
  EXPECT_EQ(MPI_File_write(file.fh, &value, 5, empty.type, &status), 0);
  EXPECT_EQ(MPI_File_write(file.fh, &value, 1, MPI_INT, &status), MPI_ERR_ARG);
  EXPECT_EQ(MPI_File_read(file.fh, &value, 1, MPI_INT, &status), 0);
  EXPECT_EQ(count_of(status, MPI_INT), 0);
  EXPECT_EQ(MPI_File_set_view(file.fh, 0, empty.type, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
}

TEST_F(FileViews, are_accessed_without_blocking) {
  const TestFile file;
  set_interleaved_view(file);
  const std::vector<int> sent = own_numbers(40);
  MPI_Request requests[4];
  EXPECT_EQ(MPI_File_iwrite_at(file.fh, 0, sent.data(), 10, MPI_INT, &requests[0]), 0);
  EXPECT_EQ(MPI_File_iwrite_at_all(file.fh, 10, sent.data() + 10, 10, MPI_INT, &requests[1]), 0);
  EXPECT_EQ(MPI_File_seek(file.fh, 20, MPI_SEEK_SET), 0);
  EXPECT_EQ(MPI_File_iwrite(file.fh, sent.data() + 20, 10, MPI_INT, &requests[2]), 0);
  EXPECT_EQ(MPI_File_iwrite_all(file.fh, sent.data() + 30, 10, MPI_INT, &requests[3]), 0);
  MPI_Status statuses[4];
  EXPECT_EQ(MPI_Waitall(4, requests, statuses), 0);
  EXPECT_EQ(count_of(statuses[3], MPI_INT), 10);
  std::vector<int> found(40);
  MPI_File_seek(file.fh, 0, MPI_SEEK_SET);
  EXPECT_EQ(MPI_File_iread(file.fh, found.data(), 10, MPI_INT, &requests[0]), 0);
  EXPECT_EQ(MPI_File_iread_all(file.fh, found.data() + 10, 10, MPI_INT, &requests[1]), 0);
  EXPECT_EQ(MPI_File_iread_at(file.fh, 20, found.data() + 20, 10, MPI_INT, &requests[2]), 0);
  EXPECT_EQ(MPI_File_iread_at_all(file.fh, 30, found.data() + 30, 10, MPI_INT, &requests[3]), 0);
  EXPECT_EQ(MPI_Waitall(4, requests, statuses), 0);
  EXPECT_EQ(found, sent);
}

TEST_F(FileViews, are_accessed_in_two_steps) {
  const TestFile file;
  set_interleaved_view(file);
  const std::vector<int> sent = own_numbers(20);
  std::vector<int> found(20);
  MPI_Status status;
  EXPECT_EQ(MPI_File_write_all_begin(file.fh, sent.data(), 10, MPI_INT), 0);
  EXPECT_EQ(MPI_File_write_all_begin(file.fh, sent.data(), 10, MPI_INT), MPI_ERR_OTHER) << "one at a time";
  MPI_File handle = file.fh;
  EXPECT_EQ(MPI_File_close(&handle), MPI_ERR_OTHER) << "not before its end";
  EXPECT_EQ(MPI_File_write_at_all_end(file.fh, sent.data(), &status), MPI_ERR_OTHER) << "another one";
  EXPECT_EQ(MPI_File_write_all_end(file.fh, found.data(), &status), MPI_ERR_BUFFER) << "another buffer";
  EXPECT_EQ(MPI_File_write_all_end(file.fh, sent.data(), &status), 0);
  EXPECT_EQ(count_of(status, MPI_INT), 10);
  EXPECT_EQ(MPI_File_write_at_all_begin(file.fh, 10, sent.data() + 10, 10, MPI_INT), 0);
  EXPECT_EQ(MPI_File_write_at_all_end(file.fh, sent.data() + 10, &status), 0);
  EXPECT_EQ(MPI_File_seek(file.fh, 0, MPI_SEEK_SET), 0);
  EXPECT_EQ(MPI_File_read_all_begin(file.fh, found.data(), 5, MPI_INT), 0);
  EXPECT_EQ(MPI_File_read_all_end(file.fh, found.data(), &status), 0);
  EXPECT_EQ(MPI_File_read_at_all_begin(file.fh, 5, found.data() + 5, 30, MPI_INT), 0);
  EXPECT_EQ(MPI_File_read_at_all_end(file.fh, found.data() + 5, &status), 0);
  EXPECT_EQ(count_of(status, MPI_INT), 15) << "where the file ends";
  EXPECT_EQ(found, sent);
}

TEST_F(FileViews, take_and_give_memory_of_a_device) {
  const MemoryKind kind = runtime().device_kind();
  if (kind == MemoryKind::host) GTEST_SKIP() << "there is no device";
  const TestFile file;
  constexpr std::size_t kNumbers = 2'400'000;  // more than two pieces
  const auto own = static_cast<MPI_Offset>(4 * kNumbers) * self_;
  ASSERT_EQ(MPI_File_set_view(file.fh, own, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), 0);
  std::vector<int> numbers(kNumbers), found(kNumbers);
  std::iota(numbers.begin(), numbers.end(), self_);
  const std::size_t bytes = kNumbers * sizeof(int);
  const Memory source = runtime().allocate(kind, bytes), landing = runtime().allocate(kind, bytes);
  const Buffer sent(source.data(), bytes, kind), taken(landing.data(), bytes, kind);
  runtime().copy(sent, {numbers.data(), bytes, MemoryKind::host});
  EXPECT_EQ(MPI_File_write(file.fh, source.data(), kNumbers, MPI_INT, MPI_STATUS_IGNORE), 0);
  EXPECT_EQ(MPI_File_read_at(file.fh, 0, landing.data(), kNumbers, MPI_INT, MPI_STATUS_IGNORE), 0);
  runtime().copy({found.data(), bytes, MemoryKind::host}, taken);
  EXPECT_EQ(found, numbers);
  // The even ones, which lie in gaps of the device's memory.
  const TestType even(TestType::resized(TestType::vector(kNumbers / 4, 1, 2, MPI_INT), bytes / 2));
  std::vector<int> zeros(kNumbers);
  runtime().copy(taken, {zeros.data(), bytes, MemoryKind::host});
  EXPECT_EQ(MPI_File_write_at(file.fh, 0, source.data(), 2, even.type, MPI_STATUS_IGNORE), 0);
  EXPECT_EQ(MPI_File_read_at(file.fh, 0, landing.data(), 2, even.type, MPI_STATUS_IGNORE), 0);
  runtime().copy({found.data(), bytes, MemoryKind::host}, taken);
  for (std::size_t i = 0; i < kNumbers; ++i) ASSERT_EQ(found[i], i % 2 == 0 ? numbers[i] : 0) << i;
  ASSERT_EQ(
      MPI_File_set_view(file.fh, self_ * static_cast<MPI_Offset>(bytes), MPI_INT, MPI_INT, "external32", MPI_INFO_NULL),
      0);
  EXPECT_EQ(MPI_File_write_at(file.fh, 0, source.data(), 2, even.type, MPI_STATUS_IGNORE), 0);
  EXPECT_EQ(MPI_File_read_at(file.fh, 0, landing.data(), kNumbers / 2, MPI_INT, MPI_STATUS_IGNORE), 0);
  runtime().copy({found.data(), bytes, MemoryKind::host}, taken);
  for (std::size_t i = 0; i < kNumbers / 2; ++i) ASSERT_EQ(found[i], numbers[2 * i]) << i;
}

TEST_F(FileViews, convert_to_external32_and_back) {
  const TestFile file;
  MPI_Datatype portable = MPI_DATATYPE_NULL;
  const int place = self_, sizes = size_, one = 1;
  MPI_Type_create_subarray(1, &sizes, &one, &place, MPI_ORDER_C, MPI_LONG, &portable);
  const TestType row(portable);
  ASSERT_EQ(MPI_File_set_view(file.fh, 0, MPI_LONG, row.type, "external32", MPI_INFO_NULL), 0);
  MPI_Aint extent = 0;
  EXPECT_EQ(MPI_File_get_type_extent(file.fh, MPI_LONG, &extent), 0);
  EXPECT_EQ(extent, 4) << "a long has four bytes there";
  const long sent[3] = {self_ + 1, -2, 3};
  MPI_Status status;
  EXPECT_EQ(MPI_File_write(file.fh, sent, 3, MPI_LONG, &status), 0);
  EXPECT_EQ(count_of(status, MPI_LONG), 3);
  file.meet();
  EXPECT_EQ(file.size(), 12 * size_);
  const std::vector<std::uint8_t> bytes = file.contents();
  EXPECT_EQ(bytes[static_cast<std::size_t>(4 * self_ + 3)], self_ + 1) << "the last byte is the lowest";
  long found[5] = {};
  EXPECT_EQ(MPI_File_read_at(file.fh, 0, found, 5, MPI_LONG, &status), 0);
  EXPECT_EQ(count_of(status, MPI_LONG), 3);
  EXPECT_EQ(std::memcmp(found, sent, sizeof sent), 0);
  // Of an item that the file ends in, there is what the file has of it.
  MPI_Datatype two = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_LONG, &two);
  const TestType pair(two);
  long spread[6] = {-1, -1, -1, -1, -1, -1};
  EXPECT_EQ(MPI_File_read_at(file.fh, 0, spread, 2, pair.type, &status), 0);
  int elements = 0;
  MPI_Get_elements(&status, pair.type, &elements);
  EXPECT_EQ(elements, 3);
  EXPECT_EQ(spread[2], sent[1]);
  EXPECT_EQ(spread[3], sent[2]);
  EXPECT_EQ(spread[5], -1);
  const long large = std::numeric_limits<long>::max();
  EXPECT_EQ(MPI_File_write_at(file.fh, 0, &large, 1, MPI_LONG, &status), MPI_ERR_CONVERSION);
}

/// Numbers in twice their size, each byte turned round.
int extent_of_twice(MPI_Datatype type, MPI_Aint* extent, void*) {
  int bytes = 0;
  MPI_Type_size(type, &bytes);
  *extent = MPI_Aint{2} * bytes;
  return MPI_SUCCESS;
}
int write_twice(void* user, MPI_Datatype type, int count, void* file, MPI_Offset position, void* state) {
  if (type != MPI_INT) return MPI_ERR_TYPE;
  for (int i = 0; i < count; ++i) {
    const int value = ~static_cast<int*>(user)[position + i];
    const int both[2] = {value, value};
    std::memcpy(static_cast<int*>(file) + std::ptrdiff_t{2} * i, both, sizeof both);
  }
  ++*static_cast<int*>(state);
  return MPI_SUCCESS;
}
int read_twice(void* user, MPI_Datatype, int count, void* file, MPI_Offset position, void*) {
  for (int i = 0; i < count; ++i) static_cast<int*>(user)[position + i] = ~static_cast<int*>(file)[2 * i + 1];
  return MPI_SUCCESS;
}

TEST_F(FileViews, convert_by_functions_of_the_program) {
  static int conversions = 0;
  EXPECT_EQ(MPI_Register_datarep("twice", &read_twice, &write_twice, &extent_of_twice, &conversions), 0);
  EXPECT_EQ(MPI_Register_datarep("twice", &read_twice, &write_twice, &extent_of_twice, nullptr), MPI_ERR_DUP_DATAREP);
  EXPECT_EQ(MPI_Register_datarep("native", nullptr, nullptr, &extent_of_twice, nullptr), MPI_ERR_DUP_DATAREP);
  EXPECT_EQ(MPI_Register_datarep(std::string(200, 'x').c_str(), nullptr, nullptr, &extent_of_twice, nullptr),
            MPI_ERR_ARG);
  const TestFile file;
  ASSERT_EQ(MPI_File_set_view(file.fh, MPI_Offset{80} * self_, MPI_INT, MPI_INT, "twice", MPI_INFO_NULL), 0);
  const std::vector<int> sent = own_numbers(10);
  EXPECT_EQ(MPI_File_write(file.fh, sent.data(), 10, MPI_INT, MPI_STATUS_IGNORE), 0);
  EXPECT_GE(conversions, 1);
  file.meet();
  EXPECT_EQ(file.size(), 80 * size_);
  std::vector<int> found(10);
  EXPECT_EQ(MPI_File_read_at(file.fh, 4, found.data(), 6, MPI_INT, MPI_STATUS_IGNORE), 0);
  EXPECT_EQ(found[0], sent[4]);
  EXPECT_EQ(found[5], sent[9]);
  EXPECT_EQ(MPI_File_write(file.fh, sent.data(), 10, MPI_UNSIGNED, MPI_STATUS_IGNORE), MPI_ERR_CONVERSION);
}

int extent_in_memory(MPI_Datatype type, MPI_Aint* extent, void*) {
  MPI_Aint low = 0;
  return MPI_Type_get_extent(type, &low, extent);
}
int refuse_extent(MPI_Datatype, MPI_Aint*, void*) { return MPI_ERR_OTHER; }

TEST_F(FileViews, need_no_functions_that_convert) {
  EXPECT_EQ(MPI_Register_datarep_c("as it is", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C, &extent_in_memory,
                                   nullptr),
            0);
  EXPECT_EQ(MPI_Register_datarep_c("none", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C, &refuse_extent, nullptr),
            0);
  EXPECT_EQ(MPI_Register_datarep_c("no extent", nullptr, nullptr, nullptr, nullptr), MPI_ERR_ARG);
  const TestFile file;
  ASSERT_EQ(MPI_File_set_view(file.fh, 0, MPI_INT, MPI_INT, "as it is", MPI_INFO_NULL), 0);
  const TestType pairs(TestType::resized(TestType::vector(2, 1, 2, MPI_INT), 16));
  const std::vector<int> sent = own_numbers(40);
  EXPECT_EQ(MPI_File_write_at(file.fh, MPI_Offset{20} * self_, sent.data(), 10, pairs.type, MPI_STATUS_IGNORE), 0);
  std::vector<int> found(20);
  EXPECT_EQ(MPI_File_read_at(file.fh, MPI_Offset{20} * self_, found.data(), 20, MPI_INT, MPI_STATUS_IGNORE), 0);
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], sent[2 * i]) << i;
  EXPECT_EQ(MPI_File_set_view(file.fh, 0, MPI_INT, MPI_INT, "none", MPI_INFO_NULL), MPI_ERR_CONVERSION);
}

TEST_F(FileViews, reach_beyond_what_an_int_counts) {
  const TestFile file;
  constexpr MPI_Offset kFar = MPI_Offset{5} << 30;
  ASSERT_EQ(MPI_File_set_view(file.fh, kFar, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), 0);
  EXPECT_EQ(MPI_File_write_at_c(file.fh, kFar + self_, &self_, 1, MPI_INT, MPI_STATUS_IGNORE), 0);
  int found = -1;
  EXPECT_EQ(MPI_File_read_at_c(file.fh, kFar + self_, &found, 1, MPI_INT, MPI_STATUS_IGNORE), 0);
  EXPECT_EQ(found, self_);
  file.meet();
  EXPECT_EQ(file.size(), 5 * kFar + MPI_Offset{4} * size_);
}

}  // namespace
}  // namespace brant::mpi
