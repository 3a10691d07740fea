// Memory that other processes get as an open file.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>

#include "conformance/memory/memory_fixture.h"
#include "conformance/memory/memory_peer.h"
#include "core/memory_kinds.h"
#include "support/driver_memory.h"

namespace brant::test {
namespace {

using port::ExportedFile;
using Sort = DriverMemory::Sort;

constexpr std::size_t kBytes = std::size_t{4} << 20;

/// By device, and what memory of it: its own, or what libraries make with the driver.
struct Subject {
  const char* device;
  const char* memory;
  Sort sort;

  friend void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.memory << " of " << subject.device; }
};

class FileSharing : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    std::string reason;
    device_ = open_subject(GetParam().device, reason);
    if (device_ == nullptr) GTEST_SKIP() << GetParam().device << ": " << reason;
    if (!device_->capabilities().file_exports) GTEST_SKIP() << GetParam().device << ": its memory is no file";
    const StreamScope makes_a_context_current(*device_);
    if (GetParam().device == std::string("emulated")) {
      own_ = std::make_unique<Piece>(*device_, MemoryKind::emulated, kBytes);
    } else {
      drivers_ = std::make_unique<DriverMemory>(GetParam().sort, kBytes);
    }
    ASSERT_NE(memory(), nullptr) << "the driver refuses such memory";
  }
  void TearDown() override {
    free_memory();
    device_.reset();
  }
  bool map_anew() { return drivers_->map_anew(); }
  std::byte* memory() { return own_ != nullptr ? own_->at() : drivers_ != nullptr ? drivers_->at() : nullptr; }
  void free_memory() {
    own_.reset();
    drivers_.reset();
  }
  void copy(void* to, const void* from, std::size_t bytes) {
    const StreamScope stream(*device_);
    ASSERT_EQ(device_->streams()->copy(to, from, bytes, stream), Status::ok);
    ASSERT_EQ(device_->streams()->synchronize(stream), Status::ok);
  }
  void fill(unsigned seed) {
    const Bytes bytes = pattern(kBytes, seed);
    copy(memory(), bytes.data(), bytes.size());
  }
  Bytes read(const void* from, std::size_t bytes) {
    Bytes got(bytes);
    copy(got.data(), from, bytes);
    return got;
  }

  std::unique_ptr<port::Device> device_;

 private:
  std::unique_ptr<Piece> own_;
  std::unique_ptr<DriverMemory> drivers_;
};

std::string named(const testing::TestParamInfo<Subject>& info) {
  return std::string(info.param.memory) + "_" + info.param.device;
}

INSTANTIATE_TEST_SUITE_P(Device, FileSharing,
                         testing::Values(Subject{"emulated", "own", Sort::created},
                                         Subject{"cuda", "created", Sort::created},
                                         Subject{"cuda", "pooled", Sort::pooled}),
                         named);

TEST_P(FileSharing, a_peer_imports_and_writes_ours) {
  fill(1);
  const Result<ExportedFile> exported = device_->export_file(memory() + 1000);
  ASSERT_TRUE(exported.ok()) << status_name(exported.status());
  EXPECT_EQ(exported->record.offset, 1000u);
  EXPECT_EQ(exported->record.bytes, kBytes);
  EXPECT_NE(exported->record.buffer_id, 0u);
  EXPECT_NE(::fcntl(exported->file.get(), F_GETFD) & FD_CLOEXEC, 0) << "programs that are started inherit no memory";
  MemoryPeer peer(GetParam().device);
  ASSERT_EQ(peer.import_file_and_write(exported->record, exported->file.get(), 2), Status::ok);
  EXPECT_EQ(read(memory() + 1000, kBytes - 1000), pattern(kBytes - 1000, 2));
  const Bytes before = pattern(kBytes, 1);
  EXPECT_EQ(read(memory(), 1000), Bytes(before.begin(), before.begin() + 1000));
}

TEST_P(FileSharing, a_file_keeps_what_its_owner_has_freed) {
  if (GetParam().sort == Sort::pooled) GTEST_SKIP() << "a pool uses again what was freed";
  fill(3);
  const Result<ExportedFile> exported = device_->export_file(memory());
  ASSERT_TRUE(exported.ok()) << status_name(exported.status());
  free_memory();
  const Result<void*> first = device_->import_file(exported->record, exported->file.get());
  ASSERT_TRUE(first.ok()) << status_name(first.status());
  const Result<void*> second = device_->import_file(exported->record, exported->file.get());
  ASSERT_TRUE(second.ok()) << status_name(second.status());
  EXPECT_NE(*first, *second) << "each import is a mapping of its own";
  EXPECT_EQ(read(*first, kBytes), pattern(kBytes, 3));
  EXPECT_EQ(device_->close_import(*first), Status::ok);
  EXPECT_EQ(device_->close_import(*first), Status::not_found);
  EXPECT_EQ(read(*second, kBytes), pattern(kBytes, 3));
  EXPECT_EQ(device_->close_import(*second), Status::ok);
}

