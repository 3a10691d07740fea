// What the timeline says of messages: the arrow from a send to what it caused runs forward in time.
#include "core/observe/trace.h"

#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "end.h"
#include "port/wire/faulty/faulty.h"
#include "support/environment.h"
#include "support/temporary_folder.h"

namespace brant::am {
namespace {

/// Notes each message that it handles on the timeline, as models do their entry methods.
struct TracedService {
  explicit TracedService(Runtime& runtime)
      : engine(runtime.worker().engine()), messenger(engine.service<Messenger>()), rank(engine.job().rank) {
    messenger.claim(
        ServiceId::test, [](void* self, Message& message) noexcept { static_cast<TracedService*>(self)->run(message); },
        nullptr, this);
  }
  ~TracedService() { messenger.claim(ServiceId::test, nullptr, nullptr, nullptr); }
  void run(Message& message) noexcept {
    Trace::Event event;
    event.begin = event.end = Clock::now();
    event.name = "handled";
    event.flow = Trace::flow_of(message.wire.source, rank, message.wire.sequence);
    engine.trace()->add(event);
    messenger.release(message);
    ++handled;
  }
  Engine& engine;
  Messenger& messenger;
  int rank;
  int handled = 0;
};

TEST(MessengerTrace, a_message_leaves_before_it_is_handled) {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/trace.json";
  const test::ScopedVariable traced("BRANT_TRACE", file.c_str());
  constexpr int kMessages = 5;
  {
    std::function<void()> receive = [] {};
    JobOptions options;
    options.wrap = [&](int rank, std::unique_ptr<port::Wire> wire) -> std::unique_ptr<port::Wire> {
      port::FaultPolicy policy;
      if (rank == 0) policy.while_posting = [&] { receive(); };
      return std::make_unique<port::FaultyWire>(std::move(wire), policy);
    };
    InProcessJob job(options);
    TracedService left(job.rank(0)), right(job.rank(1));
    const auto send = [&] {
      return left.messenger.send(Rank{1}, ServiceId::test, *left.messenger.make(100), Flow::credit);
    };
    // Before the first message goes what introduces the rank, during whose post nothing can be handled.
    ASSERT_EQ(send(), Status::ok);
    ASSERT_TRUE(job.run_until([&] { return right.handled == 1; }));
    receive = [&] {
      const int before = right.handled;
      const TimePoint deadline = deadline_after(std::chrono::seconds(30));
      while (right.handled == before && Clock::now() < deadline) job.rank(1).worker().progress();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // to be seen on any clock
    };
    for (int i = 1; i < kMessages; ++i) {
      ASSERT_EQ(send(), Status::ok);
      ASSERT_EQ(right.handled, i + 1) << "handled while it was posted";
    }
    receive = [] {};
    for (const TracedService* side : {&left, &right}) side->engine.trace()->write();
  }
  std::map<std::uint64_t, double> left_at, handled_at;
  for (const nlohmann::json& event : nlohmann::json::parse(std::ifstream(file))) {
    if (event.at("ph") == "s") left_at[event.at("id")] = event.at("ts");
    if (event.at("ph") == "f") handled_at[event.at("id")] = event.at("ts");
  }
  ASSERT_EQ(handled_at.size(), static_cast<std::size_t>(kMessages));
  for (const auto& [flow, at] : handled_at) EXPECT_LE(left_at.at(flow), at);
}

}  // namespace
}  // namespace brant::am
