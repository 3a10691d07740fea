#include "npy.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "brant/base/status.h"

namespace jacobi {
namespace {

namespace fs = std::filesystem;

/// A file as numpy writes it.
std::string npy(const std::string& dictionary, int version = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  const std::string padded = dictionary + "\n";
  for (int byte = 0; byte < (version == 1 ? 2 : 4); ++byte)
    text += static_cast<char>(padded.size() >> (8 * byte) & 0xff);
  return text + padded;
}

NpyHeader parse(const std::string& text) { return parse_npy_header(std::as_bytes(std::span(text)), "field.npy"); }

/// What the error of a refused header says.
std::string complaint(const std::string& text) {
  try {
    static_cast<void>(parse(text));
  } catch (const brant::Error& error) {
    EXPECT_NE(std::string(error.what()).find("field.npy"), std::string::npos) << error.what();
    return error.what();
  }
  return "accepted";
}

class NpyFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              fmt::format("brant-npy-{}-{}", ::getpid(), testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string name(const char* file) const { return (folder_ / file).string(); }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  std::string write(const std::string& text, const std::vector<double>& values) const {
    std::ofstream file(name("given.npy"), std::ios::binary);
    file << text;
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(double)));
    return name("given.npy");
  }

  fs::path folder_;
};

TEST(NpyHeader, reads_what_numpy_writes) {
  const NpyHeader header = parse(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4, 5), }   "));
  EXPECT_EQ(header.shape, (Extent{3, 4, 5}));
  EXPECT_FALSE(header.fortran_order);
  EXPECT_EQ(header.at(1, 2, 3), 1 * 20 + 2 * 5 + 3);
}

TEST(NpyHeader, knows_fortran_order_newer_versions_and_any_order_of_keys) {
  const NpyHeader header = parse(npy("{\"shape\": (3,4,5), 'fortran_order': True, 'descr':'<f8'}", 2));
  EXPECT_TRUE(header.fortran_order);
  EXPECT_EQ(header.at(1, 2, 3), 1 + 3 * (2 + 4 * 3));
}

TEST(NpyHeader, own_header_reads_back_and_aligns_the_data) {
  for (const Extent& shape : {Extent{1, 1, 1}, Extent{123456, 7, 99999}}) {
    const std::string text = make_npy_header(shape);
    EXPECT_EQ(text.size() % 64, 0u);
    const NpyHeader header = parse(text);
    EXPECT_EQ(header.shape, shape);
    EXPECT_TRUE(header.fortran_order);
    EXPECT_EQ(header.data_offset, text.size());
  }
}

TEST(NpyHeader, refuses_what_it_cannot_use_and_says_why) {
  EXPECT_NE(complaint("").find("magic"), std::string::npos);
  EXPECT_NE(complaint("PK\x03\x04 a zip").find("magic"), std::string::npos);
  EXPECT_NE(complaint("\x93NUMPY").find("ends within"), std::string::npos);
  EXPECT_NE(complaint(npy("{'descr': '<f8'").substr(0, 14)).find("ends within"), std::string::npos);
  EXPECT_NE(complaint(npy("{'descr': '<f8'}", 9)).find("version 9"), std::string::npos);
  EXPECT_NE(complaint(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4, 5), }")).find("'<f4'"),
            std::string::npos);
  EXPECT_NE(complaint(npy("{'descr': '>f8', 'fortran_order': False, 'shape': (3, 4, 5), }")).find("'>f8'"),
            std::string::npos);
  EXPECT_NE(complaint(npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }")).find("records"),
            std::string::npos);
  EXPECT_NE(complaint(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }")).find("(3, 4)"),
            std::string::npos);
  EXPECT_NE(complaint(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4, 5, 6), }")).find("three-dim"),
            std::string::npos);
  EXPECT_NE(complaint(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (), }")).find("three-dim"),
            std::string::npos);
  EXPECT_NE(complaint(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 0, 5), }")).find("at least one"),
            std::string::npos);
  EXPECT_NE(complaint(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3, -4, 5), }")).find("at least one"),
            std::string::npos);
  EXPECT_NE(complaint(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000, 4000000000, 9), }"))
                .find("at least one"),
            std::string::npos);
  EXPECT_NE(complaint(npy("{'descr': '<f8', 'fortran_order': Maybe, 'shape': (3, 4, 5), }")).find("fortran_order"),
            std::string::npos);
  EXPECT_NE(complaint(npy("{'descr': '<f8', 'fortran_order': False}")).find("'shape'"), std::string::npos);
  EXPECT_NE(complaint(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4, 5")).find("broken"),
            std::string::npos);
}

TEST_F(NpyFile, rows_come_from_both_orders) {
  std::vector<double> values(24);
  for (std::size_t index = 0; index < values.size(); ++index) values[index] = static_cast<double>(index);
  std::vector<double> row(2);
  {
    const NpyReader file(write(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 4), }"), values));
    file.read_row(0, 1, 2, row);
    EXPECT_EQ(row, (std::vector<double>{6, 18}));
  }
  const NpyReader file(write(npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3, 4), }"), values));
  file.read_row(0, 1, 2, row);
  EXPECT_EQ(row, (std::vector<double>{14, 15}));
}

TEST_F(NpyFile, a_missing_and_a_cut_off_file_are_refused_by_name) {
  try {
    const NpyReader file(name("nothing.npy"));
    FAIL();
  } catch (const brant::Error& error) {
    EXPECT_EQ(error.status(), brant::Status::not_found);
    EXPECT_NE(std::string(error.what()).find("nothing.npy"), std::string::npos);
  }
  const std::string cut =
      write(npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3, 4), }"), std::vector<double>(23));
  try {
    const NpyReader file(cut);
    FAIL();
  } catch (const brant::Error& error) {
    EXPECT_NE(std::string(error.what()).find("192 bytes"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("184"), std::string::npos) << error.what();
  }
  EXPECT_THROW(NpyReader(folder_.string()), brant::Error);
  std::ofstream(name("empty.npy")).close();
  EXPECT_THROW(NpyReader(name("empty.npy")), brant::Error);
}

TEST_F(NpyFile, written_rows_read_back) {
  const Extent shape{3, 2, 2};
  NpyWriter writer(name("out.npy"), shape);
  for (std::int64_t z = 0; z < 2; ++z) {
    for (std::int64_t y = 0; y < 2; ++y) {
      const auto base = static_cast<double>(10 * y + 100 * z);
      writer.write_row(0, y, z, std::vector<double>{base, base + 1, base + 2});
    }
  }
  writer.commit();
  const NpyReader reader(name("out.npy"));
  EXPECT_EQ(reader.shape(), shape);
  std::vector<double> row(2);
  reader.read_row(1, 1, 1, row);
  EXPECT_EQ(row, (std::vector<double>{111, 112}));
  EXPECT_EQ(files(), 1u);
}

TEST_F(NpyFile, without_commit_nothing_is_left_and_the_old_file_stays) {
  std::ofstream(name("out.npy")) << "precious";
  {
    NpyWriter writer(name("out.npy"), {3, 2, 2});
  }
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(fs::file_size(name("out.npy")), 8u);
}

TEST_F(NpyFile, a_folder_that_is_not_there_is_named) {
  try {
    NpyWriter writer(name("no/such/out.npy"), {3, 2, 2});
    FAIL();
  } catch (const brant::Error& error) {
    EXPECT_NE(std::string(error.what()).find("no/such/out.npy"), std::string::npos);
  }
}

}  // namespace
}  // namespace jacobi
