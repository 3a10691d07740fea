// Messages of channels, of every path and shape, one allocation after the other failing.
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "conformance/moves/allocation_sweep.h"
#include "support/environment.h"

namespace brant {
namespace {

using test::Fails;
using test::JobOptions;
using test::pattern;
using test::ScarceJob;
using test::ScarceMemory;
using test::Space;
using test::sweep_allocations;
using test::tells_of_memory;

/// What lies between the two ends.
struct Between {
  const char* name;
  int ranks;
  bool links;
  bool network_takes_device;
};

constexpr Between kBetween[] = {{"own_process", 1, false, false},
                                {"own_host", 2, true, false},
                                {"other_host", 2, false, false},
                                {"network_of_devices", 2, false, true}};

struct Kinds {
  const char* name;
  MemoryKind from;
  MemoryKind to;
};

constexpr Kinds kKinds[] = {{"host", MemoryKind::host, MemoryKind::host},
                            {"device", MemoryKind::emulated, MemoryKind::emulated},
                            {"to_device", MemoryKind::host, MemoryKind::emulated},
                            {"from_device", MemoryKind::emulated, MemoryKind::host}};

enum class Order { receive_first, send_first };

struct Case {
  Between between;
  Kinds kinds;
  Path path;
  Fails fails;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Between& between : kBetween) {
    for (const Kinds& kinds : kKinds) {
      const bool host = kinds.from == MemoryKind::host && kinds.to == MemoryKind::host;
      for (const Path path : {Path::automatic, Path::ucx, Path::staged, Path::copy_engine, Path::courier}) {
        if (host && path != Path::automatic && path != Path::ucx) continue;
        if (between.network_takes_device && (host || path != Path::ucx)) continue;
        if ((path == Path::copy_engine || path == Path::courier) && between.ranks == 2 && !between.links) continue;
        for (const Fails fails : {Fails::once, Fails::from_then_on}) cases.push_back({between, kinds, path, fails});
      }
    }
  }
  return cases;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return std::string(c.between.name) + "_" + c.kinds.name + "_" + std::string(path_name(c.path)) +
         (c.fails == Fails::once ? "" : "_for_good");
}

/// One message from one end to the other, and what became of it.
class Exchange {
 public:
  Exchange(const Case& of, std::size_t bytes, bool shaped)
      : case_(of), job_(options_of(of)), shape_(shape_of(bytes, shaped)) {}

  /// False: the path cannot serve such memory.
  bool open() {
    const int other = case_.between.ranks - 1;
    left_.emplace(Channel::open(job_->rank(0), Rank{other}, ChannelId{7}));
    right_.emplace(Channel::open(job_->rank(other), Rank{0}, ChannelId{7}));
    source_.emplace(job_->rank(0), case_.kinds.from, room());
    landing_.emplace(job_->rank(other), case_.kinds.to, room());
    source_->fill(pattern(room(), 3));
    job_->run(20);
    return left_->path_of(source_->whole(), shape_).ok() && right_->path_of(landing_->whole(), shape_).ok();
  }
  /// Whether the allocation was come to.
  bool run(unsigned nth, Order order) {
    ScarceMemory scarce(nth, case_.fails);
    if (order == Order::receive_first) {
      receive();
      job_->run(20);
      send();
    } else {
      send();
      job_->run(20);
      receive();
    }
    for (int round = 0; round < kRounds && !ended() && !refused(); ++round) job_->run(1);
    scarce.end();
    if (refused()) {
      EXPECT_TRUE(scarce.failed());
      again();
    }
    // An end that could not even remember which message it lost takes no more until it is opened again.
    if (received_.refused && case_.fails == Fails::from_then_on) reopen();
    EXPECT_TRUE(job_.run_until([this] { return ended(); })) << "never ends";
    job_->run(20);
    return scarce.failed();
  }
  void expect_told(bool failed) {
    expect_told(sent_, failed);
    expect_told(received_, failed);
    if (received_.status != Status::ok) return;
    EXPECT_EQ(received_.op.result.bytes, shape_.bytes());
    expect_landed();
  }
  void expect_order_goes_on() {
    if (job_.parted()) return job_.part_wholly();
    send();
    receive();
    if (case_.fails == Fails::from_then_on && received_.refused) {
      reopen();
      send();
      receive();
    }
    EXPECT_TRUE(job_.run_until([this] { return ended(); })) << "the next one never ends";
    EXPECT_EQ(sent_.status, Status::ok) << status_name(sent_.status);
    EXPECT_EQ(received_.status, Status::ok) << status_name(received_.status);
    expect_landed();
  }
  void close() {
    job_->run(20);
    left_->close();
    right_->close();
    job_.expect_nothing_left();
  }

