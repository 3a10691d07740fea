// Every order in which the users of two ends act and the two processes make progress, for each way that a message can
// go. Whatever the order: a message is received once, whole and in its turn, and everything ends. Debug builds check
// the table of states (ops/channel/transfer_state.h) at each step besides.

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine.h"
#include "ops/channel/table.h"
#include "support/effort.h"
#include "unit/channel/linked_pair.h"

namespace brant {
namespace {

using test::JobOptions;
using test::linked;
using test::Pair;

/// What may happen next: the left end sends, the right one receives, cancels or drops its oldest receive, the left one
/// drops its oldest send, the left or the right process makes progress.
constexpr char kSend = 's', kReceive = 'r', kCancel = 'c', kDropReceive = 'd', kDropSend = 'x', kLeft = '<',
               kRight = '>';

struct Way {
  std::string name;
  JobOptions options;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::host;  ///< detect: memory of the C++ library.
  std::size_t room = 0;                ///< Of each receive; less than `bytes`: every message is truncated.
  bool by_threads = false;             ///< Devices copy in threads of their own, so there is more to wait for.
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

JobOptions with_path(Path path, GpuChoice gpu = GpuChoice::none) {
  JobOptions options = linked(gpu);
  options.runtime.path = path;
  return options;
}

JobOptions within_one_process() {
  JobOptions options = with_path(Path::automatic, GpuChoice::emulated);
  options.ranks = 1;
  return options;
}

JobOptions unmappable() {
  JobOptions options = with_path(Path::automatic, GpuChoice::emulated);
  options.mappable = [](const port::ExportRecord&) { return false; };
  return options;
}

std::vector<Way> ways() {
  constexpr auto kPlain = MemoryKind::detect;
  return {{"Small", with_path(Path::shm), 100, kPlain, 100},
          {"SmallTruncated", with_path(Path::shm), 100, kPlain, 60},
          {"Pieces", with_path(Path::shm), 40'000, kPlain, 40'000},
          {"PiecesTruncated", with_path(Path::shm), 40'000, kPlain, 39'999},
          {"Pulled", with_path(Path::automatic), 600'000, MemoryKind::host, 600'000},
          {"PulledTruncated", with_path(Path::automatic), 600'000, MemoryKind::host, 599'999},
          {"Elsewhere", with_path(Path::automatic), 70'000, kPlain, 70'000},
          {"Network", with_path(Path::ucx), 3'000, kPlain, 3'000},
          {"ByDevice", with_path(Path::automatic, GpuChoice::emulated), 20'000, MemoryKind::emulated, 20'000, true},
          {"ByDeviceTruncated", with_path(Path::automatic, GpuChoice::emulated), 20'000, MemoryKind::emulated, 19'000,
           true},
          {"SmallByDevice", with_path(Path::automatic, GpuChoice::emulated), 512, MemoryKind::emulated, 512, true},
          {"WithinOneProcess", within_one_process(), 20'000, kPlain, 20'000},
          {"SmallWithinOneProcess", within_one_process(), 100, kPlain, 100},
          {"TruncatedWithinOneProcess", within_one_process(), 20'000, kPlain, 19'000},
          {"InTurnsWithinOneProcess", within_one_process(), 600'000, kPlain, 600'000},
          {"ByDeviceWithinOneProcess", within_one_process(), 20'000, MemoryKind::emulated, 20'000, true},
          {"SmallByDeviceWithinOneProcess", within_one_process(), 512, MemoryKind::emulated, 512, true},
          {"Staged", unmappable(), 20'000, MemoryKind::emulated, 20'000, true}};
}

/// Buffers of one kind of memory, which are used again and again.
class Buffers {
 public:
  Buffers(Runtime& runtime, const Way& way, std::size_t bytes) : runtime_(runtime), way_(way), bytes_(bytes) {
    for (int i = 0; i < kCount; ++i) {
      if (way.kind == MemoryKind::detect) {
        plain_.emplace_back(bytes);
      } else {
        memory_.push_back(runtime.allocate(way.kind, bytes));
      }
    }
  }
  /// The next one, filled.
  Buffer fill(unsigned value) {
    const std::size_t index = next_++ % kCount;
    const std::vector<std::byte> bytes(bytes_, static_cast<std::byte>(value));
    if (way_.kind == MemoryKind::detect) {
      plain_[index] = bytes;
      return Buffer(plain_[index].data(), bytes_);
    }
    runtime_.copy(memory_[index], std::span(bytes));
    return memory_[index];
  }
  std::vector<std::byte> read(const Buffer& buffer) {
    std::vector<std::byte> bytes(bytes_);
    if (way_.kind == MemoryKind::detect) {
      std::memcpy(bytes.data(), buffer.data, bytes_);
    } else {
      const auto of = std::ranges::find_if(memory_, [&](const Memory& memory) { return memory.data() == buffer.data; });
      runtime_.copy(std::span(bytes), *of);
    }
    return bytes;
  }

