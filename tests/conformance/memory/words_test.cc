// What every device whose streams wait for words and write words promises.
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "conformance/memory/memory_fixture.h"

namespace brant::test {
namespace {

using namespace std::chrono_literals;
using port::StreamWord;
using Act = StreamWord::Act;

class StreamWords : public StreamConformance {
 protected:
  void SetUp() override {
    StreamConformance::SetUp();
    if (IsSkipped()) return;
    if (!device().capabilities().stream_words) GTEST_SKIP() << GetParam() << ": its streams know no words";
  }
  /// The stream has had the time to go on, and has not.
  void expect_held_up(port::Stream* stream, const char* what) {
    for (int i = 0; i < 10; ++i) {
      ASSERT_EQ(streams().poll(stream), Status::in_progress) << what;
      std::this_thread::sleep_for(1ms);
    }
  }
  /// The stream comes to its end in ten seconds.
  bool ends(port::Stream* stream) {
    const auto limit = std::chrono::steady_clock::now() + 10s;
    while (streams().poll(stream) == Status::in_progress) {
      if (std::chrono::steady_clock::now() > limit) return false;
      std::this_thread::yield();
    }
    return streams().synchronize(stream) == Status::ok;
  }
  template <typename T>
  static void set(T* word, T value) {
    std::atomic_ref<T>(*word).store(value, std::memory_order_release);
  }
  template <typename T>
  static T get(T* word) {
    return std::atomic_ref<T>(*word).load(std::memory_order_acquire);
  }
  /// `not_yet` holds a wait up and `then` lets it go on.
  template <typename T>
  void expect_waits(Act act, T value, T not_yet, T then) {
    SCOPED_TRACE(testing::Message() << "act " << static_cast<int>(act) << " of " << sizeof(T) << " bytes: " << not_yet
                                    << " until " << then);
    const StreamScope stream(device());
    const Piece pinned(device(), MemoryKind::pinned, 128);
    std::memset(pinned.at(), 0xff, 128);  // neighbours do not matter
    T* const word = pinned.as<T>(64);
    set(word, not_yet);
    const std::array words{StreamWord::wait(act, word, value), StreamWord::write(pinned.as<std::uint64_t>(), 1)};
    ASSERT_EQ(streams().at_words(words, stream), Status::ok);
    expect_held_up(stream, "the word has not come");
    EXPECT_EQ(get(pinned.as<std::uint64_t>()), ~std::uint64_t{0});
    set(word, then);
    if (!ends(stream)) {
      set(word, value);  // whatever the act
      FAIL() << "the word has come, and the stream waits; then it ends: " << ends(stream);
    }
    EXPECT_EQ(get(pinned.as<std::uint64_t>()), 1u);
    EXPECT_EQ(get(word), then) << "a wait changes nothing";
  }
};

INSTANTIATE_TEST_SUITE_P(Device, StreamWords, testing::Values("emulated", "cuda"), subject_name);

TEST_P(StreamWords, a_wait_ends_when_its_word_has_come) {
  constexpr std::uint64_t kWide = std::uint64_t{5} << 40;
  expect_waits<std::uint64_t>(Act::wait_equal, kWide, kWide + 1, kWide);
  expect_waits<std::uint64_t>(Act::wait_at_least, kWide, kWide - 1, kWide + 7);
  expect_waits<std::uint64_t>(Act::wait_any_bit, kWide, ~kWide, std::uint64_t{1} << 40);
  expect_waits<std::uint32_t>(Act::wait_equal, 7, 8, 7);
  expect_waits<std::uint32_t>(Act::wait_at_least, 7, 6, 7);
  expect_waits<std::uint32_t>(Act::wait_any_bit, 6, 9, 4);
}

TEST_P(StreamWords, counters_that_are_waited_for_may_wrap_around) {
  expect_waits<std::uint32_t>(Act::wait_at_least, 2, 0xfffffffe, 3);
  expect_waits<std::uint64_t>(Act::wait_at_least, 2, ~std::uint64_t{1}, 3);
}

TEST_P(StreamWords, a_wait_that_is_over_holds_nobody_up) {
  const StreamScope stream(device());
  const Piece piece(device(), device_kind(), 64);
  for (std::uint64_t value = 1; value <= 100; ++value) {
    ASSERT_EQ(streams().write_value(piece.as<std::uint64_t>(), value, stream), Status::ok);
    ASSERT_EQ(streams().wait_value(Act::wait_equal, piece.as<std::uint64_t>(), value, stream), Status::ok);
  }
  EXPECT_EQ(streams().synchronize(stream), Status::ok);
}

TEST_P(StreamWords, what_was_written_before_the_word_is_there_behind_the_wait) {
  const StreamScope stream(device());
  const Piece pinned(device(), MemoryKind::pinned, 4096);
  const Piece flag(device(), MemoryKind::pinned, 64);
  const Piece landing(device(), device_kind(), 4096);
  set<std::uint64_t>(flag.as<std::uint64_t>(), 0);
  for (std::uint64_t round = 1; round <= 50; ++round) {
    ASSERT_EQ(streams().wait_value(Act::wait_at_least, flag.as<std::uint64_t>(), round, stream), Status::ok);
    ASSERT_EQ(streams().copy(landing.at(), pinned.at(), 4096, stream), Status::ok);
    std::memset(pinned.at(), static_cast<int>(round), 4096);
    set(flag.as<std::uint64_t>(), round);
    ASSERT_EQ(streams().synchronize(stream), Status::ok);
    ASSERT_EQ(read(landing.at(), 4096), Bytes(4096, static_cast<std::byte>(round)));
  }
}

TEST_P(StreamWords, words_of_a_list_are_done_in_their_order) {
  const StreamScope stream(device());
  const Piece pinned(device(), MemoryKind::pinned, 256);
  std::memset(pinned.at(), 0, 256);
  auto* const first = pinned.as<std::uint64_t>();
  auto* const second = pinned.as<std::uint32_t>(64);
  auto* const narrow = pinned.as<std::uint32_t>(128);
  auto* const wide = pinned.as<std::uint64_t>(192);
  const std::array words{StreamWord::write(wide, std::uint64_t{1} << 35),
                         StreamWord::wait(Act::wait_at_least, first, 1), StreamWord::write(narrow, 0xfedcba98u),
                         StreamWord::wait(Act::wait_any_bit, second, 2u), StreamWord::write(wide, 9)};
  ASSERT_EQ(streams().at_words(words, stream), Status::ok);
  expect_held_up(stream, "the first word has not come");
  EXPECT_EQ(get(narrow), 0u);
  set<std::uint64_t>(first, 1);
  expect_held_up(stream, "the second word has not come");
  EXPECT_NE(get(wide), 9u);
  set<std::uint32_t>(second, 3);
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
  EXPECT_EQ(get(narrow), 0xfedcba98u);
  EXPECT_EQ(get(narrow + 1), 0u) << "four bytes and no more";
  EXPECT_EQ(get(wide), 9u);
}

TEST_P(StreamWords, streams_hand_over_to_each_other_without_the_cpu) {
  constexpr std::uint64_t kRounds = 100;
  constexpr std::size_t kBytes = 10000;
  const StreamScope there(device());
  const StreamScope back(device());
  const Piece words(device(), device_kind(), 128);
  const Piece first(device(), device_kind(), kBytes);
  const Piece second(device(), device_kind(), kBytes);
  write(words.at(), Bytes(128));
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    ASSERT_EQ(streams().fill(first.at(), static_cast<std::byte>(round), kBytes, there), Status::ok);
    const std::array told{StreamWord::write(words.as<std::uint64_t>(), round),
                          StreamWord::wait(Act::wait_at_least, words.as<std::uint64_t>(64), round)};
    ASSERT_EQ(streams().at_words(told, there), Status::ok);
    ASSERT_EQ(streams().wait_value(Act::wait_at_least, words.as<std::uint64_t>(), round, back), Status::ok);
    ASSERT_EQ(streams().copy(second.at(), first.at(), kBytes, back), Status::ok);
    ASSERT_EQ(streams().write_value(words.as<std::uint64_t>(64), round, back), Status::ok);
  }
  ASSERT_EQ(streams().synchronize(there), Status::ok);
  ASSERT_EQ(streams().synchronize(back), Status::ok);
  EXPECT_EQ(read(second.at(), kBytes), Bytes(kBytes, static_cast<std::byte>(kRounds)));
}

TEST_P(StreamWords, a_list_has_a_bound_that_is_told) {
  const StreamScope stream(device());
  const Piece piece(device(), device_kind(), 8 * (port::Streams::kWordsMax + 1));
  std::vector<StreamWord> words;
  words.reserve(port::Streams::kWordsMax + 1);
  for (std::size_t i = 0; i < port::Streams::kWordsMax; ++i) {
    words.push_back(StreamWord::write(piece.as<std::uint64_t>(8 * i), i + 1));
  }
  EXPECT_EQ(streams().at_words(words, stream), Status::ok);
  words.push_back(words.front());
  EXPECT_EQ(streams().at_words(words, stream), Status::limit_reached);
  EXPECT_EQ(streams().at_words({}, stream), Status::ok);
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
  const Bytes got = read(piece.at(), piece.bytes());
  for (std::size_t i = 0; i < port::Streams::kWordsMax; ++i) {
    std::uint64_t value = 0;
    std::memcpy(&value, got.data() + 8 * i, 8);
    ASSERT_EQ(value, i + 1);
  }
}

TEST_P(StreamWords, a_list_with_a_word_that_cannot_be_is_refused_whole) {
  const StreamScope stream(device());
  const Piece pinned(device(), MemoryKind::pinned, 64);
  std::memset(pinned.at(), 0, 64);
  const StreamWord good = StreamWord::write(pinned.as<std::uint64_t>(), 1);
  StreamWord odd = good, large = good, small = good, unknown = good;
  odd.word = pinned.at(4);
  small.bytes = 2;
  large.bytes = 4;
  large.value = std::uint64_t{1} << 32;
  unknown.act = static_cast<Act>(9);
  for (const StreamWord& bad :
       {odd, large, small, unknown, StreamWord::wait(Act::wait_equal, static_cast<std::uint64_t*>(nullptr), 0)}) {
    const std::array words{good, bad};
    EXPECT_EQ(streams().at_words(words, stream), Status::invalid_argument);
  }
  EXPECT_EQ(streams().at_words({&good, 1}, nullptr), Status::invalid_argument);
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
  EXPECT_EQ(*pinned.as<std::uint64_t>(), 0u);
}

TEST_P(StreamWords, a_recorded_list_waits_and_writes_at_every_launch) {
  const StreamScope stream(device());
  const Piece pinned(device(), MemoryKind::pinned, 128);
  std::memset(pinned.at(), 0, 128);
  auto* const flag = pinned.as<std::uint64_t>();
  auto* const told = pinned.as<std::uint64_t>(64);
  const std::array words{StreamWord::wait(Act::wait_equal, flag, 1), StreamWord::write(told, 1)};
  ASSERT_EQ(streams().begin_capture(stream), Status::ok);
  EXPECT_EQ(streams().at_words(words, stream), Status::ok);
  const Result<port::Graph*> graph = streams().end_capture(stream);
  ASSERT_TRUE(graph.ok());
  for (int round = 0; round < 3; ++round) {
    set<std::uint64_t>(flag, 0);
    set<std::uint64_t>(told, 0);
    ASSERT_EQ(streams().launch(*graph, stream), Status::ok);
    expect_held_up(stream, "the word has not come");
    EXPECT_EQ(get(told), 0u);
    set<std::uint64_t>(flag, 1);
    ASSERT_EQ(streams().synchronize(stream), Status::ok);
    EXPECT_EQ(get(told), 1u);
  }
  streams().destroy_graph(*graph);
}

/// What is not there is said in the capabilities, and nothing pretends to be.
using HostAbilities = MemoryConformance;
INSTANTIATE_TEST_SUITE_P(Device, HostAbilities, testing::Values("host"), subject_name);

TEST_P(HostAbilities, a_device_without_streams_offers_nothing_that_needs_them) {
  const port::DeviceCapabilities& abilities = device().capabilities();
  EXPECT_FALSE(abilities.streams || abilities.stream_words || abilities.kernels || abilities.cooperative);
  EXPECT_EQ(device().streams(), nullptr);
  EXPECT_EQ(device().kernels(), nullptr);
}

}  // namespace
}  // namespace brant::test