 private:
  static constexpr int kRounds = 2'000;

  void reopen() {
    left_->close();
    right_->close();
    EXPECT_TRUE(job_.run_until([this] { return sent_.ended(); }));
    job_->run(50);
    const int other = case_.between.ranks - 1;
    *left_ = Channel::open(job_->rank(0), Rank{other}, ChannelId{7});
    *right_ = Channel::open(job_->rank(other), Rank{0}, ChannelId{7});
    job_->run(20);
  }

  static JobOptions options_of(const Case& of) {
    JobOptions options;
    options.ranks = of.between.ranks;
    options.gpu = GpuChoice::emulated;
    options.links = of.between.links;
    options.network_takes_device = of.between.network_takes_device;
    options.runtime.path = of.path;
    return options;
  }
  static Shape shape_of(std::size_t bytes, bool shaped) {
    if (!shaped) return Shape::contiguous(bytes);
    const ShapeDim dim{.count = bytes / 8, .stride = 24};
    return *Shape::strided(0, 8, {&dim, 1});
  }
  [[nodiscard]] std::size_t room() const { return shape_.end() + 1; }

  void send() {
    sent_.start(Moment::source_free,
                [this](Op& op) noexcept { return left_->post_send(source_->whole(), shape_, op); });
  }
  void receive() {
    received_.start(Moment::delivered,
                    [this](Op& op) noexcept { return right_->post_recv(landing_->whole(), shape_, op); });
  }
  [[nodiscard]] bool ended() const { return sent_.ended() && received_.ended(); }
  [[nodiscard]] bool refused() const { return sent_.refused || received_.refused; }
  void again() {
    if (sent_.refused) send();
    if (received_.refused) receive();
    EXPECT_FALSE(refused() && case_.fails == Fails::once) << "there is memory again";
  }
  void expect_told(const test::Told& told, bool failed) const {
    const bool closed =
        case_.fails == Fails::from_then_on && told.status == Status::canceled;  // with an end that refused
    EXPECT_TRUE(told.status == Status::ok || (failed && (closed || tells_of_memory(told.status))))
        << status_name(told.status);
    EXPECT_EQ(told.times, 1);
  }
  void expect_landed() {
    const std::vector<std::byte> image = landing_->image(), sent = pattern(room(), 3);
    const bool contiguous = shape_.form() == Shape::Form::contiguous;
    for (std::size_t i = 0; i < shape_.end(); ++i) {
      const bool in_a_run = contiguous || i % 24 < 8;
      ASSERT_TRUE(!in_a_run || image[i] == sent[i]) << "byte " << i;
    }
  }

  const Case case_;
  ScarceJob job_;
  const Shape shape_;
  std::optional<Channel> left_, right_;
  std::optional<Space> source_, landing_;
  test::Told sent_, received_;
};

class ChannelMemorySweep : public testing::TestWithParam<Case> {};

bool takes_device(const Case& one) { return one.kinds.from != MemoryKind::host || one.kinds.to != MemoryKind::host; }

TEST_P(ChannelMemorySweep, both_ends_are_told_and_the_next_message_arrives) {
  const test::ScopedVariable couriers("BRANT_COURIER", GetParam().path == Path::courier ? "1" : "0");
  for (const bool shaped : {false, true}) {
    for (const std::size_t bytes : {std::size_t{64}, std::size_t{4000}, std::size_t{100'000}}) {
      for (const Order order : {Order::receive_first, Order::send_first}) {
        if (GetParam().fails == Fails::from_then_on && order == Order::send_first) continue;
        if (takes_device(GetParam()) && bytes == 4000) continue;  // as 64 B, or as the largest
        SCOPED_TRACE(testing::Message() << bytes << (shaped ? " B shaped" : " B")
                                        << (order == Order::send_first ? ", sent first" : ""));
        sweep_allocations([&](unsigned nth) {
          Exchange exchange(GetParam(), bytes, shaped);
          if (!exchange.open()) return false;
          const bool failed = exchange.run(nth, order);
          exchange.expect_told(failed);
          exchange.expect_order_goes_on();
          exchange.close();
          return failed;
        });
        if (HasFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Moves, ChannelMemorySweep, testing::ValuesIn(all_cases()), name_of);

}  // namespace
}  // namespace brant
