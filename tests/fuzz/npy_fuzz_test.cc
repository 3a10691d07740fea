// Arrays that were cut or damaged: read within the file, or refused with its name.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "brant/base/status.h"
#include "npy.h"
#include "support/mutation.h"

namespace jacobi {
namespace {

std::string whole_file() {
  std::string file = make_npy_header({3, 4, 5});
  file.resize(file.size() + sizeof(double) * 3 * 4 * 5, '\x3f');
  return file;
}

std::string damaged(brant::test::Mutation& mutation) {
  std::string file = whole_file();
  // The header is what is parsed.
  mutation.spoil(std::as_writable_bytes(std::span(file)).first(128));
  if (mutation.below(4) == 0) file.resize(mutation.below(file.size() + 1));
  if (mutation.below(4) == 0) {
    const std::size_t shape = file.find('(');
    if (shape != std::string::npos) file.replace(shape + 1, 1, std::to_string(mutation.odd_number()));
  }
  return file;
}

TEST(NpyFuzz, a_damaged_header_is_read_or_refused_with_its_name) {
  brant::test::Mutation mutation(1000);
  const unsigned files = brant::test::fuzz_records(200'000);
  unsigned refused = 0;
  for (unsigned i = 0; i < files; ++i) {
    const std::string file = damaged(mutation);
    try {
      const NpyHeader header = parse_npy_header(std::as_bytes(std::span(file)), "field.npy");
      ASSERT_LE(header.data_offset, file.size());
      ASSERT_TRUE(header.shape.x > 0 && header.shape.y > 0 && header.shape.z > 0);
    } catch (const brant::Error& error) {
      ASSERT_NE(std::string(error.what()).find("field.npy"), std::string::npos) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, files / 8);
  EXPECT_LT(refused, files);
}

TEST(NpyFuzz, a_thousand_damaged_files_are_read_to_their_last_cell_or_refused) {
  namespace fs = std::filesystem;
  const fs::path name = fs::temp_directory_path() / fmt::format("brant-npy-fuzz-{}.npy", ::getpid());
  brant::test::Mutation mutation(1001);
  unsigned read = 0;
  for (unsigned i = 0; i < 1000; ++i) {
    std::ofstream(name, std::ios::binary) << damaged(mutation);
    try {
      const NpyReader reader(name.string());
      const Extent shape = reader.shape();
      ASSERT_LT(shape.x, 1 << 20) << "no file of the test is so long";
      std::vector<double> row(static_cast<std::size_t>(shape.x));
      reader.read_row(0, shape.y - 1, shape.z - 1, row);
      ++read;
    } catch (const brant::Error& error) {
      ASSERT_NE(std::string(error.what()).find(name.string()), std::string::npos) << error.what();
    }
  }
  fs::remove(name);
  EXPECT_GT(read, 0u);
}

}  // namespace
}  // namespace jacobi
