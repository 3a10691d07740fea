#include "core/peer_record.h"

#include <functional>
#include <string>

#include <gtest/gtest.h>

namespace brant {
namespace {

PeerRecord record(const std::string& version, const std::string& host, const std::string& device) {
  PeerRecord result;
  result.wire_version = version;
  result.host_id = host;
  result.pid_namespace = "pid:[1]";
  result.device_id = device;
  result.pid = 4711;
  result.wire_address = {std::byte{1}, std::byte{2}};
  result.lease_address = {std::byte{3}, std::byte{4}, std::byte{5}};
  return result;
}

std::string refusal(const std::function<void()>& check) {
  try {
    check();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PeerRecord, packs_and_unpacks) {
  const PeerRecord original = record("UCX 1.22.0 (/x)", "host", "GPU-1");
  const PeerRecord read = unpack_peer_record(3, pack(original));
  EXPECT_EQ(read.wire_version, original.wire_version);
  EXPECT_EQ(read.host_id, original.host_id);
  EXPECT_EQ(read.pid_namespace, original.pid_namespace);
  EXPECT_EQ(read.device_id, original.device_id);
  EXPECT_EQ(read.pid, original.pid);
  EXPECT_EQ(read.wire_address, original.wire_address);
  EXPECT_EQ(read.lease_address, original.lease_address);
}

TEST(PeerRecord, a_record_of_another_version_or_cut_short_is_refused_with_its_rank) {
  std::vector<std::byte> packed = pack(record("UCX 1.22.0", "host", ""));
  const std::vector<std::byte> cut(packed.begin(), packed.begin() + 20);
  EXPECT_NE(refusal([&] { unpack_peer_record(3, cut); }).find("rank 3"), std::string::npos);
  packed[0] ^= std::byte{0xff};
  EXPECT_NE(refusal([&] { unpack_peer_record(5, packed); }).find("rank 5"), std::string::npos);
}

TEST(PeerRecord, mixed_network_versions_are_refused_naming_both) {
  const std::vector<PeerRecord> same = {record("UCX 1.22.0 (/a)", "h", ""), record("UCX 1.22.0 (/b)", "h", "")};
  EXPECT_EQ(refusal([&] { require_one_wire_version(same, 0); }), "");
  const std::vector<PeerRecord> mixed = {record("UCX 1.22.0 (/a)", "h", ""), record("UCX 1.20.1 (/b)", "h", "")};
  const std::string text = refusal([&] { require_one_wire_version(mixed, 1); });
  EXPECT_NE(text.find("UCX 1.22.0 (/a)"), std::string::npos) << text;
  EXPECT_NE(text.find("UCX 1.20.1 (/b)"), std::string::npos) << text;
}

TEST(PeerRecord, two_processes_on_one_gpu_are_refused_within_a_host_only) {
  const std::vector<PeerRecord> shared = {record("U", "h", "GPU-1"), record("U", "h", "GPU-1")};
  EXPECT_NE(refusal([&] { require_own_gpu(shared, 0); }).find("BRANT_SHARE_GPU"), std::string::npos);
  const std::vector<PeerRecord> apart = {record("U", "h", "GPU-1"), record("U", "h", "GPU-2"),
                                         record("U", "other", "GPU-1"), record("U", "h", "")};
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(refusal([&] { require_own_gpu(apart, rank); }), "") << rank;
}

}  // namespace
}  // namespace brant
