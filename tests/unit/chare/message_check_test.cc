// What another process may have written in a message of chares: it is refused, or the scheduler may go by its header.
#include "models/chare/message_check.h"

#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "brant/chare/array.h"
#include "models/chare/collection.h"
#include "models/chare/data_call.h"
#include "models/chare/moving.h"
#include "support/mutation.h"

namespace brant::detail {
namespace {

constexpr std::int32_t kRanks = 4;
constexpr unsigned kKinds = static_cast<unsigned>(MessageKind::numbers_given);

class Block : public Chare<Block, Index<2>> {};

class Lines {
 public:
  Lines() : registry_(Registry::of_program()), class_number_(ClassOf<Block>::get().number) {}
  [[nodiscard]] const Registry& registry() const { return registry_; }
  [[nodiscard]] std::uint16_t class_number() const { return class_number_; }

 private:
  const Registry& registry_;
  const std::uint16_t class_number_;
};

/// A message as it lies in the receiver's memory, which ends where the payload ends.
struct Draft {
  explicit Draft(const Envelope& envelope, std::size_t bytes = 0) { set(envelope, bytes); }

  void set(const Envelope& envelope, std::size_t bytes) {
    message.wire.source = 1;
    message.set_header(envelope);
    payload.reset(new (std::align_val_t{16}) std::byte[bytes]{});
    message.data = payload.get();
    message.bytes = bytes;
  }
  template <typename T>
  Draft& put(std::size_t at, const T& value) {
    std::memcpy(message.data + at, &value, sizeof(value));
    return *this;
  }
  [[nodiscard]] bool sound() const { return is_sound(message, kRanks, Lines().registry()); }

