// Data arguments of calls of a section: each member gets them through its own post entry, or into memory of the
// runtime.
#include <cstring>
#include <map>
#include <numeric>

#include "unit/chare/program.h"

namespace brant {
namespace {

using test::JobOptions;
using test::Program;

constexpr int kCount = 3000;

Memory ramp(Runtime& runtime, int start, int count = kCount) {
  std::vector<int> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), start);
  Memory memory = runtime.allocate(runtime.device_kind(), values.size() * sizeof(int));
  runtime.copy(memory, std::span(values));
  return memory;
}
int differences(Runtime& runtime, ConstBuffer buffer, int start) {
  std::vector<int> values(buffer.bytes / sizeof(int));
  runtime.copy(std::span(values), buffer);
  int different = 0;
  for (const int value : values) different += value != start++ ? 1 : 0;
  return different;
}

class SectionListener : public Chare<SectionListener> {
 public:
  void posted(std::string_view why, DeviceData data, int start) {
    faults_ += why == "a reason that needs its own memory, more than a word" && !data.owned() ? 0 : 1;
    faults_ += ghosts_.contains(data.data()) ? 0 : 1;
    note(data, start);
    ghosts_.erase(data.data());
  }
  Buffer post(Post<&SectionListener::posted>, std::string_view, const DeviceMeta& meta, int) {
    EXPECT_EQ(meta.source, caller_);
    Runtime& runtime = chares().runtime();
    Memory ghost =
        runtime.allocate(runtime.device_kind(), meta.bytes);  // its own: data of several calls may come at once
    const void* where = ghost.data();
    return ghosts_[where] = std::move(ghost);
  }
  void lent(DeviceData first, HostData<int> table, int start) {
    faults_ += first.owned() && table.owned() ? 0 : 1;
    for (const int item : table.items()) faults_ += item == 7 ? 0 : 1;
    note(first, start);
  }
  void plain(int) { ++runs_; }
  /// Calls the section, which may not be known here yet.
  void pass_on(Section<SectionListener> section, int start) {
    memory_ = ramp(chares().runtime(), start);
    section.call<&SectionListener::posted>("a reason that needs its own memory, more than a word", device(memory_),
                                           start);
  }
  void expect_from(int rank) { caller_ = Rank{rank}; }
  int runs() { return runs_; }
  int faults() { return faults_; }

 private:
  void note(const DeviceData& data, int start) {
    faults_ += differences(chares().runtime(), data, start);
    ++runs_;
  }

  Rank caller_{0};
  std::map<const void*, Memory> ghosts_;
  Memory memory_;
  int runs_ = 0, faults_ = 0;
};

Task<void> until_runs(Element<SectionListener> listener, int wanted) {
  int runs = 0;
  while (runs < wanted) runs = co_await listener.ask<&SectionListener::runs>();
  EXPECT_EQ(runs, wanted) << listener.index()[0];
  const int faults = co_await listener.ask<&SectionListener::faults>();
  EXPECT_EQ(faults, 0) << listener.index()[0];
}

/// Sections of all, of one, of some far away: the sources are overwritten as soon as they are free.
Task<void> to_sections(Chares& chares) {
  Runtime& runtime = chares.runtime();
  const int elements = 3 * chares.size();
  const auto all = create_array<SectionListener>(chares, elements, Placement::round_robin());
  std::vector<std::vector<Index<1>>> lists(4);
  for (int i = 0; i < elements; ++i) {
    lists[0].emplace_back(i);                                              // several on each rank
    if (i % chares.size() == chares.size() - 1) lists[1].emplace_back(i);  // on the last rank alone
    if (i == 0) lists[2].emplace_back(i);                                  // one member, on the calling rank
    if (i < 2) lists[3].emplace_back(i);
  }
  std::vector<int> runs(static_cast<std::size_t>(elements));
  const std::vector<int> sevens(5000, 7);
  const std::vector<int> rubbish(kCount, -1);
  int start = 10;
  for (const std::vector<Index<1>>& members : lists) {
    const auto section = make_section(chares, all, members);
    for (int round = 0; round < 3; ++round, ++start) {
      Memory posted = ramp(runtime, start), lent = ramp(runtime, start);
      std::vector<int> table = sevens;
      Promise<ConstBuffer> first, second, third;
      Future<ConstBuffer> posted_free = first.future(), lent_free = second.future(), table_free = third.future();
      section.call<&SectionListener::posted>("a reason that needs its own memory, more than a word",
                                             device(posted, std::move(first)), start);
      section.call<&SectionListener::lent>(device(lent, std::move(second)),
                                           no_copy(std::span<const int>(table), std::move(third)), start);
      const ConstBuffer free = co_await posted_free;
      EXPECT_EQ(free.data, posted.data());
      runtime.copy(posted, std::span(rubbish));
      static_cast<void>(co_await lent_free);
      runtime.copy(lent, std::span(rubbish));
      static_cast<void>(co_await table_free);
      std::fill(table.begin(), table.end(), -1);
      for (const Index<1>& at : members) {
        runs[static_cast<std::size_t>(at[0])] += 2;
        co_await until_runs(all[at], runs[static_cast<std::size_t>(at[0])]);
      }
    }
  }
  EXPECT_EQ(chares.counts().data_coming, 0u);
}

