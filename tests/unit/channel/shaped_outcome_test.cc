// What becomes of messages with shapes that do not go as they should, and of those that need no shape.
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine.h"
#include "support/faulty_device.h"
#include "support/shapes.h"
#include "unit/channel/linked_pair.h"

namespace brant {
namespace {

using test::expect_order_goes_on;
using test::JobOptions;
using test::linked;
using test::MappedPair;
using test::Pair;
using test::pattern;
using test::ShapeZoo;
using test::Space;

/// `count` items of 8 bytes, each with so many bytes from its start to the next.
Shape column(std::size_t count, std::ptrdiff_t stride = 24) {
  const ShapeDim dim{.count = count, .stride = stride};
  return *Shape::strided(0, 8, {&dim, 1});
}

/// The bytes of a shape, in its order.
std::vector<std::byte> gathered(const std::vector<std::byte>& memory, const Shape& shape) {
  std::vector<std::byte> bytes;
  for (const std::size_t offset : test::offsets_of(shape)) bytes.push_back(memory[offset]);
  return bytes;
}

JobOptions over_network(GpuChoice gpu = GpuChoice::none) {
  JobOptions options;
  options.links = false;
  options.gpu = gpu;
  return options;
}

constexpr std::size_t kMany = 60'000;  // items of a column: pieces over the link, several turns of the CPU

TEST(ShapedOutcome, a_shape_that_reaches_beyond_its_buffer_is_refused_and_nothing_else_changes) {
  Pair pair;
  std::vector<std::byte> memory(1000);
  const Shape fits = column(42), beyond = column(43);
  Op op;
  EXPECT_EQ(pair.left.post_send(std::span(memory), beyond, op), Status::invalid_argument);
  EXPECT_EQ(pair.right.post_recv(std::span(memory), beyond, op), Status::invalid_argument);
  const Shape wraps = Shape::contiguous(64, static_cast<std::size_t>(-8));
  EXPECT_EQ(pair.left.post_send(std::span(memory), wraps, op), Status::invalid_argument);
  EXPECT_EQ(pair.right.post_recv(std::span(memory), wraps, op), Status::invalid_argument);
  EXPECT_FALSE(pair.left.path_of(ConstBuffer(std::span(memory)), beyond).ok());
  EXPECT_EQ(pair.left.post_send(ConstBuffer(nullptr, 1000, MemoryKind::host), fits, op), Status::invalid_argument);
  expect_order_goes_on(pair);
}

TEST(ShapedOutcome, shapes_without_bytes_are_messages_without_bytes) {
  for (const JobOptions& options : {linked(), over_network()}) {
    Pair pair(options);
    std::vector<std::byte> landed(100, std::byte{9});
    const Shape lists[] = {Shape(), Shape::contiguous(0, 1u << 30), *Shape::indexed({}), column(0)};
    for (const Shape& from : lists) {
      for (const Shape& to : lists) {
        Operation receive = pair.right.recv(std::span(landed), to);
        Operation send = pair.left.send(ConstBuffer(), from);
        EXPECT_EQ(pair.outcome(receive).status, Status::ok);
        EXPECT_EQ(receive.result().bytes, 0u);
        EXPECT_EQ(pair.outcome(send).status, Status::ok);
      }
    }
    EXPECT_EQ(landed, std::vector<std::byte>(100, std::byte{9}));
    expect_order_goes_on(pair);
  }
}

TEST(ShapedOutcome, a_short_message_fills_the_first_bytes_of_its_landing) {
  for (const JobOptions& options : {linked(), over_network()}) {
    for (const std::size_t count : {std::size_t{10}, std::size_t{2000}, kMany}) {
      Pair pair(options);
      const auto sent = pattern(count * 24, 1);
      std::vector<std::byte> landed(2 * count * 16, std::byte{9});
      Operation receive = pair.right.recv(std::span(landed), column(2 * count, 16));
      Operation send = pair.left.send(std::span(sent), column(count), Moment::delivered);
      EXPECT_EQ(pair.outcome(receive).status, Status::ok);
      EXPECT_EQ(receive.result().bytes, count * 8);
      EXPECT_EQ(pair.outcome(send).status, Status::ok);
      const std::vector<std::byte> before(landed.size(), std::byte{9});
      EXPECT_EQ(landed, test::moved(before, 0, sent, 0, {column(count), column(count, 16)}));
    }
  }
}

TEST(ShapedOutcome, a_long_message_is_truncated_and_leaves_what_is_between_the_runs_alone) {
  for (const GpuChoice gpu : {GpuChoice::none, GpuChoice::emulated}) {
    for (const bool links : {false, true}) {
      for (const std::size_t count : {std::size_t{10}, std::size_t{2000}, kMany}) {
        for (const bool receive_first : {false, true}) {
          SCOPED_TRACE(testing::Message() << count << (links ? " linked" : "") << (receive_first ? " receive" : ""));
          JobOptions options = links ? linked(gpu) : over_network(gpu);
          Pair pair(options);
          const MemoryKind kind = gpu == GpuChoice::none ? MemoryKind::host : MemoryKind::emulated;
          Space source(pair.job.rank(0), kind, count * 24), landing(pair.job.rank(1), kind, count * 24);
          source.fill(pattern(count * 24, 1));
          landing.fill(std::vector<std::byte>(count * 24, std::byte{9}));
          std::optional<Operation> receive;
          if (receive_first)
            receive.emplace(Moment::delivered, [&](Op& op) noexcept {
              return pair.right.post_recv(landing.whole(), column(count - 1), op);
            });
          pair.job.run(5);
          Operation send = pair.left.send(source.whole(), column(count), Moment::delivered);
          pair.job.run(5);
          if (!receive_first)
            receive.emplace(Moment::delivered, [&](Op& op) noexcept {
              return pair.right.post_recv(landing.whole(), column(count - 1), op);
            });
          EXPECT_EQ(pair.outcome(*receive).status, Status::truncated);
          EXPECT_EQ(pair.outcome(send).status, Status::truncated);
          const std::vector<std::byte> image = landing.image();
          for (std::size_t i = 0; i < image.size(); ++i) {
            const bool in_a_run = i % 24 < 8 && i / 24 < count - 1;
            ASSERT_TRUE(in_a_run || image[i] == std::byte{9}) << "byte " << i;
          }
          EXPECT_TRUE(pair.job.run_until([&] { return pair.left.counts().truncated == 1; }));
          expect_order_goes_on(pair);
        }
      }
    }
  }
}

/// The owner frees landing and runs; the sanitizer watches.
struct Landing {
  explicit Landing(std::size_t count) : memory(count * 24), runs(count) {
    for (std::size_t i = 0; i < count; ++i) runs[i] = {i * 24, 8};
  }
  [[nodiscard]] Shape shape() const { return *Shape::indexed(runs); }
  std::vector<std::byte> memory;
  std::vector<ByteRun> runs;
};

constexpr std::size_t kLong = 250'000;  // items: more turns of the CPU than one progress makes

/// A receive that is destroyed after `rounds` of the receiver: its message is the next one's, or was dropped whole.
void expect_nothing_lost_after(const JobOptions& options, bool contiguous_source, int rounds) {
  SCOPED_TRACE(testing::Message() << rounds << (options.links ? " linked" : "")
                                  << (contiguous_source ? " offered" : " packed"));
  Pair pair(options);
  Memory memory = pair.job.rank(0).allocate(MemoryKind::host, kLong * 24);
  const auto sent = pattern(memory.bytes(), 4);
  std::copy(sent.begin(), sent.end(), static_cast<std::byte*>(memory.data()));
  const Shape from = contiguous_source ? Shape::contiguous(kLong * 8) : column(kLong);
  auto landing = std::make_unique<Landing>(kLong);
  auto gone = std::unique_ptr<Operation>(new Operation(pair.right.recv(std::span(landing->memory), landing->shape())));
  pair.run(0, 3);
  Operation send = pair.left.send(memory, from);
  pair.run(1, rounds);
  const bool was_done = gone->done();
  gone.reset();
  std::fill(landing->runs.begin(), landing->runs.end(), ByteRun{});  // both are its owner's again
  const std::vector<std::byte> left_behind = landing->memory;
  Landing second(kLong);
  if (was_done) return;
  pair.run(1, 3);  // the network gives its turn back then
  Operation next = pair.right.recv(std::span(second.memory), second.shape());
  pair.job.run(50);
  const int marker = 5;
  std::optional<Operation> after;
  if (!next.done()) {  // what had come whole was dropped with its receive
    after.emplace(Moment::source_free,
                  [&](Op& op) noexcept { return pair.left.post_send(ConstBuffer(&marker, sizeof(marker)), op); });
  }
  EXPECT_TRUE(pair.outcome(send).ok());
  EXPECT_TRUE(pair.outcome(next).ok());
  if (next.result().bytes == kLong * 8) {
    EXPECT_EQ(gathered(second.memory, second.shape()), gathered(sent, from));
  } else {
    EXPECT_EQ(next.result().bytes, sizeof(marker));
  }
  if (after) {
    EXPECT_TRUE(pair.outcome(*after).ok());
  }
  EXPECT_EQ(landing->memory, left_behind);
}

TEST(ShapedOutcome, a_receive_taken_back_in_the_middle_writes_no_more_and_loses_nothing) {
  for (const bool contiguous_source : {false, true}) {
    for (int rounds = 0; rounds < 4; ++rounds) {
      expect_nothing_lost_after(linked(), contiguous_source, rounds);
      expect_nothing_lost_after(over_network(), contiguous_source, rounds);
    }
  }
}

TEST(ShapedOutcome, a_cancelled_receive_ends_and_the_next_gets_the_message) {
  for (const JobOptions& options : {linked(), over_network(), linked(GpuChoice::emulated)}) {
    Pair pair(options);
    const auto sent = pattern(kMany * 24, 1);
    Landing first(kMany), second(kMany);
    Operation withdrawn = pair.right.recv(std::span(first.memory), first.shape());
    pair.job.run(5);
    withdrawn.op().cancel();
    EXPECT_EQ(pair.outcome(withdrawn).status, Status::canceled);
    Operation receive = pair.right.recv(std::span(second.memory), second.shape());
    Operation send = pair.left.send(std::span(sent), column(kMany));
    EXPECT_TRUE(pair.outcome(receive).ok());
    EXPECT_TRUE(pair.outcome(send).ok());
    EXPECT_EQ(gathered(second.memory, second.shape()), gathered(sent, column(kMany)));
    EXPECT_EQ(first.memory, std::vector<std::byte>(kMany * 24));
  }
}

TEST(ShapedOutcome, no_source_of_an_unobserved_send_is_read_after_close) {
  for (const JobOptions& options : {linked(), over_network()}) {
    for (const std::size_t count : {std::size_t{100}, std::size_t{500}, kMany}) {
      Pair pair(options);
      auto source = std::make_unique<Landing>(count);
      source->memory = pattern(count * 24, 1);
      const auto sent = gathered(source->memory, source->shape());
      {
        Operation forgotten = pair.left.send(std::span(source->memory), source->shape());
      }
      pair.left.close();
      source.reset();
      std::vector<std::byte> landed(count * 8);
      Operation receive = pair.right.recv(std::span(landed));
      const OpResult got = pair.outcome(receive);
      if (got.ok()) {
        EXPECT_EQ(landed, sent);
      } else {
        EXPECT_EQ(got.status, Status::canceled);
      }
    }
  }
}

TEST(ShapedOutcome, closing_ends_receives_whatever_they_have_got) {
  for (const JobOptions& options : {linked(), over_network()}) {
    for (int rounds = 0; rounds < 3; ++rounds) {
      Pair pair(options);
      const auto sent = pattern(kMany * 24, 1);
      auto landing = std::make_unique<Landing>(kMany);
      Operation receive = pair.right.recv(std::span(landing->memory), landing->shape());
      pair.run(0, 3);
      Operation send = pair.left.send(std::span(sent), column(kMany));
      pair.run(1, rounds);
      pair.right.close();
      const Status ended = pair.outcome(receive).status;
      EXPECT_TRUE(ended == Status::ok || ended == Status::canceled) << status_name(ended);
      landing.reset();
      pair.left.close();
      const Status sender = pair.outcome(send).status;
      EXPECT_TRUE(sender == Status::ok || sender == Status::canceled || sender == Status::truncated)
          << status_name(sender);
    }
  }
}

/// Where a pinned buffer is needed and there is none, that is an error at both ends, and the next message arrives.
TEST(ShapedOutcome, without_pinned_memory_both_ends_hear_of_it) {
  for (const bool links : {false, true}) {
    for (const int breaks : {0, 1}) {
      SCOPED_TRACE(testing::Message() << (links ? "linked, rank " : "rank ") << breaks);
      std::array<test::DeviceFaults, 2> faults;
      JobOptions options = linked(GpuChoice::emulated);
      options.links = links;
      options.wrap_device = [&](int rank, std::unique_ptr<port::Device> device) {
        return test::make_faulty(std::move(device), faults[static_cast<std::size_t>(rank)]);
      };
      MappedPair pair(options);
      Space source(pair.job.rank(0), MemoryKind::emulated, kMany * 24);
      std::vector<std::byte> landed(kMany * 8);
      faults[static_cast<std::size_t>(breaks)].pinned = Status::no_memory;
      if (breaks == 0) {
        Operation send = pair.left.send(source.whole(), column(kMany));
        pair.job.run(5);
        if (links) {
          Operation receive = pair.right.recv(std::span(landed));
          EXPECT_EQ(pair.outcome(receive).status, Status::peer_rejected);
        }
        EXPECT_EQ(pair.outcome(send).status, Status::no_memory);
      } else {
        Op op;
        Space device_landing(pair.job.rank(1), MemoryKind::emulated, kMany * 24);
        EXPECT_EQ(pair.right.post_recv(device_landing.whole(), column(kMany), op), Status::no_memory);
      }
      faults = {};
      source.fill(pattern(kMany * 24, 3));
      Operation receive = pair.right.recv(std::span(landed));
      Operation send = pair.left.send(source.whole(), column(kMany), Moment::delivered);
      EXPECT_TRUE(pair.outcome(receive).ok());
      EXPECT_TRUE(pair.outcome(send).ok());
      EXPECT_EQ(landed, gathered(pattern(kMany * 24, 3), column(kMany)));
      expect_order_goes_on(pair);
    }
  }
}

TEST(ShapedOutcome, a_window_of_messages_keeps_its_order) {
  constexpr std::size_t kMessages = 64;
  for (const GpuChoice gpu : {GpuChoice::none, GpuChoice::emulated}) {
    for (const bool links : {false, true}) {
      JobOptions options = links ? linked(gpu) : over_network(gpu);
      Pair pair(options);
      const MemoryKind kind = gpu == GpuChoice::none ? MemoryKind::host : MemoryKind::emulated;
      std::vector<std::unique_ptr<Space>> sources, landings;
      std::vector<std::size_t> counts;
      std::vector<std::unique_ptr<Operation>> all;
      for (std::size_t i = 0; i < kMessages; ++i) {
        const std::size_t count = std::array<std::size_t, 4>{3, 200, 900, 9000}[i % 4];
        counts.push_back(count);
        sources.push_back(std::make_unique<Space>(pair.job.rank(0), kind, count * 24));
        landings.push_back(std::make_unique<Space>(pair.job.rank(1), kind, count * 16));
        sources.back()->fill(pattern(count * 24, static_cast<unsigned>(i)));
        if (i % 3 != 0) {
          all.emplace_back(new Operation(pair.right.recv(landings[i]->whole(), column(count, 16))));
        }
        all.emplace_back(new Operation(pair.left.send(sources[i]->whole(), column(count))));
        if (i % 3 == 0) {
          all.emplace_back(new Operation(pair.right.recv(landings[i]->whole(), column(count, 16))));
        }
      }
      for (const auto& each : all) EXPECT_TRUE(pair.outcome(*each).ok());
      for (std::size_t i = 0; i < kMessages; ++i) {
        EXPECT_EQ(gathered(landings[i]->image(), column(counts[i], 16)),
                  gathered(pattern(counts[i] * 24, static_cast<unsigned>(i)), column(counts[i])))
            << "message " << i;
      }
    }
  }
}

TEST(ShapedOutcome, messages_count_for_the_path_that_was_foretold) {
  struct Expected {
    bool links;
    MemoryKind kind;
    Path path;
  };
  for (const Expected& expected : {Expected{true, MemoryKind::host, Path::shm},
                                   {true, MemoryKind::emulated, Path::copy_engine},
                                   {false, MemoryKind::host, Path::ucx},
                                   {false, MemoryKind::emulated, Path::staged}}) {
    JobOptions options = linked(GpuChoice::emulated);
    options.links = expected.links;
    Pair pair(options);
    Space source(pair.job.rank(0), expected.kind, kMany * 24), landing(pair.job.rank(1), expected.kind, kMany * 8);
    EXPECT_EQ(*pair.left.path_of(source.whole(), column(kMany)), expected.path);
    Operation receive = pair.right.recv(landing.whole());
    pair.job.run(5);
    Operation send = pair.left.send(source.whole(), column(kMany));
    EXPECT_TRUE(pair.outcome(send).ok());
    EXPECT_TRUE(pair.outcome(receive).ok());
    const PathTally& tally = pair.job.rank(0).worker().engine().counters().path(expected.path);
    EXPECT_EQ(tally.sends.read(), 1u) << path_name(expected.path);
    EXPECT_EQ(tally.bytes_sent.read(), kMany * 8);
  }
}

TEST(ShapedOutcome, the_courier_alone_cannot_carry_a_shape) {
  JobOptions options = linked(GpuChoice::emulated);
  MappedPair pair(options);
  ChannelOptions courier;
  courier.path = Path::courier;
  Channel forced = Channel::open(pair.job.rank(0), Rank{1}, ChannelId{8}, courier);
  Space source(pair.job.rank(0), MemoryKind::emulated, 240);
  Op op;
  EXPECT_EQ(forced.post_send(source.whole(), column(10), op), Status::not_supported);
}

TEST(ShapedOutcome, a_small_message_leaves_within_the_post_and_one_run_goes_as_without_a_shape) {
  Pair pair;
  const auto sent = pattern(4096, 1);
  const ByteRun runs[] = {{100, 500}};
  const ShapeDim rows{.count = 5, .stride = 100};
  const Shape same[] = {Shape::contiguous(500, 100), *Shape::indexed(runs), *Shape::strided(100, 100, {&rows, 1})};
  for (const Shape& shape : same) {
    std::vector<std::byte> landed(600);
    Operation send = pair.left.send(std::span(sent), shape);
    EXPECT_TRUE(send.done());
    Operation receive = pair.right.recv(std::span(landed), shape);
    EXPECT_TRUE(pair.outcome(receive).ok());
    EXPECT_EQ(gathered(landed, shape), gathered(sent, shape));
  }
  Operation packed = pair.left.send(std::span(sent), column(60));
  EXPECT_TRUE(packed.done());
}

}  // namespace
}  // namespace brant
