// The kernels of collectives on streams, their own source, with members as threads: every call against what one thread
// computes by itself, turns that go on from call to call, and faults. With the thread sanitizer too.
#include "ops/coll/device/stream_rounds.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ops/coll/device/stream_plan.h"
#include "support/effort.h"

namespace brant::coll {
namespace {

using Kind = CollectiveKind;

class Memory {
 public:
  explicit Memory(std::size_t bytes) : data_(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{4096}))) {
    std::memset(data_, 0, bytes);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::operator delete(data_, std::align_val_t{4096}); }
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::byte* data_;
};

/// Members with boards, whose kernels run as threads.
class Team {
 public:
  explicit Team(unsigned members, std::uint64_t patience_ms = 60'000) : members_(members), talks_(members) {
    for (StreamTalk& talk : talks_) talk.patience_ns = patience_ms * 1'000'000;
    for (unsigned m = 0; m < members; ++m)
      boards_.push_back(std::make_unique<Memory>(static_cast<std::size_t>(StreamBoard::bytes())));
  }

  [[nodiscard]] unsigned size() const { return members_; }
  [[nodiscard]] StreamBoard& board(unsigned member) { return *reinterpret_cast<StreamBoard*>(boards_[member]->data()); }
  [[nodiscard]] StreamTalk& talk(unsigned member) { return talks_[member]; }
  void set_turn(Word turn) {
    for (unsigned m = 0; m < members_; ++m) {
      for (StreamBoard::OfBlock& block : board(m).blocks) block.turn = turn;
    }
  }

  [[nodiscard]] StreamCall call_of(unsigned self, const Work& work, const StreamPlan& plan) {
    StreamCall call{};
    call.kind = static_cast<std::uint8_t>(work.kind);
    call.type = static_cast<std::uint8_t>(work.folding.type);
    call.op = static_cast<std::uint8_t>(work.folding.op);
    call.algorithm = plan.algorithm;
    call.members = static_cast<std::uint8_t>(members_);
    call.root = static_cast<std::uint8_t>(work.root);
    call.bytes = work.bytes;
    call.share = plan.share;
    call.piece = plan.piece;
    call.rounds = plan.rounds;
    call.low = work.words.low;
    call.high = work.words.high;
    call.self = static_cast<std::uint8_t>(self);
    call.in = work.in;
    call.out = work.out;
    call.talk = &talks_[self];
    for (unsigned m = 0; m < members_; ++m) call.boards[m] = &board(m);
    return call;
  }
  /// One launch.
  static void launch(const StreamCall& call, unsigned blocks) {
    for (unsigned block = 0; block < blocks; ++block) {
      simt::CpuThread machine([](void* pointer) noexcept { return pointer; }, block, blocks);
      run_stream_call(machine, call);
    }
  }

 private:
  const unsigned members_;
  std::vector<StreamTalk> talks_;
  std::vector<std::unique_ptr<Memory>> boards_;
};

template <typename Play>
void as_threads(unsigned members, Play&& play) {
  std::vector<std::thread> threads;
  threads.reserve(members);
  for (unsigned self = 0; self < members; ++self) threads.emplace_back([&play, self] { play(self); });
  for (std::thread& thread : threads) thread.join();
}

/// How a call goes: by words of bands that put everything there.
enum class Way { lines, slots, slices };
StreamPlan plan_by(Way way, const Work& work, unsigned members) {
  StreamBands bands;
  if (way != Way::lines) std::fill(std::begin(bands.lines_to), std::end(bands.lines_to), 0);
  bands.slices_from = way == Way::slices ? 0 : ~std::uint64_t{0};
  bands.room_bytes_of_block = 1024;
  return stream_plan_for({work.kind, members, work.bytes, bands});
}

