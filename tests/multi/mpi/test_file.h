#pragma once

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "mpi_job.h"

namespace brant::mpi::test {

/// A name in a folder for temporary files, which all ranks know and nobody else has.
inline std::string common_path() {
  std::array<char, 256> path{};
  if (rank() == 0) {
    const char* const folder = std::getenv("TMPDIR");
    std::strncpy(path.data(), folder != nullptr ? folder : "/tmp", path.size() - 32);
    std::strcat(path.data(), "/brant-file-XXXXXX");
    const int made = ::mkstemp(path.data());
    EXPECT_GE(made, 0);
    if (made >= 0) ::close(made);
    ::unlink(path.data());
  }
  MPI_Bcast(path.data(), static_cast<int>(path.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
  return path.data();
}

/// A file that all ranks have open, and that goes with this object. Errors of it are returned.
class TestFile {
 public:
  explicit TestFile(int amode = MPI_MODE_RDWR | MPI_MODE_CREATE, const std::string& path = common_path())
      : path_(path) {
    EXPECT_EQ(MPI_File_open(MPI_COMM_WORLD, path.c_str(), amode | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &fh), 0);
  }
  ~TestFile() {
    EXPECT_EQ(MPI_File_close(&fh), 0);
    EXPECT_EQ(fh, MPI_FILE_NULL);
  }
  TestFile(const TestFile&) = delete;
  TestFile& operator=(const TestFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] MPI_Offset size() const {
    MPI_Offset bytes = -1;
    EXPECT_EQ(MPI_File_get_size(fh, &bytes), 0);
    return bytes;
  }
  /// All bytes, by the view that a file has at first.
  [[nodiscard]] std::vector<std::uint8_t> contents() const {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size()));
    MPI_File whole = MPI_FILE_NULL;
    EXPECT_EQ(MPI_File_open(MPI_COMM_SELF, path_.c_str(), MPI_MODE_RDONLY, MPI_INFO_NULL, &whole), 0);
    EXPECT_EQ(MPI_File_read(whole, bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(MPI_File_close(&whole), 0);
    return bytes;
  }
  /// The same as numbers.
  [[nodiscard]] std::vector<int> numbers() const {
    const std::vector<std::uint8_t> bytes = contents();
    std::vector<int> found(bytes.size() / sizeof(int));
    if (!found.empty()) std::memcpy(found.data(), bytes.data(), found.size() * sizeof(int));
    return found;
  }
  /// After all have done what they did so far.
  void meet() const { EXPECT_EQ(MPI_Barrier(MPI_COMM_WORLD), 0); }

  MPI_File fh = MPI_FILE_NULL;

 private:
  const std::string path_;
};

inline int count_of(const MPI_Status& status, MPI_Datatype type) {
  int count = -1;
  EXPECT_EQ(MPI_Get_count(&status, type, &count), 0);
  return count;
}

/// A type that is freed with this object.
class TestType {
 public:
  explicit TestType(MPI_Datatype made) : type(made) { EXPECT_EQ(MPI_Type_commit(&type), 0); }
  ~TestType() { MPI_Type_free(&type); }
  TestType(const TestType&) = delete;
  TestType& operator=(const TestType&) = delete;

  static MPI_Datatype vector(int count, int length, int stride, MPI_Datatype old) {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    EXPECT_EQ(MPI_Type_vector(count, length, stride, old, &made), 0);
    return made;
  }
  /// Frees the old one, if it is not predefined.
  static MPI_Datatype resized(MPI_Datatype old, MPI_Aint extent) {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    EXPECT_EQ(MPI_Type_create_resized(old, 0, extent, &made), 0);
    int integers = 0, addresses = 0, types = 0, combiner = 0;
    MPI_Type_get_envelope(old, &integers, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(&old);
    return made;
  }

  MPI_Datatype type;
};

}  // namespace brant::mpi::test
