// A process whose peer sends messages of ops/am that no messenger of ours sends: it touches nothing that is not its
// own, and gives the peer up.
#include <cstring>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "core/am_ids.h"
#include "core/link_services.h"
#include "fuzz/hostile_peer.h"
#include "ops/am/loans.h"
#include "unit/am/end.h"

namespace brant::test {
namespace {

using am::End;
using am::LoanNote;
using am::LoanPlace;
using am::ServiceId;
using am::WireHeader;

constexpr std::size_t kLent = 100'000;

/// The victim has exchanged messages of all sorts with its peer, and they lend each other large ones.
struct Messengers : HostilePeer {
  Messengers() : HostilePeer(sharing()), left(hostile()), right(victim()) {
    for (const std::size_t bytes : {std::size_t{8}, kLent, kLent, kLent}) {
      EXPECT_EQ(left.send(1, sequence++, bytes), Status::ok);
      job().run(20);
      EXPECT_EQ(right.send(0, answers++, bytes), Status::ok);
      job().run(20);
    }
  }

  /// As the next message from rank 0.
  [[nodiscard]] WireHeader header() const {
    WireHeader header;
    header.sequence = sequence;
    header.source = 0;
    header.service = ServiceId::test;
    header.header_bytes = sizeof(am::Header);
    return header;
  }
  void note(const LoanNote& note) {
    WireHeader head;
    head.source = 0;
    std::memcpy(head.user, &note, sizeof(note));
    post(link_service::kMessageLoan, bytes_of(head));
  }

