// What waits, what is refused, and what other processes may have written.
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/rpc.h"
#include "ops/rpc/service.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using remote::CallHeader;
using remote::CallKind;
using remote::Outbox;
using test::InProcessJob;

std::vector<std::uint32_t> g_came;
void take(std::uint32_t number) { g_came.push_back(number); }
std::uint32_t give_back(std::uint32_t number) { return number; }

struct Flow {
  Flow() : left(job.rank(0)), right(job.rank(1)) { g_came.clear(); }
  am::Messenger& messenger(int rank) { return job.rank(rank).worker().engine().service<am::Messenger>(); }

  InProcessJob job;
  Rpc left, right;
};

std::size_t expect_in_order() {
  for (std::size_t i = 0; i < g_came.size(); ++i) {
    if (g_came[i] != i) {
      ADD_FAILURE() << "call " << g_came[i] << " ran at place " << i;
      break;
    }
  }
  return g_came.size();
}

TEST(RpcFlow, a_flood_to_a_target_that_sleeps_is_bounded_and_arrives_in_order) {
  Flow flow;
  std::uint32_t told = 0;
  Status status = Status::ok;
  for (; told < 1'000'000; ++told) {
    status = flow.left.tell<&take>(Rank{1}, told);
    if (status != Status::ok) break;
    // Only this rank makes progress.
    if (told % 64 == 0) flow.job.rank(0).worker().progress();
  }
  EXPECT_EQ(status, Status::limit_reached);
  EXPECT_GE(told, Outbox::kCallsMax / 2);
  EXPECT_LE(told, am::Messenger::kWindowUnits + Outbox::kCallsMax);
  EXPECT_THROW(static_cast<void>(flow.left.call<&give_back>(Rank{1}, 1u)), Error);
  EXPECT_EQ(flow.left.service().answers().count(), 0u);
  ASSERT_TRUE(flow.job.run_until([&] { return g_came.size() == told; }));
  EXPECT_EQ(expect_in_order(), told);
  EXPECT_EQ(flow.left.tell<&take>(Rank{1}, told), Status::ok);
  ASSERT_TRUE(flow.job.run_until([&] { return g_came.size() == told + 1; }));
  flow.job.run(100);
  EXPECT_EQ(flow.messenger(0).lent(), 0u);
  EXPECT_EQ(flow.messenger(1).lent(), 0u);
}

TEST(RpcFlow, the_immediate_forms_refuse_at_once) {
  Flow flow;
  std::uint32_t told = 0;
  while (flow.left.try_tell<&take>(Rank{1}, told) == Status::ok && told < 1'000'000) ++told;
  EXPECT_LE(told, am::Messenger::kWindowUnits);
  EXPECT_EQ(flow.left.try_tell<&take>(Rank{1}, told), Status::limit_reached);
  EXPECT_EQ(flow.left.try_call<&give_back>(Rank{1}, 1u).status(), Status::limit_reached);
  EXPECT_EQ(flow.left.service().answers().count(), 0u);
  // What was kept goes first, so nothing may pass it.
  EXPECT_EQ(flow.left.tell<&take>(Rank{1}, told), Status::ok);
  EXPECT_EQ(flow.left.try_tell<&take>(Rank{1}, told + 1), Status::limit_reached);
  ASSERT_TRUE(flow.job.run_until([&] { return g_came.size() == told + 1; }));
  expect_in_order();
  Result<Future<std::uint32_t>> answer = flow.left.try_call<&give_back>(Rank{1}, 7u);
  ASSERT_TRUE(answer.ok());
  ASSERT_TRUE(flow.job.run_until([&] { return answer->ready(); }));
  EXPECT_EQ(answer->get(), 7u);
}

TEST(RpcFlow, calls_to_the_own_rank_are_bounded) {
  Flow flow;
  std::uint32_t told = 0;
  while (flow.left.tell<&take>(Rank{0}, told) == Status::ok && told < 1'000'000) ++told;
  EXPECT_GT(told, 1000u);
  EXPECT_LE(told, Outbox::kCallsMax);
  ASSERT_TRUE(flow.job.run_until([&] { return g_came.size() == told; }));
  expect_in_order();
  EXPECT_EQ(flow.left.tell<&take>(Rank{0}, told), Status::ok);
}

