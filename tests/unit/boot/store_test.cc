#include "port/boot/launcher/store.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace brant::port::launcher {
namespace {

std::vector<std::byte> bytes(std::string_view text) {
  std::vector<std::byte> result(text.size());
  if (!text.empty()) std::memcpy(result.data(), text.data(), text.size());
  return result;
}

Status put(Store& store, int rank, const std::string& key, const std::vector<std::byte>& value) {
  return store.put(rank, {.key = key, .value = value}).status;
}

/// The value of one rank as the store answers it: nothing if it has none.
std::optional<std::vector<std::byte>> read(const Store& store, int rank, const std::string& key) {
  std::vector<std::byte> payload;
  EXPECT_EQ(store.get({.key = key, .rank = rank}, payload).status, Status::ok);
  std::span<const std::byte> rest(payload);
  ValueRecord record;
  EXPECT_TRUE(take_record(rest, record));
  if (!record.present) return std::nullopt;
  return std::vector<std::byte>(record.value.begin(), record.value.end());
}

/// All ranks enter fence `id`; everybody must be answered ok.
void fence_all(Store& store, int size, std::uint64_t id) {
  for (int rank = 0; rank < size; ++rank) store.enter_fence(rank, id);
  const auto answers = store.take_answers();
  ASSERT_EQ(answers.size(), static_cast<std::size_t>(size));
  for (const auto& each : answers) {
    EXPECT_EQ(each.answer.status, Status::ok);
    EXPECT_EQ(each.id, id);
  }
}

TEST(Store, values_are_seen_after_the_fence_and_not_before) {
  Store store(2);
  EXPECT_EQ(put(store, 0, "k", bytes("v")), Status::ok);
  EXPECT_EQ(read(store, 0, "k"), std::nullopt);
  store.enter_fence(0, 1);
  EXPECT_TRUE(store.take_answers().empty());
  EXPECT_EQ(read(store, 0, "k"), std::nullopt);
  store.enter_fence(1, 1);
  EXPECT_EQ(store.take_answers().size(), 2U);
  EXPECT_EQ(read(store, 0, "k"), bytes("v"));
  EXPECT_EQ(read(store, 1, "k"), std::nullopt);
}

TEST(Store, a_later_put_replaces_the_value) {
  Store store(1);
  EXPECT_EQ(put(store, 0, "k", bytes("one")), Status::ok);
  EXPECT_EQ(put(store, 0, "k", bytes("two")), Status::ok);
  fence_all(store, 1, 1);
  EXPECT_EQ(put(store, 0, "k", {}), Status::ok);
  EXPECT_EQ(read(store, 0, "k"), bytes("two"));
  fence_all(store, 1, 2);
  EXPECT_EQ(read(store, 0, "k"), bytes(""));
}

TEST(Store, a_cancelled_fence_names_who_is_missing_and_can_be_entered_again) {
  Store store(4);
  store.enter_fence(1, 1);
  store.cancel_fence(1, 1);
  auto answers = store.take_answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].rank, 1);
  EXPECT_EQ(answers[0].answer.status, Status::timed_out);
  EXPECT_EQ(answers[0].answer.text, "ranks 0, 2-3 of 4 not there");
  for (int rank = 0; rank < 4; ++rank) {
    if (rank != 1) store.enter_fence(rank, 1);
  }
  EXPECT_TRUE(store.take_answers().empty());
  store.enter_fence(1, 2);
  EXPECT_EQ(store.take_answers().size(), 4U);
}

TEST(Store, cancelling_a_fence_that_is_complete_changes_nothing) {
  Store store(1);
  store.enter_fence(0, 1);
  EXPECT_EQ(store.take_answers().size(), 1U);
  store.cancel_fence(0, 1);
  EXPECT_TRUE(store.take_answers().empty());
  fence_all(store, 1, 2);
}

TEST(Store, a_rank_that_leaves_fails_waiting_and_later_fences_with_the_first_reason) {
  Store store(3);
  store.enter_fence(0, 7);
  store.leave(2, "rank 2 was killed");
  store.leave(2, "rank 2 again");
  auto answers = store.take_answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].answer.status, Status::peer_lost);
  EXPECT_EQ(answers[0].answer.text, "rank 2 was killed");
  store.leave(0, "rank 0 went too");
  store.enter_fence(1, 1);
  answers = store.take_answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].answer.text, "rank 2 was killed");
  EXPECT_TRUE(store.gone(2));
  EXPECT_FALSE(store.gone(1));
}

TEST(Store, a_rank_that_leaves_while_it_waits_gets_no_answer) {
  Store store(2);
  store.enter_fence(0, 1);
  store.leave(0, "gone");
  EXPECT_TRUE(store.take_answers().empty());
}

