// Runs as every rank of a job: the collectives of communicators whose members live several to a process, in layouts of
// many kinds, against what one process computes by itself.
#include <cstdlib>
#include <numeric>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "multi/mpi/shared_members.h"
#include "support/job_runtime.h"
#include "support/own_host.h"

namespace brant {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

// NOLINTNEXTLINE(bugprone-throwing-static-initialization): it ends the program where it throws
[[maybe_unused]] const bool g_own_host = std::getenv("BRANT_TEST_OWN_HOSTS") != nullptr && test::become_own_host();

enum class Layout { contiguous, interleaved, reversed, random };
struct Form {
  unsigned members;
  Layout layout;
};

unsigned processes() { return static_cast<unsigned>(job().size()); }

std::vector<unsigned> lay_out(const Form& form) {
  std::vector<unsigned> process_of(form.members);
  std::mt19937 random(form.members);
  for (unsigned m = 0; m < form.members; ++m) {
    switch (form.layout) {
      case Layout::contiguous: process_of[m] = m * processes() / form.members; break;
      case Layout::interleaved: process_of[m] = m % processes(); break;
      case Layout::reversed: process_of[m] = processes() - 1 - m * processes() / form.members; break;
      case Layout::random: process_of[m] = m < processes() ? m : static_cast<unsigned>(random() % processes()); break;
    }
  }
  if (form.layout == Layout::random) std::shuffle(process_of.begin(), process_of.end(), random);
  return process_of;
}

class SharedCollectives : public testing::TestWithParam<Form> {
 protected:
  SharedCollectives()
      : members_(std::max(GetParam().members, processes())),
        shared_(job(), lay_out({members_, GetParam().layout}), static_cast<unsigned>(job().rank().value),
                processes() == 1 ? Team() : Team::world(job(), {.patience = std::chrono::seconds(60)})) {}

  [[nodiscard]] SharedMemberList list() const {
    SharedMemberList list(members_);
    for (SharedMember& member : list) member.reserve();
    return list;
  }
  /// All members are roots where there are few.
  [[nodiscard]] std::vector<unsigned> roots() const {
    if (members_ > 5) return {0, 1, members_ / 2, members_ - 1};
    std::vector<unsigned> all(members_);
    std::iota(all.begin(), all.end(), 0u);
    return all;
  }
  /// Floats are combined in the order of ranks, without brackets.
  [[nodiscard]] bool exact_values() const { return !shared_.placement.alone() && shared_.placement.in_order(); }
  void carry_out(SharedMemberList& list, const std::string& what) { shared_.carry_out(list, what); }
  static std::uint64_t between(unsigned from, unsigned to, std::uint64_t unit) { return unit * ((from * 3 + to) % 4); }