 private:
  static constexpr int kCount = 8;

  Runtime& runtime_;
  const Way& way_;
  const std::size_t bytes_;
  std::size_t next_ = 0;
  std::vector<std::vector<std::byte>> plain_;
  std::vector<Memory> memory_;
};

struct Receive {
  Receive(Channel& channel, Buffer landing_in) : landing(landing_in), operation(channel.recv(landing)) {}
  Buffer landing;
  Operation operation;
};

class Interleavings : public testing::TestWithParam<Way> {
 protected:
  static constexpr unsigned kUntouched = 0xee;

  void act(char step) {
    switch (step) {
      case kSend: {
        const Buffer source = sources.fill(value(sent++));
        sends.emplace_back(new Operation(pair.left.send(source)));
        break;
      }
      case kReceive: post_receive(); break;
      case kCancel: receives.at(canceled++)->operation.op().cancel(); break;
      case kDropReceive: drop(receives.at(canceled++)); break;
      case kDropSend: sends.at(dropped_sends++).reset(); break;
      case kLeft: pair.run(0, 1); break;
      default: pair.run(pair.right_rank, 1);
    }
  }

  void post_receive() { receives.push_back(std::make_unique<Receive>(pair.right, landings.fill(kUntouched))); }

  void drop(std::unique_ptr<Receive>& receive) {
    if (receive->operation.done()) look_at(*receive);
    receive.reset();
  }

  /// Received, or dropped with a receive in whose landing they were already.
  std::uint64_t gone() const { return pair.right.counts().received; }

  static unsigned value(std::uint64_t message) { return static_cast<unsigned>(message % 200) + 1; }

  void look_at(const Receive& receive) {
    const OpResult result = receive.operation.result();
    if (result.status == Status::canceled) return;
    const bool fits = GetParam().room >= GetParam().bytes;
    ASSERT_EQ(result.status, fits ? Status::ok : Status::truncated);
    ASSERT_EQ(result.bytes, GetParam().bytes);
    if (!fits) return;
    const std::vector<std::byte> bytes = landings.read(receive.landing);
    got.push_back(std::to_integer<unsigned>(bytes.front()));
    ASSERT_TRUE(std::ranges::all_of(bytes, [&](std::byte byte) { return byte == bytes.front(); }));
  }

  bool all_done() {
    const bool all_received = std::ranges::all_of(
        receives, [](const auto& receive) { return receive == nullptr || receive->operation.done(); });
    return all_received && std::ranges::all_of(sends, [](const auto& send) { return send == nullptr || send->done(); });
  }

  /// Every message finds a receive in the end.
  void settle() {
    for (int round = 0; round < 4 && gone() < sent; ++round) {
      pair.job.run(2);
      count_ended();
      for (std::uint64_t i = gone() + waiting(); i < sent; ++i) post_receive();
      // A device may still be copying a message to the landing of a dropped receive: then one too many was posted.
      ASSERT_TRUE(pair.job.run_until([&] { return all_done() || (canceled != 0 && gone() == sent); }))
          << "something waits for ever";
      count_ended();
    }
    if (canceled != 0) drop_surplus();
    ASSERT_EQ(gone(), sent) << "a message was lost, or came twice";
    ASSERT_TRUE(pair.job.run_until([&] { return all_done(); })) << "a send waits for ever";
    count_ended();
    for (const auto& send : sends) {
      if (send != nullptr) {
        ASSERT_TRUE(send->result().ok() || GetParam().room < GetParam().bytes) << status_text(send->result().status);
      }
    }
  }

