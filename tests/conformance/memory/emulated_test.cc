// What only the emulated device promises: it catches what would go wrong on a GPU.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <limits>
#include <thread>

#include "conformance/memory/memory_fixture.h"
#include "conformance/memory/memory_peer.h"
#include "port/memory/adapters.h"
#include "port/memory/emulated/emulated_device.h"
#include "support/effort.h"

namespace brant::test {
namespace {

using namespace std::chrono_literals;
using port::HostLaunch;
using port::memory::EmulatedDevice;
using port::memory::EmulatedOptions;

constexpr MemoryKind kKind = MemoryKind::emulated;

sigjmp_buf g_jump;
volatile void* g_fault_address;

/// The address at which `access` trapped; null if it did not.
template <typename Access>
const void* trap_address(Access&& access) {
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_sigaction = [](int, siginfo_t* info, void*) {
    g_fault_address = info->si_addr;
    siglongjmp(g_jump, 1);
  };
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, &before);
  g_fault_address = nullptr;
  if (sigsetjmp(g_jump, 1) == 0) access();
  ::sigaction(SIGSEGV, &before, nullptr);
  return const_cast<const void*>(g_fault_address);
}

TEST(EmulatedDevice, a_cpu_access_to_its_memory_traps) {
  EmulatedDevice device;
  const Piece piece(device, kKind, 10000);
  for (const std::size_t offset : {std::size_t{0}, std::size_t{5000}, std::size_t{9999}}) {
    volatile auto* byte = reinterpret_cast<volatile char*>(piece.at(offset));
    EXPECT_EQ(trap_address([&] { static_cast<void>(*byte); }), piece.at(offset));
    EXPECT_EQ(trap_address([&] { *byte = 1; }), piece.at(offset));
  }
  Piece pinned(device, MemoryKind::pinned, 64);
  EXPECT_EQ(trap_address([&] { *pinned.at() = std::byte{1}; }), nullptr) << "the check itself must be able to fail";
}

TEST(EmulatedDevice, a_system_call_on_its_memory_fails) {
  EmulatedDevice device;
  const Piece piece(device, kKind, 4096);
  const int null = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(null, 0);
  EXPECT_EQ(::read(null, piece.at(), 16), -1);
  EXPECT_EQ(errno, EFAULT);
  ::close(null);
}

TEST(EmulatedDevice, fresh_memory_is_not_zero) {
  EmulatedDevice device;
  const StreamScope stream(device);
  const Piece piece(device, kKind, 100);
  Bytes got(100);
  ASSERT_EQ(device.streams()->copy(got.data(), piece.at(), 100, stream), Status::ok);
  ASSERT_EQ(device.streams()->synchronize(stream), Status::ok);
  EXPECT_NE(got[0], std::byte{0});
  EXPECT_NE(got[99], std::byte{0});
}

TEST(EmulatedDevice, refuses_freed_memory) {
  EmulatedDevice device;
  const StreamScope stream(device);
  Piece piece(device, kKind, 4096);
  std::byte* address = piece.at();
  piece.free_now();
  Bytes host(64);
  EXPECT_EQ(device.streams()->copy(address, host.data(), 64, stream), Status::wrong_kind);
  EXPECT_EQ(device.streams()->copy(host.data(), address, 64, stream), Status::wrong_kind);
  EXPECT_EQ(device.streams()->fill(address, std::byte{1}, 64, stream), Status::wrong_kind);
  EXPECT_EQ(device.streams()->write_value(reinterpret_cast<std::uint64_t*>(address), 1, stream), Status::wrong_kind);
  EXPECT_EQ(device.streams()->synchronize(stream), Status::ok);
}

TEST(EmulatedDevice, refuses_accesses_past_the_end) {
  EmulatedDevice device;
  const StreamScope stream(device);
  const Piece piece(device, kKind, 1000);
  Bytes host(8192);
  EXPECT_EQ(device.streams()->copy(piece.at(), host.data(), 1001, stream), Status::invalid_argument);
  EXPECT_EQ(device.streams()->copy(host.data(), piece.at(999), 2, stream), Status::invalid_argument);
  EXPECT_EQ(device.streams()->fill(piece.at(500), std::byte{1}, 501, stream), Status::invalid_argument);
  EXPECT_EQ(device.streams()->copy(host.data(), piece.at(999), 1, stream), Status::ok);
  EXPECT_EQ(device.streams()->copy(piece.at(), host.data(), SIZE_MAX, stream), Status::invalid_argument);
  EXPECT_EQ(device.streams()->synchronize(stream), Status::ok);
}

TEST(EmulatedDevice, reaches_host_memory_only_if_pinned_or_registered) {
  EmulatedDevice device;
  const StreamScope stream(device);
  const Piece host(device, MemoryKind::host, 4096);
  const Piece pinned(device, MemoryKind::pinned, 4096);
  EXPECT_EQ(device.streams()->fill(host.at(), std::byte{1}, 64, stream), Status::wrong_kind);
  EXPECT_EQ(device.streams()->write_value(host.as<std::uint64_t>(), 1, stream), Status::wrong_kind);
  ASSERT_EQ(device.streams()->register_host(host.at(), 4096), Status::ok);
  EXPECT_EQ(device.streams()->fill(host.at(), std::byte{1}, 64, stream), Status::ok);
  EXPECT_EQ(device.streams()->fill(host.at(4000), std::byte{1}, 200, stream), Status::invalid_argument);
  EXPECT_EQ(device.streams()->synchronize(stream), Status::ok);
  EXPECT_EQ(device.streams()->unregister_host(host.at()), Status::ok);
  EXPECT_EQ(device.streams()->register_host(pinned.at(), 64), Status::invalid_argument);
}

TEST(EmulatedDevice, a_wait_that_never_ends_ends_with_its_device) {
  using port::StreamWord;
  const std::unique_ptr<std::uint64_t[]> words(new std::uint64_t[3]{0, 0, 0});
  EmulatedDevice keeper;  // registrations end with their device
  ASSERT_EQ(keeper.streams()->register_host(words.get(), 24), Status::ok);
  const auto start = std::chrono::steady_clock::now();
  {
    EmulatedDevice device({.close_wait_ms = 60000});
    const Result<port::Stream*> stream = device.streams()->create_stream(port::StreamPriority::normal);
    ASSERT_TRUE(stream.ok());
    const std::array list{StreamWord::write(&words[2], 1), StreamWord::wait(StreamWord::Act::wait_equal, &words[0], 1),
                          StreamWord::write(&words[1], 1)};
    ASSERT_EQ(device.streams()->at_words(list, *stream), Status::ok);
    while (std::atomic_ref(words[2]).load() == 0 && std::chrono::steady_clock::now() - start < 10s) {
      std::this_thread::yield();
    }
    EXPECT_EQ(device.streams()->poll(*stream), Status::in_progress);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  EXPECT_EQ(words[1], 0u) << "what stands behind a wait that was given up is not done";
}

TEST(EmulatedDevice, as_many_blocks_are_resident_as_it_was_told) {
  EmulatedDevice device({.blocks_at_once = 3});
  static std::atomic<unsigned> calls;
  static std::atomic<std::uint64_t> blocks_seen;
  calls = 0;
  blocks_seen = 0;
  const port::HostKernel count = [](const HostLaunch& launch) noexcept {
    ++calls;
    for (std::uint64_t i = 0; i < launch.blocks; ++i) blocks_seen |= std::uint64_t{1} << (launch.first_block + i);
  };
  const Result<port::Kernel*> kernel =
      device.kernels()->load({.image = {}, .symbol = "x", .on_host = count, .argument_bytes = {}});
  ASSERT_TRUE(kernel.ok());
  const StreamScope stream(device);
  EXPECT_EQ(*device.kernels()->blocks_at_once(*kernel, {}), 3u);
  EXPECT_EQ(device.kernels()->launch_cooperative(*kernel, {.grid = {2, 2, 1}}, nullptr, stream), Status::limit_reached);
  ASSERT_EQ(device.kernels()->launch_cooperative(*kernel, {.grid = {1, 3, 1}}, nullptr, stream), Status::ok);
  ASSERT_EQ(device.streams()->synchronize(stream), Status::ok);
  EXPECT_EQ(calls, 3u) << "one for each block";
  EXPECT_EQ(blocks_seen, 7u);
  ASSERT_EQ(device.kernels()->launch(*kernel, {.grid = {2, 3, 1}}, nullptr, stream), Status::ok);
  ASSERT_EQ(device.streams()->synchronize(stream), Status::ok);
  EXPECT_EQ(calls, 4u) << "one for all of them";
  EXPECT_EQ(blocks_seen, 63u);
}

/// 0 if a device that finds no threads for the blocks of a kernel runs none of them, and its stream has failed for
/// good.
int launch_without_threads() {
  static std::atomic<unsigned> calls;
  calls = 0;
  EmulatedDevice device({.blocks_at_once = 64});
  const port::HostKernel count = [](const HostLaunch&) noexcept { ++calls; };
  const Result<port::Kernel*> kernel =
      device.kernels()->load({.image = {}, .symbol = "x", .on_host = count, .argument_bytes = {}});
  const StreamScope stream(device);
  const Piece piece(device, kKind, 64);
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t room = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + (std::size_t{64} << 20);
  const rlimit limit{room, room};  // less than 64 stacks
  if (!kernel || ::setrlimit(RLIMIT_AS, &limit) != 0) return 1;
  if (device.kernels()->launch_cooperative(*kernel, {.grid = {64, 1, 1}}, nullptr, stream) != Status::ok) return 2;
  if (device.streams()->synchronize(stream) != Status::device_failed || calls != 0) return 3;
  if (device.streams()->fill(piece.at(), std::byte{1}, 64, stream) != Status::ok) return 4;
  return device.streams()->synchronize(stream) == Status::device_failed ? 0 : 5;
}

TEST(EmulatedDevice, blocks_that_find_no_threads_fail_their_stream_and_none_of_them_runs) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need more addresses than such a limit leaves";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(::_exit(launch_without_threads()), testing::ExitedWithCode(0), "no threads for the 64 blocks");
}

TEST(EmulatedDevice, memory_freed_too_early_stays_for_the_copy) {
  EmulatedDevice device({.command_us = 2000});
  const StreamScope stream(device);
  Piece piece(device, kKind, 1 << 20);
  Bytes got(1 << 20);
  ASSERT_EQ(device.streams()->fill(piece.at(), std::byte{7}, 1 << 20, stream), Status::ok);
  ASSERT_EQ(device.streams()->copy(got.data(), piece.at(), 1 << 20, stream), Status::ok);
  piece.free_now();
  ASSERT_EQ(device.streams()->synchronize(stream), Status::ok);
  EXPECT_EQ(got, Bytes(1 << 20, std::byte{7}));
}

TEST(EmulatedDevice, its_memory_is_bounded) {
  EmulatedDevice device({.memory_bytes = 1 << 20});
  EXPECT_EQ(device.capabilities().memory_bytes, std::size_t{1} << 20);
  Piece half(device, kKind, 1 << 19);
  EXPECT_EQ(device.allocate(kKind, (1 << 19) + 1).status(), Status::no_memory);
  const Piece rest(device, kKind, 1 << 19);
  EXPECT_EQ(device.bytes_in_use(), std::size_t{1} << 20);
  EXPECT_EQ(device.allocate(kKind, 1).status(), Status::no_memory);
  half.free_now();
  const Piece again(device, kKind, 1 << 19);
}

TEST(EmulatedDevice, one_device_copies_from_another) {
  EmulatedDevice first({.ordinal = 0});
  EmulatedDevice second({.ordinal = 1});
  EXPECT_NE(first.capabilities().id, second.capabilities().id);
  const StreamScope stream(second);
  const Piece source(first, kKind, 4096);
  const Piece destination(second, kKind, 4096);
  const Piece flag(first, MemoryKind::pinned, 64);
  EXPECT_EQ(second.query(source.at())->device, 0);
  ASSERT_EQ(second.streams()->fill(source.at(), std::byte{9}, 4096, stream), Status::ok);
  ASSERT_EQ(second.streams()->copy(destination.at(), source.at(), 4096, stream), Status::ok);
  ASSERT_EQ(second.streams()->write_value(flag.as<std::uint64_t>(), 3, stream), Status::ok);
  ASSERT_EQ(second.streams()->synchronize(stream), Status::ok);
  EXPECT_EQ(*flag.as<std::uint64_t>(), 3u);
}

TEST(EmulatedDevice, more_allocations_than_open_files_allowed_raise_the_limit) {
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max < 512) GTEST_SKIP() << "the hard limit on open files is " << before.rlim_max;
  rlimit low = before;
  low.rlim_cur = 100;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  EmulatedDevice device;
  std::vector<std::unique_ptr<Piece>> pieces;
  for (int i = 0; i < 200; ++i) pieces.push_back(std::make_unique<Piece>(device, kKind, 64));
  EXPECT_TRUE(device.query(pieces.back()->at()).ok());
  pieces.clear();
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST(EmulatedDevice, memory_freed_by_its_owner_cannot_be_imported) {
  EmulatedDevice device;
  MemoryPeer peer("emulated");
  const Result<port::ExportRecord> record = peer.allocate(1 << 20, 1);
  ASSERT_TRUE(record.ok());
  ASSERT_EQ(peer.free(0), Status::ok);
  EXPECT_EQ(device.import_allocation(*record).status(), Status::not_found);
  // The address comes back with another allocation: still not the one that was exported.
  ASSERT_TRUE(peer.allocate(1 << 20, 2).ok());
  EXPECT_EQ(device.import_allocation(*record).status(), Status::not_found);
}

/// Allocates until there are no more files; 0 if the end of it was an orderly one.
int use_up_all_files() {
  const rlimit low = {.rlim_cur = 100, .rlim_max = 100};
  if (::setrlimit(RLIMIT_NOFILE, &low) != 0) return 2;
  EmulatedDevice device;
  std::vector<void*> pieces;
  Status status = Status::ok;
  while (pieces.size() < 200 && status == Status::ok) {
    const Result<void*> piece = device.allocate(kKind, 64);
    status = piece.status();
    if (piece.ok()) pieces.push_back(*piece);
  }
  if (status != Status::limit_reached || device.free(pieces.back()) != Status::ok) return 3;
  return device.allocate(kKind, 64).ok() ? 0 : 4;
}

TEST(EmulatedDevice, the_last_open_file_is_an_error_and_not_a_crash) {
  // In a child: a hard limit cannot be raised again.
  EXPECT_EXIT(::_exit(use_up_all_files()), testing::ExitedWithCode(0), "ulimit -n");
}

/// Spins until the first argument's word is 1, so that a test decides how long a stream is busy.
void busy_on_host(const HostLaunch& launch) noexcept {
  auto* word = launch.pointer<std::uint64_t>(0);
  while (std::atomic_ref(*word).load(std::memory_order_acquire) == 0) std::this_thread::sleep_for(100us);
}

class BusyStream {
 public:
  explicit BusyStream(EmulatedDevice& device) : word_(device, MemoryKind::pinned, 64), stream_(device) {
    constexpr std::array kArguments = {sizeof(void*)};
    *word_.as<std::uint64_t>() = 0;
    const auto kernel =
        device.kernels()->load({.image = {}, .symbol = "busy", .on_host = &busy_on_host, .argument_bytes = kArguments});
    auto* word = word_.at();
    std::array<void*, 1> arguments = {&word};
    EXPECT_TRUE(kernel.ok());
    EXPECT_EQ(device.kernels()->launch(*kernel, {}, arguments.data(), stream_), Status::ok);
  }
  ~BusyStream() { release(); }
  void release() { std::atomic_ref(*word_.as<std::uint64_t>()).store(1, std::memory_order_release); }
  operator port::Stream*() const { return stream_; }  // NOLINT(google-explicit-constructor)