TEST(RpcFlow, a_call_larger_than_all_bounds_passes) {
  Flow flow;
  const std::vector<std::byte> large(std::size_t{40} << 20, std::byte{7});
  constexpr auto kSize = [](std::span<const std::byte> bytes) { return bytes.size(); };
  std::vector<Future<std::size_t>> sizes;
  sizes.reserve(2);
  for (int i = 0; i < 2; ++i) sizes.push_back(flow.left.call<kSize>(Rank{1}, std::span(large)));
  EXPECT_THROW(static_cast<void>(flow.left.call<kSize>(Rank{1}, std::span(large))), Error);
  for (Future<std::size_t>& size : sizes) {
    ASSERT_TRUE(flow.job.run_until([&] { return size.ready(); }));
    EXPECT_EQ(size.get(), large.size());
  }
}

TEST(RpcFlow, two_ranks_that_flood_each_other_with_calls_go_on) {
  Flow flow;
  Rpc* const rpcs[] = {&flow.left, &flow.right};
  constexpr std::uint32_t kCalls = 200'000;
  std::uint32_t called[2] = {}, answered[2] = {};
  std::vector<Future<std::uint32_t>> answers[2];
  const auto all = [&](int rank) { return answered[rank] == kCalls; };
  for (int rounds = 0; (!all(0) || !all(1)) && rounds < 1'000'000; ++rounds) {
    for (int rank = 0; rank < 2; ++rank) {
      try {
        while (called[rank] < kCalls) {
          answers[rank].push_back(rpcs[rank]->call<&give_back>(Rank{1 - rank}, called[rank]));
          ++called[rank];
        }
      } catch (const Error& error) {
        ASSERT_EQ(error.status(), Status::limit_reached);
      }
      flow.job.rank(rank).worker().progress();
      for (auto& line = answers[rank]; answered[rank] < line.size() && line[answered[rank]].ready(); ++answered[rank]) {
        ASSERT_EQ(line[answered[rank]].get(), answered[rank]);
      }
    }
  }
  EXPECT_EQ(answered[0], kCalls);
  EXPECT_EQ(answered[1], kCalls);
}

/// It has made no Rpc, so nobody there refuses.
TEST(RpcFlow, a_target_that_ends_without_remote_calls_is_waited_for_no_longer) {
  InProcessJob job;
  const Rpc here(job.rank(0));
  Future<std::uint32_t> before = here.call<&give_back>(Rank{1}, 1u);
  job.run(50);
  EXPECT_FALSE(before.ready());
  Peer& target = job.rank(0).worker().engine().peers()[1];
  target.ended = true;  // as its farewell says
  here.service().peer_ended(target);
  Future<std::uint32_t> after = here.call<&give_back>(Rank{1}, 2u);
  EXPECT_TRUE(after.ready()) << "it is not even sent";
  for (Future<std::uint32_t>* each : {&before, &after}) {
    ASSERT_TRUE(job.run_until([&] { return each->ready(); }));
    try {
      static_cast<void>(each->get());
      ADD_FAILURE() << "nobody can have answered";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::shutting_down) << error.what();
    }
  }
  EXPECT_EQ(here.service().answers().count(), 0u);
}

TEST(RpcFlow, a_target_whose_program_has_ended_refuses) {
  Flow flow;
  Future<std::uint32_t> before = flow.left.call<&give_back>(Rank{1}, 1u);
  flow.right.service().part_from(flow.job.rank(1).worker().engine().peers()[0]);
  Future<std::uint32_t> after = flow.left.call<&give_back>(Rank{1}, 2u);
  EXPECT_EQ(flow.left.tell<&take>(Rank{1}, 3u), Status::ok);
  for (Future<std::uint32_t>* each : {&before, &after}) {
    ASSERT_TRUE(flow.job.run_until([&] { return each->ready(); }));
    try {
      static_cast<void>(each->get());
      ADD_FAILURE() << "it ran";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::shutting_down);
    }
  }
  flow.job.run(50);
  EXPECT_TRUE(g_came.empty());
  EXPECT_EQ(flow.messenger(1).lent(), 0u);
}

