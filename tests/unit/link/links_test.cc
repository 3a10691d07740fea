#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "port/link/shared_memory/inbox.h"
#include "port/link/shared_memory/open.h"
#include "port/link/shared_memory/ring.h"

namespace brant::port {
namespace {

/// What arrived at one end.
struct Heard {
  struct Record {
    int rank;
    std::uint64_t word;
    std::string payload;
  };
  std::vector<Record> records;

  static void handle(void* self, const LinkRecord& record) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, record.header, sizeof(word));
    const auto* text = reinterpret_cast<const char*>(record.payload.data());
    static_cast<Heard*>(self)->records.push_back({record.rank, word, std::string(text, record.payload.size())});
  }
};

bool post(Link& link, std::uint64_t word, const std::string& payload, unsigned service = 1) {
  return link.post(service, std::as_bytes(std::span(&word, 1)), std::as_bytes(std::span(payload)));
}

bool post_control(Link& link, std::uint64_t word) { return link.post_control(1, std::as_bytes(std::span(&word, 1))); }

/// Two ends in one process: the same mappings as between two.
struct Pair {
  Pair() {
    left->set_handler(1, &Heard::handle, &left_heard);
    right->set_handler(1, &Heard::handle, &right_heard);
  }
  void attach() {
    EXPECT_EQ(left->attach(1, 0, 1, right->address()), Status::ok);
    EXPECT_EQ(right->attach(0, 1, 0, left->address()), Status::ok);
  }

  std::unique_ptr<Links> left = open_links(2);
  std::unique_ptr<Links> right = open_links(2);
  Heard left_heard;
  Heard right_heard;
};

bool readable(int fd, int timeout_ms) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, timeout_ms) == 1;
}

