#include "core/join_address.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/bytes.h"
#include "core/joined_rank.h"
#include "support/mutation.h"

namespace brant {
namespace {

JoinAddress some_address() {
  JoinAddress address;
  for (std::size_t i = 0; i < address.key.size(); ++i) address.key[i] = static_cast<std::byte>(i * 11);
  address.identity.job_id = "job 17";
  address.identity.host = "node7";
  address.identity.rank = 3;
  address.identity.mark.pid = 4711;
  address.identity.mark.start_time = 99;
  address.identity.record.wire_version = "UCX 1.22.0 (somewhere)";
  address.identity.record.host_id = "boot/ipc";
  address.identity.record.pid = 4711;
  address.identity.record.wire_address.assign(500, std::byte{0xab});
  return address;
}

Status refusal(std::string_view text) {
  try {
    static_cast<void>(unpack_join_address(text));
  } catch (const Error& error) {
    return error.status();
  }
  return Status::ok;
}

TEST(Base64, every_length_comes_back_and_no_other_text_is_taken) {
  std::vector<std::byte> bytes;
  for (int length = 0; length < 70; ++length) {
    const std::string text = to_base64(bytes);
    EXPECT_EQ(from_base64(text), bytes) << length;
    EXPECT_EQ(text.size(), (bytes.size() * 8 + 5) / 6);
    bytes.push_back(static_cast<std::byte>(length * 37 + 250));
  }
  EXPECT_EQ(to_base64(std::as_bytes(std::span("foob", 4))), "Zm9vYg");  // RFC 4648, section 10, without padding
  for (const char* text : {"A", "AAAAA", "Zm9vYh", "Zm9v=", "Zm 9", "Zm9vYg=="})
    EXPECT_FALSE(from_base64(text)) << text;
}

TEST(JoinAddress, comes_back_as_it_was_also_from_a_file_with_an_end_of_line) {
  const JoinAddress original = some_address();
  const std::string text = pack(original);
  const JoinAddress read = unpack_join_address("\n " + text + "\r\n");
  EXPECT_EQ(read.key, original.key);
  EXPECT_EQ(read.identity.job_id, "job 17");
  EXPECT_EQ(read.identity.host, "node7");
  EXPECT_EQ(read.identity.rank, 3);
  EXPECT_EQ(read.identity.mark, original.identity.mark);
  EXPECT_EQ(read.identity.record.wire_address, original.identity.record.wire_address);
  EXPECT_EQ(text_of(read.identity), "rank 3 of job job 17 (host node7, pid 4711)");
}

TEST(JoinAddress, what_is_none_is_refused_by_what_it_is) {
  const std::string text = pack(some_address());
  EXPECT_EQ(refusal(text), Status::ok);
  EXPECT_EQ(refusal(""), Status::invalid_argument);
  EXPECT_EQ(refusal("hello"), Status::invalid_argument);
  EXPECT_EQ(refusal("brant-1:"), Status::invalid_argument);
  EXPECT_EQ(refusal("brant-2:" + text.substr(8)), Status::version_mismatch);
  EXPECT_EQ(refusal(text.substr(0, text.size() - 1)), Status::invalid_argument);
  EXPECT_EQ(refusal(text + "A"), Status::invalid_argument);
  EXPECT_EQ(refusal("brant-1:" + std::string(kJoinAddressMax, 'A')), Status::invalid_argument);
  JoinAddress huge = some_address();
  huge.identity.record.wire_address.resize(kJoinAddressMax);
  EXPECT_THROW(static_cast<void>(pack(huge)), Error);
  JoinAddress rude = some_address();
  rude.identity.host = "\033[2J";
  EXPECT_EQ(refusal(pack(rude)), Status::invalid_argument) << "it would go to a terminal";
}

/// Damage that the checksum does not see.
TEST(JoinAddress, what_is_taken_for_one_can_be_used) {
  constexpr std::size_t kHead = 12;
  const auto whole = from_base64(pack(some_address()).substr(8));
  ASSERT_TRUE(whole);
  test::Mutation mutation(20261124);
  const unsigned addresses = test::fuzz_records(100'000);
  unsigned refused = 0;
  for (unsigned i = 0; i < addresses; ++i) {
    std::vector<std::byte> bytes = *whole;
    mutation.spoil(std::span(bytes).subspan(kHead));
    if (mutation.below(8) == 0) bytes.resize(kHead + mutation.below(bytes.size() - kHead));
    ByteWriter spoilt;
    const auto body = std::span(bytes).subspan(kHead);
    spoilt.number(checksum_of(body));
    spoilt.run(body);
    try {
      const JoinAddress read = unpack_join_address("brant-1:" + to_base64(spoilt.bytes()));
      ASSERT_GE(read.identity.rank, 0);
      ASSERT_LE(read.identity.host.size(), 255u);
      ASSERT_GT(read.identity.record.pid, 0);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, addresses / 20);
  EXPECT_LT(refused, addresses);
}

TEST(JoinedRank, numbers_are_apart_from_ranks_and_from_one_another) {
  std::set<std::int32_t> numbers;
  for (const std::uint32_t slot : {0u, 1u, 1023u}) {
    for (const std::uint32_t generation : {0u, 1u, 15u, 16u, 17u, joined_rank::kGenerations - 1}) {
      for (const bool called : {false, true}) {
        const std::int32_t rank = joined_rank::make(slot, generation, called);
        EXPECT_TRUE(numbers.insert(rank).second);
        EXPECT_TRUE(joined_rank::is_one(rank));
        EXPECT_EQ(joined_rank::slot_of(rank), slot);
        EXPECT_EQ(joined_rank::side_of(rank), called ? 1u : 0u);
        EXPECT_GE(rank & 0x7fff, 0x4000) << "a tag would take it for a rank of the job";
      }
    }
  }
  EXPECT_FALSE(joined_rank::is_one(-1));
  EXPECT_FALSE(joined_rank::is_one(100'000));
}

}  // namespace
}  // namespace brant
