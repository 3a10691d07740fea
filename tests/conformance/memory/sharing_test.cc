// Memory between two processes of one host.
#include <cstring>
#include <memory>
#include <vector>

#include "conformance/memory/memory_fixture.h"
#include "conformance/memory/memory_peer.h"

namespace brant::test {
namespace {

using port::ExportRecord;

class SharingConformance : public StreamConformance {
 protected:
  void SetUp() override {
    StreamConformance::SetUp();
    if (IsSkipped()) return;
    if (!device().capabilities().exports) GTEST_SKIP() << GetParam() << ": this device cannot share memory";
  }
};

INSTANTIATE_TEST_SUITE_P(Device, SharingConformance, testing::Values("emulated", "cuda"), subject_name);

TEST_P(SharingConformance, an_import_is_the_exporters_memory) {
  MemoryPeer peer(GetParam());
  const Result<ExportRecord> record = peer.allocate(100001, 11);
  ASSERT_TRUE(record.ok()) << status_name(record.status());
  EXPECT_EQ(record->bytes, 100001u);
  EXPECT_NE(record->buffer_id, 0u);
  const Result<void*> imported = device().import_allocation(*record);
  ASSERT_TRUE(imported.ok()) << status_name(imported.status());
  EXPECT_EQ(read(*imported, record->bytes), pattern(record->bytes, 11));
  write(*imported, pattern(record->bytes, 12));
  EXPECT_TRUE(peer.holds(0, 12));
  const Result<port::PointerInfo> info = device().query(*imported);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->kind, device_kind());
  EXPECT_EQ(device().close_import(*imported), Status::ok);
  EXPECT_TRUE(peer.holds(0, 12));
}

TEST_P(SharingConformance, a_peer_imports_and_writes_ours) {
  MemoryPeer peer(GetParam());
  const Piece piece(device(), device_kind(), 65536);
  write(piece.at(), Bytes(piece.bytes(), std::byte{0}));
  const Result<ExportRecord> record = device().export_allocation(piece.at(1000));
  ASSERT_TRUE(record.ok()) << status_name(record.status());
  EXPECT_EQ(record->offset, 1000u);
  ASSERT_EQ(peer.import_and_write(*record, 4), Status::ok);
  EXPECT_EQ(read(piece.at(1000), piece.bytes() - 1000), pattern(piece.bytes() - 1000, 4));
  EXPECT_EQ(read(piece.at(), 1000), Bytes(1000, std::byte{0}));
}

TEST_P(SharingConformance, an_exported_pointer_may_lie_in_the_middle) {
  MemoryPeer peer(GetParam());
  const Result<ExportRecord> record = peer.allocate(50000, 3, 12345);
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->offset, 12345u);
  const Result<void*> imported = device().import_allocation(*record);
  ASSERT_TRUE(imported.ok());
  const Bytes all = pattern(50000, 3);
  EXPECT_EQ(read(*imported, 50000 - 12345), Bytes(all.begin() + 12345, all.end()));
  EXPECT_EQ(device().close_import(*imported), Status::ok);
}

TEST_P(SharingConformance, importing_twice_maps_once_and_counts) {
  MemoryPeer peer(GetParam());
  const Result<ExportRecord> record = peer.allocate(8192, 5);
  ASSERT_TRUE(record.ok());
  const Result<void*> first = device().import_allocation(*record);
  const Result<void*> second = device().import_allocation(*record);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(device().close_import(*first), Status::ok);
  EXPECT_EQ(read(*second, 8192), pattern(8192, 5));
  EXPECT_EQ(device().close_import(*second), Status::ok);
  EXPECT_EQ(device().close_import(*second), Status::not_found);
  EXPECT_EQ(device().query(*second).status(), Status::not_found);
}

TEST_P(SharingConformance, small_allocations_of_one_exporter_are_imported_side_by_side) {
  MemoryPeer peer(GetParam());
  std::vector<void*> imported;
  for (unsigned i = 0; i < 6; ++i) {
    const Result<ExportRecord> record = peer.allocate(512 + i, i);
    ASSERT_TRUE(record.ok()) << status_name(record.status());
    const Result<void*> pointer = device().import_allocation(*record);
    ASSERT_TRUE(pointer.ok()) << i << ": " << status_name(pointer.status());
    imported.push_back(*pointer);
  }
  for (unsigned i = 0; i < 6; ++i) EXPECT_EQ(read(imported[i], 512 + i), pattern(512 + i, i)) << i;
  for (void* pointer : imported) EXPECT_EQ(device().close_import(pointer), Status::ok);
}

