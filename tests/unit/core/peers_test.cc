#include "core/peers.h"

#include <unistd.h>

#include <memory>
#include <ranges>
#include <vector>

#include <gtest/gtest.h>

#include "port/boot/single/single_boot.h"
#include "port/wire/loopback/loopback.h"

namespace brant {
namespace {

/// Rank 0 of a job of two, both of which are this process: no link, no lease.
class PeersTest : public testing::Test {
 protected:
  PeersTest() {
    job_.size = 2;
    std::vector<PeerRecord> records;
    for (const auto* wire : {wire_.get(), other_wire_.get()}) {
      PeerRecord& record = records.emplace_back();
      record.host_id = "host";
      record.pid_namespace = "namespace";
      record.pid = ::getpid();
      record.wire_address.assign(wire->address().begin(), wire->address().end());
    }
    peers_.meet(std::move(records));
  }

  port::LoopbackNetwork network_;
  std::unique_ptr<port::Wire> wire_ = network_.open_wire();
  std::unique_ptr<port::Wire> other_wire_ = network_.open_wire();
  std::unique_ptr<port::Boot> boot_ = port::open_single_boot();
  port::JobInfo job_;
  Counters counters_;
  HostLinks links_{nullptr};
  Leases leases_{*boot_, false, std::chrono::milliseconds(0)};
  Peers peers_{job_, *wire_, links_, leases_, counters_};
};

struct Outstanding : PeerOp {
  Outstanding() {
    lost = [](PeerOp& self) noexcept { ++static_cast<Outstanding&>(self).losses; };
  }
  int losses = 0;
};

TEST_F(PeersTest, are_found_by_ranks_that_the_job_has) {
  EXPECT_EQ(peers_.find(-1), nullptr);
  EXPECT_EQ(peers_.find(2), nullptr);
  ASSERT_NE(peers_.find(1), nullptr);
  EXPECT_EQ(peers_.find(1)->rank, Rank{1});
  EXPECT_TRUE(peers_[0].same_process);
  EXPECT_FALSE(peers_[1].same_process);
  EXPECT_TRUE(peers_[1].same_host);
}

TEST_F(PeersTest, are_connected_once_and_told_of) {
  int connected = 0;
  peers_.on_connected([](void* count, Peer&) noexcept { ++*static_cast<int*>(count); }, &connected);
  EXPECT_EQ(&peers_.connect(Rank{1}), peers_.find(1));
  EXPECT_NE(peers_[1].endpoint, nullptr);
  peers_.connect(Rank{1});
  EXPECT_EQ(connected, 1);
  EXPECT_THROW(peers_.connect(Rank{2}), Error);
}

TEST_F(PeersTest, that_are_suspected_are_lost_in_the_next_check_and_take_their_operations_along) {
  Outstanding done;
  Outstanding pending;
  Peer& peer = peers_.connect(Rank{1});
  peer.add_outstanding(done);
  peer.add_outstanding(pending);
  peer.remove_outstanding(done);
  peer.remove_outstanding(done);
  EXPECT_FALSE(peers_.any_suspected());
  peers_.suspect(peer);
  EXPECT_TRUE(peers_.any_suspected());
  EXPECT_FALSE(peer.lost);
  peers_.check();
  EXPECT_FALSE(peers_.any_suspected());
  EXPECT_TRUE(peer.lost && peers_.any_lost());
  EXPECT_EQ(peer.endpoint, nullptr);
  EXPECT_EQ(pending.losses, 1);
  EXPECT_EQ(done.losses, 0);
  EXPECT_EQ(counters_.peers_lost.read(), 1u);
  peers_.suspect(peer);
  peers_.check();
  EXPECT_EQ(counters_.peers_lost.read(), 1u) << "nobody is lost twice";
  EXPECT_THROW(peers_.connect(Rank{1}), Error);
}

TEST_F(PeersTest, that_have_joined_are_found_and_lost_as_the_others_but_are_none_of_the_job) {
  std::vector<Peer*> parting;
  peers_.on_parting([](void* seen, Peer& peer) noexcept { static_cast<std::vector<Peer*>*>(seen)->push_back(&peer); },
                    &parting);
  Peer& peer = peers_.joined().add(true);
  peer.endpoint = *wire_->connect(other_wire_->address());
  Outstanding pending;
  peer.add_outstanding(pending);
  EXPECT_EQ(peers_.find(peer.rank.value), &peer);
  EXPECT_EQ(&peers_.connect(peer.rank), &peer);
  EXPECT_EQ(std::ranges::distance(peers_), 2);
  peers_.distrust(peer.rank.value, "a record that is none");
  peers_.check();
  EXPECT_EQ(parting, std::vector<Peer*>{&peer});
  EXPECT_EQ(pending.losses, 1);
  EXPECT_EQ(counters_.peers_lost.read(), 1u);
  EXPECT_FALSE(peers_.any_lost()) << "of the job";
  EXPECT_THROW(peers_.connect(peer.rank), Error);
  const Rank rank = peer.rank;
  peers_.joined().remove(peer);
  EXPECT_THROW(peers_.connect(rank), Error);
  peers_.distrust(rank.value, "a record that is none");
  EXPECT_EQ(counters_.bad_records.read(), 1u) << "it was still under way";
}

TEST_F(PeersTest, that_leave_are_no_loss_and_told_once_nothing_uses_their_memory) {
  Peer& peer = peers_.joined().add(false);
  peer.endpoint = *wire_->connect(other_wire_->address());
  Outstanding pending;
  peer.add_outstanding(pending);
  struct Told {
    const Outstanding& pending;
    int losses_before = -1;
    bool connected = false;
  } told{pending};
  peers_.on_parting(
      [](void* context, Peer& parting) noexcept {
        auto& seen = *static_cast<Told*>(context);
        seen.losses_before = seen.pending.losses;
        seen.connected = parting.endpoint != nullptr;
      },
      &told);
  peer.ended = true;
  peers_.lose(peer);
  EXPECT_EQ(told.losses_before, 1);
  EXPECT_TRUE(told.connected) << "it could not be told";
  EXPECT_EQ(pending.losses, 1);
  EXPECT_EQ(counters_.peers_lost.read(), 0u);
}

TEST_F(PeersTest, that_write_what_nobody_writes_are_counted_and_suspected) {
  peers_.distrust(1, "a record that is none");
  EXPECT_TRUE(peers_[1].suspected);
  peers_.distrust(0, "a record that is none");
  EXPECT_FALSE(peers_[0].suspected) << "this process does not give itself up";
  peers_.distrust(7, "a record that is none");
  EXPECT_EQ(counters_.bad_records.read(), 3u);
}

TEST_F(PeersTest, that_are_forgotten_leave_their_operations_alone) {
  Outstanding pending;
  peers_.connect(Rank{1}).add_outstanding(pending);
  peers_.disconnect();
  peers_.forget_outstanding();
  EXPECT_EQ(pending.losses, 0);
  EXPECT_FALSE(Peer::Outstanding::linked(pending));
  EXPECT_TRUE(peers_[1].lost);
}

}  // namespace
}  // namespace brant
