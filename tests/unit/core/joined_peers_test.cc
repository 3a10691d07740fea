#include "core/joined_peers.h"

#include <unistd.h>

#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/hmac.h"
#include "base/process_mark.h"
#include "core/am_ids.h"
#include "port/boot/single/single_boot.h"
#include "port/wire/loopback/loopback.h"

namespace brant {
namespace {

/// Of joined_peers.h, as it travels.
struct Word {
  std::uint32_t kind = 0;
  std::int32_t number = -1;
  std::uint64_t token = 0;
  Digest proof{};
};
constexpr std::uint32_t kAsk = 1, kAnswer = 2, kReady = 3, kFarewell = 4, kHeard = 5;

PeerRecord record_of(const port::Wire& wire) {
  PeerRecord record;
  record.host_id = "host";
  record.pid_namespace = "namespace";
  record.pid = ::getpid();
  record.wire_address.assign(wire.address().begin(), wire.address().end());
  return record;
}

/// Rank 0 of a job of one may be joined. Whoever joins is a bare wire, which says what the test wants.
class JoinedPeersTest : public testing::Test {
 protected:
  JoinedPeersTest() {
    peers_.meet({record_of(*wire_)});
    address_ = unpack_join_address(joined_.address());
    identity_.job_id = "another";
    identity_.host = "host";
    identity_.rank = 0;
    identity_.mark = *own_process_mark();
    identity_.record = record_of(*stranger_);
    to_us_ = *stranger_->connect(wire_->address());
    stranger_->set_am_handler(
        am_id::kJoin,
        [](void* heard, port::AmMessage& message) noexcept {
          Word word;
          ASSERT_EQ(message.header.size(), sizeof(word));
          std::memcpy(static_cast<void*>(&word), message.header.data(), sizeof(word));
          static_cast<std::vector<Word>*>(heard)->push_back(word);
        },
        &heard_);
  }
  ~JoinedPeersTest() override {
    joined_.close();
    peers_.disconnect();
  }

  /// With the proof of who has the key. Nobody moves.
  void tell(std::uint32_t kind, std::int32_t number, std::uint64_t token) {
    const std::vector<std::byte> payload = kind == kAsk ? pack(identity_) : std::vector<std::byte>();
    Word word{kind, number, token};
    std::vector<std::byte> text(offsetof(Word, proof));
    std::memcpy(text.data(), &word, text.size());
    text.insert(text.end(), payload.begin(), payload.end());
    word.proof = hmac_sha256(address_.key, text);
    send(word, payload);
  }
  void send(const Word& word, const std::vector<std::byte>& payload = {}) {
    port::WireOp& op = sends_.emplace_back();
    const ConstBuffer behind(payload.data(), payload.size(), MemoryKind::host);
    EXPECT_GE(stranger_->am_send(to_us_, am_id::kJoin, std::as_bytes(std::span(&word, 1)), behind, op), Status::ok);
  }
  void move() {
    for (int round = 0; round < 8; ++round) {
      for (port::Wire* wire : {wire_.get(), stranger_.get()}) {
        wire->progress();
        wire->deliver(100);
      }
      peers_.check();
      joined_.look_around();
    }
  }
  void say(std::uint32_t kind, std::int32_t number, std::uint64_t token) {
    tell(kind, number, token);
    move();
  }
  void join(std::uint64_t token) {
    say(kAsk, kNumber, token);
    say(kReady, kNumber, token);
  }

  /// One that a caller gives.
  static constexpr std::int32_t kNumber = joined_rank::make(5, 0, true);