/// Bytes that look like no others, and are numbers of every type but NaN.
std::vector<std::byte> gift(unsigned member, std::size_t bytes, DataType type, unsigned salt) {
  std::vector<std::byte> data(bytes);
  std::mt19937 random(member * 977 + salt);
  const std::size_t element = data_type_bytes(type);
  for (std::size_t at = 0; at + element <= bytes; at += element) {
    const auto small = static_cast<int>(random() % 1000) - 500;
    if (type == DataType::f32) {
      const float value = static_cast<float>(small) * (random() % 3 == 0 ? 1e7f : 1e-3f);
      std::memcpy(&data[at], &value, 4);
    } else if (type == DataType::f64) {
      const double value = static_cast<double>(small) * (random() % 3 == 0 ? 1e17 : 1e-3);
      std::memcpy(&data[at], &value, 8);
    } else if (type == DataType::bf16 || type == DataType::f16) {
      const float value = static_cast<float>(small) * (random() % 3 == 0 ? 8.0f : 1e-3f);
      const std::uint16_t word = type == DataType::f16 ? to_f16(value) : to_bf16(value);
      std::memcpy(&data[at], &word, 2);
    } else {
      for (std::size_t k = 0; k < element; ++k) data[at + k] = static_cast<std::byte>(random());
    }
  }
  return data;
}

struct Case {
  Kind kind;
  DataType type;
  ReduceOp op;
  unsigned root;
  std::size_t bytes;  ///< Of the vector, or of one block.
  bool in_place;
  unsigned odd;  ///< By how much the program's memory is not aligned.
};

/// What a member gives and gets, and what it should get.
struct Part {
  std::vector<std::byte> in, out, expected;
  Work work;
};

bool is_blocks_in(Kind kind) { return kind == Kind::scatter || kind == Kind::alltoall || kind == Kind::reduce_scatter; }
bool is_blocks_out(Kind kind) { return kind == Kind::allgather || kind == Kind::gather || kind == Kind::alltoall; }

std::vector<Part> parts_of(const Case& what, unsigned members, unsigned salt) {
  const std::size_t in_bytes = what.bytes * (is_blocks_in(what.kind) ? members : 1);
  const std::size_t out_bytes = what.bytes * (is_blocks_out(what.kind) ? members : 1);
  std::vector<std::vector<std::byte>> gifts;
  gifts.reserve(members);
  for (unsigned m = 0; m < members; ++m) gifts.push_back(gift(m, in_bytes, what.type, salt));
  const Folding how{what.type, what.op, nullptr};
  const auto folded = [&](unsigned count, std::size_t from) {
    std::vector<const void*> inputs;
    inputs.reserve(count);
    for (unsigned m = 0; m < count; ++m) inputs.push_back(gifts[m].data() + from);
    std::vector<std::byte> total(what.bytes);
    fold(how, inputs, total.data(), what.bytes / data_type_bytes(what.type));
    return total;
  };
  std::vector<Part> parts(members);
  for (unsigned self = 0; self < members; ++self) {
    Part& part = parts[self];
    part.in = std::vector<std::byte>(what.odd + in_bytes);
    if (in_bytes != 0) std::memcpy(part.in.data() + what.odd, gifts[self].data(), in_bytes);
    part.out = std::vector<std::byte>(what.odd + std::max(out_bytes, in_bytes), std::byte{0x5a});
    const auto result = [&]() -> std::vector<std::byte> {
      std::vector<std::byte> blocks;
      switch (what.kind) {
        case Kind::broadcast: return gifts[what.root];
        case Kind::allreduce: return folded(members, 0);
        case Kind::reduce: return self == what.root ? folded(members, 0) : std::vector<std::byte>();
        case Kind::scan: return folded(self + 1, 0);
        case Kind::exscan: return self == 0 ? std::vector<std::byte>() : folded(self, 0);
        case Kind::reduce_scatter: return folded(members, self * what.bytes);
        case Kind::scatter: {
          const auto* from = gifts[what.root].data() + self * what.bytes;
          return {from, from + what.bytes};
        }
        case Kind::gather:
          if (self != what.root) return {};
          [[fallthrough]];
        case Kind::allgather:
          for (unsigned m = 0; m < members; ++m) blocks.insert(blocks.end(), gifts[m].begin(), gifts[m].end());
          return blocks;
        case Kind::alltoall:
          for (unsigned m = 0; m < members; ++m) {
            const auto* from = gifts[m].data() + self * what.bytes;
            blocks.insert(blocks.end(), from, from + what.bytes);
          }
          return blocks;
        default: return {};
      }
    };
    part.expected = result();
    Work& work = part.work;
    work.kind = what.kind;
    work.folding = how;
    work.root = what.root;
    work.bytes = what.bytes;
    work.in = part.in.data() + what.odd;
    work.out = part.out.data() + what.odd;
    if (what.kind == Kind::broadcast) {
      if (what.bytes != 0 && self == what.root) std::memcpy(work.out, work.in, what.bytes);
      work.in = work.out;
    } else if (what.in_place && what.kind != Kind::alltoall && what.kind != Kind::scatter) {
      const std::size_t place = is_blocks_out(what.kind) ? self * what.bytes : 0;
      if (in_bytes != 0) std::memcpy(work.out + place, work.in, in_bytes);
      work.in = work.out + place;
    }
    work.words = words_of(what.kind, what.type, what.op, what.bytes, static_cast<std::int32_t>(what.root));
  }
  return parts;
}

