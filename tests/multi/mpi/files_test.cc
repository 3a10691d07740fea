// Runs as every rank of a job: how files are opened, what they have, and what their errors are.
#include <fcntl.h>
#include <sys/stat.h>

#include "test_file.h"

namespace brant::mpi {
namespace {

using test::common_path;
using test::TestFile;
using test::TestType;

class Files : public testing::Test {
 protected:
  static int open(const std::string& path, int amode, MPI_File* fh) {
    return MPI_File_open(MPI_COMM_WORLD, path.c_str(), amode, MPI_INFO_NULL, fh);
  }
  static int error_of_opening(const std::string& path, int amode) {
    MPI_File fh = MPI_FILE_NULL;
    const int error = open(path, amode, &fh);
    if (error == MPI_SUCCESS) MPI_File_close(&fh);
    EXPECT_EQ(fh, MPI_FILE_NULL);
    return error;
  }
  const int self_ = test::rank(), size_ = test::size();
};

TEST_F(Files, have_what_they_were_opened_with) {
  const std::string path = common_path();
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "access_style", "read_once");
  MPI_File fh = MPI_FILE_NULL;
  constexpr int kMode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_EXCL;
  ASSERT_EQ(MPI_File_open(MPI_COMM_WORLD, path.c_str(), kMode, info, &fh), 0);
  MPI_Info_free(&info);
  int amode = 0, keys = 0, atomic = 5, result = 0;
  EXPECT_EQ(MPI_File_get_amode(fh, &amode), 0);
  EXPECT_EQ(amode, kMode);
  EXPECT_EQ(MPI_File_get_info(fh, &info), 0);
  MPI_Info_get_nkeys(info, &keys);
  EXPECT_EQ(keys, 2) << "what was given, and mpi_memory_alloc_kinds";
  MPI_Info_free(&info);
  EXPECT_EQ(MPI_File_get_atomicity(fh, &atomic), 0);
  EXPECT_EQ(atomic, 0);
  MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  EXPECT_EQ(MPI_File_get_group(fh, &group), 0);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_compare(group, world, &result);
  EXPECT_EQ(result, MPI_IDENT);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  EXPECT_EQ(MPI_File_fromint(MPI_File_toint(fh)), fh);
  EXPECT_EQ(MPI_File_close(&fh), 0);
  EXPECT_EQ(fh, MPI_FILE_NULL);
  EXPECT_EQ(error_of_opening(path, kMode), MPI_ERR_FILE_EXISTS);
  MPI_Barrier(MPI_COMM_WORLD);
  if (self_ == 0) {
    EXPECT_EQ(MPI_File_delete(path.c_str(), MPI_INFO_NULL), 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(MPI_File_delete(path.c_str(), MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
}

TEST_F(Files, are_refused_with_the_classes_of_the_standard) {
  const std::string path = common_path();
  EXPECT_EQ(error_of_opening(path, MPI_MODE_RDONLY), MPI_ERR_NO_SUCH_FILE);
  EXPECT_EQ(error_of_opening(path, 0), MPI_ERR_AMODE);
  EXPECT_EQ(error_of_opening(path, MPI_MODE_RDONLY | MPI_MODE_WRONLY), MPI_ERR_AMODE);
  EXPECT_EQ(error_of_opening(path, MPI_MODE_RDONLY | MPI_MODE_CREATE), MPI_ERR_AMODE);
  EXPECT_EQ(error_of_opening(path, MPI_MODE_RDONLY | MPI_MODE_EXCL), MPI_ERR_AMODE);
  EXPECT_EQ(error_of_opening(path, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL), MPI_ERR_AMODE);
  EXPECT_EQ(error_of_opening(path, MPI_MODE_RDWR | 1 << 20), MPI_ERR_AMODE);
  EXPECT_EQ(error_of_opening("/tmp", MPI_MODE_RDONLY), MPI_ERR_BAD_FILE);
  EXPECT_EQ(error_of_opening("", MPI_MODE_RDONLY), MPI_ERR_BAD_FILE);
  EXPECT_EQ(error_of_opening(path + "/below", MPI_MODE_CREATE | MPI_MODE_RDWR), MPI_ERR_NO_SUCH_FILE);
  MPI_File fh = MPI_FILE_NULL;
  EXPECT_EQ(MPI_File_open(MPI_COMM_NULL, path.c_str(), MPI_MODE_RDWR, MPI_INFO_NULL, &fh), MPI_ERR_COMM);
  EXPECT_EQ(MPI_File_close(&fh), MPI_ERR_FILE);
  if (size_ > 1) {
    const int own = self_ == 0 ? MPI_MODE_WRONLY : MPI_MODE_RDWR;
    EXPECT_EQ(error_of_opening(path, own | MPI_MODE_CREATE), MPI_ERR_NOT_SAME);
    EXPECT_EQ(error_of_opening(self_ == 0 ? "/no/such/folder/file" : path, MPI_MODE_CREATE | MPI_MODE_RDWR),
              MPI_ERR_NO_SUCH_FILE)
        << "all have it, or none";
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (self_ == 0) ::unlink(path.c_str());
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_F(Files, go_when_they_are_closed_if_they_should) {
  std::string path;
  {
    const TestFile file;
    path = file.path();
    EXPECT_EQ(::access(path.c_str(), F_OK), 0);
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST_F(Files, have_a_size_that_all_set_together) {
  const TestFile file;
  EXPECT_EQ(MPI_File_set_size(file.fh, 1000), 0);
  EXPECT_EQ(file.size(), 1000);
  file.meet();
  EXPECT_EQ(MPI_File_preallocate(file.fh, 500), 0);
  EXPECT_EQ(file.size(), 1000);
  file.meet();
  EXPECT_EQ(MPI_File_preallocate(file.fh, 5000), 0);
  EXPECT_EQ(file.size(), 5000);
  file.meet();
  EXPECT_EQ(MPI_File_set_size(file.fh, 0), 0);
  EXPECT_EQ(file.size(), 0);
  EXPECT_EQ(MPI_File_set_size(file.fh, -1), MPI_ERR_ARG);
  if (size_ > 1) {
    EXPECT_EQ(MPI_File_set_size(file.fh, self_), MPI_ERR_NOT_SAME);
  }
  EXPECT_EQ(MPI_File_sync(file.fh), 0);
}

TEST_F(Files, refuse_what_their_mode_does_not_allow) {
  const TestFile file;
  int value = 1;
  MPI_File reader = MPI_FILE_NULL, writer = MPI_FILE_NULL;
  ASSERT_EQ(open(file.path(), MPI_MODE_RDONLY, &reader), 0);
  ASSERT_EQ(open(file.path(), MPI_MODE_WRONLY, &writer), 0);
  EXPECT_EQ(MPI_File_write(reader, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
  EXPECT_EQ(MPI_File_write_ordered(reader, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
  EXPECT_EQ(MPI_File_set_size(reader, 10), MPI_ERR_READ_ONLY);
  EXPECT_EQ(MPI_File_read(writer, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
  EXPECT_EQ(MPI_File_write_at(writer, -1, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
  EXPECT_EQ(MPI_File_write_at(writer, INT64_MAX, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
  EXPECT_EQ(MPI_File_write(writer, &value, -1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
  EXPECT_EQ(MPI_File_write(writer, &value, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
  EXPECT_EQ(MPI_File_seek(writer, -1, MPI_SEEK_SET), MPI_ERR_ARG);
  EXPECT_EQ(MPI_File_seek(writer, 0, 17), MPI_ERR_ARG);
  EXPECT_EQ(MPI_File_read_all_end(writer, &value, MPI_STATUS_IGNORE), MPI_ERR_OTHER) << "nobody has begun one";
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_EQ(MPI_File_iread(writer, &value, 1, MPI_INT, &request), MPI_ERR_ACCESS);
  EXPECT_EQ(request, MPI_REQUEST_NULL);
  MPI_Offset position = -1;
  EXPECT_EQ(MPI_File_get_position(writer, &position), 0);
  EXPECT_EQ(position, 0) << "what is refused moves nothing";
  EXPECT_EQ(MPI_File_close(&reader), 0);
  EXPECT_EQ(MPI_File_close(&writer), 0);
}

TEST_F(Files, that_are_appended_to_begin_at_their_end) {
  TestFile file;
  MPI_File_set_size(file.fh, 100);
  MPI_File end = MPI_FILE_NULL;
  ASSERT_EQ(open(file.path(), MPI_MODE_WRONLY | MPI_MODE_APPEND, &end), 0);
  MPI_Offset position = -1;
  EXPECT_EQ(MPI_File_get_position(end, &position), 0);
  EXPECT_EQ(position, 100);
  EXPECT_EQ(MPI_File_get_position_shared(end, &position), 0);
  EXPECT_EQ(position, 100);
  EXPECT_EQ(MPI_File_write_ordered(end, &self_, 1, MPI_INT, MPI_STATUS_IGNORE), 0);
  file.meet();
  EXPECT_EQ(file.size(), 100 + 4 * size_);
  int found = -1;
  EXPECT_EQ(MPI_File_read_at(file.fh, 100 + 4 * self_, &found, 1, MPI_INT, MPI_STATUS_IGNORE), 0);
  EXPECT_EQ(found, self_);
  EXPECT_EQ(MPI_File_close(&end), 0);
}

TEST_F(Files, that_are_refused_by_their_system_name_the_class) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may open everything";
  const TestFile file;
  if (self_ == 0) {
    EXPECT_EQ(::chmod(file.path().c_str(), 0400), 0);
  }
  file.meet();
  EXPECT_EQ(error_of_opening(file.path(), MPI_MODE_RDWR), MPI_ERR_ACCESS);
}

TEST_F(Files, that_are_full_say_so) {
  MPI_File full = MPI_FILE_NULL;
  ASSERT_EQ(open("/dev/full", MPI_MODE_WRONLY, &full), 0);
  EXPECT_EQ(MPI_File_write(full, &self_, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_NO_SPACE);
  EXPECT_EQ(MPI_File_close(&full), 0);
}

int g_reported = MPI_SUCCESS;
MPI_File g_reporter = MPI_FILE_NULL;
void report(MPI_File* file, int* code, ...) {
  g_reported = *code;
  g_reporter = *file;
}

TEST_F(Files, hand_errors_to_their_own_handler) {
  TestFile file;
  MPI_Errhandler own = MPI_ERRHANDLER_NULL, found = MPI_ERRHANDLER_NULL;
  EXPECT_EQ(MPI_File_get_errhandler(file.fh, &found), 0);
  EXPECT_EQ(found, MPI_ERRORS_RETURN);
  EXPECT_EQ(MPI_File_create_errhandler(&report, &own), 0);
  EXPECT_EQ(MPI_File_set_errhandler(file.fh, own), 0);
  EXPECT_EQ(MPI_File_seek(file.fh, -1, MPI_SEEK_SET), MPI_ERR_ARG);
  EXPECT_EQ(g_reported, MPI_ERR_ARG);
  EXPECT_EQ(g_reporter, file.fh);
  EXPECT_EQ(MPI_File_call_errhandler(file.fh, MPI_ERR_IO), 0);
  EXPECT_EQ(g_reported, MPI_ERR_IO);
  // That of no file is that of new ones, and of those that cannot be opened.
  EXPECT_EQ(MPI_File_set_errhandler(MPI_FILE_NULL, own), 0);
  EXPECT_EQ(MPI_Errhandler_free(&own), 0);
  EXPECT_EQ(error_of_opening(common_path(), MPI_MODE_RDONLY), MPI_ERR_NO_SUCH_FILE);
  EXPECT_EQ(g_reported, MPI_ERR_NO_SUCH_FILE);
  EXPECT_EQ(g_reporter, MPI_FILE_NULL);
  {
    const TestFile another;
    EXPECT_EQ(MPI_File_call_errhandler(another.fh, MPI_ERR_QUOTA), 0);
    EXPECT_EQ(g_reported, MPI_ERR_QUOTA);
  }
  EXPECT_EQ(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN), 0);
  EXPECT_EQ(MPI_File_get_errhandler(MPI_FILE_NULL, &found), 0);
  EXPECT_EQ(found, MPI_ERRORS_RETURN);
}

}  // namespace
}  // namespace brant::mpi