 private:
  Piece word_;
  StreamScope stream_;
};

TEST(EmulatedDevice, a_full_queue_makes_the_caller_wait_and_then_says_so) {
  EmulatedDevice device({.queue_depth = 4, .full_wait_ms = 50});
  BusyStream busy(device);
  const Piece piece(device, kKind, 64);
  Status status = Status::ok;
  unsigned queued = 0;
  const auto start = std::chrono::steady_clock::now();
  for (; status == Status::ok && queued < 100; ++queued)
    status = device.streams()->fill(piece.at(), std::byte{1}, 64, busy);
  EXPECT_EQ(status, Status::limit_reached);
  EXPECT_LE(queued, 6u);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 50ms);
  busy.release();
  EXPECT_EQ(device.streams()->synchronize(busy), Status::ok);
  EXPECT_EQ(device.streams()->fill(piece.at(), std::byte{1}, 64, busy), Status::ok);
}

TEST(EmulatedDevice, back_pressure_slows_the_caller_but_loses_nothing) {
  EmulatedDevice device({.queue_depth = 2, .full_wait_ms = 10000, .command_us = 200});
  const StreamScope stream(device);
  const Piece piece(device, MemoryKind::pinned, 64);
  for (unsigned i = 0; i < 64; ++i) {
    ASSERT_EQ(device.streams()->fill(piece.at(i), static_cast<std::byte>(i), 1, stream), Status::ok);
  }
  ASSERT_EQ(device.streams()->synchronize(stream), Status::ok);
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(*piece.at(i), static_cast<std::byte>(i));
}

