// Tickets of segments whose damage the checksum does not see.
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "brant/base/status.h"
#include "ops/rma/ticket.h"
#include "support/mutation.h"
#include "support/ticket_content.h"

namespace brant {
namespace {

TEST(TicketFuzz, what_is_taken_for_a_ticket_can_be_used) {
  constexpr std::size_t kHead = 16, kSum = 8;
  const std::vector<std::byte> key(40, std::byte{9});
  const SegmentTicket whole = pack_ticket(test::ticket_content(key));
  test::Mutation mutation(20261130);
  const unsigned tickets = test::fuzz_records(400'000);
  unsigned refused = 0;
  for (unsigned i = 0; i < tickets; ++i) {
    std::vector<std::byte> bytes(whole.bytes().begin(), whole.bytes().end());
    mutation.spoil(std::span(bytes).subspan(kHead));
    if (mutation.below(8) == 0) bytes.resize(kHead + mutation.below(bytes.size() - kHead));
    const std::uint64_t sum = checksum_of(std::span(bytes).subspan(kHead));
    std::memcpy(bytes.data() + kSum, &sum, sizeof(sum));
    const SegmentTicket ticket{std::span<const std::byte>(bytes)};
    try {
      const TicketContent content = unpack_ticket(ticket);
      ASSERT_NE(content.bytes, 0u);
      ASSERT_LT(content.address, content.address + content.bytes);
      if (content.exported) {
        ASSERT_LE(content.exports.offset + content.bytes, content.exports.bytes);
        ASSERT_EQ(host_accessible(content.exports.kind), host_accessible(content.kind));
      }
      const auto* end = content.key.data() + content.key.size();
      ASSERT_TRUE(content.key.empty() || end <= ticket.bytes().data() + ticket.bytes().size());
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, tickets / 8);
  EXPECT_LT(refused, tickets);
}

}  // namespace
}  // namespace brant
