// Memory that is given back while a kernel stays on the device, for which the driver would wait.
#include "core/late_frees.h"

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "port/memory/adapters.h"
#include "support/faulty_device.h"

namespace brant {
namespace {

class LateFreesTest : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 4096;

  Buffer allocate(MemoryKind kind = MemoryKind::emulated, std::size_t bytes = kBytes) {
    return {frees_->allocate(kind, bytes).value(), bytes, kind};
  }
  [[nodiscard]] bool is_there(const Buffer& memory) const { return device_->query(memory.data).ok(); }

  std::unique_ptr<port::Device> device_ = port::memory::open_emulated_device({.memory_bytes = 1 << 20});
  const ProgressClock clock_;
  Deferrals deferrals_{clock_};
  std::optional<LateFrees> frees_{std::in_place, *device_, deferrals_};
};

TEST_F(LateFreesTest, happen_at_once_where_no_kernel_stays) {
  const Buffer memory = allocate();
  EXPECT_EQ(frees_->free(memory), Status::ok);
  EXPECT_FALSE(is_there(memory));
  EXPECT_EQ(frees_->kept_bytes(), 0u);
}

TEST_F(LateFreesTest, wait_for_the_last_kernel_and_for_the_program) {
  const Buffer memory = allocate();
  const Buffer pinned = allocate(MemoryKind::pinned);
  frees_->note_kernel();
  frees_->note_kernel();
  EXPECT_EQ(frees_->free(memory), Status::ok);
  EXPECT_EQ(frees_->free(pinned), Status::ok);
  EXPECT_EQ(frees_->kept_bytes(), 2 * kBytes);
  EXPECT_NE(frees_->describe().find("; 8192 bytes were given back, and are freed when the kernels"), std::string::npos);
  frees_->note_end();
  deferrals_.run();
  EXPECT_TRUE(is_there(memory));
  frees_->note_end();  // within progress, where nothing is freed
  EXPECT_TRUE(is_there(memory));
  EXPECT_NE(frees_->describe().find("Runtime::tidy"), std::string::npos);
  deferrals_.run();
  EXPECT_FALSE(is_there(memory));
  EXPECT_FALSE(is_there(pinned));
  EXPECT_EQ(frees_->kept_bytes(), 0u);
  EXPECT_EQ(frees_->describe(), "");
}

TEST_F(LateFreesTest, wait_on_where_another_kernel_has_come) {
  const Buffer memory = allocate();
  frees_->note_kernel();
  EXPECT_EQ(frees_->free(memory), Status::ok);
  frees_->note_end();
  frees_->note_kernel();
  deferrals_.run();
  EXPECT_TRUE(is_there(memory));
  frees_->note_end();
  deferrals_.run();
  EXPECT_FALSE(is_there(memory));
}

/// As the driver would wait for the stream, and the stream for the thread that frees.
TEST_F(LateFreesTest, wait_for_streams_that_wait) {
  StreamWaits waits(*device_);
  Deferrals deferrals(clock_, &waits);
  LateFrees frees(*device_, deferrals);
  port::Streams& streams = *device_->streams();
  const auto word_memory = allocate(MemoryKind::pinned);
  auto* const word = static_cast<std::uint64_t*>(word_memory.data);
  *word = 0;
  std::array<port::Stream*, 2> two{};
  for (port::Stream*& stream : two) {
    stream = streams.create_stream(StreamPriority::normal).value();
    for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
      ASSERT_EQ(waits.enqueue(stream,
                              [&](port::Streams& to) noexcept {
                                return to.wait_value(port::StreamWord::Act::wait_at_least, word, epoch, stream);
                              }),
                Status::ok);
    }
  }
  EXPECT_TRUE(deferrals.kernels_wait());
  const Buffer memory = {frees.allocate(MemoryKind::emulated, kBytes).value(), kBytes, MemoryKind::emulated};
  EXPECT_EQ(frees.free(memory), Status::ok);
  EXPECT_EQ(frees.kept_bytes(), kBytes);
  EXPECT_NE(frees.describe().find("streams no longer wait"), std::string::npos);
  // Work that stands behind the wait may use it.
  const Buffer other = {frees.allocate(MemoryKind::emulated, kBytes).value(), kBytes, MemoryKind::emulated};
  EXPECT_NE(other.data, memory.data);
  std::atomic_ref(*word).store(1);
  frees.tidy();
  EXPECT_TRUE(is_there(memory)) << "the second wait has not passed";
  std::atomic_ref(*word).store(2);
  for (port::Stream* const stream : two) ASSERT_EQ(streams.synchronize(stream), Status::ok);
  EXPECT_FALSE(deferrals.kernels_wait());
  EXPECT_EQ(frees.free(other), Status::ok);
  EXPECT_FALSE(is_there(memory)) << "freed with what is given back later";
  EXPECT_EQ(frees.kept_bytes(), 0u);
  for (port::Stream* const stream : two) streams.destroy_stream(stream);
  EXPECT_EQ(frees_->free(word_memory), Status::ok);
}