TEST(EmulatedDevice, closing_discards_queued_work_and_does_not_hang) {
  auto device = std::make_unique<EmulatedDevice>(EmulatedOptions{.close_wait_ms = 5000, .command_us = 20000});
  const Result<port::Stream*> stream = device->streams()->create_stream(port::StreamPriority::normal);
  const Result<port::Stream*> second = device->streams()->create_stream(port::StreamPriority::normal);
  const Result<port::Event*> event = device->streams()->create_event(false);
  ASSERT_TRUE(stream.ok() && second.ok() && event.ok());
  const Result<void*> piece = device->allocate(kKind, 64);
  ASSERT_TRUE(piece.ok());
  for (int i = 0; i < 500; ++i) ASSERT_EQ(device->streams()->fill(*piece, std::byte{1}, 64, *stream), Status::ok);
  ASSERT_EQ(device->streams()->record(*event, *stream), Status::ok);
  ASSERT_EQ(device->streams()->wait_event(*second, *event), Status::ok);
  const auto start = std::chrono::steady_clock::now();
  device.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 4s) << "500 commands of 20 ms would take ten seconds";
}

TEST(EmulatedDevice, closing_with_a_stuck_kernel_is_bounded) {
  // The word lives outside the device: the kernel goes on after the device is gone, and ends with the test.
  static std::atomic<std::uint64_t> release{0};
  static std::atomic<bool> ended{false};
  auto device = std::make_unique<EmulatedDevice>(EmulatedOptions{.close_wait_ms = 200});
  const port::HostKernel stuck = [](const HostLaunch&) noexcept {
    while (release.load(std::memory_order_acquire) == 0) std::this_thread::sleep_for(1ms);
    ended.store(true, std::memory_order_release);
  };
  const auto kernel = device->kernels()->load({.image = {}, .symbol = "stuck", .on_host = stuck, .argument_bytes = {}});
  const auto stream = device->streams()->create_stream(port::StreamPriority::normal);
  ASSERT_TRUE(kernel.ok() && stream.ok());
  ASSERT_EQ(device->kernels()->launch(*kernel, {}, nullptr, *stream), Status::ok);
  std::this_thread::sleep_for(20ms);
  const auto start = std::chrono::steady_clock::now();
  device.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);
  release.store(1, std::memory_order_release);
  while (!ended.load(std::memory_order_acquire)) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(50ms);  // the thread left behind lets go of its queue
}

