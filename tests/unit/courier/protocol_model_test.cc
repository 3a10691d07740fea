// The courier's protocol, its own source, under every schedule with a few deviations and many by chance: bytes are
// there when the flag is, nothing is lost or done twice however the courier leaves. And the checker finds faults that
// were put in.
#include <deque>
#include <memory>

#include <gtest/gtest.h>

#include "ops/courier/dispatcher.h"
#include "ops/courier/order_book.h"
#include "ops/courier/worker_group.h"
#include "support/effort.h"
#include "support/model/explore.h"
#include "unit/courier/model_machine.h"

namespace brant::test {
namespace {

using namespace courier;
using model::Faults;
using model::ModelMachine;
using model::Scheduler;

constexpr std::uint32_t kSmall = 8;
constexpr std::uint32_t kLarge = 8192;  // two parts

struct Scenario {
  unsigned orders = 2;
  std::uint32_t bytes = kSmall;
  unsigned groups = 1;
  unsigned dispatchers = 1;
  /// The CPU's threads are on the far side of a bus, to which fences carry nothing: as weak as PTX's memory model.
  bool by_model = false;
};

/// A CPU that posts and relaunches, a receiver that polls the flags, a dispatcher and its groups.
class World {
 public:
  World(Scheduler& scheduler, Scenario scenario, Faults faults)
      : scheduler_(scheduler), scenario_(scenario), faults_(faults) {
    scheduler_.far_threads = scenario.by_model ? 2 : 0;
    scheduler_.on_stuck = [this] {
      clock_ns_ += 1000;
      return ++stuck_ < 64;
    };
  }

  std::vector<std::function<void()>> make() {
    host_ = std::make_unique<HostDesk>();
    device_ = std::make_unique<DeviceDesk>();
    block_ = std::make_unique<BlockDesk>();
    for (auto& order : data_) order = {};
    for (unsigned i = 0; i < kOrdersMax; ++i) data_[i].from[0] = data_[i].from[kLarge / 16] = 1000 + i;
    clock_ns_ = requested_ = prepared_ = ended_ = closed_ = 0;
    stuck_ = copies_ = 0;
    launches_.clear();
    std::vector<std::function<void()>> bodies{[this] { post_all(); }, [this] { receive_all(); }, [this] { dispatch(); },
                                              [this] { work_beside(); }};
    for (unsigned i = 1; i < scenario_.dispatchers; ++i) bodies.emplace_back([this, i] { dispatch_too(i); });
    for (unsigned i = 1; i < scenario_.groups; ++i) bodies.emplace_back([this] { work_apart(); });
    return bodies;
  }
  void check() {
    const unsigned each = scenario_.bytes == kLarge && scenario_.groups > 1 ? 2 : 1;
    if (copies_ < scenario_.orders || copies_ > scenario_.orders * each) wrong = "an order was done twice, or never";
  }
  std::string wrong;

 private:
  static constexpr unsigned kOrdersMax = 4;
  struct Data {
    std::uint64_t from[kLarge / 8];
    std::uint64_t to[kLarge / 8];
    std::uint64_t flag;
    unsigned times;
  };

  ModelMachine machine() { return {scheduler_, faults_, clock_ns_, copies_}; }

