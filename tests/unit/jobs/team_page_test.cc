// Pages of teams, as they were written, cut, or damaged.
#include "cli/jobs/team_page.h"

#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ops/coll/journal.h"

namespace brant::cli::jobs {
namespace {

using coll::JournalPage;

/// Of a team of three whose member 1 has called so often.
JournalPage page_with(std::uint64_t calls) {
  JournalPage page;
  page.magic = JournalPage::kMagic;
  std::strcpy(page.name, "0.3");
  page.key = 77;
  page.members = 3;
  page.self = 1;
  page.rank = 5;
  page.hidden = 2;
  page.last = page.hidden + calls;
  const coll::CallWords words = coll::words_of(CollectiveKind::broadcast, DataType::bytes, ReduceOp::none, 64, 2);
  for (std::uint64_t number = page.hidden + 1; number <= page.last; ++number)
    page.calls[number % JournalPage::kCalls] = {words.high, words.low, 1, 0, 1, static_cast<std::int64_t>(number), 0};
  page.awaits = 3;
  return page;
}

std::optional<TeamPage> parse(const JournalPage& page) {
  std::vector<std::byte> bytes(JournalPage::kBytes);
  std::memcpy(bytes.data(), static_cast<const void*>(&page), sizeof(page));
  return parse_team_page(bytes);
}

TEST(TeamPage, has_the_last_calls_in_their_order) {
  for (const std::uint64_t calls : {0u, 1u, 63u, 64u, 65u, 1000u}) {
    const std::optional<TeamPage> page = parse(page_with(calls));
    ASSERT_TRUE(page);
    EXPECT_EQ(page->name, "0.3");
    EXPECT_EQ(page->rank, 5);
    EXPECT_EQ(page->awaits, 2u);
    ASSERT_EQ(page->calls.size(), std::min<std::uint64_t>(calls, JournalPage::kCalls));
    if (calls == 0) continue;
    EXPECT_EQ(page->calls.back().number, calls);
    EXPECT_EQ(page->calls.back().what, "broadcast of 64 bytes from rank 2");
    EXPECT_EQ(page->calls.back().algorithm, "lines");
    EXPECT_EQ(page->calls.front().number, calls - page->calls.size() + 1);
    EXPECT_EQ(page->calls.front().begun_ns, static_cast<std::int64_t>(page->calls.front().number + 2));
  }
}

TEST(TeamPage, of_nobody_or_damaged_is_none) {
  EXPECT_FALSE(parse(JournalPage()));
  JournalPage page = page_with(3);
  page.self = 3;
  EXPECT_FALSE(parse(page));
  page = page_with(3);
  std::memset(page.name, 'x', sizeof(page.name));
  EXPECT_FALSE(parse(page));
  page = page_with(3);
  page.hidden = page.last + 1;
  EXPECT_FALSE(parse(page));
  std::vector<std::byte> cut(sizeof(JournalPage) - 1);
  EXPECT_FALSE(parse_team_page(cut));
}

TEST(TeamPage, of_any_bytes_is_read_or_left) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    JournalPage page = page_with(random() % 100);
    auto* bytes = reinterpret_cast<unsigned char*>(&page);
    for (int changes = 0; changes < 4; ++changes)
      bytes[8 + random() % (sizeof(page) - 8)] = static_cast<unsigned char>(random());
    if (const std::optional<TeamPage> told = parse(page)) {
      ASSERT_LE(told->calls.size(), JournalPage::kCalls);
      ASSERT_LE(told->queued.size(), JournalPage::kStreamCalls);
    }
  }
}

/// As the journal of a team writes them.
TEST(TeamPage, is_what_a_journal_writes) {
  PublishedPages nowhere(false);
  coll::Journal journal(nowhere);
  const coll::CallWords words = coll::words_of(CollectiveKind::allreduce, DataType::f32, ReduceOp::sum, 8, 0);
  EXPECT_EQ(journal.begin(words, coll::Algorithm::direct, 1), 1u);
  journal.end(Status::ok, 2);
  journal.introduce("a name that is much longer than a page has room for it", 1, {2, 0}, Rank{0});
  EXPECT_TRUE(journal.calls().empty());
  EXPECT_EQ(journal.begin(words, coll::Algorithm::reads, 3), 2u);
  journal.change(coll::Algorithm::slots);
  EXPECT_EQ(journal.shown(2), 1u);
  ASSERT_EQ(journal.calls().size(), 1u);
  EXPECT_EQ(journal.calls()[0].algorithm, "slots");
  EXPECT_EQ(journal.calls()[0].status, Status::in_progress);
  journal.end(Status::peer_lost, 4);
  EXPECT_EQ(journal.calls()[0].status, Status::peer_lost);
}

}  // namespace
}  // namespace brant::cli::jobs
