// Tickets come from anywhere: what is not whole is refused before anything of it is used.

#include "ops/rma/ticket.h"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/ticket_content.h"
#include "unit/rma/rma_pair.h"

namespace brant {
namespace {

Status refusal(const SegmentTicket& ticket) {
  try {
    static_cast<void>(unpack_ticket(ticket));
    return Status::ok;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("Segment::ticket"), std::string::npos) << error.what();
    return error.status();
  }
}

TEST(SegmentTicket, says_what_was_packed) {
  const auto key = test::pattern(200, 1);
  const SegmentTicket ticket = pack_ticket(test::ticket_content(key));
  const SegmentTicket copy(ticket.bytes());
  const TicketContent content = unpack_ticket(copy);
  EXPECT_EQ(content.rank, 3);
  EXPECT_EQ(content.pid, 1234);
  EXPECT_EQ(content.id, 7u);
  EXPECT_EQ(content.address, 0x7f00'0000'1000u);
  EXPECT_EQ(content.bytes, 4096u);
  EXPECT_EQ(content.kind, MemoryKind::pinned);
  EXPECT_EQ(content.exports.offset, 4096u);
  EXPECT_TRUE(std::equal(key.begin(), key.end(), content.key.begin(), content.key.end()));
}

TEST(SegmentTicket, any_damage_is_noticed) {
  const auto key = test::pattern(50, 1);
  const SegmentTicket whole = pack_ticket(test::ticket_content(key));
  const std::vector<std::byte> good(whole.bytes().begin(), whole.bytes().end());
  for (std::size_t at = 0; at < good.size(); ++at) {
    auto bad = good;
    bad[at] ^= std::byte{0x10};
    EXPECT_NE(refusal(SegmentTicket(bad)), Status::ok) << at;
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(refusal(SegmentTicket(std::span(good).first(size))), Status::ok) << size;
  }
  auto longer = good;
  longer.push_back(std::byte{0});
  EXPECT_NE(refusal(SegmentTicket(longer)), Status::ok);
}

TEST(SegmentTicket, is_none_of_it_is_nothing_or_anything) {
  EXPECT_EQ(refusal(SegmentTicket{}), Status::invalid_argument);
  EXPECT_EQ(refusal(SegmentTicket(test::pattern(5000, 1))), Status::invalid_argument) << "more than a ticket holds";
  EXPECT_EQ(refusal(SegmentTicket(test::pattern(300, 1))), Status::invalid_argument);
  // One that was received as it lies in memory, its size wrong.
  SegmentTicket wild = pack_ticket(test::ticket_content({}));
  const std::uint32_t size = 0xffff'fff0;
  std::memcpy(static_cast<void*>(&wild), &size, sizeof(size));
  EXPECT_EQ(refusal(wild), Status::invalid_argument);
}

TEST(SegmentTicket, another_version_is_named) {
  const SegmentTicket ticket = pack_ticket(test::ticket_content({}));
  std::vector<std::byte> bytes(ticket.bytes().begin(), ticket.bytes().end());
  bytes[4] = std::byte{99};
  EXPECT_EQ(refusal(SegmentTicket(bytes)), Status::version_mismatch);
}

TEST(SegmentTicket, what_contradicts_itself_is_refused) {
  const auto with = [](auto&& change) {
    TicketContent content = test::ticket_content({});
    change(content);
    return refusal(pack_ticket(content));
  };
  EXPECT_EQ(with([](TicketContent&) {}), Status::ok);
  EXPECT_EQ(with([](TicketContent& c) { c.bytes = 0; }), Status::invalid_argument);
  EXPECT_EQ(with([](TicketContent& c) { c.bytes = 4097; }), Status::invalid_argument) << "past what was exported";
  EXPECT_EQ(with([](TicketContent& c) { c.exports.offset = UINT64_MAX; }), Status::invalid_argument);
  EXPECT_EQ(with([](TicketContent& c) { c.address = UINT64_MAX - 100; }), Status::invalid_argument);
  EXPECT_EQ(with([](TicketContent& c) { c.kind = MemoryKind::detect; }), Status::invalid_argument);
  EXPECT_EQ(with([](TicketContent& c) { c.kind = static_cast<MemoryKind>(77); }), Status::invalid_argument);
}

TEST(SegmentTicket, a_key_that_is_too_long_is_left_out) {
  const auto key = test::pattern(2000, 1);
  const TicketContent content = unpack_ticket(pack_ticket(test::ticket_content(key)));
  EXPECT_TRUE(content.key.empty());
  EXPECT_TRUE(content.exported);
}

TEST(SegmentTicket, that_is_too_long_is_refused_with_its_size) {
  const SegmentTicket ticket(test::pattern(5000, 1));
  EXPECT_TRUE(ticket.bytes().empty());
  try {
    static_cast<void>(unpack_ticket(ticket));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("of 5000 bytes"), std::string::npos) << error.what();
  }
}

TEST(SegmentTicket, of_another_rank_or_process_is_refused) {
  test::InProcessJob job;
  test::Space memory(job.rank(0), MemoryKind::host, 65536);
  const Segment segment = expose(job.rank(0), memory.whole());
  EXPECT_THROW(RemoteSegment(job.rank(0), Rank{1}, segment.ticket()), Error);
  EXPECT_THROW(RemoteSegment(job.rank(0), Rank{5}, segment.ticket()), Error);
  const SegmentTicket ticket = segment.ticket();
  TicketContent content = unpack_ticket(ticket);
  content.pid += 1;
  EXPECT_THROW(RemoteSegment(job.rank(1), Rank{0}, pack_ticket(content)), Error);
  content.pid -= 1;
  // The rest of the ticket is sound, but the key is none of this network: what is mapped still serves.
  const auto junk = test::pattern(100, 1);
  content.key = junk;
  RemoteSegment there(job.rank(1), Rank{0}, pack_ticket(content));
  EXPECT_EQ(*there.path_of(MemoryKind::host, 8, RmaDirection::put), Path::shm);
  EXPECT_FALSE(there.path_of(MemoryKind::host, 8, RmaDirection::put, {.path = Path::ucx}).ok());
}

}  // namespace
}  // namespace brant