TEST_F(LateFreesTest, do_not_wait_for_waits_of_graphs) {
  StreamWaits waits(*device_);
  Deferrals deferrals(clock_, &waits);
  port::Streams& streams = *device_->streams();
  const auto word_memory = allocate(MemoryKind::pinned);
  port::Stream* const stream = streams.create_stream(StreamPriority::normal).value();
  EXPECT_FALSE(streams.captures(stream).value());
  ASSERT_EQ(streams.begin_capture(stream), Status::ok);
  EXPECT_TRUE(streams.captures(stream).value());
  ASSERT_EQ(waits.enqueue(stream,
                          [&](port::Streams& to) noexcept {
                            return to.wait_value(port::StreamWord::Act::wait_at_least,
                                                 static_cast<std::uint64_t*>(word_memory.data), 1, stream);
                          }),
            Status::ok);
  EXPECT_FALSE(deferrals.kernels_wait());
  streams.destroy_graph(streams.end_capture(stream).value());
  EXPECT_FALSE(streams.captures(stream).value());
  streams.destroy_stream(stream);
  EXPECT_EQ(frees_->free(word_memory), Status::ok);
}

TEST_F(LateFreesTest, do_not_hold_up_memory_of_the_host) {
  frees_->note_kernel();
  const Buffer memory = allocate(MemoryKind::host);
  EXPECT_EQ(frees_->free(memory), Status::ok);
  EXPECT_EQ(frees_->kept_bytes(), 0u);
  frees_->note_end();
}

TEST_F(LateFreesTest, are_bounded_by_what_is_allocated_anew) {
  frees_->note_kernel();
  const Buffer first = allocate();
  for (int i = 0; i < 1000; ++i) {  // more than the device has
    const Buffer memory = allocate();
    ASSERT_EQ(frees_->free(memory), Status::ok);
  }
  EXPECT_EQ(frees_->kept_bytes(), kBytes);
  EXPECT_EQ(frees_->free(first), Status::ok);
  const Buffer other = allocate(MemoryKind::emulated, 2 * kBytes);  // neither of the two fits
  EXPECT_EQ(frees_->kept_bytes(), 2 * kBytes);
  EXPECT_EQ(frees_->free(other), Status::ok);
  const Buffer pinned = allocate(MemoryKind::pinned);
  EXPECT_EQ(frees_->kept_bytes(), 4 * kBytes);
  EXPECT_EQ(frees_->free(pinned), Status::ok);
  frees_->note_end();
}

TEST_F(LateFreesTest, give_nothing_out_again_that_a_kernel_may_still_write) {
  frees_->note_kernel();
  const Buffer before = allocate();
  EXPECT_EQ(frees_->free(before), Status::ok);
  frees_->note_left();
  const Buffer between = allocate();
  EXPECT_NE(between.data, before.data);
  EXPECT_EQ(frees_->free(between), Status::ok);  // allocated by who knew of it, freed by who may not
  const Buffer after = allocate();
  EXPECT_NE(after.data, before.data);
  EXPECT_NE(after.data, between.data);
  EXPECT_TRUE(is_there(before));
  EXPECT_NE(frees_->describe().find("; 8192 bytes were given back, and a kernel that could not be ended"),
            std::string::npos);
}