TEST(SectionData, reaches_every_member_and_frees_the_source) {
  for (const int ranks : {1, 2, 7}) {
    for (const JobOptions& options : test::variants(test::reordering(4, ranks))) {
      Program program(options);
      EXPECT_EQ(program.run(to_sections), 0) << ranks << " ranks: " << program.failure();
    }
  }
}
TEST(SectionData, reaches_every_member_over_a_wire_that_repeats_refuses_and_delays) {
  for (std::uint64_t seed = 1; seed <= test::effort(3u, 1u); ++seed) {
    for (const JobOptions& options : test::variants(test::faulty(seed, 3))) {
      Program program(options);
      EXPECT_EQ(program.run(to_sections), 0) << "seed " << seed << ": " << program.failure();
    }
  }
}

/// A rank that was told of the section by a message calls it before its definition has come there.
Task<void> known_late(Chares& chares, int members) {
  const auto all = create_array<SectionListener>(chares, members, Placement::round_robin());
  for (int caller = 0; caller < chares.size(); ++caller) {
    for (int i = 0; i < members; ++i) co_await all[i].ask<&SectionListener::expect_from>(caller);
    const auto section = make_section(chares, all, [](const Index<1>&) { return true; });
    all[caller].with({.expedited = true}).call<&SectionListener::pass_on>(section, caller);
    for (int i = 0; i < members; ++i) co_await until_runs(all[i], caller + 1);
  }
}
TEST(SectionData, called_before_its_definition_came_waits_for_it) {
  for (std::uint64_t seed = 1; seed <= test::effort(6u, 2u); ++seed) {
    for (const JobOptions& options : test::variants(test::reordering(seed, 6))) {
      Program program(options);
      EXPECT_EQ(program.run(known_late, 12), 0) << "seed " << seed << ": " << program.failure();
    }
  }
}

/// More than the window of the hidden channel, for a member that is inserted only behind what comes after it.
Task<void> member_comes_late(Chares& chares, int rank) {
  constexpr int kCalls = 300;
  Runtime& runtime = chares.runtime();
  const auto sparse = create_sparse<SectionListener>(chares, Placement::round_robin());
  const Index<1> late(rank), early(rank + chares.size());
  sparse.insert(early);
  const auto section = make_section(chares, sparse, std::vector<Index<1>>{late, early});
  Memory source = ramp(runtime, 5, 100);
  for (int i = 0; i < kCalls; ++i) {
    section.call<&SectionListener::posted>("a reason that needs its own memory, more than a word", device(source), 5);
  }
  co_await until_runs(sparse[early], kCalls);
  sparse.insert(late);
  co_await until_runs(sparse[late], kCalls);
}
TEST(SectionData, for_a_member_that_is_inserted_late_does_not_fill_the_window) {
  for (const JobOptions& options : test::variants(test::reordering(2, 2))) {
    for (const int rank : {0, 1}) {
      Program program(options);
      EXPECT_EQ(program.run(member_comes_late, rank), 0) << program.failure();
    }
  }
}