TEST(Store, values_of_a_rank_that_left_can_still_be_read) {
  Store store(2);
  EXPECT_EQ(put(store, 1, "k", bytes("v")), Status::ok);
  fence_all(store, 2, 1);
  store.leave(1, "gone");
  EXPECT_EQ(read(store, 1, "k"), bytes("v"));
}

TEST(Store, opening_again_forgets_what_was_staged_and_the_place_in_the_fence) {
  Store store(2);
  EXPECT_EQ(put(store, 0, "old", bytes("v")), Status::ok);
  store.enter_fence(0, 1);
  store.open(0);
  store.enter_fence(1, 1);
  EXPECT_TRUE(store.take_answers().empty());
  store.enter_fence(0, 1);
  EXPECT_EQ(store.take_answers().size(), 2U);
  EXPECT_EQ(read(store, 0, "old"), std::nullopt);
}

TEST(Store, one_rank_cannot_fill_the_launcher) {
  Store store(1);
  const std::vector<std::byte> value(kMaxValueBytes);
  const auto fits = static_cast<int>(Store::kMaxBytesPerRank / kMaxValueBytes);
  for (int i = 0; i < fits; ++i) ASSERT_EQ(put(store, 0, "k" + std::to_string(i), value), Status::ok);
  EXPECT_EQ(put(store, 0, "more", value), Status::limit_reached);
  // Replacing needs no more room, before and after a fence.
  EXPECT_EQ(put(store, 0, "k0", value), Status::ok);
  fence_all(store, 1, 1);
  EXPECT_EQ(put(store, 0, "more", value), Status::limit_reached);
}

TEST(Store, replacing_a_visible_value_returns_its_room) {
  Store store(1);
  const std::vector<std::byte> value(kMaxValueBytes);
  for (std::uint64_t turn = 1; turn < 200; ++turn) {
    ASSERT_EQ(put(store, 0, "k", value), Status::ok) << "turn " << turn;
    fence_all(store, 1, turn);
  }
}

TEST(Store, refuses_bad_keys_values_and_ranks) {
  Store store(2);
  EXPECT_EQ(put(store, 0, "", bytes("v")), Status::invalid_argument);
  EXPECT_EQ(put(store, 0, std::string(65, 'k'), bytes("v")), Status::invalid_argument);
  EXPECT_EQ(put(store, 0, "a\nb", bytes("v")), Status::invalid_argument);
  EXPECT_EQ(put(store, 0, "k", std::vector<std::byte>(kMaxValueBytes + 1)), Status::invalid_argument);
  std::vector<std::byte> payload;
  EXPECT_EQ(store.get({.key = "k", .rank = 2}, payload).status, Status::invalid_argument);
  EXPECT_EQ(store.get({.key = "k", .rank = -1}, payload).status, Status::invalid_argument);
  EXPECT_EQ(store.get({.key = "", .rank = 0}, payload).status, Status::invalid_argument);
  EXPECT_TRUE(payload.empty());
}

TEST(Store, one_answer_brings_many_ranks_but_stays_within_a_frame) {
  constexpr int kSize = 64;
  Store store(kSize);
  for (int rank = 0; rank < kSize; ++rank) {
    const std::vector<std::byte> value(rank == 5 ? kMaxValueBytes : 10, static_cast<std::byte>(rank));
    ASSERT_EQ(put(store, rank, "k", value), Status::ok);
  }
  fence_all(store, kSize, 1);
  int next = 0;
  int round_trips = 0;
  while (next < kSize) {
    std::vector<std::byte> payload;
    ASSERT_EQ(store.get({.key = "k", .rank = next}, payload).status, Status::ok);
    EXPECT_LE(payload.size(), kMaxBodyBytes);
    std::span<const std::byte> rest(payload);
    ValueRecord record;
    while (take_record(rest, record)) {
      ASSERT_TRUE(record.present);
      EXPECT_EQ(record.value.size(), next == 5 ? kMaxValueBytes : 10U);
      EXPECT_EQ(record.value[0], static_cast<std::byte>(next));
      ++next;
    }
    EXPECT_TRUE(rest.empty());
    ++round_trips;
  }
  EXPECT_EQ(round_trips, 3);
}

TEST(FormatRanks, is_short_and_exact) {
  EXPECT_EQ(format_ranks(std::vector<int>{}), "no rank");
  EXPECT_EQ(format_ranks(std::vector<int>{3}), "rank 3");
  EXPECT_EQ(format_ranks(std::vector<int>{0, 2, 3, 4, 9}), "ranks 0, 2-4, 9");
  std::vector<int> odd;
  for (int rank = 1; rank < 1024; rank += 2) odd.push_back(rank);
  const std::string text = format_ranks(odd);
  EXPECT_LT(text.size(), 260U);
  EXPECT_THAT(text, testing::HasSubstr(" more"));
}

}  // namespace
}  // namespace brant::port::launcher
