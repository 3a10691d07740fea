// What processes and their launcher exchange while a job starts.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/base/status.h"
#include "core/peer_record.h"
#include "core/socket_address.h"
#include "port/boot/launcher/frame.h"
#include "support/mutation.h"

namespace brant {
namespace {

PeerRecord sample() {
  PeerRecord record;
  record.wire_version = "UCX 1.22.0 (/usr/lib)";
  record.host_id = "host";
  record.pid_namespace = "pid:[1]";
  record.device_id = "GPU-1";
  record.pid = 4711;
  record.wire_address.resize(200);
  record.mappable_kind = MemoryKind::cuda;
  record.link_address.resize(48);
  record.lease_address.resize(8);
  return record;
}

TEST(PeerRecordFuzz, a_damaged_record_is_read_or_refused) {
  test::Mutation mutation(20261128);
  const std::vector<std::byte> whole = pack(sample());
  const unsigned records = test::fuzz_records(600'000);
  unsigned refused = 0;
  for (unsigned i = 0; i < records; ++i) {
    std::vector<std::byte> bytes = whole;
    mutation.spoil(bytes);
    if (mutation.below(4) == 0) bytes.resize(mutation.below(bytes.size() + 8));
    bytes.shrink_to_fit();
    try {
      const PeerRecord record = unpack_peer_record(1, bytes);
      ASSERT_GT(record.pid, 0);
      ASSERT_LT(static_cast<int>(record.mappable_kind), kMemoryKindCount);
      static_cast<void>(SocketAddress::from_bytes(record.lease_address));
    } catch (const Error& error) {
      ASSERT_NE(std::string(error.what()).find("rank 1"), std::string::npos);
      ++refused;
    }
  }
  EXPECT_GT(refused, records / 8);
  EXPECT_LT(refused, records);
}

}  // namespace

namespace port::launcher {
namespace {

std::vector<std::vector<std::byte>> frames() {
  static const std::vector<std::byte> value(100, std::byte{3});
  return {encode(Hello{.rank = 3, .size = 7, .job_id = "job"}),
          encode(Put{.key = "key", .value = value}),
          encode(Fence{.id = 5}),
          encode(Get{.key = "key", .rank = 2}),
          encode(Abort{.exit_code = 3, .text = "text"}),
          encode(Reply{.to = Type::get, .text = "text", .payload = value})};
}

/// Everything that the two ends do with a body.
unsigned decode_as_all(std::span<const std::byte> body) {
  Hello hello;
  Put put;
  Fence fence;
  Get get;
  Abort abort;
  Reply reply;
  unsigned good =
      decode(body, hello) + decode(body, put) + decode(body, fence) + decode(body, get) + decode(body, abort);
  if (!decode(body, reply)) return good;
  ValueRecord record;
  std::span<const std::byte> rest = reply.payload;
  for (std::size_t left = rest.size() + 1; take_record(rest, record) && rest.size() < left;) left = rest.size();
  return good + 1;
}

TEST(FrameFuzz, a_damaged_frame_is_read_or_refused) {
  test::Mutation mutation(20261129);
  const auto whole = frames();
  const unsigned records = test::fuzz_records(600'000);
  unsigned good = 0;
  for (unsigned i = 0; i < records; ++i) {
    std::vector<std::byte> frame = whole[mutation.below(whole.size())];
    mutation.spoil(frame);
    if (mutation.below(4) == 0) frame.resize(kHeaderBytes + mutation.below(frame.size()));
    frame.shrink_to_fit();
    Header header;
    if (decode_header(frame, header)) {
      ASSERT_LE(header.body_bytes, kMaxBodyBytes);
    }
    good += decode_as_all(std::span<const std::byte>(frame).subspan(kHeaderBytes)) != 0 ? 1 : 0;
  }
  EXPECT_GT(good, 0u);
  EXPECT_LT(good, records);
}

}  // namespace
}  // namespace port::launcher
}  // namespace brant