  /// Receives of messages that will not come: all that were sent have.
  void drop_surplus() {
    ASSERT_EQ(gone(), sent) << "a message was lost, or came twice";
    pair.job.run(2);
    count_ended();
    for (auto& receive : receives) receive.reset();
  }

  std::uint64_t waiting() const {
    return static_cast<std::uint64_t>(std::ranges::count_if(
        receives, [](const auto& receive) { return receive != nullptr && !receive->operation.done(); }));
  }

  void count_ended() {
    for (auto& receive : receives) {
      if (receive == nullptr || !receive->operation.done()) continue;
      look_at(*receive);
      receive.reset();
    }
  }

  void play(const std::string& word) {
    SCOPED_TRACE(word);
    const std::uint64_t first = sent;
    for (const char step : word) act(step);
    settle();
    std::ranges::sort(got);
    std::vector<unsigned> wanted;
    for (std::uint64_t message = first; message != sent; ++message) wanted.push_back(value(message));
    std::ranges::sort(wanted);
    if (word.find(kDropReceive) == std::string::npos && GetParam().room >= GetParam().bytes) {
      ASSERT_EQ(got, wanted);
    }
    ASSERT_TRUE(pair.job.run_until([&] { return idle(); })) << "records are left behind";
    sends.clear();
    receives.clear();
    got.clear();
    canceled = dropped_sends = 0;
  }

  bool idle() {
    for (int rank = 0; rank <= pair.right_rank; ++rank) {
      if (pair.job.rank(rank).worker().engine().service<ChannelTable>().live() != 0) return false;
    }
    return true;
  }

  /// All words of these steps in which nothing is canceled or dropped before it was posted.
  void play_all(std::string steps) {
    std::ranges::sort(steps);
    unsigned words = 0;
    do {
      if (!is_possible(steps)) continue;
      if (words++ % effort_ != 0) continue;
      play(steps);
      if (HasFatalFailure()) return;
    } while (std::next_permutation(steps.begin(), steps.end()));
    EXPECT_GT(words, 20u);
  }

  static bool is_possible(const std::string& word) {
    int receives_left = 0, sends_left = 0;
    for (const char step : word) {
      receives_left += step == kReceive ? 1 : step == kCancel || step == kDropReceive ? -1 : 0;
      sends_left += step == kSend ? 1 : step == kDropSend ? -1 : 0;
      if (receives_left < 0 || sends_left < 0) return false;
    }
    return true;
  }

  /// Of the words every so many-th is played where that takes long.
  const unsigned effort_ = (GetParam().by_threads ? 7u : 1u) * test::effort(1u, 11u);
  Pair pair{GetParam().options};
  Buffers sources{pair.job.rank(0), GetParam(), GetParam().bytes};
  Buffers landings{pair.job.rank(pair.right_rank), GetParam(), GetParam().room};
  std::vector<std::unique_ptr<Operation>> sends;
  std::vector<std::unique_ptr<Receive>> receives;
  std::uint64_t sent = 0;
  std::size_t canceled = 0;
  std::size_t dropped_sends = 0;
  std::vector<unsigned> got;
};
INSTANTIATE_TEST_SUITE_P(Ways, Interleavings, testing::ValuesIn(ways()),
                         [](const auto& param) { return param.param.name; });

TEST_P(Interleavings, of_two_messages) { play_all("ssrr<<>>"); }

TEST_P(Interleavings, with_a_receive_that_is_canceled) { play_all("src<<>>"); }

TEST_P(Interleavings, with_one_of_two_receives_canceled) { play_all("ssrrc<>"); }

TEST_P(Interleavings, with_a_receive_that_is_dropped) { play_all("srd<<>>"); }

TEST_P(Interleavings, with_a_send_that_nobody_waits_for) { play_all("sxr<<>>"); }

}  // namespace
}  // namespace brant