  struct Free {
    void operator()(std::byte* bytes) const noexcept { ::operator delete[](bytes, std::align_val_t{16}); }
  };
  std::unique_ptr<std::byte[], Free> payload;
  am::Message message;
};

Envelope envelope_of(MessageKind kind, std::uint8_t flags = 0, std::uint32_t reply = 0) {
  Envelope envelope;
  envelope.kind = kind;
  envelope.flags = flags;
  envelope.reply = reply;
  return envelope;
}

Draft with_data(const DataHeader& header, const DataMeta& meta = {8, MemoryKind::host, false, {}}) {
  Draft draft(envelope_of(MessageKind::call, Envelope::kData), sizeof(DataHeader) + 2 * sizeof(DataMeta));
  return std::move(draft.put(0, header).put(sizeof(header), meta).put(sizeof(header) + sizeof(meta), meta));
}

PlacementRule square() {
  PlacementRule rule;
  rule.kind = Placement::Kind::block;
  rule.dense = 1;
  rule.dimensions = 2;
  rule.extent.set_coordinate(0, 10);
  rule.extent.set_coordinate(1, 10);
  return rule;
}

Draft creation(const PlacementRule& rule) {
  Draft draft(envelope_of(MessageKind::create), kCreateBytes);
  return std::move(draft.put(0, rule).put(sizeof(rule), Lines().class_number()));
}

TEST(ChareMessageCheck, every_kind_that_a_rank_sends_is_sound) {
  for (unsigned number = 1; number <= kKinds; ++number) {
    const auto kind = static_cast<MessageKind>(number);
    if (kind == MessageKind::create || kind == MessageKind::depart) continue;
    const bool of_moves = kind == MessageKind::moved || kind == MessageKind::place;
    const std::uint8_t flags = of_moves ? Envelope::kDirect : 0;
    EXPECT_TRUE(Draft(envelope_of(kind, flags, kRanks - 1), of_moves ? sizeof(PassportTail) : kReplyPrefix).sound())
        << number;
  }
  EXPECT_TRUE(creation(square()).sound());
  EXPECT_TRUE(Draft(envelope_of(MessageKind::call, Envelope::kWide), kWideBytes).sound());
  EXPECT_TRUE(with_data({5, DataState::numbers, 1}).sound());
  EXPECT_TRUE(with_data({5, DataState::numbers, 2}).sound());
}

TEST(ChareMessageCheck, a_list_names_a_rank_of_the_job_for_every_element) {
  PlacementRule rule = square();
  rule.kind = Placement::Kind::listed;
  const auto listed = [&rule](std::size_t bytes) {
    Draft draft(envelope_of(MessageKind::create), kCreateBytes + bytes);
    return std::move(draft.put(0, rule).put(sizeof(rule), Lines().class_number()));
  };
  const std::size_t all = rule.listed_bytes(), last = kCreateBytes + (rule.total() - 1) * sizeof(std::int32_t);
  EXPECT_EQ(all, 400U);
  EXPECT_TRUE(listed(all).sound());
  EXPECT_TRUE(listed(all).put(last, std::int32_t{kRanks - 1}).sound());
  EXPECT_FALSE(listed(all).put(last, std::int32_t{kRanks}).sound());
  EXPECT_FALSE(listed(all).put(kCreateBytes, std::int32_t{-1}).sound());
  EXPECT_FALSE(listed(all - 16).sound());
  EXPECT_FALSE(listed(0).sound());
  rule.dense = 0;
  EXPECT_FALSE(listed(all).sound());
  rule = square();
  rule.kind = Placement::Kind::listed;
  rule.extent.set_coordinate(0, 1 << 12);
  rule.extent.set_coordinate(1, (1 << 12) + 1);
  EXPECT_FALSE(listed(400).sound()) << "more than a list may have";
}

TEST(ChareMessageCheck, what_follows_an_element_says_whom_it_comes_from) {
  EXPECT_FALSE(Draft(envelope_of(MessageKind::depart), kReplyPrefix).sound()) << "stays within a process";
  EXPECT_FALSE(Draft(envelope_of(MessageKind::moved), sizeof(PassportTail)).sound()) << "without its flag";
  EXPECT_FALSE(Draft(envelope_of(MessageKind::moved, Envelope::kDirect), sizeof(PassportTail) - 1).sound());
  EXPECT_FALSE(Draft(envelope_of(MessageKind::reply, Envelope::kDirect), kReplyPrefix).sound());
  EXPECT_FALSE(Draft(envelope_of(MessageKind::broadcast, Envelope::kPassedOn), sizeof(Trail)).sound());
  EXPECT_FALSE(Draft(envelope_of(MessageKind::call, Envelope::kPassedOn), sizeof(Trail) - 1).sound());
  EXPECT_TRUE(Draft(envelope_of(MessageKind::call, Envelope::kPassedOn), sizeof(Trail)).sound()) << "zeros: rank 0";
  EXPECT_TRUE(Draft(envelope_of(MessageKind::call, Envelope::kDirect), 0).sound());
}

TEST(ChareMessageCheck, kinds_and_ranks_are_those_that_there_are) {
  EXPECT_FALSE(Draft(envelope_of(MessageKind{})).sound());
  EXPECT_FALSE(Draft(envelope_of(static_cast<MessageKind>(kKinds + 1))).sound());
  EXPECT_FALSE(Draft(envelope_of(MessageKind::broadcast, 0, kRanks)).sound()) << "the root of its tree";
  EXPECT_FALSE(Draft(envelope_of(MessageKind::multicast, 0, 0xffff'fff0)).sound());
  EXPECT_TRUE(Draft(envelope_of(MessageKind::call, 0, 0xffff'fff0)).sound()) << "that of a future";
  Draft cut(envelope_of(MessageKind::call));
  cut.message.wire.header_bytes = sizeof(Envelope) - 1;
  EXPECT_FALSE(cut.sound());
}

TEST(ChareMessageCheck, the_payload_holds_what_the_header_says) {
  EXPECT_FALSE(Draft(envelope_of(MessageKind::call, Envelope::kWide), kWideBytes - 1).sound());
  EXPECT_FALSE(Draft(envelope_of(MessageKind::reply), kReplyPrefix - 1).sound());
  EXPECT_FALSE(Draft(envelope_of(MessageKind::create), kCreateBytes - 1).sound());
  EXPECT_FALSE(Draft(envelope_of(MessageKind::call, Envelope::kData), sizeof(DataHeader) - 1).sound());
  EXPECT_FALSE(with_data({5, DataState::numbers, 3}).sound()) << "two descriptions are there";
  EXPECT_FALSE(with_data({5, DataState::numbers, 0}).sound());
  EXPECT_FALSE(with_data({5, DataState::numbers, 0xffff'ffff}).sound());
  EXPECT_FALSE(Draft(envelope_of(MessageKind::insert, Envelope::kData), 64).sound()) << "only calls have data";
}

TEST(ChareMessageCheck, a_trail_lies_behind_the_descriptions_of_data_and_not_in_them) {
  const auto passed_on = [](std::size_t bytes) {
    Draft draft(envelope_of(MessageKind::call, Envelope::kData | Envelope::kPassedOn), bytes);
    return std::move(draft.put(0, DataHeader{5, DataState::numbers, 1}));  // zeros: a trail of rank 0, no data
  };
  constexpr std::size_t kAll = sizeof(DataHeader) + sizeof(DataMeta) + sizeof(Trail);
  EXPECT_TRUE(passed_on(kAll).sound());
  EXPECT_FALSE(passed_on(kAll - 1).sound());
  EXPECT_FALSE(passed_on(sizeof(DataHeader) + sizeof(DataMeta)).sound());
}

TEST(ChareMessageCheck, no_pointer_comes_from_another_process) {
  for (const DataState state : {DataState::origins, DataState::staging, DataState::landing, DataState::landed,
                                DataState::none, static_cast<DataState>(77)}) {
    EXPECT_FALSE(with_data({0x4000, state, 1}).sound()) << static_cast<unsigned>(state);
  }
}

TEST(ChareMessageCheck, data_of_absurd_size_or_unknown_kind_is_refused) {
  EXPECT_FALSE(with_data({5, DataState::numbers, 1}, {~std::uint64_t{0}, MemoryKind::host, false, {}}).sound());
  EXPECT_FALSE(with_data({5, DataState::numbers, 1}, {8, static_cast<MemoryKind>(99), false, {}}).sound());
  Draft draft = with_data({5, DataState::numbers, 1});
  EXPECT_FALSE(draft.put(sizeof(DataHeader) + offsetof(DataMeta, host_only), std::byte{2}).sound());
}

TEST(ChareMessageCheck, a_collection_is_one_that_a_rank_could_make) {
  const std::vector<std::pair<std::string, std::function<void(PlacementRule&)>>> spoilers = {
      {"kind", [](PlacementRule& rule) { rule.kind = Placement::Kind::like; }},
      {"dense", [](PlacementRule& rule) { rule.dense = 2; }},
      {"other dimensions than its class", [](PlacementRule& rule) { rule.dimensions = 3; }},
      {"dimensions", [](PlacementRule& rule) { rule.dimensions = 1 << 20; }},
      {"no extent", [](PlacementRule& rule) { rule.extent.set_coordinate(1, 0); }},
      {"negative extent", [](PlacementRule& rule) { rule.extent.set_coordinate(1, -5); }},
      {"elements", [](PlacementRule& rule) { rule.extent.set_coordinate(1, 1 << 30); }},
      {"a placement function that is none",
       [](PlacementRule& rule) {
         rule.kind = Placement::Kind::function;
         rule.function = 0xffff;
       }},
  };
  for (const auto& [what, spoil] : spoilers) {
    PlacementRule rule = square();
    spoil(rule);
    EXPECT_FALSE(creation(rule).sound()) << what;
  }
  EXPECT_FALSE(creation(square()).put(sizeof(PlacementRule), std::uint16_t{0xffff}).sound()) << "a class that is none";
  EXPECT_TRUE(creation(square()).put(sizeof(PlacementRule), std::uint16_t{0xfffe}).sound())
      << "a class that may be enrolled later: nothing is made of the message until then";
}

TEST(ChareMessageFuzz, a_mutated_message_is_refused_or_usable) {
  test::Mutation mutation(20261124);
  const unsigned records = test::fuzz_records(1'000'000);
  unsigned refused = 0;
  for (unsigned i = 0; i < records; ++i) {
    const auto kind = static_cast<MessageKind>(1 + mutation.below(kKinds));
    const std::size_t bytes = mutation.below(128);
    Draft draft = kind == MessageKind::create ? creation(square())
                  : mutation.below(2) == 0    ? with_data({5, DataState::numbers, 1})
                                              : Draft(envelope_of(kind, 0, 1), bytes);
    mutation.spoil({draft.message.wire.user, sizeof(Envelope)});
    if (mutation.below(2) == 0) mutation.spoil({draft.message.data, draft.message.bytes});
    if (!draft.sound()) {
      ++refused;
      continue;
    }
    const auto envelope = draft.message.header<Envelope>();
    if ((envelope.flags & Envelope::kWide) != 0) {
      ASSERT_GE(draft.message.bytes, kWideBytes);
    }
    if (envelope.kind == MessageKind::reply) {
      ASSERT_GE(draft.message.bytes, kReplyPrefix);
    }
    std::uint16_t number = 0;
    std::memcpy(&number, draft.message.data + sizeof(PlacementRule),
                draft.message.bytes < kCreateBytes ? 0 : sizeof(number));
    if (envelope.kind == MessageKind::create && !Lines().registry().is_awaited(number)) {
      PlacementRule rule;
      std::memcpy(static_cast<void*>(&rule), draft.message.data, sizeof(rule));
      if (rule.dense != 0) {
        ASSERT_TRUE(rule.total() != 0 && rule.total() <= PlacementRule::kElementsMax);
      }
    }
    if (envelope.has_data()) {
      const DataHeader header = data_header(draft.message, envelope);
      ASSERT_EQ(header.state, DataState::numbers);
      const auto* end = reinterpret_cast<const std::byte*>(data_metas(draft.message, envelope) + header.count);
      ASSERT_LE(end, draft.message.data + draft.message.bytes);
    }
  }
  EXPECT_GT(refused, records / 8);
  EXPECT_LT(refused, records);
}

}  // namespace
}  // namespace brant::detail