TEST_P(FileSharing, refuses_what_is_no_such_file) {
  const Result<ExportedFile> exported = device_->export_file(memory());
  ASSERT_TRUE(exported.ok()) << status_name(exported.status());
  port::ExportRecord record = exported->record;
  const UniqueFd other(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(device_->import_file(record, -1).status(), Status::invalid_argument);
  EXPECT_EQ(device_->import_file(record, other.get()).status(), Status::invalid_argument);
  record.offset = record.bytes;
  EXPECT_EQ(device_->import_file(record, exported->file.get()).status(), Status::invalid_argument);
  std::memset(record.handle, 0x5a, sizeof(record.handle));
  record.offset = 0;
  EXPECT_EQ(device_->import_file(record, exported->file.get()).status(), Status::invalid_argument);
  EXPECT_EQ(device_->export_file(nullptr).status(), Status::not_found);
}

/// Memory of several allocations that are mapped side by side.
class Segments : public FileSharing {};

INSTANTIATE_TEST_SUITE_P(Device, Segments, testing::Values(Subject{"cuda", "segments", Sort::segments}), named);

TEST_P(Segments, are_allocations_of_their_own_each_of_which_is_a_file) {
  fill(4);
  constexpr std::size_t kPiece = kBytes / 2;
  const Result<port::PointerInfo> first = device_->query(memory() + 10), second = device_->query(memory() + kPiece);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->base, memory());
  EXPECT_EQ(second->base, memory() + kPiece);
  EXPECT_NE(first->buffer_id, second->buffer_id);
  EXPECT_EQ(first->bytes, kPiece);
  EXPECT_EQ(second->bytes, kPiece);
  EXPECT_EQ(first->reserved_bytes, kBytes);
  EXPECT_EQ(second->reserved_bytes, kPiece);
  const Result<ExportedFile> exported = device_->export_file(memory() + kPiece + 1000);
  ASSERT_TRUE(exported.ok()) << status_name(exported.status());
  EXPECT_EQ(exported->record.offset, 1000u);
  EXPECT_EQ(exported->record.bytes, kPiece);
  MemoryPeer peer(GetParam().device);
  ASSERT_EQ(peer.import_file_and_write(exported->record, exported->file.get(), 5), Status::ok);
  EXPECT_EQ(read(memory() + kPiece + 1000, kPiece - 1000), pattern(kPiece - 1000, 5));
  const Bytes before = pattern(kBytes, 4);
  EXPECT_EQ(read(memory(), kPiece), Bytes(before.begin(), before.begin() + kPiece));
}

TEST_P(Segments, other_memory_at_the_same_address_is_another_allocation) {
  const Result<port::PointerInfo> first = device_->query(memory()), second = device_->query(memory() + kBytes / 2);
  ASSERT_TRUE(map_anew());
  EXPECT_NE(device_->query(memory())->buffer_id, first->buffer_id);
  EXPECT_EQ(device_->query(memory() + kBytes / 2)->buffer_id, second->buffer_id);
}

TEST_P(Segments, a_buffer_may_go_on_from_one_to_the_next_and_not_beyond_the_last) {
  MemoryKinds kinds(*device_);
  MemoryKind kind = MemoryKind::detect;
  EXPECT_EQ(kinds.resolve(memory() + 100, kBytes - 100, kind), Status::ok);
  EXPECT_EQ(kind, MemoryKind::cuda);
  EXPECT_EQ(kinds.resolve(memory() + 100, kBytes - 99, kind), Status::invalid_argument);
}

/// Memory that was made so that nobody else can have it.
class PrivateMemory : public FileSharing {};

INSTANTIATE_TEST_SUITE_P(Device, PrivateMemory,
                         testing::Values(Subject{"cuda", "created", Sort::created_private},
                                         Subject{"cuda", "default_pool", Sort::default_pool}),
                         named);

TEST_P(PrivateMemory, says_why_it_cannot_be_shared_and_what_to_do) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(device_->export_file(memory()).status(), Status::not_supported);
  const std::string log = testing::internal::GetCapturedStderr();
  const bool pool = GetParam().sort == Sort::default_pool;
  for (const std::string& words :
       {std::to_string(kBytes) + " bytes of GPU memory", std::string(pool ? "default pool" : "cuMemCreate made them"),
        std::string(pool ? "cudaMallocFromPoolAsync" : "requestedHandleTypes"), std::string("cudaMalloc")})
    EXPECT_NE(log.find(words), std::string::npos) << words << " in: " << log;
}

using FileAbilities = MemoryConformance;
INSTANTIATE_TEST_SUITE_P(Device, FileAbilities, testing::Values("host", "emulated", "cuda"), subject_name);

TEST_P(FileAbilities, host_memory_is_not_shared_so) {
  const Piece host(device(), MemoryKind::host, 1 << 20);
  const Status answer = device().export_file(host.at()).status();
  if (device().capabilities().file_exports) {
    EXPECT_TRUE(answer == Status::wrong_kind || answer == Status::not_found) << status_name(answer);
  } else {
    EXPECT_EQ(answer, Status::not_supported);
    EXPECT_EQ(device().import_file({}, 0).status(), Status::not_supported);
  }
}

}  // namespace
}  // namespace brant::test
