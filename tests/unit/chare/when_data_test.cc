// Entries with data arguments that a `when` awaits.
#include <map>
#include <numeric>

#include "unit/chare/program.h"

namespace brant {
namespace {

using test::Program;

constexpr int kSteps = 6;

std::vector<int> content(int step) {
  std::vector<int> values(static_cast<std::size_t>(100 * (step + 1)));
  std::iota(values.begin(), values.end(), step);
  return values;
}

std::vector<int> read(Runtime& runtime, ConstBuffer buffer) {
  std::vector<int> values(buffer.bytes / sizeof(int));
  runtime.copy(std::span(values), buffer);
  return values;
}

class Waiter : public Chare<Waiter> {
 public:
  // The data stands before, between and behind what travels in the message.
  void halo(const DeviceData& face, int step) {
    ++bodies_;
    EXPECT_FALSE(face.owned());
    EXPECT_EQ(read(chares().runtime(), face), content(step));
  }
  Buffer post(Post<&Waiter::halo>, const DeviceMeta& face, int step) {
    ghosts_[step] = chares().runtime().allocate(chares().runtime().device_kind(), face.bytes);
    return ghosts_[step];
  }
  void give(int step, const DeviceData&, const HostData<int>& table, const std::string& name) {
    ++bodies_;
    EXPECT_EQ(name, std::to_string(step));
    EXPECT_EQ(table.items().size(), 1u);
  }

  Task<int> take_in_order(int steps) {
    Runtime& runtime = chares().runtime();
    for (int step = 0; step < steps; ++step) {
      auto [face, halo_step] = co_await when<&Waiter::halo>(step);
      EXPECT_EQ(halo_step, step);
      EXPECT_EQ(face.data(), ghosts_.at(step).data());
      EXPECT_EQ(read(runtime, face), content(step));
      auto [given_step, data, table, name] = co_await when<&Waiter::give>(step);
      EXPECT_TRUE(data.owned());
      EXPECT_EQ(read(runtime, data), content(given_step));
      EXPECT_EQ(table.items()[0], step);
      EXPECT_EQ(name, std::to_string(step));
    }
    co_return bodies_;
  }
  Task<int> take_what_is_large(int steps) {
    const auto is_large = [](int, const DeviceData& data, const HostData<int>&, const std::string&) {
      return data.bytes() > content(kSteps / 2).size() * sizeof(int);
    };
    int sum = 0;
    for (int step = kSteps / 2 + 1; step < steps; ++step) {
      auto [given, data, table, name] = co_await when<&Waiter::give>(is_large);
      EXPECT_EQ(read(chares().runtime(), data), content(given));
      EXPECT_TRUE(data.owned()) << "a predicate has only looked at it";
      sum += given;
    }
    for (int step = 0; step <= kSteps / 2; ++step) sum += co_await take_one(step);
    co_return sum;
  }
  Task<int> take_one(int step) {
    auto [given, data, table, name] = co_await when<&Waiter::give>(step);
    EXPECT_EQ(read(chares().runtime(), data), content(step));
    co_return given;
  }

 private:
  std::map<int, Memory> ghosts_;
  int bodies_ = 0;
};

/// Sends all steps, the last one first, and gives its sources back once they are free.
Task<void> send_all(Chares& chares, const Array<Waiter>& waiters, int element, bool halos) {
  Runtime& runtime = chares.runtime();
  std::vector<Memory> sources;
  std::vector<int> tables(kSteps);
  std::vector<Future<ConstBuffer>> sent;
  const auto freed = [&sent] {
    Promise<ConstBuffer> promise;
    sent.push_back(promise.future());
    return promise;
  };
  for (int step = kSteps - 1; step >= 0; --step) {
    const std::vector<int> values = content(step);
    sources.push_back(runtime.allocate(runtime.device_kind(), values.size() * sizeof(int)));
    runtime.copy(sources.back(), std::span(values));
    tables[static_cast<std::size_t>(step)] = step;
    const std::span<const int> table(&tables[static_cast<std::size_t>(step)], 1);
    if (halos) waiters[element].call<&Waiter::halo>(device(sources.back(), freed()), step);
    waiters[element].call<&Waiter::give>(step, device(sources.back(), freed()), no_copy(table, freed()),
                                         std::to_string(step));
  }
  for (Future<ConstBuffer>& free : sent) co_await free;
}

Task<void> in_order(Chares& chares, int element) {
  const Array<Waiter> waiters = create_array<Waiter>(chares, chares.size());
  Future<int> bodies = waiters[element].ask<&Waiter::take_in_order>(kSteps);
  co_await send_all(chares, waiters, element, true);
  EXPECT_EQ(co_await bodies, 2 * kSteps);
}

Task<void> by_predicate(Chares& chares, int element) {
  const Array<Waiter> waiters = create_array<Waiter>(chares, chares.size());
  co_await send_all(chares, waiters, element, false);
  EXPECT_EQ(co_await waiters[element].ask<&Waiter::take_what_is_large>(kSteps), kSteps * (kSteps - 1) / 2);
}

Task<void> left_behind(Chares& chares, int element) {
  const Array<Waiter> waiters = create_array<Waiter>(chares, chares.size());
  co_await send_all(chares, waiters, element, true);
  EXPECT_EQ(co_await waiters[element].ask<&Waiter::take_one>(0), 0);
  chares.exit(3);  // a code other than 0 drops what is kept
}

template <typename Main>
void expect_everywhere(Main main, int code = 0) {
  for (const int element : {0, 1}) {
    for (const test::JobOptions& options : test::variants(test::reordering(7, 2))) {
      Program program(options);
      EXPECT_EQ(program.run(main, element), code) << "element " << element << ": " << program.failure();
    }
  }
}

TEST(WhenWithData, takes_calls_in_its_own_order_with_all_of_their_data) { expect_everywhere(in_order); }
TEST(WhenWithData, shows_the_data_to_a_predicate_and_takes_it_over_after_that) { expect_everywhere(by_predicate); }
TEST(WhenWithData, calls_that_nobody_takes_give_their_memory_back_at_the_end) { expect_everywhere(left_behind, 3); }

}  // namespace
}  // namespace brant
