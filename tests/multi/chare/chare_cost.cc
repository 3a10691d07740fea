// What chares cost, in figures: one line each, and one row with --json. Alone: creation, memory, invocations in one
// process. With two ranks (`brant run -n 2 -- chare_cost`): a ping-pong between processes.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/runner/row.h"
#include "brant/chare.h"

namespace brant {
namespace {

using Clock = std::chrono::steady_clock;

double ns_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

/// One line on standard output for each figure, and a row in the file if there is one.
class Figures {
 public:
  Figures(const std::string& path, Runtime& runtime)
      : file_(path), machine_(brant::bench::describe_machine(runtime)), ranks_(runtime.size()) {}

  void tell(const std::string& what, double figure, const std::string& unit, const std::string& remark = "") {
    fmt::print("{:<36} {:>10.4g} {}{}{}\n", what, figure, unit, remark.empty() ? "" : "  ", remark);
    std::fflush(stdout);
    nlohmann::ordered_json row = {{"bench", "chare_cost"},
                                  {"what", what},
                                  {"ranks", ranks_},
                                  {"figure", brant::bench::rounded(figure)},
                                  {"unit", unit}};
    brant::bench::add_machine(row, "", machine_);
    file_.append(row.dump());
  }

 private:
  brant::bench::RowFile file_;
  const brant::bench::Machine machine_;
  const int ranks_;
};

/// Holds nothing: what it costs is the runtime's.
class Idle : public Chare<Idle> {};

class Ball : public Chare<Ball> {
 public:
  /// Sends the ball to and fro `left` times.
  void hit(std::uint64_t left) {
    if (left == 0) {
      done_.deliver();
      return;
    }
    partner_.call<&Ball::hit>(left - 1);
  }
  Task<void> serve(std::uint64_t hits) {
    partner_.call<&Ball::hit>(hits);
    co_await done_.future();
    done_ = {};
  }
  void meet(Element<Ball> partner) { partner_ = partner; }
  void nothing(std::uint64_t) { ++count; }
  void flood(Element<Ball> target, int calls) {
    for (int i = 0; i < calls; ++i) target.call<&Ball::nothing>(static_cast<std::uint64_t>(i));
  }
  std::uint64_t counted() { return count; }

  /// As `hit`, but a coroutine on each side takes the ball.
  void ball(std::uint64_t) {}
  Task<void> play(std::uint64_t hits, bool serves) {
    for (std::uint64_t hit = 0; hit < hits; ++hit) {
      if (serves) partner_.call<&Ball::ball>(hit);
      co_await when<&Ball::ball>(hit);
      if (!serves) partner_.call<&Ball::ball>(hit);
    }
  }
  Task<void> reduce(int rounds) {
    for (int round = 0; round < rounds; ++round) static_cast<void>(co_await all_reduce<reduce::Sum>(1.0));
  }

  std::uint64_t count = 0;