  std::uint32_t sequence = 0, answers = 0;
  End left, right;
};

void expect_given_up(const std::function<void(Messengers&)>& spoil) {
  Messengers pair;
  EXPECT_EQ(pair.bad_records(), 0u);
  spoil(pair);
  pair.job().run(4);
  EXPECT_EQ(pair.bad_records(), 1u);
  EXPECT_TRUE(pair.given_up());
  ASSERT_EQ(pair.right.troubles.size(), 1u);
  EXPECT_EQ(pair.right.troubles[0].second, Status::peer_lost);
  EXPECT_EQ(pair.right.numbers.size(), pair.sequence);
}

TEST(HostileMessage, a_record_says_whose_it_is_and_that_is_true) {
  for (const std::int32_t source : {1, -1, 2, 1 << 30}) {
    SCOPED_TRACE(source);
    const auto with_source = [&](Messengers& pair) {
      WireHeader header = pair.header();
      header.source = source;
      return header;
    };
    expect_given_up([&](Messengers& pair) {
      pair.post(link_service::kMessage, bytes_of(with_source(pair)), bytes_of(std::uint64_t{1}));
    });
    expect_given_up([&](Messengers& pair) {
      pair.post(link_service::kMessageLoan, bytes_of(with_source(pair)), bytes_of(LoanPlace{0, 64}));
    });
  }
}

TEST(HostileMessage, a_message_over_the_network_is_of_another_rank_of_the_job) {
  Messengers pair;
  constexpr std::int32_t kLeft = 1 << 30;  // a number of one that had joined: its messages may still be under way
  for (const std::int32_t source : {1, -1, 2, kLeft - 1, kLeft}) {
    WireHeader header = pair.header();
    header.source = source;
    pair.send(am_id::kMessage, std::as_bytes(std::span(&header, 1)).first(am::kOwnHeaderBytes + header.header_bytes));
  }
  EXPECT_EQ(pair.bad_records(), 4u);
  EXPECT_FALSE(pair.given_up()) << "nobody knows who sent it";
}

TEST(HostileMessage, headers_are_of_their_size) {
  expect_given_up([](Messengers& pair) {
    WireHeader header = pair.header();
    header.header_bytes = am::kHeaderBytesMax + 1;
    pair.post(link_service::kMessage, bytes_of(header), bytes_of(std::uint64_t{1}));
  });
}

TEST(HostileMessage, no_more_is_consumed_than_was_sent) {
  expect_given_up([](Messengers& pair) {
    WireHeader header = pair.header();
    header.consumed = 1'000'000;
    pair.post(link_service::kMessage, bytes_of(header), bytes_of(std::uint64_t{1}));
  });
  expect_given_up([](Messengers& pair) {
    WireHeader header;
    header.source = 0;
    header.consumed = 1'000'000;
    pair.send(am_id::kMessageCredit, std::as_bytes(std::span(&header, 1)).first(am::kOwnHeaderBytes));
  });
}

TEST(HostileMessage, messages_are_not_numbered_far_beyond_the_window) {
  expect_given_up([](Messengers& pair) {
    WireHeader header = pair.header();
    header.sequence += 0x4000'0000;
    pair.post(link_service::kMessage, bytes_of(header), bytes_of(std::uint64_t{1}));
  });
}

TEST(HostileMessage, a_lent_message_lies_in_the_region_where_blocks_begin) {
  constexpr std::uint64_t kRegion = std::uint64_t{128} << 20;
  for (const LoanPlace& place : {LoanPlace{kRegion, 64}, LoanPlace{kRegion - 64, 0}, LoanPlace{~std::uint64_t{63}, 64},
                                 LoanPlace{0, kRegion}, LoanPlace{0, ~std::uint64_t{0}}, LoanPlace{8, 64}}) {
    SCOPED_TRACE(place.place);
    expect_given_up(
        [&](Messengers& pair) { pair.post(link_service::kMessageLoan, bytes_of(pair.header()), bytes_of(place)); });
  }
}

TEST(HostileMessage, a_lent_message_that_came_before_is_dropped) {
  Messengers pair;
  WireHeader header = pair.header();
  header.sequence = 0;
  pair.post(link_service::kMessageLoan, bytes_of(header), bytes_of(LoanPlace{0, 64}));
  EXPECT_EQ(pair.bad_records(), 0u);
  EXPECT_EQ(pair.left.send(1, pair.sequence++, 8), Status::ok);
  pair.job().run(20);
  EXPECT_EQ(pair.right.numbers.size(), pair.sequence) << "it stands in front of no other";
}

TEST(HostileMessage, what_was_not_lent_is_not_returned) {
  for (const std::uint64_t place :
       {std::uint64_t{0}, std::uint64_t{64}, std::uint64_t{3}, std::uint64_t{128} << 20, ~std::uint64_t{63}}) {
    SCOPED_TRACE(place);
    expect_given_up([&](Messengers& pair) { pair.note({.kind = LoanNote::Kind::returned, .place = place}); });
  }
}

TEST(HostileMessage, notes_about_loans_are_answers_and_come_once) {
  for (const LoanNote::Kind kind :
       {LoanNote::Kind::region, LoanNote::Kind::mapped, LoanNote::Kind::unmapped, static_cast<LoanNote::Kind>(77)}) {
    SCOPED_TRACE(static_cast<unsigned>(kind));
    expect_given_up([&](Messengers& pair) { pair.note({.kind = kind}); });
  }
}

TEST(HostileMessageFuzz, whatever_a_peer_sends_the_process_lives) {
  Mutation mutation(20261126);
  const unsigned records = kPosted * fuzz_factor();
  for (unsigned sent = 0; sent < records;) {
    Messengers pair;
    std::uint32_t next = pair.sequence;
    for (unsigned i = 0; i < 100 && !pair.given_up(); ++i, ++sent) {
      WireHeader header = pair.header();
      header.sequence = next + static_cast<std::uint32_t>(mutation.below(3));
      LoanPlace place{mutation.below(1 << 16) * 64, mutation.below(1 << 18)};
      LoanNote note{.kind = static_cast<LoanNote::Kind>(mutation.below(4)), .place = mutation.below(1 << 10) * 64};
      const bool is_note = mutation.below(8) == 0;
      if (is_note) {
        header.service = ServiceId{};
        header.header_bytes = 0;
        std::memcpy(header.user, &note, sizeof(note));
      }
      if (mutation.below(6) == 0) mutation.spoil(std::as_writable_bytes(std::span(&header, 1)));
      if (mutation.below(6) == 0) mutation.spoil(std::as_writable_bytes(std::span(&place, 1)));
      const std::size_t width = am::kOwnHeaderBytes + mutation.below(am::kHeaderBytesMax + 1);
      switch (mutation.below(4)) {
        case 0: pair.send(am_id::kMessage, bytes_of(header).first(width)); break;
        case 1: pair.send(am_id::kMessageCredit, bytes_of(header).first(am::kOwnHeaderBytes)); break;
        case 2: pair.post(link_service::kMessage, bytes_of(header), bytes_of(place)); break;
        default:
          pair.post(link_service::kMessageLoan, bytes_of(header),
                    is_note ? std::span<const std::byte>{} : bytes_of(place));
      }
      next = pair.right.numbers.empty() ? next : static_cast<std::uint32_t>(pair.right.numbers.size());
    }
    pair.right.release_all();
  }
}

}  // namespace
}  // namespace brant::test