// --- what other processes may have written
struct Spoiled : Flow {
  Status send(const CallHeader& header, std::size_t bytes, std::uint8_t fill = 0xff) {
    am::Message* message = messenger(0).make(bytes);
    message->set_header(header);
    std::memset(message->data, fill, bytes);
    return messenger(0).send(Rank{1}, am::ServiceId::rpc, *message);
  }
  [[nodiscard]] bool given_up() { return job.rank(1).worker().engine().peers()[0].lost; }
};

TEST(RpcFlow, a_function_that_the_target_does_not_know_is_an_error_that_names_it) {
  // Of another binary: enrolled here under a name of its own, and nowhere else since all ranks are one program.
  Spoiled flow;
  Future<std::uint32_t> answer = flow.left.call<&give_back>(Rank{1}, 1u);
  const std::uint32_t number = 1u << 20 | 1u;  // the first that is waited for
  ASSERT_EQ(flow.messenger(1).lent(), 0u);
  am::Message* message = flow.messenger(1).make(0);
  message->set_header(CallHeader{0x1234, number, CallKind::unknown});
  ASSERT_EQ(flow.messenger(1).send(Rank{0}, am::ServiceId::rpc, *message), Status::ok);
  flow.job.rank(0).worker().progress();
  ASSERT_TRUE(flow.job.run_until([&] { return answer.ready(); }));
  try {
    static_cast<void>(answer.get());
    FAIL() << "it was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::not_found);
    EXPECT_NE(std::string(error.what()).find("give_back"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("same binary"), std::string::npos) << error.what();
  }
}

TEST(RpcFlow, a_hash_that_names_nothing_is_answered) {
  Spoiled flow;
  ASSERT_EQ(flow.send({0x1234, 77, CallKind::call}, 8), Status::ok);
  flow.job.run(50);
  EXPECT_FALSE(flow.given_up());
  EXPECT_EQ(flow.messenger(1).counts().sent, 1u);
  EXPECT_EQ(flow.messenger(1).lent(), 0u);
}

TEST(RpcFlow, headers_that_nobody_writes_give_the_peer_up) {
  for (const CallHeader& header :
       {CallHeader{1, 1, CallKind{}}, CallHeader{1, 1, static_cast<CallKind>(9)}, CallHeader{1, 0, CallKind::result},
        CallHeader{1, 0, CallKind::failure}, CallHeader{0x1234, 0, CallKind::unknown}}) {
    Spoiled flow;
    ASSERT_EQ(flow.send(header, 8), Status::ok);
    flow.job.run(50);
    EXPECT_TRUE(flow.given_up()) << static_cast<int>(header.kind);
  }
}

TEST(RpcFlow, arguments_that_cannot_be_read) {
  using Texts = std::vector<std::string>;
  constexpr auto kCount = [](const Texts& texts) { return texts.size(); };
  const std::uint64_t hash = remote::FunctionOf<kCount>::get().hash;
  {
    Spoiled flow;  // who waits is told
    ASSERT_EQ(flow.send({hash, 77, CallKind::call}, 8), Status::ok);
    flow.job.run(50);
    EXPECT_FALSE(flow.given_up());
    EXPECT_EQ(flow.messenger(1).counts().sent, 1u);
  }
  Spoiled flow;  // nobody waits
  ASSERT_EQ(flow.send({hash, 0, CallKind::call}, 8), Status::ok);
  flow.job.run(50);
  EXPECT_TRUE(flow.given_up());
  EXPECT_EQ(flow.messenger(1).lent(), 0u);
}

TEST(RpcFlow, answers_that_nobody_waits_for_are_dropped) {
  Spoiled flow;
  for (const std::uint32_t number : {1u, 1u << 20 | 1u, ~0u}) {
    ASSERT_EQ(flow.send({0, number, CallKind::result}, 8), Status::ok);
    ASSERT_EQ(flow.send({~0ull, number, CallKind::failure}, 8), Status::ok);
  }
  flow.job.run(50);
  EXPECT_FALSE(flow.given_up());
  EXPECT_EQ(flow.messenger(1).lent(), 0u);
}

}  // namespace
}  // namespace brant
