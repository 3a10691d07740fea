// Runs as both ranks of a job: entry methods that are enrolled while the program runs, in other orders on other ranks.
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/chare.h"
#include "models/chare/core.h"
#include "support/job_runtime.h"

namespace brant {
namespace {

using detail::EntryInfo;
using test::job;

class Host;

/// What a library brings along: an entry method that is in no list before it is opened.
struct Late {
  Late(const char* name, void (*invoke)(ChareBase&, ReadArchive&, detail::Invocation&))
      : entry{{detail::RegisteredKind::entry, detail::name_hash("late", name), "Host", name, "void (int)"}, invoke} {}
  void open() {
    if (!opened) opened = detail::enroll(entry);
  }

  EntryInfo entry;
  bool opened = false;
};
extern std::array<Late, 7> g_late;

class Host : public Chare<Host, Index<1>> {
 public:
  template <int Which>
  void late(int value) {
    said_ += std::to_string(Which) + ":" + std::to_string(value) + " ";
  }
  void known(int value) { late<-1>(value); }
  std::string said() { return said_; }
  /// Opens one library after the other.
  Task<int> enroll(std::vector<int> order) {
    for (const int which : order) {
      g_late[static_cast<std::size_t>(which)].open();
      co_await chares().enroll_late();
    }
    co_return 0;
  }
  bool has_number(int which) { return g_late[static_cast<std::size_t>(which)].entry.number != detail::kNoNumber; }

 private:
  std::string said_;
};

template <int Which>
Late late_entry() {
  return {std::array{"a", "b", "c", "d", "e", "f", "g"}[Which], &detail::EntryOf<Host, &Host::late<Which>>::invoke};
}
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): memory of some bytes, before the test begins
std::array<Late, 7> g_late = {late_entry<0>(), late_entry<1>(), late_entry<2>(), late_entry<3>(),
                              late_entry<4>(), late_entry<5>(), late_entry<6>()};

void call(Chares& chares, const Array<Host>& hosts, int rank, int which, int value) {
  detail::Core& core = chares.core();
  const detail::Target target{hosts.collection(), detail::ElementKey::of(Index<1>{rank})};
  const auto open = [&](std::size_t bytes) {
    return detail::open_call(core, target, g_late[static_cast<std::size_t>(which)].entry, {}, 0, bytes);
  };
  detail::Outgoing outgoing = detail::pack(open, value);
  detail::post(core, outgoing);
}

// g++ 12 takes no list in braces inside co_await.
template <typename... Numbers>
std::vector<int> these(Numbers... numbers) {
  return {numbers...};
}

Array<Host> one_on_each_rank(Chares& chares) {
  return create_array<Host>(chares, {chares.size()}, Placement::round_robin());
}

Task<void> in_different_orders(Chares& chares) {
  const Array<Host> hosts = one_on_each_rank(chares);
  co_await hosts[{0}].ask<&Host::enroll>(these(0, 1));
  co_await hosts[{1}].ask<&Host::enroll>(these(1, 0));
  EXPECT_NE(g_late[0].entry.number, g_late[1].entry.number);
  for (const int rank : {0, 1}) {
    call(chares, hosts, rank, 0, 10);
    call(chares, hosts, rank, 1, 11);
    EXPECT_EQ(co_await hosts[{rank}].ask<&Host::said>(), "0:10 1:11 ");
  }
}

TEST(LateEnrolment, numbers_agree_between_ranks_that_enrolled_in_different_orders) {
  Chares chares(job());
  EXPECT_EQ(chares.run(in_different_orders(chares)), 0) << chares.failure();
}

Task<void> before_it_is_known(Chares& chares) {
  const Array<Host> hosts = one_on_each_rank(chares);
  co_await hosts[{0}].ask<&Host::enroll>(these(2));
  call(chares, hosts, 1, 2, 20);
  call(chares, hosts, 1, 2, 21);
  hosts[{1}].call<&Host::known>(1);
  EXPECT_EQ(co_await hosts[{1}].ask<&Host::said>(), "-1:1 ") << "nobody has enrolled the other there";
  co_await hosts[{1}].ask<&Host::enroll>(these(2));
  EXPECT_EQ(co_await hosts[{1}].ask<&Host::said>(), "-1:1 2:20 2:21 ");
}

TEST(LateEnrolment, call_that_comes_before_waits_and_runs_afterwards) {
  Chares chares(job());
  EXPECT_EQ(chares.run(before_it_is_known(chares)), 0) << chares.failure();
}

Task<void> without_a_number(Chares& chares) {
  const Array<Host> hosts = one_on_each_rank(chares);
  g_late[3].open();
  std::string text;
  try {
    call(chares, hosts, 0, 3, 30);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument);
    text = error.what();
  }
  EXPECT_NE(text.find("Host::d (void (int)) was enrolled after Chares was made"), std::string::npos) << text;
  EXPECT_NE(text.find("enroll_late()"), std::string::npos) << text;
  co_await chares.enroll_late();
  co_await chares.enroll_late();  // nothing is new
  call(chares, hosts, 0, 3, 31);
  EXPECT_EQ(co_await hosts[{0}].ask<&Host::said>(), "3:31 ");
}

TEST(LateEnrolment, call_without_a_number_is_refused) {
  Chares chares(job());
  EXPECT_EQ(chares.run(without_a_number(chares)), 0) << chares.failure();
}

/// A rank other than 0 is the first, and asks for several at once.
Task<void> first_on_rank_1(Chares& chares) {
  const Array<Host> hosts = one_on_each_rank(chares);
  co_await hosts[{1}].ask<&Host::enroll>(these(4));
  EXPECT_FALSE(co_await hosts[{0}].ask<&Host::has_number>(4)) << "a rank that has not the library needs no number";
  co_await hosts[{0}].ask<&Host::enroll>(these(4));
  call(chares, hosts, 1, 4, 40);
  EXPECT_EQ(co_await hosts[{1}].ask<&Host::said>(), "4:40 ");
}

TEST(LateEnrolment, begins_on_any_rank) {
  Chares chares(job());
  EXPECT_EQ(chares.run(first_on_rank_1(chares)), 0) << chares.failure();
}

Task<void> never_known(Chares& chares, int calls) {
  const Array<Host> hosts = one_on_each_rank(chares);
  co_await hosts[{0}].ask<&Host::enroll>(these(5));
  for (int i = 0; i < calls; ++i) call(chares, hosts, 1, 5, i);
  co_await chares.until_exit();
}

/// What rank 1 says, or rank 0 in its report.
void expect_failure(int calls, const ChareOptions& options, int rank, const std::string& part) {
  Chares chares(job(), options);
  EXPECT_EQ(chares.run(never_known(chares, calls)), 1);
  if (job().rank().value == rank) {
    EXPECT_NE(chares.failure().find(part), std::string::npos) << chares.failure();
    EXPECT_NE(chares.failure().find("enroll_late()"), std::string::npos) << chares.failure();
  }
}

TEST(LateEnrolment, so_many_calls_that_wait_are_an_error) {
  expect_failure(static_cast<int>(detail::Enrolment::kParkedMax) + 1, {}, 1, "4096 messages");
}

TEST(LateEnrolment, program_that_waits_for_a_library_for_ever_is_told_so) {
  ChareOptions options;
  options.deadlock_after = std::chrono::milliseconds(100);
  expect_failure(2, options, 0, "2 messages on rank 1 (the first from rank 0) wait for chare classes");
}

}  // namespace
}  // namespace brant
