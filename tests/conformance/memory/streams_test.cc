// What every device with streams promises: copies, order, events, flags.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "conformance/memory/memory_fixture.h"

namespace brant::test {
namespace {

using namespace std::chrono_literals;

INSTANTIATE_TEST_SUITE_P(Device, StreamConformance, testing::Values("emulated", "cuda"), subject_name);

/// Waits for a flag that a stream writes; false after ten seconds.
bool wait_for(std::uint64_t* flag, std::uint64_t value) {
  const auto limit = std::chrono::steady_clock::now() + 10s;
  while (std::atomic_ref<std::uint64_t>(*flag).load(std::memory_order_acquire) != value) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST_P(StreamConformance, copies_any_kind_to_any_kind) {
  constexpr std::size_t kGuard = 64;
  const StreamScope stream(device());
  unsigned seed = 1;
  for (const MemoryKind from : kinds()) {
    for (const MemoryKind to : kinds()) {
      for (const std::size_t bytes : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, std::size_t{100003}}) {
        SCOPED_TRACE(std::string(memory_kind_name(from)) + " to " + std::string(memory_kind_name(to)) + ", " +
                     std::to_string(bytes) + " bytes");
        const std::size_t skip = seed % 13;  // odd offsets
        const Piece source(device(), from, bytes + 2 * kGuard);
        const Piece destination(device(), to, bytes + 2 * kGuard);
        const Bytes before = pattern(destination.bytes(), ++seed);
        const Bytes sent = pattern(bytes, ++seed);
        write(destination.at(), before);
        write(source.at(skip), sent);
        ASSERT_EQ(streams().copy(destination.at(kGuard - skip), source.at(skip), bytes, stream), Status::ok);
        ASSERT_EQ(streams().synchronize(stream), Status::ok);
        Bytes expected = before;
        std::memcpy(expected.data() + kGuard - skip, sent.data(), bytes);
        EXPECT_EQ(read(destination.at(), destination.bytes()), expected);
      }
    }
  }
}

TEST_P(StreamConformance, all_streams_of_the_process_are_waited_for_together) {
  constexpr std::size_t kBytes = std::size_t{16} << 20;
  const StreamScope first(device()), second(device());
  const Piece left(device(), device_kind(), kBytes), right(device(), device_kind(), kBytes);
  for (unsigned value = 1; value < 10; ++value) {
    ASSERT_EQ(streams().fill(left.at(), static_cast<std::byte>(value), kBytes, first), Status::ok);
    ASSERT_EQ(streams().fill(right.at(), static_cast<std::byte>(value), kBytes, second), Status::ok);
  }
  ASSERT_EQ(streams().synchronize_all(), Status::ok);
  EXPECT_EQ(streams().poll(first), Status::ok);
  EXPECT_EQ(streams().poll(second), Status::ok);
}

TEST_P(StreamConformance, captured_work_runs_when_launched_and_as_often) {
  const StreamScope stream(device());
  const Piece source(device(), device_kind(), 4096), middle(device(), device_kind(), 4096);
  const Piece destination(device(), device_kind(), 4096);
  write(destination.at(), Bytes(4096, std::byte{1}));
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
  EXPECT_FALSE(*streams().captures(stream));
  ASSERT_EQ(streams().begin_capture(stream), Status::ok);
  EXPECT_TRUE(*streams().captures(stream));
  EXPECT_EQ(streams().copy(middle.at(), source.at(), 4096, stream), Status::ok);
  EXPECT_EQ(streams().copy(destination.at(), middle.at(), 4096, stream), Status::ok);
  const Result<port::Graph*> graph = streams().end_capture(stream);
  ASSERT_TRUE(graph.ok());
  EXPECT_FALSE(*streams().captures(stream));
  EXPECT_FALSE(streams().captures(nullptr).ok());
  EXPECT_EQ(streams().synchronize(stream), Status::ok);
  EXPECT_EQ(read(destination.at(), 4096), Bytes(4096, std::byte{1})) << "it was recorded, not run";
  for (unsigned round = 2; round < 5; ++round) {
    write(source.at(), Bytes(4096, static_cast<std::byte>(round)));
    ASSERT_EQ(streams().launch(*graph, stream), Status::ok);
    ASSERT_EQ(streams().synchronize(stream), Status::ok);
    EXPECT_EQ(read(destination.at(), 4096), Bytes(4096, static_cast<std::byte>(round)));
  }
  streams().destroy_graph(*graph);
  EXPECT_FALSE(streams().end_capture(stream).ok()) << "nothing was begun";
  EXPECT_EQ(streams().launch(nullptr, stream), Status::invalid_argument);
}

TEST_P(StreamConformance, copies_memory_that_the_device_does_not_know) {
  const StreamScope stream(device());
  const Bytes sent = pattern(300007, 5);
  Bytes got(sent.size());
  const Piece piece(device(), device_kind(), sent.size());
  ASSERT_EQ(streams().copy(piece.at(), sent.data(), sent.size(), stream), Status::ok);
  ASSERT_EQ(streams().copy(got.data(), piece.at(), got.size(), stream), Status::ok);
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
  EXPECT_EQ(got, sent);
}

TEST_P(StreamConformance, refuses_bad_arguments) {
  const StreamScope stream(device());
  const EventScope event(device());
  const Piece piece(device(), device_kind(), 64);
  EXPECT_EQ(streams().copy(piece.at(), nullptr, 8, stream), Status::invalid_argument);
  EXPECT_EQ(streams().copy(nullptr, piece.at(), 8, stream), Status::invalid_argument);
  EXPECT_EQ(streams().copy(piece.at(), piece.at(32), 8, nullptr), Status::invalid_argument);
  EXPECT_EQ(streams().copy(nullptr, nullptr, 0, stream), Status::ok);
  EXPECT_EQ(streams().fill(nullptr, std::byte{1}, 8, stream), Status::invalid_argument);
  EXPECT_EQ(streams().fill(piece.at(), std::byte{1}, 8, nullptr), Status::invalid_argument);
  EXPECT_EQ(streams().fill(nullptr, std::byte{1}, 0, stream), Status::ok);
  EXPECT_EQ(streams().write_value(nullptr, 1, stream), Status::invalid_argument);
  EXPECT_EQ(streams().write_value(piece.as<std::uint64_t>(4), 1, stream), Status::invalid_argument);
  EXPECT_EQ(streams().write_value(piece.as<std::uint64_t>(), 1, nullptr), Status::invalid_argument);
  EXPECT_EQ(streams().call_host(nullptr, nullptr, stream), Status::invalid_argument);
  EXPECT_EQ(streams().call_host([](void*) noexcept {}, nullptr, nullptr), Status::invalid_argument);
  EXPECT_EQ(streams().record(event, nullptr), Status::invalid_argument);
  EXPECT_EQ(streams().record(nullptr, stream), Status::invalid_argument);
  EXPECT_EQ(streams().wait_event(nullptr, event), Status::invalid_argument);
  EXPECT_EQ(streams().wait_event(stream, nullptr), Status::invalid_argument);
  EXPECT_EQ(streams().poll(static_cast<port::Event*>(nullptr)), Status::invalid_argument);
  EXPECT_EQ(streams().poll(static_cast<port::Stream*>(nullptr)), Status::invalid_argument);
  EXPECT_EQ(streams().synchronize(nullptr), Status::invalid_argument);
  EXPECT_EQ(streams().elapsed_us(nullptr, event).status(), Status::invalid_argument);
  streams().destroy_stream(nullptr);
  streams().destroy_event(nullptr);
}

TEST_P(StreamConformance, fills_the_bytes_named_and_no_others) {
  const StreamScope stream(device());
  for (const MemoryKind kind : kinds()) {
    if (kind == MemoryKind::host) continue;
    const Piece piece(device(), kind, 1000);
    Bytes expected = pattern(piece.bytes(), 9);
    write(piece.at(), expected);
    ASSERT_EQ(streams().fill(piece.at(13), std::byte{0x5c}, 777, stream), Status::ok) << memory_kind_name(kind);
    ASSERT_EQ(streams().synchronize(stream), Status::ok);
    std::fill_n(expected.begin() + 13, 777, std::byte{0x5c});
    EXPECT_EQ(read(piece.at(), piece.bytes()), expected) << memory_kind_name(kind);
  }
}

TEST_P(StreamConformance, a_stream_keeps_its_order) {
  const StreamScope stream(device());
  const Piece first(device(), device_kind(), 200000);
  const Piece second(device(), device_kind(), 200000);
  constexpr unsigned kRounds = 300;
  for (unsigned round = 0; round < kRounds; ++round) {
    const Piece& from = round % 2 == 0 ? first : second;
    const Piece& to = round % 2 == 0 ? second : first;
    ASSERT_EQ(streams().fill(from.at(round), static_cast<std::byte>(round), 1, stream), Status::ok);
    ASSERT_EQ(streams().copy(to.at(), from.at(), from.bytes(), stream), Status::ok);
  }
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
  const Bytes got = read(first.at(), kRounds);
  for (unsigned round = 0; round < kRounds; ++round) EXPECT_EQ(got[round], static_cast<std::byte>(round)) << round;
}

TEST_P(StreamConformance, destroying_a_stream_waits_for_its_work) {
  const Bytes sent = pattern(8 << 20, 3);
  const Piece piece(device(), device_kind(), sent.size());
  Piece staging(device(), MemoryKind::pinned, sent.size());
  std::memcpy(staging.at(), sent.data(), sent.size());
  {
    const StreamScope stream(device());
    ASSERT_EQ(streams().copy(piece.at(), staging.at(), sent.size(), stream), Status::ok);
  }
  staging.free_now();
  EXPECT_EQ(read(piece.at(), sent.size()), sent);
}

TEST_P(StreamConformance, many_streams_work_at_once) {
  constexpr unsigned kStreams = 24;
  std::vector<std::unique_ptr<StreamScope>> many;
  std::vector<std::unique_ptr<Piece>> there;
  std::vector<std::unique_ptr<Piece>> back;
  std::vector<Bytes> sent;
  for (unsigned i = 0; i < kStreams; ++i) {
    many.push_back(std::make_unique<StreamScope>(device()));
    there.push_back(std::make_unique<Piece>(device(), device_kind(), 50000 + i));
    back.push_back(std::make_unique<Piece>(device(), MemoryKind::pinned, 50000 + i));
    sent.push_back(pattern(50000 + i, i));
  }
  for (unsigned i = 0; i < kStreams; ++i) {
    ASSERT_EQ(streams().copy(there[i]->at(), sent[i].data(), sent[i].size(), *many[i]), Status::ok);
    ASSERT_EQ(streams().copy(back[i]->at(), there[i]->at(), sent[i].size(), *many[i]), Status::ok);
  }
  for (unsigned i = 0; i < kStreams; ++i) {
    ASSERT_EQ(streams().synchronize(*many[i]), Status::ok);
    EXPECT_EQ(std::memcmp(back[i]->at(), sent[i].data(), sent[i].size()), 0) << i;
  }
}

TEST_P(StreamConformance, streams_serve_several_threads) {
  std::atomic<int> faults{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      const StreamScope stream(device());
      const Piece piece(device(), device_kind(), 30011);
      for (unsigned round = 0; round < 20; ++round) {
        const Bytes sent = pattern(piece.bytes(), seed * 100 + round);
        Bytes got(sent.size());
        const bool queued = streams().copy(piece.at(), sent.data(), sent.size(), stream) == Status::ok &&
                            streams().copy(got.data(), piece.at(), got.size(), stream) == Status::ok;
        if (!queued || streams().synchronize(stream) != Status::ok || got != sent) ++faults;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(faults.load(), 0);
}

TEST_P(StreamConformance, events_order_work_of_several_streams) {
  constexpr unsigned kHops = 8;
  constexpr std::size_t kBytes = 1 << 20;
  std::vector<std::unique_ptr<StreamScope>> many;
  std::vector<std::unique_ptr<EventScope>> events;
  std::vector<std::unique_ptr<Piece>> pieces;
  for (unsigned i = 0; i <= kHops; ++i) {
    many.push_back(std::make_unique<StreamScope>(device()));
    events.push_back(std::make_unique<EventScope>(device()));
    pieces.push_back(std::make_unique<Piece>(device(), device_kind(), kBytes));
    ASSERT_EQ(streams().fill(pieces[i]->at(), std::byte{0}, kBytes, *many[i]), Status::ok);
    ASSERT_EQ(streams().synchronize(*many[i]), Status::ok);
  }
  for (unsigned round = 1; round <= 30; ++round) {
    ASSERT_EQ(streams().fill(pieces[0]->at(), static_cast<std::byte>(round), kBytes, *many[0]), Status::ok);
    for (unsigned hop = 0; hop < kHops; ++hop) {
      ASSERT_EQ(streams().record(*events[hop], *many[hop]), Status::ok);
      ASSERT_EQ(streams().wait_event(*many[hop + 1], *events[hop]), Status::ok);
      ASSERT_EQ(streams().copy(pieces[hop + 1]->at(), pieces[hop]->at(), kBytes, *many[hop + 1]), Status::ok);
    }
    ASSERT_EQ(streams().synchronize(*many[kHops]), Status::ok);
    EXPECT_EQ(read(pieces[kHops]->at(), kBytes), Bytes(kBytes, static_cast<std::byte>(round)));
  }
}

TEST_P(StreamConformance, an_event_never_recorded_holds_nobody_up) {
  const StreamScope stream(device());
  const EventScope event(device());
  EXPECT_EQ(streams().poll(event), Status::ok);
  EXPECT_EQ(streams().wait_event(stream, event), Status::ok);
  EXPECT_EQ(streams().synchronize(stream), Status::ok);
}

TEST_P(StreamConformance, an_event_completes_with_the_work_before_it) {
  const StreamScope stream(device());
  const EventScope event(device());
  const Piece piece(device(), device_kind(), 1 << 20);
  for (unsigned round = 0; round < 20; ++round) {
    ASSERT_EQ(streams().fill(piece.at(), static_cast<std::byte>(round), piece.bytes(), stream), Status::ok);
    ASSERT_EQ(streams().record(event, stream), Status::ok);
    const auto limit = std::chrono::steady_clock::now() + 10s;
    Status status = streams().poll(event);
    while (status == Status::in_progress && std::chrono::steady_clock::now() < limit) status = streams().poll(event);
    ASSERT_EQ(status, Status::ok);
    EXPECT_EQ(streams().poll(stream), Status::ok);
    EXPECT_EQ(read(piece.at(piece.bytes() - 1), 1)[0], static_cast<std::byte>(round));
  }
}

TEST_P(StreamConformance, measures_time_between_events) {
  const StreamScope stream(device());
  const EventScope from(device(), true);
  const EventScope to(device(), true);
  const EventScope untimed(device(), false);
  const EventScope unused(device(), true);
  const Piece piece(device(), device_kind(), 32 << 20);
  ASSERT_EQ(streams().record(from, stream), Status::ok);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(streams().fill(piece.at(), std::byte{1}, piece.bytes(), stream), Status::ok);
  ASSERT_EQ(streams().record(to, stream), Status::ok);
  ASSERT_EQ(streams().record(untimed, stream), Status::ok);
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
  const Result<double> us = streams().elapsed_us(from, to);
  ASSERT_TRUE(us.ok()) << status_name(us.status());
  EXPECT_GT(*us, 1.0);  // 128 MB take longer on anything there is
  EXPECT_LT(*us, 60e6);
  EXPECT_EQ(streams().elapsed_us(from, untimed).status(), Status::invalid_argument);
  EXPECT_EQ(streams().elapsed_us(from, unused).status(), Status::invalid_argument);
}

/// What a function that a stream calls has found: how often it was called, and of bytes the first and the last one.
struct Found {
  const std::byte* bytes;
  std::size_t count;
  std::uint64_t calls = 0;
  std::byte first{};
  std::byte last{};

  static void look(void* argument) noexcept {
    auto& found = *static_cast<Found*>(argument);
    found.first = found.bytes[0];
    found.last = found.bytes[found.count - 1];
    std::atomic_ref(found.calls).fetch_add(1, std::memory_order_release);
  }
};

TEST_P(StreamConformance, calls_the_host_behind_the_work_before_and_ahead_of_the_work_after) {
  const StreamScope stream(device());
  const Piece source(device(), device_kind(), 65536);
  const Piece landing(device(), MemoryKind::pinned, 65536);
  Found found{landing.at(), landing.bytes()};
  for (std::uint64_t round = 1; round <= 100; ++round) {
    const auto value = static_cast<std::byte>(round);
    ASSERT_EQ(streams().fill(source.at(), value, source.bytes(), stream), Status::ok);
    ASSERT_EQ(streams().copy(landing.at(), source.at(), source.bytes(), stream), Status::ok);
    ASSERT_EQ(streams().call_host(&Found::look, &found, stream), Status::ok);
    ASSERT_EQ(streams().fill(landing.at(), ~value, landing.bytes(), stream), Status::ok);
    ASSERT_TRUE(wait_for(&found.calls, round)) << "nobody asks the stream meanwhile";
    ASSERT_EQ(found.first, value);
    ASSERT_EQ(found.last, value);
  }
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
  EXPECT_EQ(found.calls, 100u);
}

TEST_P(StreamConformance, a_call_of_the_host_that_is_captured_comes_with_each_launch) {
  const StreamScope stream(device());
  const Piece bytes(device(), MemoryKind::pinned, 64);
  std::memset(bytes.at(), 7, bytes.bytes());
  Found found{bytes.at(), bytes.bytes()};
  ASSERT_EQ(streams().begin_capture(stream), Status::ok);
  EXPECT_EQ(streams().call_host(&Found::look, &found, stream), Status::ok);
  const Result<port::Graph*> graph = streams().end_capture(stream);
  ASSERT_TRUE(graph.ok());
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
  EXPECT_EQ(found.calls, 0u) << "it was recorded, not called";
  for (std::uint64_t round = 1; round <= 3; ++round) {
    ASSERT_EQ(streams().launch(*graph, stream), Status::ok);
    ASSERT_EQ(streams().synchronize(stream), Status::ok);
    EXPECT_EQ(found.calls, round);
  }
  streams().destroy_graph(*graph);
}

TEST_P(StreamConformance, a_written_value_comes_after_the_data) {
  if (!device().capabilities().stream_words) GTEST_SKIP() << "this device cannot write values from a stream";
  const StreamScope stream(device());
  const Piece source(device(), device_kind(), 65536);
  const Piece landing(device(), MemoryKind::pinned, 65536);
  const Piece flag(device(), MemoryKind::pinned, 64);
  *flag.as<std::uint64_t>() = 0;
  for (std::uint64_t round = 1; round <= 100; ++round) {
    ASSERT_EQ(streams().fill(source.at(), static_cast<std::byte>(round), source.bytes(), stream), Status::ok);
    ASSERT_EQ(streams().copy(landing.at(), source.at(), source.bytes(), stream), Status::ok);
    ASSERT_EQ(streams().write_value(flag.as<std::uint64_t>(), round << 32 | round, stream), Status::ok);
    ASSERT_TRUE(wait_for(flag.as<std::uint64_t>(), round << 32 | round));
    ASSERT_EQ(*landing.at(), static_cast<std::byte>(round));
    ASSERT_EQ(*landing.at(landing.bytes() - 1), static_cast<std::byte>(round));
  }
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
}

TEST_P(StreamConformance, writes_values_to_device_memory_too) {
  if (!device().capabilities().stream_words) GTEST_SKIP() << "this device cannot write values from a stream";
  const StreamScope stream(device());
  const Piece piece(device(), device_kind(), 64);
  ASSERT_EQ(streams().fill(piece.at(), std::byte{0xff}, 64, stream), Status::ok);
  ASSERT_EQ(streams().write_value(piece.as<std::uint64_t>(8), 0x0123456789abcdefull, stream), Status::ok);
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
  const Bytes got = read(piece.at(), 64);
  std::uint64_t value = 0;
  std::memcpy(&value, got.data() + 8, 8);
  EXPECT_EQ(value, 0x0123456789abcdefull);
  EXPECT_EQ(got[7], std::byte{0xff});
  EXPECT_EQ(got[16], std::byte{0xff});
}

TEST_P(StreamConformance, registered_host_memory_is_pinned_until_it_is_given_up) {
  constexpr std::size_t kBytes = 1 << 16;
  void* raw = nullptr;
  ASSERT_EQ(::posix_memalign(&raw, 4096, kBytes), 0);
  const std::unique_ptr<void, decltype(&std::free)> memory(raw, &std::free);
  EXPECT_EQ(device().query(raw).status(), Status::not_found);
  ASSERT_EQ(streams().register_host(raw, kBytes), Status::ok);
  const Result<port::PointerInfo> info = device().query(static_cast<std::byte*>(raw) + 100);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->kind, MemoryKind::pinned);
  EXPECT_EQ(info->base, raw);
  EXPECT_EQ(info->bytes, kBytes);
  EXPECT_EQ(streams().register_host(raw, kBytes), Status::invalid_argument);

  const StreamScope stream(device());
  ASSERT_EQ(streams().fill(static_cast<std::byte*>(raw) + 9, std::byte{0x77}, 1000, stream), Status::ok);
  if (device().capabilities().stream_words) {
    ASSERT_EQ(streams().write_value(static_cast<std::uint64_t*>(raw) + 512, 42, stream), Status::ok);
  }
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
  EXPECT_EQ(static_cast<std::byte*>(raw)[1008], std::byte{0x77});
  if (device().capabilities().stream_words) {
    EXPECT_EQ(static_cast<std::uint64_t*>(raw)[512], 42u);
  }

  ASSERT_EQ(streams().unregister_host(raw), Status::ok);
  EXPECT_EQ(device().query(raw).status(), Status::not_found);
  EXPECT_EQ(streams().unregister_host(raw), Status::not_found);
  EXPECT_EQ(streams().register_host(nullptr, 8), Status::invalid_argument);
  EXPECT_EQ(streams().register_host(raw, 0), Status::invalid_argument);
}

TEST_P(StreamConformance, registrations_end_with_the_device) {
  constexpr std::size_t kBytes = 1 << 16;
  void* raw = nullptr;
  ASSERT_EQ(::posix_memalign(&raw, 4096, kBytes), 0);
  const std::unique_ptr<void, decltype(&std::free)> memory(raw, &std::free);
  ASSERT_EQ(streams().register_host(raw, kBytes), Status::ok);
  std::string reason;
  device_.reset();
  device_ = open_subject(GetParam(), reason);
  ASSERT_NE(device_, nullptr);
  EXPECT_EQ(device().query(raw).status(), Status::not_found);
  EXPECT_EQ(streams().register_host(raw, kBytes), Status::ok);
  EXPECT_EQ(streams().unregister_host(raw), Status::ok);
}

TEST_P(StreamConformance, another_thread_may_wait_for_a_stream) {
  const StreamScope stream(device());
  const Piece piece(device(), device_kind(), 16 << 20);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(streams().fill(piece.at(), std::byte{2}, piece.bytes(), stream), Status::ok);
  Status waited = Status::internal;
  std::thread([&] { waited = streams().synchronize(stream); }).join();
  EXPECT_EQ(waited, Status::ok);
  EXPECT_EQ(streams().poll(stream), Status::ok);
}

}  // namespace
}  // namespace brant::test
