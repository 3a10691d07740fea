// Operations of the global space between ranks of one process over the loopback network: every kind of memory at either
// end, the ends of the process that asks or of others, and every way of hearing of it.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/env.h"
#include "brant/brant.h"
#include "brant/ops/rpc.h"
#include "brant/pgas.h"
#include "support/emulated_network.h"
#include "support/grounds.h"
#include "support/shapes.h"
#include "support/spaces.h"

namespace brant {
namespace {

using test::Ground;
using test::kGrounds;
using test::moved;
using test::pattern;
using test::ShapeZoo;
using test::Space;
using test::Spaces;

/// As told: as the processes of one host, or of three, of whose memory nothing is mapped.
bool apart() { return env_bool("BRANT_TEST_APART", false); }

test::JobOptions three_ranks() {
  test::JobOptions options = test::ranks(3, GpuChoice::emulated);
  if (!apart()) return options;
  options.links = false;
  options.exportable = [](const port::PointerInfo&) { return false; };
  options.network = test::network_of_emulated_devices();
  return options;
}

/// Every kind at either end of a copy, and where the ends are: of the process that asks, or of others.
struct Case {
  Ground from, to;
  int from_rank, to_rank;  ///< Rank 1 asks.
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  const std::pair<int, int> places[] = {{1, 0}, {0, 1}, {1, 1}, {0, 2}, {0, 0}};
  for (const auto& [from_rank, to_rank] : places) {
    for (const Ground& from : kGrounds) {
      for (const Ground& to : kGrounds) cases.push_back({from, to, from_rank, to_rank});
    }
  }
  return cases;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return std::string(info.param.from.name) + "_of_" + std::to_string(info.param.from_rank) + "_to_" +
         info.param.to.name + "_of_" + std::to_string(info.param.to_rank);
}

/// What a call behind a copy has brought to the target.
std::uint64_t g_called = 0;
void note_call(std::uint64_t step) { g_called = step; }

class SpaceCopies : public testing::TestWithParam<Case> {
 protected:
  static constexpr std::size_t kWhole = 300'007;
  static constexpr std::size_t kFront = 16;

  /// The own end of an operation of rank 1.
  [[nodiscard]] Buffer source(std::size_t bytes) const { return from_memory_.part(0, bytes); }
  [[nodiscard]] bool is_put() const { return GetParam().from_rank == 1; }
  [[nodiscard]] bool is_get() const { return GetParam().to_rank == 1; }
  /// What the end of the copy has by now is what the source had.
  void expect_arrived(const std::vector<std::byte>& what, const char* when) {
    EXPECT_EQ(to_memory_.image(what.size()), what) << when;
  }

  Spaces spaces_{three_ranks()};
  Space from_memory_{spaces_.job().rank(GetParam().from_rank), GetParam().from.kind, kWhole, GetParam().from.of_heap};
  Space to_memory_{spaces_.job().rank(GetParam().to_rank), GetParam().to.kind, kWhole, GetParam().to.of_heap};
  GlobalSegment& from_ = spaces_.keep(spaces_[GetParam().from_rank].adopt(from_memory_.whole()));
  GlobalSegment& to_ = spaces_.keep(spaces_[GetParam().to_rank].adopt(to_memory_.whole()));
};

TEST_P(SpaceCopies, arrive_whole_wherever_the_ends_are) {
  const std::vector<std::byte> here = pattern(kWhole, 1), there = pattern(kWhole, 2);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{4099}, kWhole - 2 * kFront}) {
    SCOPED_TRACE(bytes);
    from_memory_.fill(here);
    to_memory_.fill(there);
    const Operation copy = spaces_[1].copy<std::byte>(from_.begin() + 3, to_.begin() + kFront, bytes);
    const OpResult result = spaces_.outcome(copy);
    ASSERT_EQ(result.status, Status::ok) << status_name(result.status);
    EXPECT_EQ(result.bytes, bytes);
    const std::vector<std::byte> image = to_memory_.image();
    EXPECT_EQ(std::memcmp(image.data() + kFront, here.data() + 3, bytes), 0) << "wrong bytes";
    EXPECT_EQ(std::memcmp(image.data(), there.data(), kFront), 0) << "before it";
    EXPECT_EQ(std::memcmp(image.data() + kFront + bytes, there.data() + kFront + bytes, kWhole - kFront - bytes), 0)
        << "behind it";
  }
}

