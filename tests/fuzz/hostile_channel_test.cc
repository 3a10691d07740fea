// A process whose peer posts records of channels that no end of ours posts, or posts at that time: it touches nothing
// that is not its own, gives the peer up, and ends what waits for it.
#include <array>
#include <cstring>
#include <list>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "core/am_ids.h"
#include "core/link_services.h"
#include "fuzz/hostile_peer.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/link_message.h"
#include "ops/mapping/mapping_message.h"

namespace brant::test {
namespace {

using Kind = LinkMessage::Kind;

constexpr ChannelId kChannel{7};
constexpr std::size_t kLarge = 300'000;

LinkMessage about(Kind kind, std::uint64_t number, std::uint64_t bytes = 0) {
  LinkMessage message;
  message.kind = kind;
  message.channel = kChannel.value;
  message.number = number;
  message.bytes = bytes;
  return message;
}

/// A victim with receives and sends under way, of all sorts.
class HostileEnd : public HostilePeer {
 public:
  explicit HostileEnd(GpuChoice gpu = GpuChoice::emulated)
      : HostilePeer(sharing(gpu)),
        left(Channel::open(hostile(), Rank{1}, kChannel)),
        right(Channel::open(victim(), Rank{0}, kChannel)) {}

  Buffer host(std::size_t bytes) {
    host_.emplace_back(bytes);
    return Buffer(host_.back().data(), bytes);
  }
  Buffer device(Runtime& of, std::size_t bytes) {
    device_.push_back(of.allocate(MemoryKind::emulated, bytes));
    return device_.back();
  }
  void receive(Buffer into) { operations_.emplace_back(new Operation(right.recv(into))); }
  void send(ConstBuffer from) { operations_.emplace_back(new Operation(right.send(from, Moment::delivered))); }
  void occupy() {
    receive(host(64));
    receive(host(kLarge));
    receive(device(victim(), 4096));
    receive(device(victim(), 64));
    receive(host(5000));
    send(host(64));
    send(host(kLarge));
    send(device(victim(), 4096));
    job().run(4);
  }
  void post(const LinkMessage& message, std::size_t payload = 0) {
    HostilePeer::post(link_service::kChannel, bytes_of(message), std::span(payload_).first(payload));
  }
  void post(const ChannelControl& control) { HostilePeer::send(am_id::kChannelControl, bytes_of(control)); }
  void post_by_link(const ChannelControl& control) {
    HostilePeer::post(link_service::kChannel, bytes_of(control), std::span(payload_).first(0));
  }
  [[nodiscard]] bool all_ended() {
    return job().run_until([&] {
      for (const auto& operation : operations_) {
        if (!operation->done()) return false;
      }
      return true;
    });
  }
  /// The victim receives a large message and is asked to copy it from memory of rank 0: some turns of its puller.
  /// Returns what asked.
  LinkMessage begin_pull() {
    constexpr std::size_t kHuge = std::size_t{8} << 20;
    pulled_ = hostile().allocate(MemoryKind::host, kHuge);
    receive(host(kHuge));
    job().run(4);
    LinkMessage ask = about(Kind::ask, 0, kHuge);
    ask.place = LinkMessage::Place::mapped;
    ask.buffer_id = exported(pulled_);
    post(ask);
    return ask;
  }
  /// An allocation of rank 0 that the victim has mapped, by its number.
  std::uint64_t exported(const Buffer& memory) {
    const auto record = hostile_engine().device().export_allocation(memory.data);
    EXPECT_TRUE(record.ok());
    HostilePeer::post(link_service::kMapping, bytes_of(MappingMessage{}), bytes_of(*record));
    return record->buffer_id;
  }

  Channel left, right;