 private:
  Element<Ball> partner_;
  Promise<> done_;
};

double best(std::vector<double> values) { return *std::min_element(values.begin(), values.end()); }

Task<double> ping_pong(Array<Ball> balls, int first, int second) {
  constexpr std::uint64_t kHits = 20'000;
  balls[first].call<&Ball::meet>(balls[second]);
  balls[second].call<&Ball::meet>(balls[first]);
  std::vector<double> rounds;
  for (int round = 0; round < 10; ++round) {
    const auto begin = Clock::now();
    // An even number of hits ends where it began... with the partner of the server: odd, so that the server is told.
    co_await balls[first].ask<&Ball::serve>(kHits + 1);
    rounds.push_back(ns_since(begin) / (kHits + 2));
  }
  co_return best(rounds);
}

Task<double> invocations(Array<Ball> balls, CallOptions options) {
  constexpr int kCalls = 50'000;
  std::vector<double> rounds;
  for (int round = 0; round < 10; ++round) {
    const auto begin = Clock::now();
    for (int i = 0; i < kCalls; ++i) balls[1].with(options).call<&Ball::nothing>(std::uint64_t{1});
    static_cast<void>(co_await balls[1].ask<&Ball::counted>());
    rounds.push_back(ns_since(begin) / kCalls);
  }
  co_return best(rounds);
}

Task<double> when_ping_pong(Array<Ball> balls) {
  constexpr std::uint64_t kHits = 10'000;
  std::vector<double> rounds;
  for (int round = 0; round < 10; ++round) {
    const auto begin = Clock::now();
    auto second = balls[1].ask<&Ball::play>(kHits, false);
    co_await balls[0].ask<&Ball::play>(kHits, true);
    co_await second;
    rounds.push_back(ns_since(begin) / (2 * kHits));
  }
  co_return best(rounds);
}

/// Of `elements` elements, each of which waits for the result.
Task<double> reductions(Chares& chares, int elements) {
  constexpr int kRounds = 500;
  const Array<Ball> many = create_array<Ball>(chares, elements, Placement::block());
  std::vector<double> rounds;
  for (int round = 0; round < 10; ++round) {
    const auto begin = Clock::now();
    std::vector<Future<void>> done;
    for (int i = 0; i < elements; ++i) done.push_back(many[i].ask<&Ball::reduce>(kRounds));
    for (Future<void>& each : done) co_await each;
    rounds.push_back(ns_since(begin) / kRounds);
  }
  co_return best(rounds);
}

Task<double> flood(Array<Ball> balls) {
  constexpr int kCalls = 100'000;
  std::vector<double> rounds;
  for (int round = 0; round < 5; ++round) {
    const std::uint64_t before = co_await balls[1].ask<&Ball::counted>();
    const auto begin = Clock::now();
    for (int i = 0; i < kCalls; ++i) balls[1].call<&Ball::nothing>(std::uint64_t{1});
    while (co_await balls[1].ask<&Ball::counted>() < before + kCalls) {
    }
    rounds.push_back(ns_since(begin) / kCalls);
  }
  co_return best(rounds);
}

Task<void> creation(Chares& chares, Figures& figures) {
  constexpr int kChares = 1'000'000;
  const auto before = ::mallinfo2();
  const auto begin = Clock::now();
  static_cast<void>(create_array<Idle>(chares, kChares, Placement::block()));
  while (chares.counts().elements < kChares)
    co_await sleep_for(chares.runtime().worker(), std::chrono::milliseconds(1));
  const double seconds = ns_since(begin) / 1e9;
  const auto after = ::mallinfo2();
  const auto bytes = static_cast<double>(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd);
  figures.tell("create 1,000,000 chares", seconds, "s", "(budget 2)");
  figures.tell("memory of an idle chare", bytes / kChares, "bytes", "(budget 256)");
}

/// A ball that is data: a buffer goes to and fro, and lands in the partner's own.
class DataBall : public Chare<DataBall> {
 public:
  void hit(DeviceData ball, std::uint64_t left) {
    if (left == 0) return done_.deliver();
    partner_.call<&DataBall::hit>(device(ball), left - 1);
  }
  Buffer post(Post<&DataBall::hit>, const DeviceMeta& ball, std::uint64_t) {
    if (room_.bytes() < ball.bytes) room_ = chares().runtime().allocate(chares().runtime().device_kind(), ball.bytes);
    return {room_.data(), ball.bytes, room_.kind()};
  }
  Task<double> serve(std::uint64_t hits, std::uint64_t bytes) {
    Memory ball = chares().runtime().allocate(chares().runtime().device_kind(), bytes);
    const auto begin = Clock::now();
    partner_.call<&DataBall::hit>(device(ball), hits);
    co_await done_.future();
    done_ = {};
    co_return ns_since(begin) / static_cast<double>(hits + 1);
  }
  void meet(Element<DataBall> partner) { partner_ = partner; }