std::string title(const Case& what, unsigned members, Way way) {
  return std::string(collective_name(what.kind)) + " of " + std::to_string(what.bytes) + " bytes, " +
         std::string(data_type_name(what.type)) + " " + std::string(reduce_op_name(what.op)) + ", root " +
         std::to_string(what.root) + ", " + std::to_string(members) + " members, way " +
         std::to_string(static_cast<int>(way)) + (what.in_place ? ", in place" : "") + ", odd by " +
         std::to_string(what.odd);
}

void try_case(Team& team, const Case& what, Way way, unsigned salt) {
  std::vector<Part> parts = parts_of(what, team.size(), salt);
  as_threads(team.size(), [&](unsigned self) {
    const StreamPlan plan = plan_by(way, parts[self].work, team.size());
    Team::launch(team.call_of(self, parts[self].work, plan), plan.blocks);
  });
  for (unsigned self = 0; self < team.size(); ++self) {
    ASSERT_EQ(team.talk(self).why, 0u) << title(what, team.size(), way);
    const std::vector<std::byte>& expected = parts[self].expected;
    const bool same = expected.empty() || std::memcmp(parts[self].work.out, expected.data(), expected.size()) == 0;
    ASSERT_TRUE(same) << title(what, team.size(), way) << ", member " << self;
  }
}