/// Of what lies in no segment of this process, too.
TEST_P(SpaceCopies, puts_and_gets_do_what_copies_do) {
  if (!is_put() && !is_get()) GTEST_SKIP() << "both ends are others'";
  const std::vector<std::byte> here = pattern(kWhole, 3), there = pattern(kWhole, 4);
  for (const std::size_t bytes : {std::size_t{5}, std::size_t{70'001}}) {
    SCOPED_TRACE(bytes);
    const auto expect = [&](const Operation& operation) {
      const OpResult result = spaces_.outcome(operation);
      EXPECT_EQ(result.status, Status::ok) << status_name(result.status);
      EXPECT_EQ(result.bytes, bytes);
      std::vector<std::byte> wanted = there;
      std::copy_n(here.begin() + 3, bytes, wanted.begin() + kFront);
      EXPECT_EQ(to_memory_.image(), wanted);
    };
    if (is_put()) {
      from_memory_.fill(here);
      to_memory_.fill(there);
      expect(spaces_[1].put(to_.begin() + kFront, ConstBuffer(from_memory_.part(3, bytes))));
    }
    if (is_get()) {
      from_memory_.fill(here);
      to_memory_.fill(there);
      expect(spaces_[1].get(from_.begin() + 3, to_memory_.part(kFront, bytes)));
    }
  }
}

TEST_P(SpaceCopies, carry_values_of_every_size) {
  const std::vector<std::byte> there = pattern(64, 5);
  to_memory_.fill(there, there.size());
  const auto expect = [&](auto value, std::ptrdiff_t at) {
    using Value = decltype(value);
    EXPECT_EQ(spaces_.outcome(spaces_[1].put_value((to_.begin() + at).as<Value>(), value)).status, Status::ok);
    const std::vector<std::byte> seen = to_memory_.image(there.size());
    EXPECT_EQ(std::memcmp(seen.data() + at, &value, sizeof(value)), 0) << sizeof(value);
    ValueGet<Value> got = spaces_[1].get_value((to_.begin() + at).as<Value>());
    ASSERT_EQ(spaces_.outcome(got.operation()).status, Status::ok);
    EXPECT_EQ(got.value(), value);
  };
  expect(std::uint8_t{7}, 3);
  expect(std::uint32_t{70'000}, 4);
  expect(std::uint64_t{1} << 50, 16);
  struct Four {
    std::uint32_t words[4];
    bool operator==(const Four&) const = default;
  };
  expect(Four{{1, 2, 3, 4}}, 32);
}

TEST_P(SpaceCopies, count_in_words) {
  to_memory_.fill(std::vector<std::byte>(64), 64);
  const GlobalPtr<std::uint64_t> sum = to_.allocate<std::uint64_t>();
  const GlobalPtr<std::int32_t> most = to_.allocate<std::int32_t>();
  for (const std::uint64_t before : {0u, 5u, 10u}) {
    const FetchOperation<std::uint64_t> add = spaces_[1].fetch_add(sum, 5);
    ASSERT_EQ(spaces_.outcome(add).status, Status::ok);
    EXPECT_EQ(add.fetched().before, before);
  }
  EXPECT_EQ(spaces_.outcome(spaces_[1].atomic(most, AtomicOp::max, 9)).status, Status::ok);
  const FetchOperation<std::int32_t> swap = spaces_[1].compare_swap(most, 9, -1);
  ASSERT_EQ(spaces_.outcome(swap).status, Status::ok);
  EXPECT_EQ(swap.fetched().before, 9);
  ValueGet<std::int32_t> seen = spaces_[1].get_value(most);
  ASSERT_EQ(spaces_.outcome(seen.operation()).status, Status::ok);
  EXPECT_EQ(seen.value(), -1);
}

TEST_P(SpaceCopies, go_from_every_shape_into_every_other) {
  constexpr std::size_t kScale = 1;
  const std::size_t room = ShapeZoo::room(kScale);
  const ShapeZoo zoo(kScale);
  const std::vector<std::byte> here = pattern(room, 6), there = pattern(room + kFront, 7);
  const auto& all = zoo.shapes();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const std::size_t k : {i, (i + 1) % all.size(), (i + 4) % all.size()}) {
      SCOPED_TRACE(all[i].name + " to " + all[k].name);
      const TransferShapes shapes{all[i].shape, all[k].shape};
      const auto expect = [&](auto&& start) {
        from_memory_.fill(here, room);
        to_memory_.fill(there, room + kFront);
        CopyOptions options;
        options.shapes = &shapes;
        const Operation operation = start(std::move(options));
        const OpResult result = spaces_.outcome(operation);
        ASSERT_EQ(result.status, Status::ok) << status_name(result.status);
        EXPECT_EQ(result.bytes, shapes.from.bytes());
        EXPECT_EQ(to_memory_.image(room + kFront), moved(there, kFront, here, 0, shapes));
      };
      expect([&](CopyOptions options) {
        return spaces_[1].copy<std::byte>(from_.begin(), to_.begin() + kFront, room, std::move(options));
      });
      if (is_put())
        expect([&](CopyOptions options) {
          return spaces_[1].put(to_.begin() + kFront, ConstBuffer(source(room)), std::move(options));
        });
      if (is_get())
        expect([&](CopyOptions options) {
          return spaces_[1].get(from_.begin(), to_memory_.part(kFront, room), std::move(options));
        });
    }
  }
}

TEST_P(SpaceCopies, tell_the_target_behind_the_bytes) {
  constexpr std::size_t kBytes = 70'000;
  const std::vector<std::byte> here = pattern(kBytes, 3);
  GlobalSegment& flags = spaces_.keep(spaces_[GetParam().to_rank].create(MemoryKind::host, 64));
  const GlobalPtr<std::uint64_t> flag = flags.allocate<std::uint64_t>();
  std::uint64_t* const word = flags.local(flag);
  *word = 0;
  std::uint64_t step = 0;
  for (const auto& [adds, behind_all] : {std::pair(false, false), {false, true}, {true, false}, {true, true}}) {
    ++step;
    from_memory_.fill(here, kBytes);
    to_memory_.fill(std::vector<std::byte>(kBytes), kBytes);
    AtTarget set = adds ? AtTarget::add(flag) : AtTarget::set(flag, step);
    if (behind_all) set = std::move(set).behind_all();
    const Operation copy =
        spaces_[1].copy<std::byte>(from_.begin(), to_.begin(), kBytes, {.at_target = std::move(set)});
    ASSERT_TRUE(spaces_.job().run_until([&] { return *static_cast<volatile std::uint64_t*>(word) == step; }));
    expect_arrived(here, "the flag is there, and the bytes are not");
    const OpResult result = spaces_.outcome(copy);
    EXPECT_EQ(result.status, Status::ok);
    EXPECT_EQ(result.bytes, kBytes) << "not those of the flag";
  }
}

TEST_P(SpaceCopies, run_a_function_at_the_target_and_here_behind_the_bytes) {
  constexpr std::size_t kBytes = 70'000;
  const std::vector<std::byte> here = pattern(kBytes, 8);
  const Rpc of_0(spaces_.job().rank(0)), of_1(spaces_.job().rank(1)), of_2(spaces_.job().rank(2));
  g_called = 0;
  bool told = false;
  for (const bool by_call : {true, false}) {
    from_memory_.fill(here, kBytes);
    to_memory_.fill(std::vector<std::byte>(kBytes), kBytes);
    CopyOptions options;
    options.at_target = by_call ? AtTarget::call(of_1.pack<&note_call>(Rank{GetParam().to_rank}, std::uint64_t{7}))
                                : AtTarget::by([&] { told = true; });
    const Operation copy = spaces_[1].copy<std::byte>(from_.begin(), to_.begin(), kBytes, std::move(options));
    ASSERT_TRUE(spaces_.job().run_until([&] { return by_call ? g_called == 7 : told; }));
    expect_arrived(here, by_call ? "before the call" : "before this process was told");
    EXPECT_EQ(spaces_.outcome(copy).status, Status::ok);
  }
}

TEST_P(SpaceCopies, say_when_the_source_is_free_and_when_all_is_there) {
  constexpr std::size_t kBytes = 70'000;
  const std::vector<std::byte> here = pattern(kBytes, 9);
  from_memory_.fill(here, kBytes);
  struct Moments {
    int free = 0, delivered = 0;
    OpResult of_source{Status::ok, 0};
  } moments;
  Op op;
  op.source_free = {[](void* to, const OpResult& result) noexcept {
                      auto& all = *static_cast<Moments*>(to);
                      ++all.free;
                      all.of_source = result;
                      EXPECT_EQ(all.delivered, 0) << "the source is free first";
                    },
                    &moments};
  op.delivered = {[](void* to, const OpResult&) noexcept { ++static_cast<Moments*>(to)->delivered; }, &moments};
  const Status posted = spaces_[1].post_copy(from_.begin(), to_.begin(), kBytes, op);
  ASSERT_TRUE(posted == Status::ok || posted == Status::in_progress) << status_name(posted);
  ASSERT_TRUE(spaces_.job().run_until([&] { return !op.pending(); }));
  expect_arrived(here, "when it has ended");
  const int expected = posted == Status::in_progress ? 1 : 0;  // what the post has said nobody hears of again
  EXPECT_EQ(moments.delivered, expected);
  EXPECT_LE(moments.free, expected);
  EXPECT_EQ(moments.of_source.status, Status::ok);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SpaceCopies, testing::ValuesIn(all_cases()), name_of);

}  // namespace
}  // namespace brant