  void post_all() {
    ModelMachine cpu = machine();
    OrderBook<ModelMachine> book(cpu, *host_, scenario_.dispatchers);
    using Courier = OrderBook<ModelMachine>::Courier;
    unsigned posted = 0;
    while (book.done() < scenario_.orders) {
      if (book.courier() == Courier::away) launch(book, cpu);
      const CourierOrder order{data_[posted].to, data_[posted].from, scenario_.bytes, 1, &data_[posted].flag};
      const bool came_on = posted < scenario_.orders && book.post(order);
      if (came_on) ++posted;
      if (book.look() == 0 && !came_on && book.courier() != Courier::away) cpu.pause();
    }
    scheduler_.expect(book.done() == book.posted(), "done and posted differ at the end");
    static_cast<void>(book.post_stop());
    cpu.store_relaxed(&closed_, 1);
  }
  void launch(OrderBook<ModelMachine>& book, ModelMachine& cpu) {
    Launch& launch = launches_.emplace_back();  // by value, as a kernel's argument is
    book.launch(launch);
    launch.host = host_.get();
    launch.device = device_.get();
    launch.groups = scenario_.groups;
    launch.groups_before = (book.launches() - 1) * (scenario_.groups - 1);
    launch.idle_ns = launch.lease_ns = 500;
    launch.alone_bytes = scenario_.groups == 1 ? kSmall : 0;
    launch.part_bytes = kLarge / 2;
    launch.look_idle = 1;
    launch.look_busy = 2;
    scheduler_.fence();
    cpu.store_relaxed(&requested_, book.launches());
  }

  void receive_all() {
    ModelMachine cpu = machine();
    for (unsigned i = 0; i < scenario_.orders; ++i) {
      while (cpu.load_acquire(&data_[i].flag) != 1) cpu.pause();
      scheduler_.expect(cpu.load_acquire(&data_[i].to[0]) == 1000 + i, "the flag came before the bytes");
      const bool second = scenario_.bytes == kSmall || cpu.load_acquire(&data_[i].to[kLarge / 16]) == 1000 + i;
      scheduler_.expect(second, "the flag came before the bytes");
    }
  }

  /// A stream: launches one after another, each when all blocks of the one before have ended.
  template <typename Body>
  void in_stream(const Body& body) {
    ModelMachine gpu = machine();
    for (std::uint64_t number = 1;; ++number) {
      while (gpu.load_acquire(&requested_) < number ||
             gpu.load_acquire(&ended_) < (number - 1) * (scenario_.groups + scenario_.dispatchers)) {
        if (gpu.load_acquire(&closed_) == 1 && gpu.load_acquire(&requested_) < number) return;
        gpu.pause();
      }
      body(gpu, number);
      scheduler_.fence();
      scheduler_.add(&ended_, 1);
    }
  }
  void dispatch() {
    in_stream([this](ModelMachine& gpu, std::uint64_t number) {
      Dispatcher<ModelMachine> dispatcher(gpu, launches_[number - 1], *block_, 0);
      gpu.alone = true;  // its group waits at a barrier
      dispatcher.prepare();
      gpu.alone = false;
      scheduler_.add(&prepared_, 1);
      dispatcher.run();
      if (faults_.look_after_leave) take_once_more(gpu);
    });
  }
  void dispatch_too(unsigned index) {
    in_stream([this, index](ModelMachine& gpu, std::uint64_t number) {
      while (gpu.load_acquire(&prepared_) < number) gpu.pause();
      Dispatcher<ModelMachine>(gpu, launches_[number - 1], *block_, index).run();
    });
  }
  void take_once_more(ModelMachine& gpu) {
    OrderRing::Entry desk[2];
    const std::uint64_t next = gpu.load_acquire(&host_->left) & 0xffffffff;
    for (unsigned i = 0; i < take_entries(gpu, host_->orders[0], next, 1, desk); ++i) {
      if (is_stop(desk[i])) return;
      gpu.copy_by_warp(desk[i].words[OrderWords::to], desk[i].words[OrderWords::from], bytes_of(desk[i]));
      gpu.fence_system();
      courier::signal(gpu, *host_, desk[i], next + i);
    }
  }
  void work_beside() {
    in_stream([this](ModelMachine& gpu, std::uint64_t number) {
      while (gpu.load_acquire(&prepared_) < number) gpu.pause();
      GroupDesk desk{};
      WorkerGroup<ModelMachine>(gpu, launches_[number - 1], desk).run_beside(*block_);
    });
  }
  void work_apart() {
    in_stream([this](ModelMachine& gpu, std::uint64_t number) {
      GroupDesk desk{};
      gpu.exact = &device_->groups_started;
      WorkerGroup<ModelMachine>(gpu, launches_[number - 1], desk).run_apart();
    });
  }