  const unsigned members_;
  SharedMembers shared_;
};

constexpr std::uint64_t kCounts[] = {0, 1, 1000};
constexpr std::uint64_t kUnits[] = {0, 1, 40, 9000};

Collective of(const coll::Folding& how, Collective call) {
  call.type = how.type;
  call.op = how.op;
  call.user = how.user;
  return call;
}

TEST_P(SharedCollectives, barrier_and_broadcast) {
  for (const std::uint64_t bytes : kUnits) {
    for (const unsigned root : roots()) {
      SharedMemberList all = list();
      for (SharedMember& m : all) m.call = barrier();
      carry_out(all, "barrier");
      for (unsigned m = 0; m < members_; ++m) {
        all[m].out = some_bytes(m, bytes);
        all[m].expected = some_bytes(root, bytes);
        all[m].call = broadcast(all[m].whole_out(), static_cast<int>(root));
      }
      carry_out(all, "broadcast");
    }
  }
}

TEST_P(SharedCollectives, reductions) {
  for (const coll::Folding& how : kFoldings) {
    for (const std::uint64_t count : kCounts) {
      for (const bool in_place : {false, true}) {
        SharedMemberList all = list();
        for (unsigned m = 0; m < members_; ++m) all[m].in = elements(how, m, count, exact_values());
        const std::uint64_t bytes = count * how.element_bytes();
        const Bytes total = combination(how, all, members_, 0, bytes);
        for (SharedMember& m : all) {
          m.reserve();
          m.expected = total;
          m.out = in_place ? m.in : Bytes(total.size());
          m.out.reserve(64);
          m.call =
              of(how, allreduce(in_place ? ConstBuffer(m.whole_out()) : m.whole_in(), m.whole_out(), how.type, how.op));
        }
        const std::string what = std::string(data_type_name(how.type)) + " " + std::string(reduce_op_name(how.op));
        carry_out(all, "allreduce of " + what);
        for (const unsigned root : roots()) {
          for (unsigned m = 0; m < members_; ++m) {
            SharedMember& member = all[m];
            const bool is_root = m == root;
            member.out = is_root && in_place ? member.in : Bytes(is_root ? total.size() : 0);
            member.out.reserve(64);
            member.expected = is_root ? total : Bytes();
            const ConstBuffer in = is_root && in_place ? ConstBuffer(member.whole_out()) : member.whole_in();
            member.call = of(how, reduce_to(in, member.whole_out(), how.type, how.op, static_cast<int>(root)));
          }
          carry_out(all, "reduce of " + what);
        }
      }
    }
  }
}

TEST_P(SharedCollectives, prefixes) {
  for (const coll::Folding& how : kFoldings) {
    if (how.op == ReduceOp::average) continue;
    for (const std::uint64_t count : kCounts) {
      for (const bool in_place : {false, true}) {
        for (const bool exclusive : {false, true}) {
          SharedMemberList all = list();
          // f16 rounds at each member where several processes have them.
          const bool whole = exact_values() || (how.type == DataType::f16 && !shared_.placement.alone());
          for (unsigned m = 0; m < members_; ++m) all[m].in = elements(how, m, count, whole);
          for (unsigned m = 0; m < members_; ++m) {
            SharedMember& member = all[m];
            member.out = in_place ? member.in : some_bytes(m, member.in.size());
            member.reserve();
            const unsigned last = exclusive ? m : m + 1;
            member.expected = last == 0 ? member.out : combination(how, all, last, 0, member.in.size());
            const ConstBuffer in = in_place ? ConstBuffer(member.whole_out()) : member.whole_in();
            member.call = of(how, exclusive ? exscan(in, member.whole_out(), how.type, how.op)
                                            : scan(in, member.whole_out(), how.type, how.op));
          }
          carry_out(all, exclusive ? "exscan" : "scan");
        }
      }
    }
  }
}

TEST_P(SharedCollectives, reduce_scatter) {
  for (const coll::Folding& how : kFoldings) {
    for (const std::uint64_t count : {0u, 1u, 60u}) {
      for (const bool in_place : {false, true}) {
        for (const bool uneven : {false, true}) {
          Sizes sizes;
          for (unsigned m = 0; m < members_; ++m) sizes.push_back(count * (uneven ? m % 3 : 1) * how.element_bytes());
          const std::uint64_t bytes = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
          SharedMemberList all = list();
          for (unsigned m = 0; m < members_; ++m)
            all[m].in = elements(how, m, bytes / how.element_bytes(), exact_values());
          std::uint64_t offset = 0;
          for (unsigned m = 0; m < members_; ++m) {
            SharedMember& member = all[m];
            member.expected = combination(how, all, members_, offset, sizes[m]);
            offset += sizes[m];
            member.out = in_place ? member.in : Bytes(static_cast<std::size_t>(sizes[m]));
            member.reserve();
            const ConstBuffer in = in_place ? ConstBuffer() : member.whole_in();
            member.call = of(how, reduce_scatter(in, member.whole_out(), how.type, how.op));
            if (uneven) member.call.in_block_bytes = sizes;
          }
          if (in_place) {  // what lies behind the result is nobody's business
            std::vector<Bytes> results;
            for (SharedMember& m : all) results.push_back(std::exchange(m.expected, {}));
            for (unsigned m = 0; m < members_; ++m) {
              SharedMember& member = all[m];
              member.expected = member.in;
              std::copy(results[m].begin(), results[m].end(), member.expected.begin());
            }
          }
          carry_out(all, "reduce_scatter");
        }
      }
    }
  }
}

TEST_P(SharedCollectives, allgather) {
  for (const std::uint64_t unit : kUnits) {
    for (const bool uneven : {false, true}) {
      for (const bool in_place : {false, true}) {
        Sizes sizes;
        Bytes gathered;
        SharedMemberList all = list();
        for (unsigned m = 0; m < members_; ++m) {
          sizes.push_back(uneven ? between(m, 0, unit) : unit);
          all[m].in = some_bytes(m, sizes[m]);
          append(gathered, all[m].in);
        }
        std::size_t offset = 0;
        for (SharedMember& m : all) {
          m.out.resize(gathered.size());
          m.reserve();
          if (in_place) std::copy(m.in.begin(), m.in.end(), m.out.begin() + static_cast<std::ptrdiff_t>(offset));
          offset += m.in.size();
          m.expected = gathered;
          m.call = brant::allgather(in_place ? ConstBuffer() : m.whole_in(), m.whole_out());
          if (uneven) m.call.block_bytes = sizes;
        }
        carry_out(all, "allgather");
      }
    }
  }
}

TEST_P(SharedCollectives, gather_and_scatter) {
  for (const std::uint64_t unit : kUnits) {
    for (const bool uneven : {false, true}) {
      for (const unsigned root : roots()) {
        for (const bool in_place : {false, true}) {
          Sizes sizes;
          Bytes gathered;
          SharedMemberList all = list();
          for (unsigned m = 0; m < members_; ++m) {
            sizes.push_back(uneven ? between(m, root, unit) : unit);
            append(gathered, some_bytes(m, sizes[m]));
          }
          std::size_t own = 0;
          for (unsigned m = 0; m < members_; ++m) {
            SharedMember& member = all[m];
            const bool is_root = m == root;
            member.in = some_bytes(m, sizes[m]);
            if (is_root) {
              member.out.resize(gathered.size());
              if (in_place)
                std::copy(member.in.begin(), member.in.end(), member.out.begin() + static_cast<std::ptrdiff_t>(own));
            }
            own += member.in.size();
            member.reserve();
            member.expected = is_root ? gathered : Bytes();
            const ConstBuffer in = is_root && in_place ? ConstBuffer() : member.whole_in();
            member.call = gather(in, member.whole_out(), static_cast<int>(root));
            member.call.uneven = uneven;
            if (uneven && is_root) member.call.block_bytes = sizes;
          }
          carry_out(all, "gather");
          for (unsigned m = 0; m < members_; ++m) {
            SharedMember& member = all[m];
            const bool is_root = m == root, stays = is_root && in_place;
            member.in = is_root ? gathered : Bytes();
            member.out = Bytes(stays ? 0 : static_cast<std::size_t>(sizes[m]));
            member.reserve();
            member.expected = stays ? Bytes() : some_bytes(m, sizes[m]);
            member.call = scatter(member.whole_in(), stays ? Buffer() : member.whole_out(), static_cast<int>(root));
            member.call.uneven = uneven;
            if (uneven && is_root) member.call.in_block_bytes = sizes;
          }
          carry_out(all, "scatter");
        }
      }
    }
  }
}

TEST_P(SharedCollectives, alltoall) {
  for (const std::uint64_t unit : {0u, 1u, 40u, 900u}) {
    for (const bool uneven : {false, true}) {
      for (const bool in_place : {false, true}) {
        SharedMemberList all = list();
        const auto size = [&](unsigned from, unsigned to) {
          if (!uneven) return unit + 0ul;
          return in_place ? unit * ((from + to) % 3) : between(from, to, unit);
        };
        for (unsigned m = 0; m < members_; ++m) {
          SharedMember& member = all[m];
          for (unsigned other = 0; other < members_; ++other) {
            member.gives.push_back(size(m, other));
            member.gets.push_back(size(other, m));
            append(member.in, some_bytes(m * 1000 + other, member.gives.back()));
            append(member.expected, some_bytes(other * 1000 + m, member.gets.back()));
          }
          // By turns in place, each for itself.
          const bool there = in_place && (uneven || m % 2 == 0);
          member.out = there ? member.in : Bytes(member.expected.size());
          member.reserve();
          const ConstBuffer in = there ? ConstBuffer() : member.whole_in();
          member.call = uneven ? alltoallv(in, there ? std::span<const std::uint64_t>() : member.gives,
                                           member.whole_out(), member.gets)
                               : brant::alltoall(in, member.whole_out());
        }
        carry_out(all, "alltoall");
      }
    }
  }
}

/// Edges with some that are there twice, and members that are their own neighbours, or have none.
TEST_P(SharedCollectives, neighbours_of_any_graph) {
  for (const std::uint64_t unit : {0u, 1u, 40u, 3000u}) {
    for (const bool uneven : {false, true}) {
      std::mt19937 random(unit + 1);
      SharedMemberList all = list();
      std::vector<std::pair<unsigned, unsigned>> edges;
      for (unsigned e = 0; e < 3 * members_; ++e) {
        const auto from = static_cast<unsigned>(random() % members_), to = static_cast<unsigned>(random() % members_);
        for (unsigned times = 0; times <= random() % 3; ++times) edges.emplace_back(from, to);
      }
      const auto seed = [](unsigned from, unsigned to, std::size_t nth) { return from * 70'000 + to * 300 + nth; };
      const auto size = [&](unsigned from, unsigned to, std::size_t nth) {
        return uneven ? unit * ((from + 2 * to + nth) % 4) : unit + 0ul;
      };
      std::shuffle(edges.begin(), edges.end(), random);
      for (const auto& [from, to] : edges) all[from].destinations.push_back(static_cast<int>(to));
      std::shuffle(edges.begin(), edges.end(), random);
      for (const auto& [from, to] : edges) all[to].sources.push_back(static_cast<int>(from));
      for (unsigned m = 0; m < members_; ++m) {
        SharedMember& member = all[m];
        std::vector<std::size_t> met(members_);
        for (const int to : member.destinations) {
          const auto other = static_cast<unsigned>(to);
          const std::size_t nth = met[other]++;
          member.gives.push_back(size(m, other, nth));
          append(member.in, some_bytes(seed(m, other, nth), member.gives.back()));
        }
        met.assign(members_, 0);
        for (const int from : member.sources) {
          const auto other = static_cast<unsigned>(from);
          const std::size_t nth = met[other]++;
          member.gets.push_back(size(other, m, nth));
          append(member.expected, some_bytes(seed(other, m, nth), member.gets.back()));
        }
        member.out.resize(member.expected.size());
        member.reserve();
        member.call = uneven ? neighbour_alltoallv(member.whole_in(), member.gives, member.whole_out(), member.gets,
                                                   member.edges())
                             : neighbour_alltoall(member.whole_in(), member.whole_out(), member.edges());
      }
      carry_out(all, "neighbour_alltoall");
      for (unsigned m = 0; m < members_; ++m) {
        SharedMember& member = all[m];
        const auto own = [&](unsigned rank) { return uneven ? unit * (rank % 3) : unit + 0ul; };
        member.in = some_bytes(m, own(m));
        member.expected.clear();
        member.gets.clear();
        for (const int from : member.sources) {
          member.gets.push_back(own(static_cast<unsigned>(from)));
          append(member.expected, some_bytes(static_cast<unsigned>(from), member.gets.back()));
        }
        member.out.assign(member.expected.size(), {});
        member.reserve();
        member.call = uneven ? neighbour_allgatherv(member.whole_in(), member.whole_out(), member.gets, member.edges())
                             : neighbour_allgather(member.whole_in(), member.whole_out(), member.edges());
      }
      carry_out(all, "neighbour_allgather");
    }
  }
}

/// More of it than has room at a time.
TEST_P(SharedCollectives, long_vectors_that_go_in_pieces) {
  const coll::Folding how{DataType::f64, ReduceOp::sum, nullptr};
  const std::uint64_t count = (std::uint64_t{10} << 20) / 8 / members_;
  SharedMemberList all = list();
  for (unsigned m = 0; m < members_; ++m) all[m].in = elements(how, m, count, exact_values());
  const Bytes total = combination(how, all, members_, 0, count * 8);
  for (SharedMember& m : all) {
    m.out.resize(m.in.size());
    m.expected = total;
    m.call = allreduce(m.whole_in(), m.whole_out(), how.type, how.op);
  }
  carry_out(all, "allreduce of a long vector");
}

std::vector<Form> forms() {
  std::vector<Form> forms;
  for (const Layout layout : {Layout::contiguous, Layout::interleaved, Layout::reversed, Layout::random}) {
    for (const unsigned members : {1u, 2u, 5u, 17u}) forms.push_back({members, layout});
  }
  return forms;
}

std::string name_of(const testing::TestParamInfo<Form>& info) {
  const char* const names[] = {"contiguous", "interleaved", "reversed", "random"};
  return std::string(names[static_cast<std::size_t>(info.param.layout)]) + "_" + std::to_string(info.param.members);
}

INSTANTIATE_TEST_SUITE_P(Layouts, SharedCollectives, testing::ValuesIn(forms()), name_of);

// What goes wrong in one process, and what all hear of it
// -------------------------------------------------------------------------------------------------------------------

/// Two members for each process, side by side.
class SharedFaults : public testing::Test {
 protected:
  SharedFaults() : shared_(make()) {}
  static std::unique_ptr<SharedMembers> make() {
    std::vector<unsigned> process_of;
    process_of.reserve(2 * std::size_t{processes()});
    for (unsigned m = 0; m < 2 * processes(); ++m) process_of.push_back(m / 2);
    return std::make_unique<SharedMembers>(job(), process_of, self(),
                                           processes() == 1 ? Team() : Team::world(job(), {.patience = kPatience}));
  }
  static unsigned self() { return static_cast<unsigned>(job().rank().value); }
  std::unique_ptr<Operation> start(unsigned which, const Collective& call) {
    return shared_->start(2 * self() + which, call);
  }
  static Status outcome(const std::unique_ptr<Operation>& operation) {
    return job().wait_for(std::chrono::seconds(20), *operation).status;
  }

  static constexpr auto kPatience = std::chrono::seconds(60);  // longer than anybody waits here
  std::unique_ptr<SharedMembers> shared_;
};

TEST_F(SharedFaults, members_of_one_process_that_disagree_end_it_for_all) {
  std::int32_t value = 0;
  const bool odd = self() + 1 == processes();
  const auto fine = start(0, barrier()), fine_too = start(1, barrier());
  const auto a = start(0, barrier());
  const auto b = start(1, odd ? broadcast(Buffer(&value, 4, MemoryKind::host), 0) : barrier());
  EXPECT_EQ(outcome(fine), Status::ok) << shared_->team.fault();
  EXPECT_EQ(outcome(fine_too), Status::ok);
  EXPECT_EQ(outcome(a), odd ? Status::invalid_argument : Status::canceled);
  EXPECT_EQ(outcome(b), odd ? Status::invalid_argument : Status::canceled);
  EXPECT_NE(shared_->team.fault(), "");
  EXPECT_NE(outcome(start(0, barrier())), Status::ok);
}

TEST_F(SharedFaults, processes_that_disagree_end_it_for_all) {
  if (processes() == 1) return;
  std::int32_t values[2] = {};
  for (const unsigned which : {0u, 1u}) {
    const Buffer own(&values[which], 4, MemoryKind::host);
    const auto a = start(0, barrier());
    const auto b = start(1, barrier());
    EXPECT_EQ(outcome(a), Status::ok) << which;
    EXPECT_EQ(outcome(b), Status::ok) << which;
  }
  const auto call = [&](unsigned which) {
    return self() == 0 ? barrier()
                       : allreduce(Buffer(&values[which], 4, MemoryKind::host), DataType::i32, ReduceOp::sum);
  };
  const auto a = start(0, call(0)), b = start(1, call(1));
  EXPECT_EQ(outcome(a), Status::invalid_argument);
  EXPECT_EQ(outcome(b), Status::invalid_argument);
  EXPECT_NE(shared_->team.fault(), "");
}

TEST_F(SharedFaults, a_process_that_closes_it_ends_what_others_wait_for) {
  const auto a = start(0, barrier());
  if (self() == 0) {
    shared_->team.close();  // while its other member has not come
    EXPECT_EQ(outcome(a), Status::canceled);
    return;
  }
  const auto b = start(1, barrier()), later = start(0, barrier());
  EXPECT_EQ(outcome(a), Status::canceled);
  EXPECT_EQ(outcome(b), Status::canceled);
  EXPECT_EQ(outcome(later), Status::canceled);
}

/// Without waiting in between, while the calls before are under way among the processes.
TEST_F(SharedFaults, many_calls_under_way_come_to_their_ends_in_order) {
  constexpr std::size_t kCalls = 300;
  std::vector<std::int64_t> values(2 * kCalls);
  std::vector<std::unique_ptr<Operation>> operations;
  for (std::size_t call = 0; call < kCalls; ++call) {
    for (const unsigned which : {0u, 1u}) {
      std::int64_t& value = values[call * 2 + which];
      value = static_cast<std::int64_t>(call);
      operations.push_back(start(which, allreduce(Buffer(&value, 8, MemoryKind::host), DataType::i64, ReduceOp::sum)));
    }
  }
  for (const auto& operation : operations) ASSERT_EQ(outcome(operation), Status::ok) << shared_->team.fault();
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], static_cast<std::int64_t>(i / 2) * 2 * processes());
}

/// Copies of devices may be under way then.
TEST_F(SharedFaults, it_may_go_while_calls_are_under_way) {
  const MemoryKind kind = job().device_kind();
  Memory first = job().allocate(kind, 1 << 20), second = job().allocate(kind, 1 << 20);
  std::vector<std::unique_ptr<Operation>> operations;
  for (int call = 0; call < 3; ++call) {
    operations.push_back(start(0, allreduce(Buffer(first), DataType::i32, ReduceOp::sum)));
    operations.push_back(start(1, allreduce(Buffer(second), DataType::i32, ReduceOp::sum)));
  }
  shared_.reset();
  for (const auto& operation : operations) {
    const Status status = outcome(operation);
    EXPECT_TRUE(status == Status::canceled || status == Status::ok) << status_name(status);
  }
}

}  // namespace
}  // namespace brant
