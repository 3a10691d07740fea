// A process whose peer posts records of stream channels that no end of ours posts, or posts at that time: it touches
// nothing that is not its own, gives the peer up, and ends what waits for it.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/stream_channel.h"
#include "core/link_services.h"
#include "fuzz/hostile_peer.h"
#include "ops/stream/message.h"
#include "ops/stream/table.h"

namespace brant::test {
namespace {

using Kind = StreamMessage::Kind;

constexpr ChannelId kId{7};

StreamMessage about(Kind kind, std::uint64_t opening, std::uint64_t meets) {
  StreamMessage message;
  message.kind = kind;
  message.channel = kId.value;
  message.opening = opening;
  message.meets = meets;
  return message;
}

/// A victim that is prepared, or waits to be.
class HostileEnd : public HostilePeer {
 public:
  HostileEnd() : HostilePeer(sharing(GpuChoice::emulated)), left(open(hostile(), 1)), right(open(victim(), 0)) {}

  static StreamChannel open(Runtime& of, int peer) { return StreamChannel::open(of, Rank{peer}, kId); }
  void prepare(StreamChannel& end) { operations_.emplace_back(new Operation(end.prepare())); }
  void meet() {
    prepare(left);
    prepare(right);
    EXPECT_TRUE(all_ended());
    EXPECT_EQ(right.state(), Status::ok);
  }
  void post(const StreamMessage& message) { HostilePeer::post(link_service::kStream, bytes_of(message)); }
  void offer(std::uint64_t opening, const port::ExportRecord& record) {
    HostilePeer::post(link_service::kStream, bytes_of(about(Kind::mailbox, opening, 0)), bytes_of(record));
  }
  port::ExportRecord exported(std::size_t bytes, MemoryKind kind = MemoryKind::emulated) {
    memory_.push_back(hostile().allocate(kind, bytes));
    return *hostile_engine().device().export_allocation(memory_.back().data());
  }
  [[nodiscard]] bool all_ended() {
    return job().run_until([&] {
      for (const auto& operation : operations_) {
        if (!operation->done()) return false;
      }
      return true;
    });
  }

  StreamChannel left, right;

 private:
  std::vector<Memory> memory_;
  std::vector<std::unique_ptr<Operation>> operations_;
};

template <typename Post>
void expect_given_up(Post&& post) {
  HostileEnd end;
  end.prepare(end.right);
  post(end);
  end.job().run(4);
  EXPECT_TRUE(end.given_up());
  EXPECT_GE(end.bad_records(), 1u);
  EXPECT_TRUE(end.all_ended());
  EXPECT_EQ(end.right.state(), Status::peer_lost);
}

TEST(HostileStream, a_mailbox_that_is_too_small_or_of_another_memory_is_not_mapped) {
  expect_given_up([](HostileEnd& end) { end.offer(1, end.exported(4096)); });
  expect_given_up([](HostileEnd& end) { end.offer(1, end.exported(std::size_t{4} << 20, MemoryKind::host)); });
  expect_given_up([](HostileEnd& end) {
    port::ExportRecord record = end.exported(std::size_t{4} << 20);
    record.offset = record.bytes - 8;
    end.offer(1, record);
  });
}

TEST(HostileStream, a_record_that_contradicts_itself_is_not_believed) {
  expect_given_up([](HostileEnd& end) { end.post(about(Kind::mailbox, 1, 0)); });  // and says not how to map it
  expect_given_up([](HostileEnd& end) { end.post(about(static_cast<Kind>(7), 1, 1)); });
  expect_given_up([](HostileEnd& end) { end.post(about(Kind::closed, 0, 0)); });
  expect_given_up([](HostileEnd& end) { end.post(about(Kind::ready, 1, 0)); });
  expect_given_up([](HostileEnd& end) {
    StreamMessage message = about(Kind::ready, 1, 1);
    message.from_side = 1;  // which is the victim's
    end.post(message);
  });
  expect_given_up([](HostileEnd& end) {
    StreamMessage message = about(Kind::base, 1, 1);
    message.number = StreamMailbox::kBases;
    end.post(message);
  });
}

TEST(HostileStream, what_is_said_of_openings_that_there_are_not_does_nothing) {
  HostileEnd end;
  end.meet();
  for (const Kind kind : {Kind::ready, Kind::refused, Kind::base, Kind::unmapped, Kind::closed, Kind::released}) {
    end.post(about(kind, 99, 99));
  }
  end.job().run(4);
  EXPECT_FALSE(end.given_up());
  EXPECT_EQ(end.right.state(), Status::ok);
}

TEST(HostileStream, more_mailboxes_than_are_kept_are_refused_and_cost_nothing) {
  HostileEnd end;
  const port::ExportRecord record = end.exported(sizeof(StreamMailbox));
  testing::internal::CaptureStderr();
  for (std::uint32_t id = 0; id < StreamTable::kEarlyMax + 5; ++id) {
    StreamMessage message = about(Kind::mailbox, id + 1, 0);
    message.channel = 1000 + id;
    static_cast<HostilePeer&>(end).post(link_service::kStream, bytes_of(message), bytes_of(record));
    end.hostile().worker().progress();
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("stream channel 2024 of rank 0 is refused"), std::string::npos) << log;
  EXPECT_EQ(log.find("stream channel 2025"), std::string::npos) << "said once";
  EXPECT_FALSE(end.given_up());
}

TEST(HostileStreamFuzz, whatever_a_peer_posts_the_process_lives_and_its_operations_end) {
  Mutation mutation(20261124);
  const unsigned records = kPosted / 4 * fuzz_factor();
  unsigned posted = 0, lives = 0;
  while (posted < records) {
    SCOPED_TRACE(++lives);
    HostileEnd end;
    if (lives % 2 == 0) end.meet();
    if (lives % 2 != 0) end.prepare(end.right);
    const port::ExportRecord good = end.exported(sizeof(StreamMailbox));
    for (unsigned i = 0; i < 50 && !end.given_up(); ++i, ++posted) {
      StreamMessage message = about(static_cast<Kind>(mutation.below(7)), mutation.below(4), mutation.below(3));
      message.number = static_cast<std::uint16_t>(mutation.below(3));
      message.channel += mutation.below(8) == 0 ? 1 : 0;
      message.buffer_id = good.buffer_id;
      if (mutation.below(8) == 0) mutation.spoil(std::as_writable_bytes(std::span(&message, 1)));
      port::ExportRecord record = good;
      if (mutation.below(8) == 0) mutation.spoil(std::as_writable_bytes(std::span(&record, 1)));
      const bool maps = message.kind == Kind::mailbox;
      static_cast<HostilePeer&>(end).post(link_service::kStream, bytes_of(message),
                                          maps ? bytes_of(record) : std::span<const std::byte>{});
      if (mutation.below(8) == 0) end.job().run(1);
      if (mutation.below(16) == 0) end.right = StreamChannel();
      if (!end.right.is_open() && !end.given_up()) end.right = HostileEnd::open(end.victim(), 0);
    }
    if (end.hostile_engine().peers().find(1)->lost) continue;
    end.post(about(static_cast<Kind>(99), 0, 0));
    end.job().run(2);
    ASSERT_TRUE(end.given_up());
    ASSERT_TRUE(end.all_ended());
  }
}

}  // namespace
}  // namespace brant::test