TEST(Links, a_record_that_is_none_ends_the_link_and_is_told_once) {
  Pair pair;
  pair.attach();
  std::vector<int> told;
  pair.right->set_fault_handler(
      [](void* ranks, int rank) noexcept { static_cast<std::vector<int>*>(ranks)->push_back(rank); }, &told);
  peer::InboxAddress address;
  std::memcpy(&address, pair.right->address().data(), sizeof(address));
  Result<peer::Inbox> inbox = peer::Inbox::open(address);
  ASSERT_TRUE(inbox.ok());
  peer::RingProducer producer(inbox->ring(0));
  const std::array<std::byte, 8> header{};
  ASSERT_TRUE(producer.push(Links::kServices + 5, header, {}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pair.right->poll(), 0u);
  EXPECT_EQ(told, std::vector<int>{0});
  EXPECT_TRUE(pair.right_heard.records.empty());
}

TEST(Links, records_go_both_ways_with_their_payload) {
  Pair pair;
  pair.attach();
  ASSERT_TRUE(post(*pair.left->link(1), 11, "small"));
  ASSERT_TRUE(post(*pair.left->link(1), 12, std::string(kLinkPayloadMax, 'x')));
  ASSERT_TRUE(post(*pair.right->link(0), 21, ""));
  EXPECT_EQ(pair.right->poll(), 2u);
  EXPECT_EQ(pair.left->poll(), 1u);
  EXPECT_EQ(pair.left->poll(), 0u);
  ASSERT_EQ(pair.right_heard.records.size(), 2u);
  EXPECT_EQ(pair.right_heard.records[0].rank, 0);
  EXPECT_EQ(pair.right_heard.records[0].word, 11u);
  EXPECT_EQ(pair.right_heard.records[0].payload, "small");
  EXPECT_EQ(pair.right_heard.records[1].payload, std::string(kLinkPayloadMax, 'x'));
  ASSERT_EQ(pair.left_heard.records.size(), 1u);
  EXPECT_EQ(pair.left_heard.records[0].rank, 1);
}

TEST(Links, there_is_none_unless_both_attached) {
  Pair pair;
  EXPECT_EQ(pair.left->attach(1, 0, 1, pair.right->address()), Status::ok);
  EXPECT_EQ(pair.left->link(1), nullptr);
  EXPECT_EQ(pair.right->link(0), nullptr);
  EXPECT_EQ(pair.right->attach(0, 1, 0, pair.left->address()), Status::ok);
  EXPECT_NE(pair.left->link(1), nullptr);
  EXPECT_NE(pair.right->link(0), nullptr);
  EXPECT_EQ(pair.right->link(5), nullptr);
}

TEST(Links, control_records_are_kept_in_order_when_there_is_no_room) {
  Pair pair;
  pair.attach();
  Link& link = *pair.left->link(1);
  std::uint64_t posted = 0;
  while (post(link, posted, "data")) ++posted;
  EXPECT_EQ(posted, peer::kSlots);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(post_control(link, posted++));
  EXPECT_FALSE(post(link, 999'999, "overtakes")) << "a record must not pass those that wait";
  EXPECT_FALSE(pair.left->arm()) << "who keeps records must not sleep";
  for (int round = 0; round < 100 && pair.right_heard.records.size() < posted; ++round) {
    pair.right->poll();
    pair.left->poll();
  }
  ASSERT_EQ(pair.right_heard.records.size(), posted);
  for (std::uint64_t i = 0; i < posted; ++i) EXPECT_EQ(pair.right_heard.records[i].word, i);
  EXPECT_TRUE(post(link, 1, "room again"));
}

TEST(Links, records_wait_for_somebody_to_claim_their_service) {
  Pair pair;
  pair.attach();
  ASSERT_TRUE(post(*pair.left->link(1), 1, "", 3));
  ASSERT_TRUE(post(*pair.left->link(1), 2, ""));
  EXPECT_EQ(pair.right->poll(), 2u);
  EXPECT_EQ(pair.right_heard.records.size(), 1u) << "another service's record must not wait for this one's claim";
  EXPECT_TRUE(pair.right->arm()) << "nothing it could do: it may sleep";
  ASSERT_TRUE(post(*pair.left->link(1), 3, std::string(5000, 'l'), 3));
  Heard late;
  pair.right->set_handler(3, &Heard::handle, &late);
  EXPECT_FALSE(pair.right->arm()) << "what waited can be delivered";
  EXPECT_EQ(pair.right->poll(), 2u);
  ASSERT_EQ(late.records.size(), 2u);
  EXPECT_EQ(late.records[0].word, 1u);
  EXPECT_EQ(late.records[1].word, 3u);
  EXPECT_EQ(late.records[1].payload, std::string(5000, 'l'));
  EXPECT_EQ(pair.right_heard.records.size(), 1u);
}

TEST(Links, a_flood_for_a_service_that_nobody_claims_is_held_back_and_arrives_whole) {
  Pair pair;
  pair.attach();
  std::uint64_t posted = 0;
  for (bool room = true; room;) {
    room = post(*pair.left->link(1), posted, "x", 3);
    posted += room ? 1 : 0;
    if (!room) room = pair.right->poll() != 0;
    ASSERT_LT(posted, 100'000u) << "nothing bounds what is set aside";
  }
  EXPECT_TRUE(pair.right->arm()) << "it waits for a claim, not for the peer";
  Heard late;
  pair.right->set_handler(3, &Heard::handle, &late);
  while (pair.right->poll() != 0) {
  }
  ASSERT_EQ(late.records.size(), posted);
  for (std::uint64_t i = 0; i < posted; ++i) ASSERT_EQ(late.records[i].word, i);
}

TEST(Links, one_service_can_be_polled_up_to_a_record_of_another_and_not_within_a_handler) {
  Pair pair;
  pair.attach();
  Heard others;
  pair.right->set_handler(2, &Heard::handle, &others);
  for (const auto& [word, service] : {std::pair{1, 1u}, {2, 1u}, {3, 2u}, {4, 1u}})
    ASSERT_TRUE(post(*pair.left->link(1), static_cast<std::uint64_t>(word), "", service));
  Link& link = *pair.right->link(0);
  EXPECT_EQ(link.poll(2), 0u);
  EXPECT_EQ(link.poll(1), 2u);
  EXPECT_EQ(link.poll(1), 0u) << "it would overtake another service's";
  struct Nested {
    Link& link;
    unsigned seen = 99;
  } nested{link};
  pair.right->set_handler(
      2,
      [](void* self, const LinkRecord&) noexcept {
        static_cast<Nested*>(self)->seen = static_cast<Nested*>(self)->link.poll(1);
      },
      &nested);
  EXPECT_EQ(link.poll(2), 1u);
  EXPECT_EQ(nested.seen, 0u);
  EXPECT_EQ(link.poll(1), 1u);
  ASSERT_EQ(pair.right_heard.records.size(), 3u);
  EXPECT_EQ(pair.right_heard.records[2].word, 4u);
}

TEST(Links, a_record_wakes_who_sleeps_and_only_then_costs_a_call) {
  Pair pair;
  pair.attach();
  ASSERT_TRUE(post(*pair.left->link(1), 1, ""));
  EXPECT_FALSE(readable(pair.right->event_fd(), 0)) << "it did not sleep";
  EXPECT_FALSE(pair.right->arm()) << "a record is there";
  pair.right->poll();
  ASSERT_TRUE(pair.right->arm());
  EXPECT_FALSE(readable(pair.right->event_fd(), 0));
  ASSERT_TRUE(post(*pair.left->link(1), 2, ""));
  EXPECT_TRUE(readable(pair.right->event_fd(), 1000));
  EXPECT_EQ(pair.right->poll(), 1u);
  EXPECT_FALSE(readable(pair.right->event_fd(), 0)) << "the poll takes the ring of the bell";
}

TEST(Links, no_wake_up_is_lost_between_two_threads) {
  Pair pair;
  pair.attach();
  constexpr std::uint64_t kRounds = 3000;
  std::thread answering([&] {
    while (pair.right_heard.records.size() < kRounds) {
      if (pair.right->poll() != 0) continue;
      if (!pair.right->arm()) continue;
      ASSERT_TRUE(readable(pair.right->event_fd(), 10'000)) << "slept through a record";
    }
  });
  for (std::uint64_t i = 0; i < kRounds;) {
    if (post(*pair.left->link(1), i, "x")) ++i;
    if (i % 7 == 0) std::this_thread::yield();
  }
  answering.join();
  EXPECT_EQ(pair.right_heard.records.size(), kRounds);
}

TEST(Links, nothing_comes_from_a_dropped_peer) {
  Pair pair;
  pair.attach();
  ASSERT_TRUE(post(*pair.left->link(1), 1, ""));
  pair.right->drop(0);
  EXPECT_EQ(pair.right->poll(), 0u);
  EXPECT_EQ(pair.right->link(0), nullptr);
}

TEST(Links, an_address_that_cannot_be_mapped_is_refused) {
  Pair pair;
  const auto address = pair.right->address();
  EXPECT_EQ(pair.left->attach(1, 0, 1, address.first(address.size() - 1)), Status::version_mismatch);
  EXPECT_EQ(pair.left->attach(1, 0, 2, address), Status::not_supported) << "a place that this inbox does not have";
  EXPECT_EQ(pair.left->attach(1, 2, 1, address), Status::not_supported);
  std::vector<std::byte> gone(address.begin(), address.end());
  pair.right.reset();
  EXPECT_EQ(pair.left->attach(1, 0, 1, gone), Status::not_found);
  EXPECT_EQ(pair.left->link(1), nullptr);
}

TEST(Links, a_peer_killed_while_it_posts_leaves_whole_records_and_no_harm) {
  auto own = open_links(2);
  Heard heard;
  own->set_handler(1, &Heard::handle, &heard);
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    auto theirs = open_links(2);
    const auto address = theirs->address();
    if (theirs->attach(0, 1, 0, own->address()) != Status::ok) ::_exit(1);
    if (::write(ends[1], address.data(), address.size()) != static_cast<ssize_t>(address.size())) ::_exit(2);
    while (theirs->link(0) == nullptr) std::this_thread::yield();
    for (std::uint64_t i = 0;; ++i) {
      while (!post(*theirs->link(0), i, std::string(i % 5000, static_cast<char>('a' + i % 26)))) ::sched_yield();
    }
  }
  std::vector<std::byte> address(own->address().size());
  ASSERT_EQ(::read(ends[0], address.data(), address.size()), static_cast<ssize_t>(address.size()));
  ASSERT_EQ(own->attach(1, 0, 1, address), Status::ok);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (heard.records.size() < 2000 && std::chrono::steady_clock::now() < until) own->poll();
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << status;
  while (own->poll() != 0) {
  }
  ASSERT_GE(heard.records.size(), 2000u);
  for (std::uint64_t i = 0; i < heard.records.size(); ++i) {
    ASSERT_EQ(heard.records[i].word, i);
    ASSERT_EQ(heard.records[i].payload, std::string(i % 5000, static_cast<char>('a' + i % 26)));
  }
  // The bell of the dead has no reader but us: ringing it must not raise SIGPIPE.
  for (int i = 0; i < 1000; ++i) static_cast<void>(post(*own->link(1), 1, "anybody there?"));
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace brant::port
