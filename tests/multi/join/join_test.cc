// Programs that are no job together, and join each other by an address.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "brant/brant.h"
#include "core/join_address.h"
#include "core/joined_rank.h"
#include "support/programs.h"

namespace brant {
namespace {

using namespace std::chrono_literals;
using test::Letters;
using test::Program;
using test::require;

constexpr auto kPatience = 30s;

RuntimeOptions joining(Joining reach = Joining::this_host) {
  RuntimeOptions options = RuntimeOptions::from_environment();
  options.joining = reach;
  return options;
}

void require_status(Status status, Status wanted, const std::string& what) {
  require(status == wanted, what + ": " + std::string(status_name(status)));
}

OpResult outcome(Runtime& runtime, const Operation& operation) { return runtime.wait_for(kPatience, operation); }

Rank accept(Runtime& runtime) {
  const std::optional<Rank> rank = runtime.accept(kPatience);
  require(rank.has_value(), "nobody has joined");
  return *rank;
}

/// What a call throws; ok if nothing.
template <typename Call>
Status thrown_by(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.status();
  }
  return Status::ok;
}

std::vector<std::uint8_t> text_of(std::size_t bytes, int seed) {
  std::vector<std::uint8_t> text(bytes);
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<std::uint8_t>(i * 7 + static_cast<std::size_t>(seed));
  return text;
}

ConstBuffer view(const std::vector<std::uint8_t>& text) { return {text.data(), text.size(), MemoryKind::host}; }

/// One message each way, of the kind and size.
void exchange(Runtime& runtime, Channel& channel, MemoryKind kind, std::size_t bytes) {
  Memory out = runtime.allocate(kind, bytes);
  Memory in = runtime.allocate(kind, bytes);
  runtime.copy(out, view(text_of(bytes, static_cast<int>(channel.side()))));
  Operation receive = channel.recv(in);
  Operation send = channel.send(out, Moment::delivered);
  require_status(outcome(runtime, receive).status, Status::ok, "receive");
  require_status(outcome(runtime, send).status, Status::ok, "send");
  std::vector<std::uint8_t> text(bytes);
  runtime.copy(Buffer(text.data(), bytes, MemoryKind::host), in);
  require(text == text_of(bytes, 1 - static_cast<int>(channel.side())), "another text has come");
}

void exchange_all(Runtime& runtime, Rank peer) {
  Channel channel = Channel::open(runtime, peer, ChannelId{7});
  for (const MemoryKind kind : std::set{MemoryKind::host, runtime.device_kind()}) {
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{5'000}, std::size_t{300'000}, std::size_t{3'000'000}})
      exchange(runtime, channel, kind, bytes);
  }
}

TEST(Join, two_programs_send_each_other_messages_of_all_kinds_and_sizes) {
  Letters address;
  Program called([&] {
    Runtime runtime(joining());
    address.put(runtime.address());
    const Rank caller = accept(runtime);
    require(caller.value >= runtime.size(), "its rank is one of the job");
    exchange_all(runtime, caller);
  });
  Program caller([&] {
    Runtime runtime(joining());
    const Rank other = runtime.join(address.take());
    require(other.value >= runtime.size(), "its rank is one of the job");
    exchange_all(runtime, other);
  });
  EXPECT_EQ(caller.wait(), 0);
  EXPECT_EQ(called.wait(), 0);
}

TEST(Join, a_ticket_of_a_joined_program_is_good_for_puts_and_gets) {
  constexpr std::size_t kBytes = 100'000;
  Letters address, ticket, done;
  Program owner([&] {
    Runtime runtime(joining());
    address.put(runtime.address());
    Memory memory = runtime.allocate(runtime.device_kind(), kBytes);
    Segment segment = expose(runtime, memory);
    const SegmentTicket own = segment.ticket();
    ticket.put({reinterpret_cast<const char*>(own.bytes().data()), own.bytes().size()});
    const Rank user = accept(runtime);
    Channel channel = Channel::open(runtime, user, ChannelId{1});
    std::vector<std::uint8_t> word(1);
    const Buffer landing(word.data(), word.size(), MemoryKind::host);
    require_status(outcome(runtime, channel.recv(landing)).status, Status::ok, "word of the put");
    std::vector<std::uint8_t> text(kBytes);
    runtime.copy(Buffer(text.data(), kBytes, MemoryKind::host), memory);
    require(text == text_of(kBytes, 5), "another text was put");
  });
  Program user([&] {
    Runtime runtime(joining());
    const Rank other = runtime.join(address.take());
    const std::string packed = ticket.take();
    RemoteSegment there(runtime, other, SegmentTicket(std::as_bytes(std::span(packed))));
    const std::vector<std::uint8_t> source = text_of(kBytes, 5);
    require_status(outcome(runtime, there.put(0, view(source))).status, Status::ok, "put");
    std::vector<std::uint8_t> back(kBytes);
    const Buffer landing(back.data(), kBytes, MemoryKind::host);
    require_status(outcome(runtime, there.get(0, landing)).status, Status::ok, "get");
    require(back == source, "another text came back");
    Channel channel = Channel::open(runtime, other, ChannelId{1});
    const std::vector<std::uint8_t> word{1};
    require_status(outcome(runtime, channel.send(view(word), Moment::delivered)).status, Status::ok, "word");
  });
  EXPECT_EQ(user.wait(), 0);
  EXPECT_EQ(owner.wait(), 0);
}