 private:
  Memory pulled_;
  std::list<std::vector<std::byte>> host_;
  std::list<Memory> device_;
  std::vector<std::byte> payload_ = std::vector<std::byte>(port::kLinkPayloadMax, std::byte{0x5a});
  std::vector<std::unique_ptr<Operation>> operations_;
};

/// What `post` writes ends everything between the two, and is counted.
template <typename Post>
void expect_given_up(GpuChoice gpu, Post&& post) {
  HostileEnd end(gpu);
  post(end);
  end.job().run(4);
  EXPECT_TRUE(end.given_up());
  EXPECT_GE(end.bad_records(), 1u);
  EXPECT_TRUE(end.all_ended());
}

TEST(HostileChannel, more_bytes_in_a_landing_than_it_has_are_not_believed) {
  expect_given_up(GpuChoice::emulated, [](HostileEnd& end) {
    end.receive(end.device(end.victim(), 4096));
    end.job().run(4);
    end.post(about(Kind::landed, 0, std::uint64_t{1} << 40));
  });
}

TEST(HostileChannel, nothing_lands_by_itself_in_host_memory) {
  expect_given_up(GpuChoice::emulated, [](HostileEnd& end) {
    end.receive(end.host(kLarge));
    end.job().run(4);
    end.post(about(Kind::landed, 0, 100));
  });
}

TEST(HostileChannel, a_slot_that_there_is_not_is_not_read) {
  for (const int slot : {0, 1, 65, 0xffff}) {
    expect_given_up(GpuChoice::emulated, [&](HostileEnd& end) {
      end.receive(end.device(end.victim(), 4096));
      LinkMessage stored = about(Kind::stored, 0, 64);
      stored.flag = static_cast<std::uint16_t>(slot);
      end.post(stored);
    });
  }
}

TEST(HostileChannel, a_message_that_is_being_copied_is_not_asked_for_again) {
  expect_given_up(GpuChoice::none, [](HostileEnd& end) {
    LinkMessage ask = end.begin_pull();
    ask.bytes = 8;  // less than was copied
    end.post(ask);
  });
}

TEST(HostileChannel, memory_that_is_withdrawn_while_it_is_copied_is_not_touched_after_that) {
  HostileEnd end(GpuChoice::none);
  end.HostilePeer::post(link_service::kMapping, bytes_of(MappingMessage{.kind = MappingMessage::Kind::withdrawn,
                                                                        .buffer_id = end.begin_pull().buffer_id}));
  EXPECT_TRUE(end.all_ended());
  EXPECT_EQ(end.bad_records(), 0u);
}

TEST(HostileChannel, an_allocation_is_told_of_once_and_does_not_contradict_itself) {
  for (const bool twice : {true, false}) {
    expect_given_up(GpuChoice::none, [&](HostileEnd& end) {
      const Memory memory = end.hostile().allocate(MemoryKind::host, 1 << 16);
      port::ExportRecord record = *end.hostile_engine().device().export_allocation(memory.data());
      if (!twice) record.offset = record.bytes + 1;
      for (int time = 0; time < 2; ++time)
        end.HostilePeer::post(link_service::kMapping, bytes_of(MappingMessage{}), bytes_of(record));
    });
  }
}

TEST(HostileChannel, a_record_of_mappings_that_is_none_is_not_believed) {
  expect_given_up(GpuChoice::none, [](HostileEnd& end) {
    MappingMessage message;
    message.kind = static_cast<MappingMessage::Kind>(static_cast<unsigned>(MappingMessage::Kind::handed) + 1);
    end.HostilePeer::post(link_service::kMapping, bytes_of(message));
  });
  expect_given_up(GpuChoice::none, [](HostileEnd& end) {
    end.HostilePeer::post(link_service::kMapping, bytes_of(MappingMessage{}));  // and says not how to map it
  });
}

TEST(HostileChannel, a_message_that_was_not_offered_is_not_taken) {
  expect_given_up(GpuChoice::emulated, [](HostileEnd& end) {
    end.send(end.device(end.victim(), 64));
    end.victim().worker().progress();
    end.post(about(Kind::taken, 0));
  });
}

TEST(HostileChannel, messages_come_once_and_within_the_window) {
  expect_given_up(GpuChoice::none, [](HostileEnd& end) {
    end.post(about(Kind::eager, 0, 8), 8);
    end.post(about(Kind::eager, 0, 8), 8);
  });
  expect_given_up(GpuChoice::none, [](HostileEnd& end) { end.post(about(Kind::eager, 1000, 8), 8); });
}

TEST(HostileChannel, records_of_the_wrong_end_are_refused) {
  expect_given_up(GpuChoice::none, [](HostileEnd& end) {
    LinkMessage message = about(Kind::eager, 0, 8);
    message.from_side = 1;
    end.post(message, 8);
  });
}

ChannelControl control_of(ChannelControl::Kind kind, std::uint64_t prefix, std::uint64_t number) {
  return {kind, 0, kChannel.value, 0, 0, prefix, number, Status::canceled};
}

TEST(HostileChannel, control_messages_are_of_messages_that_there_can_be) {
  using ControlKind = ChannelControl::Kind;
  for (const ChannelControl& control :
       {control_of(ControlKind::acknowledge, 1'000'000, 0), control_of(ControlKind::truncated, 0, 5),
        control_of(ControlKind::not_sent, 0, 1000), control_of(ControlKind::abandoned, 0, ~std::uint64_t{0}),
        control_of(static_cast<ControlKind>(99), 0, 0)}) {
    SCOPED_TRACE(static_cast<unsigned>(control.kind));
    expect_given_up(GpuChoice::none, [&](HostileEnd& end) {
      end.job().run(4);
      end.post(control);
    });
    expect_given_up(GpuChoice::none, [&](HostileEnd& end) {
      end.job().run(4);
      end.post_by_link(control);
    });
  }
}

TEST(HostileChannel, a_control_message_of_a_rank_that_there_is_not_is_counted_and_dropped) {
  HostileEnd end(GpuChoice::none);
  end.job().run(4);
  constexpr std::int32_t kLeft = 1 << 30;  // a number of one that had joined: its words may still be under way
  for (const std::int32_t rank : {-1, 2, kLeft - 1, kLeft}) {
    ChannelControl control = control_of(ChannelControl::Kind::closed, 0, 9);
    control.sender_rank = rank;
    end.post(control);
  }
  EXPECT_EQ(end.bad_records(), 3u);
  EXPECT_FALSE(end.given_up());
}

constexpr Kind kKinds[] = {Kind::eager,     Kind::landing,   Kind::ask,       Kind::taken,
                           Kind::declined,  Kind::data,      Kind::landed,    Kind::failed,
                           Kind::stored,    Kind::elsewhere, Kind::truncated, Kind::retract,
                           Kind::retracted, Kind::slots,     Kind::abandoned, Kind::slot_emptied};

/// Records as an end posts them, but in any order and about anything; some of them are spoiled.
class Generator {
 public:
  Generator(Mutation& mutation, HostileEnd& end) : mutation_(mutation), end_(end) {
    for (Buffer& memory : memories_) memory = end.device(end.hostile(), 1 << 16);
  }