 private:
  Element<DataBall> partner_;
  Memory room_;
  Promise<> done_;
};

/// The same over a channel: what the data alone costs.
class Echo : public Chare<Echo> {
 public:
  void open() { channel_ = Channel::open(chares().runtime(), Rank{1 - chares().rank().value}, ChannelId{1}); }
  Task<double> play(bool begins, std::uint64_t hits, std::uint64_t bytes) {
    Runtime& runtime = chares().runtime();
    Memory out = runtime.allocate(runtime.device_kind(), bytes), in = runtime.allocate(runtime.device_kind(), bytes);
    const auto begin = Clock::now();
    for (std::uint64_t i = 0; i < hits; i += 2) {
      Operation incoming = channel_.recv(in);
      OpResult got;
      if (!begins) got = co_await incoming;
      const OpResult sent = co_await channel_.send(out);
      if (begins) got = co_await incoming;
      if (!got.ok() || !sent.ok()) throw Error(Status::peer_lost, "a ball did not come or go");
    }
    co_return ns_since(begin) / static_cast<double>(hits);
  }

 private:
  Channel channel_;
};

Task<void> data_costs(Chares& chares, Figures& figures) {
  const Group<DataBall> balls = create_group<DataBall>(chares);
  const Group<Echo> echoes = create_group<Echo>(chares);
  co_await balls[0].ask<&DataBall::meet>(balls[1]);
  co_await balls[1].ask<&DataBall::meet>(balls[0]);
  for (int i = 0; i < 2; ++i) co_await echoes[i].ask<&Echo::open>();
  for (std::uint64_t bytes = 8; bytes <= std::uint64_t{16} << 20; bytes = bytes == 8 ? 1 << 20 : bytes * 4) {
    const std::uint64_t hits = bytes == 8 ? 20'000 : (std::uint64_t{1} << 30) / bytes;
    std::vector<double> by_channel, by_call;
    for (int round = 0; round < 7; ++round) {
      auto first = echoes[0].ask<&Echo::play>(true, hits, bytes);
      static_cast<void>(co_await echoes[1].ask<&Echo::play>(false, hits, bytes));
      by_channel.push_back(co_await first);
      by_call.push_back(co_await balls[0].ask<&DataBall::serve>(hits + 1, bytes));
    }
    const double alone = best(by_channel) / 1000, whole = best(by_call) / 1000;
    figures.tell(fmt::format("data argument of {} B, one way", bytes), whole, "us",
                 fmt::format("({:+.3f} us, {:+.1f} %)", whole - alone, (whole / alone - 1) * 100));
    figures.tell(fmt::format("channel message of {} B, one way", bytes), alone, "us");
  }
}

Task<void> measure(Chares& chares, Figures& figures) {
  Array<Ball> balls = create_array<Ball>(chares, 2, Placement::round_robin());
  if (chares.size() == 1) {
    co_await creation(chares, figures);
    figures.tell("call in one process, queued", co_await invocations(balls, {}), "ns", "(budget 150)");
    figures.tell("call in one process, inline", co_await invocations(balls, {.inline_when_local = true}), "ns");
    figures.tell("ping-pong of two chares, 8 B", co_await ping_pong(balls, 0, 1), "ns a hit");
    balls[0].call<&Ball::meet>(balls[1]);
    balls[1].call<&Ball::meet>(balls[0]);
    figures.tell("ping-pong with when", co_await when_ping_pong(balls), "ns a hit");
    figures.tell("all_reduce of 64 elements", co_await reductions(chares, 64) / 64, "ns an element");
  } else {
    co_await data_costs(chares, figures);
    figures.tell("call between processes, 8 B, one way", co_await ping_pong(balls, 0, 1) / 1000, "us", "(budget 1.0)");
    figures.tell("the same with when", co_await when_ping_pong(balls) / 1000, "us");
    figures.tell("all_reduce, one element per rank", co_await reductions(chares, chares.size()) / 1000, "us");
    figures.tell("all_reduce, 16 elements per rank", co_await reductions(chares, 16 * chares.size()) / 1000, "us");
    figures.tell("stream of calls between processes", co_await flood(balls), "ns a call");
  }
}

}  // namespace
}  // namespace brant

int main(int argc, char** argv) {
  std::string json;
  CLI::App app("What chares cost: alone, or as two ranks under `brant run`.");
  app.add_option("--json", json, "append a row for each figure to this file");
  CLI11_PARSE(app, argc, argv);
  brant::Runtime runtime;
  brant::Figures figures(json, runtime);
  brant::Chares chares(runtime);
  return chares.run(brant::measure(chares, figures));
}