constexpr std::size_t kSizes[] = {0, 8, 40, 1024, 5000, 100'008};

TEST(StreamRounds, every_call_of_every_size_by_every_way) {
  unsigned salt = 0;
  for (const unsigned members : {1u, 2u, 3u, 4u}) {
    Team team(members);
    for (const Kind kind :
         {Kind::barrier, Kind::broadcast, Kind::reduce, Kind::allreduce, Kind::allgather, Kind::reduce_scatter,
          Kind::alltoall, Kind::gather, Kind::scatter, Kind::scan, Kind::exscan}) {
      for (const Way way : {Way::lines, Way::slots, Way::slices}) {
        for (const std::size_t bytes : kSizes) {
          const unsigned root = ++salt % members;
          const Case what{kind,          DataType::i32,          ReduceOp::sum, root, kind == Kind::barrier ? 0 : bytes,
                          salt % 2 == 0, salt % 3 == 0 ? 4u : 0u};
          try_case(team, what, way, salt);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

/// The elements' bits are those of the host's fold.
TEST(StreamRounds, all_types_and_ops_have_the_host_s_bits) {
  Team team(3);
  unsigned salt = 0;
  for (unsigned t = 1; t <= static_cast<unsigned>(DataType::boolean); ++t) {
    const auto type = static_cast<DataType>(t);
    for (unsigned o = 1; o < static_cast<unsigned>(ReduceOp::min_place); ++o) {
      const auto op = static_cast<ReduceOp>(o);
      if (!can_reduce(type, op)) continue;
      for (const Way way : {Way::lines, Way::slots, Way::slices}) {
        try_case(team, {Kind::allreduce, type, op, 0, 3000, false, 0}, way, ++salt);
        if (HasFatalFailure()) return;
      }
    }
  }
}

/// Calls of all sizes one behind the other, with members that are late, over the place where the numbers of turns wrap.
TEST(StreamRounds, turns_go_on_from_call_to_call) {
  constexpr unsigned kMembers = 3;
  const int calls = test::effort(300, 40);
  Team team(kMembers);
  team.set_turn((Word{1} << 32) - 40);
  std::vector<std::vector<Part>> all;
  std::vector<Way> ways;
  std::vector<Case> cases;
  std::mt19937 common(3);
  constexpr Kind kKinds[] = {Kind::barrier, Kind::broadcast, Kind::allreduce, Kind::allgather,
                             Kind::reduce,  Kind::alltoall,  Kind::scan};
  for (int i = 0; i < calls; ++i) {
    const Kind kind = kKinds[common() % std::size(kKinds)];
    const std::size_t bytes = kind == Kind::barrier ? 0 : (common() % (common() % 4 == 0 ? 20'000 : 100)) * 4;
    cases.push_back(
        {kind, DataType::f32, ReduceOp::sum, static_cast<unsigned>(common() % kMembers), bytes, common() % 2 == 0, 0});
    ways.push_back(static_cast<Way>(common() % 3));
    all.push_back(parts_of(cases.back(), kMembers, static_cast<unsigned>(i)));
  }
  as_threads(kMembers, [&](unsigned self) {
    std::mt19937 own(self);
    for (int i = 0; i < calls; ++i) {
      if (own() % 50 == 0) std::this_thread::yield();
      Part& part = all[static_cast<std::size_t>(i)][self];
      const StreamPlan plan = plan_by(ways[static_cast<std::size_t>(i)], part.work, kMembers);
      Team::launch(team.call_of(self, part.work, plan), plan.blocks);
    }
  });
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (unsigned self = 0; self < kMembers; ++self) {
      const Part& part = all[i][self];
      ASSERT_TRUE(part.expected.empty() || std::memcmp(part.work.out, part.expected.data(), part.expected.size()) == 0)
          << i << ": " << title(cases[i], kMembers, ways[i]) << ", member " << self;
    }
  }
  for (unsigned self = 0; self < kMembers; ++self) EXPECT_EQ(team.board(self).calls, static_cast<Word>(calls));
}

Work call_of_bytes(Kind kind, std::size_t bytes, std::vector<std::byte>& data, unsigned root = 0) {
  Work work;
  work.kind = kind;
  work.folding = {DataType::i32, ReduceOp::sum, nullptr};
  work.bytes = bytes;
  work.root = root;
  work.in = work.out = data.data();
  work.words = words_of(kind, DataType::i32, ReduceOp::sum, bytes, static_cast<std::int32_t>(root));
  return work;
}

TEST(StreamRounds, a_member_that_does_not_come_is_named_by_all_others) {
  constexpr unsigned kMembers = 3;
  for (const Way way : {Way::lines, Way::slots, Way::slices}) {
    Team team(kMembers, 200);
    as_threads(kMembers, [&](unsigned self) {
      std::vector<std::byte> data(4000);
      for (int i = 0; i < (self == 1 ? 2 : 4); ++i) {
        const Work work = call_of_bytes(Kind::allreduce, data.size(), data);
        const StreamPlan plan = plan_by(way, work, kMembers);
        Team::launch(team.call_of(self, work, plan), plan.blocks);
      }
    });
    for (const unsigned self : {0u, 2u}) {
      EXPECT_EQ(team.talk(self).why, static_cast<Word>(StreamWhy::late));
      EXPECT_EQ(team.talk(self).member, 1u);
      EXPECT_EQ(team.talk(self).call, 3u);
    }
    EXPECT_EQ(team.talk(1).why, 0u);
  }
}

/// Other sizes go by other ways, by more blocks: all of them end, and say what was called.
TEST(StreamRounds, a_member_that_calls_something_else_is_named) {
  constexpr unsigned kMembers = 2;
  Team team(kMembers);
  as_threads(kMembers, [&](unsigned self) {
    std::vector<std::byte> data(self == 0 ? 100'000 : 16);
    const Work work = call_of_bytes(Kind::allreduce, data.size(), data);
    const StreamPlan plan = stream_plan_for({work.kind, kMembers, work.bytes, {}});
    Team::launch(team.call_of(self, work, plan), plan.blocks);
  });
  for (unsigned self = 0; self < kMembers; ++self) {
    const StreamTalk& talk = team.talk(self);
    EXPECT_EQ(talk.why, static_cast<Word>(StreamWhy::other_call));
    EXPECT_EQ(talk.member, 1 - self);
    const CallWords theirs{talk.their_high, static_cast<std::uint32_t>(talk.their_low)};
    EXPECT_EQ(bytes_of(theirs), self == 0 ? 16u : 100'000u);
    EXPECT_EQ(kind_of(theirs), Kind::allreduce);
  }
}

TEST(StreamRounds, other_roots_are_other_calls) {
  Team team(2);
  as_threads(2, [&](unsigned self) {
    std::vector<std::byte> data(16);
    const Work work = call_of_bytes(Kind::broadcast, data.size(), data, self);
    const StreamPlan plan = stream_plan_for({work.kind, 2, work.bytes, {}});
    Team::launch(team.call_of(self, work, plan), plan.blocks);
  });
  EXPECT_EQ(team.talk(0).why, static_cast<Word>(StreamWhy::other_call));
  EXPECT_EQ(team.talk(1).why, static_cast<Word>(StreamWhy::other_call));
}

/// What the CPU says ends kernels that wait, and those behind them do nothing.
TEST(StreamRounds, an_abort_ends_a_wait_and_all_that_comes_behind_it) {
  Team team(2);
  std::vector<std::byte> data(16, std::byte{7});
  const Work work = call_of_bytes(Kind::allreduce, data.size(), data);
  const StreamPlan plan = stream_plan_for({work.kind, 2, work.bytes, {}});
  std::thread waits([&] { Team::launch(team.call_of(0, work, plan), plan.blocks); });
  std::atomic_ref(team.talk(0).abort).store(1);
  waits.join();
  EXPECT_EQ(team.talk(0).why, 0u);
  EXPECT_NE(team.board(0).fault, 0u);
  Team::launch(team.call_of(0, work, plan), plan.blocks);
  EXPECT_EQ(team.board(0).calls, 0u);
  EXPECT_EQ(data, std::vector<std::byte>(16, std::byte{7}));
}

TEST(StreamPlan, is_there_for_every_call_and_fits_the_board) {
  for (unsigned members = 1; members <= kStreamMembersMax; ++members) {
    for (unsigned k = 1; k < kCollectiveKindCount; ++k) {
      const auto kind = static_cast<Kind>(k);
      unsigned before = 0;
      for (std::uint64_t bytes = 0; bytes <= std::uint64_t{1} << 31;
           bytes = bytes < 64 ? bytes + 4 : bytes * 5 / 4 / 4 * 4) {
        const StreamPlan plan = stream_plan_for({kind, members, bytes, {}});
        ASSERT_GE(plan.share * plan.blocks, bytes);
        ASSERT_LE(plan.blocks, kStreamBlocksMax);
        ASSERT_EQ(plan.share % 16, 0u);
        ASSERT_EQ(plan.piece % 16, 0u);
        const std::uint64_t parts = plan.algorithm == StreamAlgorithm::slices ? members : 1;
        ASSERT_GE(plan.piece * parts * plan.rounds, plan.share) << bytes;
        switch (plan.algorithm) {
          case StreamAlgorithm::lines: ASSERT_LE(plan.share, StreamBoard::lines_from_each(members) * 8); break;
          case StreamAlgorithm::slots: ASSERT_LE(plan.piece, StreamRoom::slot_bytes(members)); break;
          case StreamAlgorithm::slices: ASSERT_LE(plan.piece, StreamRoom::slice_bytes(members)); break;
          case StreamAlgorithm::alone: ASSERT_EQ(members, 1u);
        }
        ASSERT_GE(static_cast<unsigned>(plan.algorithm), before) << "more bytes never lead back";
        before = static_cast<unsigned>(plan.algorithm);
      }
    }
  }
}

TEST(StreamPlan, goes_by_a_forced_way_or_says_why_not) {
  for (unsigned members = 1; members <= kStreamMembersMax; ++members) {
    for (unsigned k = 1; k < kCollectiveKindCount; ++k) {
      for (const std::uint64_t bytes : {0u, 4u, 5000u, 100'000'000u}) {
        for (unsigned w = 1; w < kStreamWayCount; ++w) {
          const StreamQuery query{static_cast<Kind>(k), members, bytes, {}, static_cast<StreamWay>(w)};
          if (why_not_forced(query) != nullptr) {
            const bool sums = query.kind == Kind::allreduce || query.kind == Kind::reduce;
            ASSERT_TRUE(query.way == StreamWay::lines ? bytes > 5000 : !sums || members < 3);
            continue;
          }
          const StreamPlan plan = stream_plan_for(query);
          ASSERT_GE(plan.share * plan.blocks, bytes);
          if (members == 1 || query.kind == Kind::barrier) continue;
          ASSERT_EQ(stream_algorithm_name(plan.algorithm), "kernel " + std::string(stream_way_name(query.way)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace brant::coll