  Scheduler& scheduler_;
  const Scenario scenario_;
  const Faults faults_;
  std::unique_ptr<HostDesk> host_;
  std::unique_ptr<DeviceDesk> device_;
  std::unique_ptr<BlockDesk> block_;
  Data data_[kOrdersMax];
  std::deque<Launch> launches_;
  std::uint64_t clock_ns_ = 0;
  std::uint64_t requested_ = 0;
  std::uint64_t prepared_ = 0;
  std::uint64_t ended_ = 0;
  std::uint64_t closed_ = 0;
  unsigned stuck_ = 0;
  unsigned copies_ = 0;
};

class CourierModel : public testing::Test {
 protected:
  void SetUp() override {
    if (test::kSanitized) GTEST_SKIP() << "sanitizers do not follow the scheduler's stacks; the other builds run this";
  }
};
class CourierModelFaults : public CourierModel {};

std::string explore(Scenario scenario, Faults faults = {}) {
  return model::explore([&](Scheduler& scheduler) { return World(scheduler, scenario, faults); });
}

TEST_F(CourierModel, small_orders_arrive_whole_and_once) { EXPECT_EQ(explore({.orders = 2}), ""); }
TEST_F(CourierModel, orders_of_a_group_arrive_whole_and_once) {
  EXPECT_EQ(explore({.orders = 3, .bytes = kLarge, .groups = 1}), "");
}
TEST_F(CourierModel, split_orders_arrive_whole_and_once) {
  EXPECT_EQ(explore({.orders = 2, .bytes = kLarge, .groups = 2}), "");
}

TEST_F(CourierModel, two_dispatchers_take_each_order_once) {
  EXPECT_EQ(explore({.orders = 2, .dispatchers = 2}), "");
  EXPECT_EQ(explore({.orders = 2, .bytes = kLarge, .groups = 2, .dispatchers = 2}), "");
}

TEST_F(CourierModel, split_orders_arrive_whole_where_fences_only_keep_an_order) {
  EXPECT_EQ(explore({.orders = 1, .bytes = kLarge, .groups = 2, .by_model = true}), "");
}

TEST_F(CourierModelFaults, a_signal_without_a_fence_behind_the_count_is_found) {
  EXPECT_EQ(explore({.orders = 1, .bytes = kLarge, .groups = 2, .by_model = true}, {.no_second_fence = true}),
            "the flag came before the bytes");
}
TEST_F(CourierModelFaults, a_missing_fence_is_found) {
  EXPECT_EQ(explore({.orders = 1}, {.no_fence = true}), "the flag came before the bytes");
  EXPECT_EQ(explore({.orders = 1, .bytes = kLarge, .groups = 2}, {.no_fence = true}), "the flag came before the bytes");
}
TEST_F(CourierModelFaults, a_torn_order_is_found) { EXPECT_NE(explore({.orders = 1}, {.half_an_entry = true}), ""); }
TEST_F(CourierModelFaults, a_look_after_the_leave_record_is_found) {
  EXPECT_EQ(explore({.orders = 2}, {.look_after_leave = true}), "an order was done twice, or never");
}
TEST_F(CourierModelFaults, an_order_that_is_taken_without_a_claim_is_found) {
  EXPECT_EQ(explore({.orders = 1, .dispatchers = 2}, {.no_claim = true}), "an order was done twice, or never");
}
TEST_F(CourierModelFaults, a_split_order_reported_too_early_is_found) {
  EXPECT_EQ(explore({.orders = 1, .bytes = kLarge, .groups = 2}, {.count_once = true}),
            "the flag came before the bytes");
}

}  // namespace
}  // namespace brant::test