TEST_P(SharingConformance, a_record_that_comes_home_works_too) {
  const Piece piece(device(), device_kind(), 4096);
  write(piece.at(), pattern(4096, 8));
  const Result<ExportRecord> record = device().export_allocation(piece.at(96));
  ASSERT_TRUE(record.ok());
  const Result<void*> imported = device().import_allocation(*record);
  ASSERT_TRUE(imported.ok()) << status_name(imported.status());
  const Bytes all = pattern(4096, 8);
  EXPECT_EQ(read(*imported, 4000), Bytes(all.begin() + 96, all.end()));
  EXPECT_EQ(device().close_import(*imported), Status::ok);
  EXPECT_EQ(device().close_import(*imported), Status::not_found);
  EXPECT_EQ(read(piece.at(), 4096), all);
}

TEST_P(SharingConformance, a_peer_imports_and_writes_our_pinned_memory) {
  MemoryPeer peer(GetParam());
  const Piece piece(device(), MemoryKind::pinned, 65536);
  const Result<port::PointerInfo> info = device().query(piece.at());
  ASSERT_TRUE(info.ok()) << status_name(info.status());
  EXPECT_EQ(info->kind, MemoryKind::pinned);
  EXPECT_EQ(info->device, -1);
  write(piece.at(), Bytes(piece.bytes(), std::byte{0}));
  const Result<ExportRecord> record = device().export_allocation(piece.at(1000));
  ASSERT_TRUE(record.ok()) << status_name(record.status());
  ASSERT_EQ(peer.import_and_write(*record, 4), Status::ok);
  EXPECT_EQ(read(piece.at(1000), piece.bytes() - 1000), pattern(piece.bytes() - 1000, 4));
  // The device reaches it as any other pinned memory.
  const Piece there(device(), device_kind(), piece.bytes());
  const StreamScope stream(device());
  ASSERT_EQ(streams().copy(there.at(), piece.at(), piece.bytes(), stream), Status::ok);
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
  EXPECT_EQ(read(there.at(1000), piece.bytes() - 1000), pattern(piece.bytes() - 1000, 4));
}

TEST_P(SharingConformance, small_host_memory_is_not_exported) {
  int on_stack = 0;
  const Piece pinned(device(), MemoryKind::pinned, 4096);
  const Piece host(device(), MemoryKind::host, 4096);
  EXPECT_EQ(device().export_allocation(pinned.at()).status(), Status::wrong_kind);
  EXPECT_EQ(device().export_allocation(host.at()).status(), Status::wrong_kind);
  EXPECT_EQ(device().export_allocation(&on_stack).status(), Status::not_found);
  EXPECT_EQ(device().export_allocation(nullptr).status(), Status::not_found);
}

TEST_P(SharingConformance, refuses_records_that_are_none) {
  ExportRecord garbage;
  EXPECT_EQ(device().import_allocation(garbage).status(), Status::invalid_argument);
  garbage.bytes = 4096;
  std::memset(garbage.handle, 0x5a, sizeof(garbage.handle));
  EXPECT_EQ(device().import_allocation(garbage).status(), Status::invalid_argument);
  const Piece piece(device(), device_kind(), 4096);
  Result<ExportRecord> record = device().export_allocation(piece.at());
  ASSERT_TRUE(record.ok());
  record->offset = record->bytes;
  EXPECT_EQ(device().import_allocation(*record).status(), Status::invalid_argument);
  EXPECT_EQ(device().close_import(nullptr), Status::not_found);
  EXPECT_NE(device().close_import(piece.at()), Status::ok);
}

TEST_P(SharingConformance, an_address_allocated_again_is_imported_as_what_it_is_now) {
  MemoryPeer peer(GetParam());
  const Result<ExportRecord> before = peer.allocate(4 << 20, 1);
  ASSERT_TRUE(before.ok());
  ASSERT_EQ(peer.free(0), Status::ok);
  const Result<ExportRecord> now = peer.allocate(4 << 20, 2);
  ASSERT_TRUE(now.ok());
  EXPECT_NE(now->buffer_id, before->buffer_id);
  const Result<void*> imported = device().import_allocation(*now);
  ASSERT_TRUE(imported.ok()) << status_name(imported.status());
  EXPECT_EQ(read(*imported, 4 << 20), pattern(4 << 20, 2));
  EXPECT_EQ(device().close_import(*imported), Status::ok);
}

TEST_P(SharingConformance, a_dead_exporter_is_a_lost_peer) {
  ExportRecord record;
  {
    MemoryPeer peer(GetParam());
    const Result<ExportRecord> made = peer.allocate(4096, 1);
    ASSERT_TRUE(made.ok());
    record = *made;
    peer.kill();
  }
  EXPECT_EQ(device().import_allocation(record).status(), Status::peer_lost);
}

TEST_P(SharingConformance, imports_end_with_the_device) {
  MemoryPeer peer(GetParam());
  const Result<ExportRecord> record = peer.allocate(4096, 6);
  ASSERT_TRUE(record.ok());
  ASSERT_TRUE(device().import_allocation(*record).ok());
  std::string reason;
  device_.reset();
  device_ = open_subject(GetParam(), reason);
  ASSERT_NE(device_, nullptr);
  const Result<void*> again = device().import_allocation(*record);
  ASSERT_TRUE(again.ok()) << status_name(again.status());
  EXPECT_EQ(read(*again, 4096), pattern(4096, 6));
  EXPECT_EQ(device().close_import(*again), Status::ok);
}