/// Programs that end with data for sections under way leave the hidden channels in order for the next one.
Task<int> leave_early(Chares& chares, const Memory& source) {
  const auto sparse = create_sparse<SectionListener>(chares, Placement::round_robin());
  for (const int i : {0, 1, 2}) sparse.insert(i);
  const auto section = make_section(chares, sparse, std::vector<Index<1>>{{0}, {1}, {2}, {3}, {4}});
  for (int i = 0; i < 200; ++i) {
    section.call<&SectionListener::posted>("a reason that needs its own memory, more than a word", device(source), 0);
  }
  co_return 5;
}
TEST(SectionData, under_way_at_the_end_of_a_program_does_not_disturb_the_next) {
  for (const bool links : {false, true}) {
    JobOptions options = test::reordering(3, 3);
    options.links = links;
    test::InProcessJob job(options);
    Memory source = ramp(job.rank(0), 0, 40'000);
    for (int round = 0; round < 6; ++round) {
      std::vector<std::unique_ptr<Chares>> ranks;
      for (int rank = 0; rank < 3; ++rank) {
        ranks.push_back(std::make_unique<Chares>(job.rank(rank), ChareOptions{.connect = false}));
      }
      for (auto& rank : ranks) rank->connect();
      if (round % 3 == 2) {
        ranks[0]->start(to_sections(*ranks[0]));
      } else {
        ranks[0]->start(leave_early(*ranks[0], source));
      }
      int rounds = 0;
      const auto ended = [&] { return ranks[0]->ended() && ranks[1]->ended() && ranks[2]->ended(); };
      while (!ended() && ++rounds < 200'000) {
        for (auto& rank : ranks) rank->progress();
      }
      ASSERT_TRUE(ended()) << round;
      EXPECT_EQ(ranks[0]->exit_code(), round % 3 == 2 ? 0 : 5) << ranks[0]->failure() << ranks[1]->failure();
    }
  }
}

/// A destroyed member, and a post entry that names too little: one clear error each.
class SectionRefuser : public Chare<SectionRefuser> {
 public:
  void small(DeviceData) {
    if (index()[0] == 1) ADD_FAILURE() << "must not run";
  }
  Buffer post(Post<&SectionRefuser::small>, const DeviceMeta& meta) {
    return {room_.data(), index()[0] == 1 ? meta.bytes - 4 : meta.bytes, MemoryKind::host};
  }
  void nothing() {}

 private:
  std::array<std::byte, kCount * sizeof(int)> room_{};
};
Task<void> too_small(Chares& chares) {
  const auto all = create_array<SectionRefuser>(chares, 2, Placement::round_robin());
  const auto section = make_section(chares, all, std::vector<Index<1>>{{1}});
  Memory source = ramp(chares.runtime(), 0);
  section.call<&SectionRefuser::small>(device(source));
  co_await chares.until_exit();
}
TEST(SectionData, for_a_landing_that_is_too_small_is_one_clear_error) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(too_small), 1);
  EXPECT_NE(program.failure().find("SectionRefuser[1]::small on rank 1 threw: data argument 0 (12000 bytes of host "
                                   "memory from rank 0): its post entry named a landing of 11996 bytes"),
            std::string::npos)
      << program.failure();
}
Task<void> to_a_deleted_member(Chares& chares) {
  const auto sparse = create_sparse<SectionRefuser>(chares, Placement::round_robin());
  for (const int i : {0, 1, 2}) {
    sparse.insert(i);
    co_await sparse[i].ask<&SectionRefuser::nothing>();
  }
  const auto section = make_section(chares, sparse, std::vector<Index<1>>{{2}, {1}});
  sparse[1].destroy();
  Memory source = ramp(chares.runtime(), 0);
  section.call<&SectionRefuser::small>(device(source));
  co_await chares.until_exit();
}
TEST(SectionData, for_a_deleted_member_is_one_clear_error) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(to_a_deleted_member), 1);
  EXPECT_NE(
      program.failure().find("a call of small of brant::{anonymous}::SectionRefuser[1] on rank 1 came from rank 0 "
                             "after the chare was deleted"),
      std::string::npos)
      << program.failure();
}

}  // namespace
}  // namespace brant