TEST(EmulatedDevice, a_kernel_is_given_null_for_memory_it_cannot_reach) {
  static std::atomic<int> nulls{0};
  EmulatedDevice device;
  const StreamScope stream(device);
  Piece freed(device, kKind, 64);
  const Piece host(device, MemoryKind::host, 64);
  const Piece good(device, kKind, 64);
  std::byte* pointers[] = {freed.at(), host.at(), good.at(), nullptr};
  freed.free_now();
  const port::HostKernel look = [](const HostLaunch& launch) noexcept {
    if (launch.pointer<std::byte>(0) == nullptr) ++nulls;
  };
  constexpr std::array kArguments = {sizeof(void*)};
  const auto kernel =
      device.kernels()->load({.image = {}, .symbol = "look", .on_host = look, .argument_bytes = kArguments});
  ASSERT_TRUE(kernel.ok());
  for (std::byte*& pointer : pointers) {
    std::array<void*, 1> arguments = {&pointer};
    ASSERT_EQ(device.kernels()->launch(*kernel, {}, arguments.data(), stream), Status::ok);
  }
  ASSERT_EQ(device.streams()->synchronize(stream), Status::ok);
  EXPECT_EQ(nulls.load(), 3);
}

TEST(EmulatedDevice, the_cost_model_takes_its_time) {
  EmulatedDevice device({.command_us = 3000, .gigabytes_per_s = 0.001});  // 1 MB/s
  const StreamScope stream(device);
  const EventScope from(device, true);
  const EventScope to(device, true);
  const Piece piece(device, kKind, 4096);
  ASSERT_EQ(device.streams()->record(from, stream), Status::ok);
  ASSERT_EQ(device.streams()->fill(piece.at(), std::byte{1}, 4000, stream), Status::ok);
  ASSERT_EQ(device.streams()->record(to, stream), Status::ok);
  ASSERT_EQ(device.streams()->synchronize(stream), Status::ok);
  const Result<double> us = device.streams()->elapsed_us(from, to);
  ASSERT_TRUE(us.ok());
  EXPECT_GE(*us, 7000.0);
}