/// Of every device, one without streams included.
class HostSharing : public MemoryConformance {};

INSTANTIATE_TEST_SUITE_P(Device, HostSharing, testing::Values("host", "emulated", "cuda"), subject_name);

TEST_P(HostSharing, an_import_is_the_exporters_memory) {
  MemoryPeer peer(GetParam(), MemoryKind::host);
  const Result<ExportRecord> record = peer.allocate(100'001, 11, 5000);
  ASSERT_TRUE(record.ok()) << status_name(record.status());
  EXPECT_EQ(record->kind, MemoryKind::host);
  EXPECT_EQ(record->bytes, 100'001u);
  EXPECT_NE(record->buffer_id, 0u);
  const Result<void*> imported = device().import_allocation(*record);
  ASSERT_TRUE(imported.ok()) << status_name(imported.status());
  const Bytes all = pattern(100'001, 11);
  EXPECT_EQ(std::memcmp(*imported, all.data() + 5000, all.size() - 5000), 0);
  // Again: another mapping, closed by itself.
  const Result<void*> again = device().import_allocation(*record);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(device().close_import(*imported), Status::ok);
  EXPECT_EQ(device().close_import(*imported), Status::not_found);
  const Bytes changed = pattern(100'001, 12);
  std::memcpy(static_cast<std::byte*>(*again) - 5000, changed.data(), changed.size());
  EXPECT_TRUE(peer.holds(0, 12));
  // It outlives its owner.
  peer.kill();
  EXPECT_EQ(std::memcmp(static_cast<std::byte*>(*again) - 5000, changed.data(), changed.size()), 0);
  EXPECT_EQ(device().close_import(*again), Status::ok);
  EXPECT_EQ(device().import_allocation(*record).status(), Status::peer_lost);
}

TEST_P(HostSharing, freed_memory_is_gone_though_it_is_mapped) {
  MemoryPeer peer(GetParam(), MemoryKind::host);
  const Result<ExportRecord> record = peer.allocate(100'000, 1);
  ASSERT_TRUE(record.ok());
  const Result<void*> imported = device().import_allocation(*record);
  ASSERT_TRUE(imported.ok());
  ASSERT_EQ(std::memcmp(*imported, pattern(100'000, 1).data(), 100'000), 0);
  ASSERT_EQ(peer.free(0), Status::ok);
  EXPECT_EQ(std::memcmp(*imported, Bytes(100'000).data(), 100'000), 0) << "its pages are kept";
  EXPECT_EQ(device().close_import(*imported), Status::ok);
  EXPECT_EQ(device().import_allocation(*record).status(), Status::not_found);
}

TEST_P(HostSharing, refuses_records_that_are_none) {
  ExportRecord garbage;
  garbage.kind = MemoryKind::host;
  EXPECT_EQ(device().import_allocation(garbage).status(), Status::invalid_argument);
  garbage.bytes = 4096;
  std::memset(garbage.handle, 0x5a, sizeof(garbage.handle));
  EXPECT_EQ(device().import_allocation(garbage).status(), Status::invalid_argument);
  const Piece piece(device(), MemoryKind::host, 100'000);
  Result<ExportRecord> record = device().export_allocation(piece.at(10));
  ASSERT_TRUE(record.ok());
  record->offset = record->bytes;
  EXPECT_EQ(device().import_allocation(*record).status(), Status::invalid_argument);
  record->offset = 0;
  record->bytes = std::size_t{1} << 40;  // more than the file has
  EXPECT_EQ(device().import_allocation(*record).status(), Status::invalid_argument);
  int on_stack = 0;
  EXPECT_EQ(device().close_import(&on_stack), Status::not_found);
}

TEST_P(HostSharing, only_so_many_allocations_are_shared) {
  std::vector<std::unique_ptr<Piece>> pieces;
  Status last = Status::ok;
  for (int i = 0; i < 300; ++i) {
    pieces.push_back(std::make_unique<Piece>(device(), MemoryKind::host, 16384));
    std::memset(pieces.back()->at(), i, 16384);
    last = device().export_allocation(pieces.back()->at()).status();
  }
  EXPECT_EQ(last, Status::wrong_kind);
  EXPECT_EQ(device().export_allocation(pieces.front()->at()).status(), Status::ok);
  pieces.erase(pieces.begin());  // room again
  pieces.push_back(std::make_unique<Piece>(device(), MemoryKind::host, 16384));
  EXPECT_EQ(device().export_allocation(pieces.back()->at()).status(), Status::ok);
}

}  // namespace
}  // namespace brant::test
