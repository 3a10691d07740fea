#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <string>

#include "brant/core/device.h"
#include "brant/core/stream.h"
#include "mpi_job.h"
#include "port/memory.h"

/// What tests of calls that streams carry out have in common.
namespace brant::mpi::test {

inline MPI_Info info_of(const Stream& stream) {
  MPI_Info info = MPI_INFO_NULL;
  void* const native = stream.native();
  EXPECT_EQ(MPI_Info_create(&info), 0);
  EXPECT_EQ(MPI_Info_set(info, "type", "cudaStream_t"), 0);
  EXPECT_EQ(MPIX_Info_set_hex(info, "value", static_cast<const void*>(&native), sizeof native), 0);
  return info;
}

/// A stream, and a communicator whose calls it carries out.
struct Lane {
  Lane() : stream(runtime().device().create_stream()) {
    MPI_Info info = info_of(stream);
    EXPECT_EQ(MPIX_Stream_create(info, &handle), 0);
    MPI_Info_free(&info);
    EXPECT_EQ(MPIX_Stream_comm_create(MPI_COMM_WORLD, handle, &comm), 0);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  }
  ~Lane() {
    EXPECT_EQ(stream.synchronize(), failed ? Status::device_failed : Status::ok);
    EXPECT_TRUE(comm == MPI_COMM_NULL || MPI_Comm_free(&comm) == 0);
    EXPECT_TRUE(handle == MPIX_STREAM_NULL || MPIX_Stream_free(&handle) == 0);
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// The stream fails: a kernel whose blocks have to run at once finds no threads, as if their stacks had no room.
  void fail() {
    pthread_attr_t before, boundless;
    ASSERT_EQ(::pthread_getattr_default_np(&before), 0);
    ASSERT_EQ(::pthread_getattr_default_np(&boundless), 0);
    ASSERT_EQ(::pthread_attr_setstacksize(&boundless, std::size_t{1} << 50), 0);
    port::Kernels& kernels = *runtime().device().inner().kernels();
    const Result<port::Kernel*> kernel = kernels.load(
        {.image = {}, .symbol = "none", .on_host = [](const HostLaunch&) noexcept {}, .argument_bytes = {}});
    ASSERT_TRUE(kernel.ok());
    ASSERT_EQ(::pthread_setattr_default_np(&boundless), 0);
    EXPECT_EQ(kernels.launch_cooperative(*kernel, {.grid = {2, 1, 1}}, nullptr, stream), Status::ok);
    EXPECT_EQ(stream.synchronize(), Status::device_failed);
    ASSERT_EQ(::pthread_setattr_default_np(&before), 0);
    failed = true;
  }

  Stream stream;
  MPIX_Stream handle = MPIX_STREAM_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  bool failed = false;
};

/// Memory by MPI_Alloc_mem, which takes its turn with the thread of brant, as calls of the runtime do not.
class Room {
 public:
  Room(const char* kind, std::size_t bytes) : bytes_(bytes) {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "brant_memory", kind);
    EXPECT_EQ(MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), info, static_cast<void*>(&data_)), 0);
    MPI_Info_free(&info);
  }
  ~Room() { EXPECT_EQ(MPI_Free_mem(data_), 0); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  [[nodiscard]] void* data() const noexcept { return data_; }
  operator Buffer() const noexcept { return {data_, bytes_, MemoryKind::detect}; }       // NOLINT
  operator ConstBuffer() const noexcept { return {data_, bytes_, MemoryKind::detect}; }  // NOLINT

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

/// Work that a stream does not get past before the program says so.
class Gate {
 public:
  explicit Gate(const Stream& stream) : word_(*new (room_.data()) std::atomic<std::uint64_t>(0)) {
    port::Streams& streams = *runtime().device().inner().streams();
    auto* const place = static_cast<std::uint64_t*>(room_.data());
    EXPECT_EQ(streams.wait_value(port::StreamWord::Act::wait_at_least, place, 1, stream), Status::ok);
  }
  void open() { word_.store(1); }

 private:
  Room room_{"pinned", sizeof(std::uint64_t)};
  std::atomic<std::uint64_t>& word_;
};

inline std::string text_of(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return text.data();
}

inline int class_of(int code) {
  int number = -1;
  MPI_Error_class(code, &number);
  return number;
}

}  // namespace brant::mpi::test
