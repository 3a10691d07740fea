// What another process may have written in a channel's record: it is refused, or all that stands in it may be used.
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/channel/link_message.h"
#include "ops/channel/reserved_ids.h"
#include "support/mutation.h"

namespace brant {
namespace {

using Kind = LinkMessage::Kind;
using Place = LinkMessage::Place;
using Header = std::array<std::byte, port::kLinkHeaderBytes>;

Header header_of(const LinkMessage& message) {
  Header header{};
  std::memcpy(header.data(), &message, sizeof(message));
  return header;
}

bool accepts(const LinkMessage& message, std::size_t payload = 0) {
  LinkMessage read;
  return read_link_record(header_of(message).data(), payload, read);
}

LinkMessage message_of(Kind kind, std::uint64_t bytes = 0, std::uint64_t offset = 0) {
  LinkMessage message;
  message.kind = kind;
  message.bytes = bytes;
  message.offset = offset & LinkMessage::kOffsetMask;
  return message;
}

constexpr Kind kKinds[] = {Kind::eager,     Kind::landing,   Kind::ask,       Kind::taken,
                           Kind::declined,  Kind::data,      Kind::landed,    Kind::failed,
                           Kind::abandoned, Kind::stored,    Kind::elsewhere, Kind::truncated,
                           Kind::retract,   Kind::retracted, Kind::slots,     Kind::slot_emptied};

bool has_payload(Kind kind) { return kind == Kind::eager || kind == Kind::data; }

TEST(LinkRecord, every_kind_that_an_end_posts_is_read_back) {
  for (const Kind kind : kKinds) {
    LinkMessage message = message_of(kind, 100);
    message.from_side = 1;
    message.acknowledged = true;
    message.place = Place::mapped;
    message.channel = reserved_id::kLast;
    message.number = 1234567890123;
    message.flag = 64;
    message.buffer_id = 99;
    const std::size_t payload = has_payload(kind) ? 100 : 0;
    LinkMessage read;
    ASSERT_TRUE(read_link_record(header_of(message).data(), payload, read)) << static_cast<int>(kind);
    EXPECT_EQ(header_of(read), header_of(message));
  }
}

TEST(LinkRecord, payloads_have_the_size_that_the_header_says) {
  EXPECT_TRUE(accepts(message_of(Kind::eager, 0), 0));
  EXPECT_TRUE(accepts(message_of(Kind::eager, kEagerBytes), kEagerBytes));
  EXPECT_FALSE(accepts(message_of(Kind::eager, kEagerBytes + 1), kEagerBytes + 1));
  EXPECT_FALSE(accepts(message_of(Kind::eager, 8), 7));
  EXPECT_FALSE(accepts(message_of(Kind::eager, 8), 9));
  EXPECT_TRUE(accepts(message_of(Kind::data, 1000, 900), 100));
  EXPECT_FALSE(accepts(message_of(Kind::data, 1000, 900), 101));
  EXPECT_FALSE(accepts(message_of(Kind::data, 1000, 1001), 1));
  EXPECT_FALSE(accepts(message_of(Kind::data, 1000, LinkMessage::kOffsetMask), 100));
  EXPECT_FALSE(accepts(message_of(Kind::data, 1000, 900), 0)) << "a piece of nothing";
  for (const Kind kind : kKinds) {
    if (!has_payload(kind)) {
      EXPECT_FALSE(accepts(message_of(kind), 1)) << static_cast<int>(kind);
    }
  }
}

TEST(LinkRecord, fields_out_of_their_range_are_refused) {
  const std::vector<std::pair<std::string, std::function<void(Header&)>>> spoilers = {
      {"kind", [](Header& bytes) { bytes[offsetof(LinkMessage, kind)] = std::byte{17}; }},
      {"side", [](Header& bytes) { bytes[offsetof(LinkMessage, from_side)] = std::byte{2}; }},
      {"acknowledged", [](Header& bytes) { bytes[offsetof(LinkMessage, acknowledged)] = std::byte{2}; }},
      {"place", [](Header& bytes) { bytes[offsetof(LinkMessage, place)] = std::byte{3}; }},
      {"channel", [](Header& bytes) { bytes[offsetof(LinkMessage, channel) + 3] = std::byte{0x10}; }},
  };
  for (const auto& [field, spoil] : spoilers) {
    Header header = header_of(message_of(Kind::landing, 8));
    LinkMessage read;
    EXPECT_TRUE(read_link_record(header.data(), 0, read));
    spoil(header);
    EXPECT_FALSE(read_link_record(header.data(), 0, read)) << field;
  }
}

TEST(LinkRecord, a_failure_has_a_status_that_there_is) {
  EXPECT_TRUE(accepts(message_of(Kind::failed, 8, static_cast<std::uint64_t>(Status::canceled))));
  EXPECT_FALSE(accepts(message_of(Kind::failed, 8, 2)));
  EXPECT_FALSE(accepts(message_of(Kind::failed, 8, (std::uint64_t{1} << 32) + 302)));
}

ChannelControl control_of(ChannelControl::Kind kind) {
  return {kind, 1, 7, 3, 5, 1234567890123, 1234567890124, Status::canceled};
}

constexpr auto kFirst = static_cast<unsigned>(ChannelControl::Kind::opened);
constexpr auto kLast = static_cast<unsigned>(ChannelControl::Kind::last);

TEST(LinkRecord, says_in_its_first_byte_whether_it_is_a_control_message) {
  for (const Kind kind : kKinds) EXPECT_FALSE(is_channel_control(header_of(message_of(kind)).data()));
  for (unsigned kind = kFirst; kind <= kLast; ++kind) {
    const ChannelControl control = control_of(static_cast<ChannelControl::Kind>(kind));
    Header header{};
    std::memcpy(header.data(), &control, sizeof(control));
    EXPECT_TRUE(is_channel_control(header.data())) << kind;
    LinkMessage read;
    EXPECT_FALSE(read_link_record(header.data(), 0, read)) << kind;
  }
}

TEST(ChannelControlRecord, every_kind_is_read_and_what_is_out_of_range_refused) {
  ChannelControl read;
  const auto accepts_control = [&](const ChannelControl& control) {
    return read_channel_control(std::as_bytes(std::span(&control, 1)), read);
  };
  for (unsigned kind = kFirst; kind <= kLast; ++kind) {
    const ChannelControl control = control_of(static_cast<ChannelControl::Kind>(kind));
    EXPECT_TRUE(accepts_control(control)) << kind;
    EXPECT_EQ(read.kind, control.kind);
    EXPECT_EQ(read.sender_side, control.sender_side);
    EXPECT_EQ(read.channel, control.channel);
    EXPECT_EQ(read.sender_rank, control.sender_rank);
    EXPECT_EQ(read.linked, control.linked);
    EXPECT_EQ(read.prefix, control.prefix);
    EXPECT_EQ(read.number, control.number);
    EXPECT_EQ(read.status, control.status);
  }
  for (const unsigned kind : {0u, kFirst - 1, kLast + 1}) {
    EXPECT_FALSE(accepts_control(control_of(static_cast<ChannelControl::Kind>(kind)))) << kind;
  }
  ChannelControl control = control_of(ChannelControl::Kind::not_taken);
  control.channel = reserved_id::kLast + 1;
  EXPECT_FALSE(accepts_control(control));
  control = control_of(ChannelControl::Kind::not_taken);
  control.sender_side = 2;
  EXPECT_FALSE(accepts_control(control));
  control = control_of(ChannelControl::Kind::not_taken);
  control.status = static_cast<Status>(3);
  EXPECT_FALSE(accepts_control(control));
  EXPECT_FALSE(read_channel_control(std::as_bytes(std::span(&control, 1)).first(sizeof(control) - 1), read));
}

/// What the code behind the reader takes for granted.
void expect_usable(const LinkMessage& message, std::size_t payload) {
  ASSERT_LE(message.kind, Kind::slot_emptied);
  ASSERT_LE(message.place, Place::other);
  ASSERT_LE(message.from_side, 1);
  ASSERT_LE(message.channel, reserved_id::kLast);
  if (message.kind == Kind::eager) {
    ASSERT_TRUE(payload == message.bytes && payload <= kEagerBytes);
  }
  if (message.kind == Kind::data) {
    ASSERT_NE(payload, 0u);
    ASSERT_LE(message.offset + payload, message.bytes);
  }
  if (message.kind == Kind::failed) {
    ASSERT_NE(status_name(static_cast<Status>(message.offset)), "unknown");
  }
}

TEST(LinkRecordFuzz, a_mutated_record_is_refused_or_usable) {
  test::Mutation mutation(20261123);
  const unsigned records = test::fuzz_records(4'000'000);
  unsigned refused = 0;
  for (unsigned i = 0; i < records; ++i) {
    const Kind kind = kKinds[mutation.below(std::size(kKinds))];
    const std::size_t bytes = mutation.below(2 * kEagerBytes);
    Header header = header_of(message_of(kind, bytes));
    std::size_t payload = has_payload(kind) ? bytes : 0;
    mutation.spoil(header);
    if (mutation.below(4) == 0) payload = mutation.below(port::kLinkPayloadMax + 1);
    LinkMessage read;
    if (read_link_record(header.data(), payload, read)) {
      expect_usable(read, payload);
      if (HasFatalFailure()) return;
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, records / 8);
  EXPECT_LT(refused, records);
}

}  // namespace
}  // namespace brant