  void post_one() {
    if (mutation_.below(16) == 0) return post_control();
    if (mutation_.below(8) == 0) return post_mapping();
    LinkMessage message = about(kKinds[mutation_.below(std::size(kKinds))], mutation_.below(10), bytes());
    message.place = static_cast<LinkMessage::Place>(mutation_.below(3));
    message.acknowledged = mutation_.below(2) != 0;
    message.flag = static_cast<std::uint16_t>(mutation_.below(4));
    const Buffer& memory = memories_[mutation_.below(memories_.size())];
    message.buffer_id = end_.hostile_engine().device().export_allocation(memory.data)->buffer_id;
    if (message.kind == Kind::data)
      message.offset = mutation_.below(2) * mutation_.below(kLarge) & LinkMessage::kOffsetMask;
    if (message.kind == Kind::failed)
      message.offset = static_cast<std::uint64_t>(Status::canceled) & LinkMessage::kOffsetMask;
    if (mutation_.below(8) == 0) mutation_.spoil(std::as_writable_bytes(std::span(&message, 1)));
    std::size_t payload = 0;
    if (message.kind == Kind::eager) payload = std::min<std::size_t>(message.bytes, port::kLinkPayloadMax);
    if (message.kind == Kind::data) payload = 1 + mutation_.below(port::kLinkPayloadMax);
    end_.post(message, payload);
  }

 private:
  std::uint64_t bytes() {
    constexpr std::uint64_t kSizes[] = {0, 8, 64, 65, 2048, 4096, 5000, 8192, kLarge};
    return kSizes[mutation_.below(std::size(kSizes))];
  }
  void post_mapping() {
    const Buffer& memory = memories_[mutation_.below(memories_.size())];
    port::ExportRecord record = *end_.hostile_engine().device().export_allocation(memory.data);
    MappingMessage message;
    message.kind = static_cast<MappingMessage::Kind>(mutation_.below(7));
    message.outcome = static_cast<std::uint16_t>(mutation_.below(2) == 0 ? Status::ok : Status::not_found);
    message.withdrawals = static_cast<std::uint32_t>(mutation_.below(3));
    message.buffer_id = record.buffer_id;
    message.address = reinterpret_cast<std::uint64_t>(memory.data);
    message.number = mutation_.below(3);
    message.box = {'0', '0', '0', 'a', 'b'};
    if (mutation_.below(4) == 0) record.means = port::ExportRecord::Means::file;
    if (mutation_.below(4) == 0) mutation_.spoil(std::as_writable_bytes(std::span(&message, 1)));
    if (mutation_.below(4) == 0) mutation_.spoil(std::as_writable_bytes(std::span(&record, 1)));
    const bool maps = message.kind == MappingMessage::Kind::exported;
    end_.HostilePeer::post(link_service::kMapping, bytes_of(message),
                           maps ? bytes_of(record) : std::span<const std::byte>{});
  }
  void post_control() {
    const auto kind = static_cast<unsigned>(ChannelControl::Kind::opened) + mutation_.below(8);
    ChannelControl control =
        control_of(static_cast<ChannelControl::Kind>(kind), mutation_.below(3), mutation_.below(10));
    control.linked = static_cast<std::uint32_t>(mutation_.below(3));
    if (mutation_.below(4) == 0) mutation_.spoil(std::as_writable_bytes(std::span(&control, 1)));
    mutation_.below(2) == 0 ? end_.post(control) : end_.post_by_link(control);
  }

  Mutation& mutation_;
  HostileEnd& end_;
  std::array<Buffer, 3> memories_;
};

TEST(HostileChannelFuzz, whatever_a_peer_posts_the_process_lives_and_its_operations_end) {
  Mutation mutation(20261125);
  const unsigned records = kPosted * fuzz_factor();
  unsigned posted = 0, lives = 0;
  while (posted < records) {
    SCOPED_TRACE(++lives);
    HostileEnd end(GpuChoice::emulated);
    Generator generator(mutation, end);
    end.occupy();
    for (unsigned i = 0; i < 200 && !end.given_up(); ++i, ++posted) {
      generator.post_one();
      if (mutation.below(8) == 0) end.job().run(1);
    }
    // The other end is real code too: what the victim answers may have been too much for it.
    if (end.hostile_engine().peers().find(1)->lost) continue;
    end.post(about(static_cast<Kind>(99), 0));
    end.job().run(2);
    ASSERT_TRUE(end.given_up());
    ASSERT_TRUE(end.all_ended());
  }
}

}  // namespace
}  // namespace brant::test