/// The driver waits for kernels of the device, and these for what the worker does next.
TEST_F(LateFreesTest, of_another_thread_do_not_hold_up_the_worker) {
  test::DeviceFaults faults;
  std::promise<void> begun;
  std::promise<void> go_on;
  faults.at_free = [&] {
    begun.set_value();
    go_on.get_future().wait();
  };
  const std::unique_ptr<port::Device> device =
      test::make_faulty(port::memory::open_emulated_device({.memory_bytes = 1 << 20}), faults);
  LateFrees frees(*device, deferrals_);
  frees.note_kernel();
  const Buffer kept(frees.allocate(MemoryKind::emulated, kBytes).value(), kBytes, MemoryKind::emulated);
  const Buffer freed(frees.allocate(MemoryKind::emulated, kBytes).value(), kBytes, MemoryKind::emulated);
  EXPECT_EQ(frees.free(kept), Status::ok);
  frees.note_end();
  std::thread other([&] { EXPECT_EQ(frees.free(freed), Status::ok); });
  begun.get_future().wait();
  std::future<void> worker = std::async(std::launch::async, [&] {
    deferrals_.run();
    device->staying_kernels().note(+1);  // as of a kernel that was launched before
    frees.note_end();
  });
  EXPECT_EQ(worker.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(frees.kept_bytes(), kBytes);
  faults.at_free = {};
  go_on.set_value();
  other.join();
  worker.wait();
  deferrals_.run();
  EXPECT_EQ(frees.kept_bytes(), 0u);
  EXPECT_EQ(faults.allocated, 0u);
}

TEST_F(LateFreesTest, that_are_much_are_told_of_once) {
  frees_->note_kernel();
  const Buffer one = allocate(MemoryKind::emulated, 300'000);
  const Buffer other = allocate(MemoryKind::emulated, 300'000);
  testing::internal::CaptureStderr();
  EXPECT_EQ(frees_->free(one), Status::ok);
  EXPECT_EQ(frees_->free(other), Status::ok);
  const std::string log = testing::internal::GetCapturedStderr();
  const std::size_t told = log.find("300000 bytes were given back and cannot be freed while a kernel stays");
  EXPECT_NE(told, std::string::npos) << log;
  EXPECT_EQ(log.find("were given back", told + 20), std::string::npos) << log;
  frees_->note_end();
}

TEST_F(LateFreesTest, that_others_do_past_it_are_told_of) {
  const Buffer memory = allocate();
  const Buffer other = allocate();
  frees_->note_kernel();
  testing::internal::CaptureStderr();
  EXPECT_EQ(device_->free(memory.data), Status::ok);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("free waits for all kernels of the device, and one stays"),
            std::string::npos);
  testing::internal::CaptureStderr();
  EXPECT_EQ(device_->streams()->synchronize_all(), Status::ok);  // of what is counted here nothing runs
  EXPECT_NE(testing::internal::GetCapturedStderr().find("synchronize_all waits for all kernels"), std::string::npos);
  frees_->note_end();
  testing::internal::CaptureStderr();
  EXPECT_EQ(frees_->free(other), Status::ok);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(LateFreesTest, happen_at_the_end) {
  const Buffer memory = allocate();
  frees_->note_kernel();
  EXPECT_EQ(frees_->free(memory), Status::ok);
  frees_->note_end();
  frees_.reset();
  EXPECT_FALSE(is_there(memory));
}

TEST_F(LateFreesTest, do_not_happen_where_a_kernel_never_ends) {
  const Buffer memory = allocate();
  frees_->note_kernel();
  EXPECT_EQ(frees_->free(memory), Status::ok);
  testing::internal::CaptureStderr();
  frees_.reset();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("4096 bytes are not freed"), std::string::npos);
  EXPECT_TRUE(is_there(memory));
}

}  // namespace
}  // namespace brant