  port::LoopbackNetwork network_;
  std::unique_ptr<port::Wire> wire_ = network_.open_wire();
  std::unique_ptr<port::Wire> stranger_ = network_.open_wire();
  std::unique_ptr<port::Boot> boot_ = port::open_single_boot();
  Counters counters_;
  ProgressClock clock_;
  HeldMessages held_{*wire_};
  HostLinks links_{nullptr};
  Leases leases_{*boot_, false, std::chrono::milliseconds(0)};
  Peers peers_{boot_->job(), *wire_, links_, leases_, counters_};
  Services services_;
  JoinedPeers joined_{boot_->job(), Joining::this_host, *wire_, held_, clock_, services_, peers_, counters_};
  JoinAddress address_;
  JoinIdentity identity_;
  port::WireEndpoint* to_us_ = nullptr;
  std::vector<Word> heard_;
  std::deque<port::WireOp> sends_;
};

TEST_F(JoinedPeersTest, one_that_asks_is_answered_and_there_once_it_is_ready) {
  say(kAsk, kNumber, 77);
  ASSERT_EQ(heard_.size(), 1u);
  EXPECT_EQ(heard_[0].kind, kAnswer);
  EXPECT_EQ(heard_[0].token, 77u);
  EXPECT_FALSE(joined_.has_accepted());
  say(kReady, kNumber, 77);
  const std::optional<Rank> rank = joined_.take_accepted();
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->value, heard_[0].number);
  EXPECT_EQ(peers_.connect(*rank).rank_there, kNumber);
  EXPECT_FALSE(joined_.take_accepted());
}

TEST_F(JoinedPeersTest, one_that_repeats_itself_joins_once) {
  join(77);
  join(77);
  EXPECT_EQ(heard_.size(), 1u);
  EXPECT_TRUE(joined_.take_accepted());
  EXPECT_FALSE(joined_.take_accepted());
}

TEST_F(JoinedPeersTest, one_that_leaves_hears_that_it_may_and_its_slot_is_used_again) {
  join(77);
  const Rank first = *joined_.take_accepted();
  say(kFarewell, kNumber, 77);
  EXPECT_EQ(heard_.back().kind, kHeard);
  EXPECT_EQ(peers_.find(first.value), nullptr);
  EXPECT_EQ(counters_.peers_lost.read(), 0u);
  join(78);
  const Rank second = *joined_.take_accepted();
  EXPECT_NE(second, first);
  EXPECT_EQ(joined_rank::slot_of(second.value), joined_rank::slot_of(first.value));
}

TEST_F(JoinedPeersTest, that_nobody_accepted_leave_nothing_for_who_accepts_later) {
  join(1);
  for (std::uint64_t token = 2; token < 40; ++token) {
    join(token);
    say(kFarewell, kNumber, token);
  }
  EXPECT_TRUE(joined_.take_accepted()) << "the first is still there";
  EXPECT_FALSE(joined_.has_accepted());
}

TEST_F(JoinedPeersTest, a_number_that_says_another_side_or_is_none_is_refused) {
  for (const std::int32_t number : {joined_rank::make(5, 0, false), 0, -1, 12}) say(kAsk, number, 77);
  EXPECT_TRUE(heard_.empty());
  EXPECT_EQ(counters_.bad_records.read(), 4u);
  join(78);
  EXPECT_TRUE(joined_.has_accepted());
}

TEST_F(JoinedPeersTest, words_without_a_proof_or_of_no_kind_change_nothing) {
  join(77);
  const Rank rank = *joined_.take_accepted();
  const Word forged{kFarewell, kNumber, 77};
  send(forged);
  move();
  EXPECT_EQ(counters_.bad_records.read(), 1u);
  say(17, kNumber, 77);
  EXPECT_EQ(counters_.bad_records.read(), 2u);
  say(kFarewell, kNumber, 12345);  // of one that is not here
  EXPECT_FALSE(peers_.connect(rank).lost);
}

TEST_F(JoinedPeersTest, one_whose_death_nobody_would_see_is_refused) {
  identity_.record.pid_namespace = "another";
  join(77);
  EXPECT_TRUE(heard_.empty());
  EXPECT_FALSE(joined_.has_accepted());
}

/// It said all that at a time when this process made no progress.
TEST_F(JoinedPeersTest, who_gave_up_and_asks_again_joins_once) {
  tell(kAsk, kNumber, 1);
  tell(kFarewell, kNumber, 1);
  join(2);
  EXPECT_TRUE(joined_.take_accepted());
  EXPECT_FALSE(joined_.take_accepted());
}

TEST_F(JoinedPeersTest, nobody_joins_with_an_address_that_is_worth_nothing_any_more) {
  joined_.stop_accepting();
  join(77);
  EXPECT_TRUE(heard_.empty());
  EXPECT_EQ(counters_.bad_records.read(), 1u);
}

TEST_F(JoinedPeersTest, more_than_there_are_slots_for_are_not_answered_and_do_no_harm) {
  for (std::uint64_t token = 1; token <= joined_rank::kSlots + 3; ++token) say(kAsk, kNumber, token);
  EXPECT_EQ(heard_.size(), joined_rank::kSlots);
  say(kFarewell, kNumber, 5);
  heard_.clear();
  say(kAsk, kNumber, 5000);
  ASSERT_EQ(heard_.size(), 1u);
  EXPECT_EQ(heard_[0].kind, kAnswer);
}

}  // namespace
}  // namespace brant