std::size_t count_of(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
}

/// The files that are mapped most often, for who finds too many.
std::string most_mapped() {
  std::ifstream maps("/proc/self/maps");
  std::map<std::string, int> counts;
  for (std::string line; std::getline(maps, line);) ++counts[line.substr(std::min<std::size_t>(line.size(), 73))];
  std::string text;
  for (const auto& [name, count] : counts) {
    if (count > 20) text += " " + name + ": " + std::to_string(count);
  }
  return text;
}

/// What a process has of what it must not have more and more of.
struct Holdings {
  std::size_t descriptors = count_of("/proc/self/fd");
  std::size_t mapped = mappings();
};

/// Beyond what pools take.
void require_growth_of_at_most(std::size_t mapped, const Holdings& before, const std::string& who) {
  const Holdings after;
  require(after.descriptors <= before.descriptors + 2,
          who + ": descriptors " + std::to_string(before.descriptors) + " -> " + std::to_string(after.descriptors));
  require(after.mapped <= before.mapped + mapped + 20,
          who + ": mappings " + std::to_string(before.mapped) + " -> " + std::to_string(after.mapped) + most_mapped());
}

constexpr int kVisits = 200;
constexpr int kFirstVisits = 40;  // until pools are warm

TEST(Join, who_leaves_may_come_again_and_leaves_nothing_behind) {
  Letters address;
  Program called([&] {
    Runtime runtime(joining());
    address.put(runtime.address());
    std::set<std::int32_t> ranks;
    std::optional<Holdings> before;
    for (int visit = 0; visit < kVisits; ++visit) {
      const Rank guest = accept(runtime);
      require(ranks.insert(guest.value).second, "a rank came twice");
      {
        Channel channel = Channel::open(runtime, guest, ChannelId{3});
        exchange(runtime, channel, runtime.device_kind(), 20'000);
        std::vector<std::uint8_t> word(1);
        const OpResult last = outcome(runtime, channel.recv(Buffer(word.data(), word.size(), MemoryKind::host)));
        require_status(last.status, Status::peer_lost, "a receive from one that leaves");
      }
      if (visit == kFirstVisits) before.emplace();
    }
    require(joined_rank::slot_of(*ranks.rbegin()) < 8, "slots do not come back");
    require_growth_of_at_most(0, *before, "called");
  });
  Program caller([&] {
    Runtime runtime(joining());
    const std::string text = address.take();
    std::optional<Holdings> before;
    for (int visit = 0; visit < kVisits; ++visit) {
      const Rank other = runtime.join(text);
      Channel channel = Channel::open(runtime, other, ChannelId{3});
      exchange(runtime, channel, runtime.device_kind(), 20'000);
      std::vector<std::uint8_t> word(1);
      Operation receive = channel.recv(Buffer(word.data(), word.size(), MemoryKind::host));
      runtime.leave(other);
      require_status(outcome(runtime, receive).status, Status::peer_lost, "a receive from one that was left");
      require_status(thrown_by([&] { Channel::open(runtime, other, ChannelId{4}); }), Status::peer_lost, "open");
      if (visit == kFirstVisits) before.emplace();
    }
    require_growth_of_at_most(0, *before, "caller");
  });
  EXPECT_EQ(caller.wait(), 0);
  EXPECT_EQ(called.wait(), 0);
}

/// UCX frees nothing of a connection before the wire closes (docs/decisions/0044): it must not become more than that.
TEST(Join, each_process_that_has_come_and_gone_leaves_two_mappings_and_no_descriptor) {
  constexpr int kGuests = 14;
  constexpr int kFirstGuests = 4;
  Letters address;
  Program host([&] {
    Runtime runtime(joining());
    for (int guest = 0; guest < kGuests; ++guest) address.put(runtime.address());
    std::optional<Holdings> before;
    for (int guest = 0; guest < kGuests; ++guest) {
      if (guest == kFirstGuests) before.emplace();
      Channel channel = Channel::open(runtime, accept(runtime), ChannelId{1});
      exchange(runtime, channel, MemoryKind::host, 1'000);
      std::vector<std::uint8_t> word(1);
      const OpResult last = outcome(runtime, channel.recv(Buffer(word.data(), word.size(), MemoryKind::host)));
      require_status(last.status, Status::peer_lost, "a receive from one that leaves");
    }
    require_growth_of_at_most(2 * (kGuests - kFirstGuests), *before, "host");
  });
  for (int guest = 0; guest < kGuests; ++guest) {
    Program program([&] {
      Runtime runtime(joining());
      const Rank rank = runtime.join(address.take());
      Channel channel = Channel::open(runtime, rank, ChannelId{1});
      exchange(runtime, channel, MemoryKind::host, 1'000);
    });
    ASSERT_EQ(program.wait(), 0) << guest;
  }
  EXPECT_EQ(host.wait(), 0);
}

TEST(Join, a_wrong_key_is_refused_and_the_right_one_still_good) {
  Letters address;
  Program called([&] {
    Runtime runtime(joining());
    address.put(runtime.address());
    exchange_all(runtime, accept(runtime));
    require(!runtime.accept(0s), "somebody else has joined");
  });
  Program caller([&] {
    Runtime runtime(joining());
    const std::string text = address.take();
    JoinAddress forged = unpack_join_address(text);
    forged.key[5] ^= std::byte{1};
    require_status(thrown_by([&] { runtime.join(pack(forged), 300ms); }), Status::timed_out, "join without the key");
    exchange_all(runtime, runtime.join(text));
  });
  EXPECT_EQ(caller.wait(), 0);
  EXPECT_EQ(called.wait(), 0);
}

TEST(Join, three_programs_meet_and_one_that_dies_is_lost_for_the_others_alone) {
  Letters first, second, dead;
  Program host([&] {
    Runtime runtime(joining());
    const std::string text = runtime.address();
    first.put(text);
    second.put(text);
    const Rank one = accept(runtime), two = accept(runtime);
    dead.put("both are here");
    Channel with_one = Channel::open(runtime, one, ChannelId{10}),
            with_two = Channel::open(runtime, two, ChannelId{11});
    std::vector<std::uint8_t> a(1), b(1);
    Operation from_one = with_one.recv(Buffer(a.data(), 1, MemoryKind::host));
    Operation from_two = with_two.recv(Buffer(b.data(), 1, MemoryKind::host));
    require_status(runtime.worker().wait_until([&] { return from_one.done() || from_two.done(); }, kPatience),
                   Status::ok, "nobody was lost");
    const bool one_died = from_one.done();
    require_status((one_died ? from_one : from_two).result().status, Status::peer_lost, "a receive from the dead");
    require(!(one_died ? from_two : from_one).done(), "the other was lost too");
  });
  Program doomed([&] {
    Runtime runtime(joining());
    static_cast<void>(runtime.join(first.take()));
    static_cast<void>(dead.take());
    ::kill(::getpid(), SIGKILL);
  });
  Program other([&] {
    Runtime runtime(joining());
    const Rank rank = runtime.join(second.take());
    Channel channel = Channel::open(runtime, rank, ChannelId{20});
    std::vector<std::uint8_t> word(1);
    // Until its host ends, which says farewell.
    require_status(outcome(runtime, channel.recv(Buffer(word.data(), 1, MemoryKind::host))).status, Status::peer_lost,
                   "a receive from one that has ended");
  });
  EXPECT_EQ(doomed.wait(), -SIGKILL);
  EXPECT_EQ(host.wait(), 0);
  EXPECT_EQ(other.wait(), 0);
}

/// One of two is killed at some moment while messages go to and fro; the other learns of it.
void play_death(bool caller_dies, std::chrono::microseconds after) {
  Letters address, under_way;
  const auto talk = [&](Runtime& runtime, Rank peer) {
    Channel channel = Channel::open(runtime, peer, ChannelId{2});
    std::vector<std::uint8_t> out(50'000), in(50'000);
    under_way.put("x");
    for (;;) {
      Operation receive = channel.recv(Buffer(in.data(), in.size(), MemoryKind::host));
      Operation send = channel.send(view(out));
      const OpResult received = outcome(runtime, receive), sent = outcome(runtime, send);
      if (received.ok() && sent.ok()) continue;
      require_status(received.ok() ? sent.status : received.status, Status::peer_lost, "after a death");
      return;
    }
  };
  Program called([&] {
    Runtime runtime(joining());
    address.put(runtime.address());
    talk(runtime, accept(runtime));
  });
  Program caller([&] {
    Runtime runtime(joining());
    talk(runtime, runtime.join(address.take()));
  });
  static_cast<void>(under_way.take());
  static_cast<void>(under_way.take());
  ::usleep(static_cast<useconds_t>(after.count()));  // the moment is what is tried, not waited for
  (caller_dies ? caller : called).kill();
  EXPECT_EQ((caller_dies ? called : caller).wait(), 0);
  EXPECT_EQ((caller_dies ? caller : called).wait(), -SIGKILL);
}

TEST(Join, who_is_killed_at_any_moment_is_lost_to_the_other) {
  for (const int after : {0, 700, 3'000}) {
    play_death(true, std::chrono::microseconds(after));
    play_death(false, std::chrono::microseconds(after));
  }
}

TEST(Join, the_address_of_a_program_that_has_ended_is_told_to_be_that) {
  Letters address;
  Program gone([&] {
    Runtime runtime(joining());
    address.put(runtime.address());
  });
  ASSERT_EQ(gone.wait(), 0);
  Program caller([&] {
    Runtime runtime(joining());
    const std::string text = address.take();
    require_status(thrown_by([&] { runtime.join(text); }), Status::peer_lost, "join");
  });
  EXPECT_EQ(caller.wait(), 0);
}

TEST(Join, nobody_joins_a_program_that_has_not_allowed_it_or_allows_it_no_more) {
  Letters address;
  Program called([&] {
    {
      Runtime closed(joining(Joining::off));
      require_status(thrown_by([&] { static_cast<void>(closed.address()); }), Status::not_supported, "address");
      require_status(thrown_by([&] { closed.join("brant-1:"); }), Status::not_supported, "join");
    }
    Runtime runtime(joining());
    const std::string text = runtime.address();
    require(runtime.address() == text, "another address without a need");
    runtime.stop_accepting();
    address.put(text);
    address.put(runtime.address());
    require(unpack_join_address(text).key != unpack_join_address(runtime.address()).key, "the old key is good");
    static_cast<void>(accept(runtime));
    require(!runtime.accept(0s), "two have joined");
  });
  Program caller([&] {
    Runtime runtime(joining());
    const std::string old = address.take(), now = address.take();
    require_status(thrown_by([&] { runtime.join(old, 300ms); }), Status::timed_out, "join with the old address");
    static_cast<void>(runtime.join(now));
    require(runtime.join(runtime.address()) == runtime.rank(), "one's own address is not one's own rank");
    require_status(thrown_by([&] { runtime.leave(runtime.rank()); }), Status::invalid_argument, "leave oneself");
    for (const char* text : {"", "hello", "brant-1:", "brant-1:AAAA", "brant-2:AAAA"})
      require(thrown_by([&] { runtime.join(text); }) != Status::ok, text);
  });
  EXPECT_EQ(caller.wait(), 0);
  EXPECT_EQ(called.wait(), 0);
}

/// Sends its number, and waits to hear it again.
void ask_host(Runtime& runtime, Rank host, std::uint8_t number) {
  Channel channel = Channel::open(runtime, host, ChannelId{1});
  std::vector<std::uint8_t> word{number}, answer(1);
  Operation send = channel.send(view(word));
  const OpResult heard = outcome(runtime, channel.recv(Buffer(answer.data(), 1, MemoryKind::host)));
  require_status(heard.status, Status::ok, "answer");
  require_status(outcome(runtime, send).status, Status::ok, "word");
  require(answer == word, "the answer is another's");
}

TEST(Join, several_at_one_time_may_use_the_same_channel_id) {
  Letters first, second, both;
  Program host([&] {
    Runtime runtime(joining());
    const std::string text = runtime.address();
    first.put(text);
    second.put(text);
    const std::vector<Rank> guests{accept(runtime), accept(runtime)};
    std::vector<Channel> channels;
    for (const Rank guest : guests) channels.push_back(Channel::open(runtime, guest, ChannelId{1}));
    require_status(thrown_by([&] { Channel::open(runtime, guests[0], ChannelId{1}); }), Status::invalid_argument,
                   "twice with one of them");
    both.put("x");
    both.put("x");
    for (Channel& channel : channels) {
      std::vector<std::uint8_t> word(1);
      require_status(outcome(runtime, channel.recv(Buffer(word.data(), 1, MemoryKind::host))).status, Status::ok,
                     "word");
      require_status(outcome(runtime, channel.send(view(word), Moment::delivered)).status, Status::ok, "answer");
    }
  });
  const auto guest = [&](const Letters& address, std::uint8_t number) {
    Runtime runtime(joining());
    const Rank rank = runtime.join(address.take());
    static_cast<void>(both.take());
    ask_host(runtime, rank, number);
  };
  Program one([&] { guest(first, 1); });
  Program two([&] { guest(second, 2); });
  EXPECT_EQ(one.wait(), 0);
  EXPECT_EQ(two.wait(), 0);
  EXPECT_EQ(host.wait(), 0);
}

constexpr int kUnreadVisits = 17;  // tags tell sixteen uses of a slot apart
constexpr int kReadVisits = 25;

/// Visits one after the other, in one slot or two. What the first visitors sent is received by nobody.
void send_much_that_nobody_receives(std::size_t bytes) {
  Letters address;
  Program host([&] {
    Runtime runtime(joining());
    address.put(runtime.address());
    for (int visit = 0; visit < kUnreadVisits + kReadVisits; ++visit) {
      const Rank guest = accept(runtime);
      Channel data = Channel::open(runtime, guest, ChannelId{1}), end = Channel::open(runtime, guest, ChannelId{2});
      std::vector<std::uint8_t> text(bytes), word(1);
      Operation left = end.recv(Buffer(word.data(), 1, MemoryKind::host));
      require_status(outcome(runtime, end.send(view(word))).status, Status::ok, "greeting");
      if (visit >= kUnreadVisits) {
        const OpResult got = outcome(runtime, data.recv(Buffer(text.data(), bytes, MemoryKind::host)));
        require_status(got.status, Status::ok, "receive");
        require(text == text_of(bytes, visit), "visit " + std::to_string(visit) + " received what an earlier one sent");
      }
      require_status(outcome(runtime, left).status, Status::peer_lost, "the end of the visit");
    }
  });
  Program guest([&] {
    Runtime runtime(joining());
    const std::string text = address.take();
    for (int visit = 0; visit < kUnreadVisits + kReadVisits; ++visit) {
      const Rank rank = runtime.join(text);
      Channel data = Channel::open(runtime, rank, ChannelId{1}), end = Channel::open(runtime, rank, ChannelId{2});
      const std::vector<std::uint8_t> sent = text_of(bytes, visit);
      Operation send = data.send(view(sent), Moment::delivered);
      // A guest that leaves before the host has looked is never accepted, and the host would count one visit less.
      std::vector<std::uint8_t> word(1);
      const OpResult greeted = outcome(runtime, end.recv(Buffer(word.data(), 1, MemoryKind::host)));
      require_status(greeted.status, Status::ok, "greeting");
      if (visit >= kUnreadVisits) require_status(outcome(runtime, send).status, Status::ok, "send");
      runtime.leave(rank);
      if (visit < kUnreadVisits) require_status(outcome(runtime, send).status, Status::peer_lost, "send");
    }
  });
  EXPECT_EQ(guest.wait(), 0);
  EXPECT_EQ(host.wait(), 0);
}

TEST(Join, what_nobody_received_of_one_is_not_received_from_another) {
  for (const std::size_t bytes : {100u, 20'000u, 1'000'000u}) send_much_that_nobody_receives(bytes);
}

/// The host hears all at once: asks, and that they were given up.
TEST(Join, attempts_that_were_given_up_do_not_disturb_the_next) {
  constexpr int kJoins = 3;
  Letters address, awake;
  Program host([&] {
    Runtime runtime(joining());
    address.put(runtime.address());
    static_cast<void>(awake.take());
    for (int visit = 0; visit < kJoins; ++visit) exchange_all(runtime, accept(runtime));
    require(!runtime.accept(0s), "an attempt that was given up has joined");
  });
  Program caller([&] {
    Runtime runtime(joining());
    const std::string text = address.take();
    for (int attempt = 0; attempt < 3; ++attempt)
      require_status(thrown_by([&] { runtime.join(text, 20ms); }), Status::timed_out, "nobody answers");
    const std::jthread waker([&] {
      ::usleep(50'000);  // so that the last attempt is there too, as a rule; either way it must succeed
      awake.put("x");
    });
    for (int visit = 0; visit < kJoins; ++visit) {
      const Rank rank = runtime.join(text);
      exchange_all(runtime, rank);
      runtime.leave(rank);
    }
  });
  EXPECT_EQ(caller.wait(), 0);
  EXPECT_EQ(host.wait(), 0);
}

}  // namespace
}  // namespace brant