TEST(EmulatedDevice, refuses_kernels_it_could_not_launch) {
  EmulatedDevice device;
  const std::vector<std::size_t> many(65, 8);
  const std::vector<std::size_t> large(40, 128);
  const std::vector<std::size_t> empty(1, 0);
  const port::HostKernel nothing = [](const HostLaunch&) noexcept {};
  for (const auto& sizes : {many, large, empty}) {
    EXPECT_EQ(
        device.kernels()->load({.image = {}, .symbol = "x", .on_host = nothing, .argument_bytes = sizes}).status(),
        Status::invalid_argument);
  }
}

TEST(EmulatedDevice, a_query_is_quick) {
  EmulatedDevice device;
  std::vector<std::unique_ptr<Piece>> pieces;
  for (int i = 0; i < 200; ++i) pieces.push_back(std::make_unique<Piece>(device, kKind, 4096));
  constexpr int kRounds = 20000;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRounds; ++i) ASSERT_TRUE(device.query(pieces[static_cast<unsigned>(i) % 200]->at(100)).ok());
  const double ns =
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / kRounds;
  RecordProperty("ns_per_query", std::to_string(ns));
  EXPECT_LT(ns, 20000.0);  // generous: sanitizers and loaded machines
}

}  // namespace
}  // namespace brant::test
