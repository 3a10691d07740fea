// What kernels write into memory of others, and how that is heard of.
#include "brant/device/put.cuh"

#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/effort.h"
#include "support/kernel_thread.h"

namespace brant::test {
namespace {

using notify::DeviceBell;
using notify::KernelControl;
using notify::Line;
using notify::Waited;
using simt::Word;

struct alignas(16) Bytes {
  std::array<unsigned char, 600> at{};
};

TEST(Put, every_byte_arrives_and_no_other_is_written) {
  simt::CpuThread machine = thread_of_host();
  Bytes from;
  for (std::size_t i = 0; i < from.at.size(); ++i) from.at[i] = static_cast<unsigned char>(i * 7 + 1);
  for (const std::size_t to_offset : {0, 8, 3}) {
    for (const std::size_t from_offset : {0, 8, 5}) {
      for (const std::size_t bytes : {0, 1, 8, 15, 16, 17, 24, 64, 65, 200, 513}) {
        Bytes to;
        notify::put(machine, &to.at[16 + to_offset], &from.at[from_offset], bytes, notify::Block{});
        for (std::size_t i = 0; i < to.at.size(); ++i) {
          const bool inside = i >= 16 + to_offset && i < 16 + to_offset + bytes;
          ASSERT_EQ(to.at[i], inside ? from.at[i - 16 - to_offset + from_offset] : 0)
              << bytes << " bytes from " << from_offset << " to " << to_offset << ", byte " << i;
        }
      }
    }
  }
}

/// Two threads of the CPU, each of them one kernel.
template <typename One, typename Other>
void together(One one, Other other) {
  std::thread second([&] {
    simt::CpuThread machine = thread_of_host();
    other(machine);
  });
  simt::CpuThread machine = thread_of_host();
  one(machine);
  second.join();
}

TEST(Put, bytes_are_there_when_the_ring_is) {
  const Word rounds = static_cast<Word>(effort(2000, 100));
  Word bell = 0, back = 0;
  std::array<Word, 9> from{}, to{};
  together(
      [&](simt::CpuThread& machine) {
        for (Word epoch = 1; epoch <= rounds; ++epoch) {
          from.fill(epoch);
          notify::put_and_ring(machine, DeviceBell{&bell}, epoch, to.data(), from.data(), sizeof(from),
                               notify::Block{});
          ASSERT_EQ(notify::wait(machine, KernelControl{}, DeviceBell{&back}, epoch), Waited::rung);
        }
      },
      [&](simt::CpuThread& machine) {
        for (Word epoch = 1; epoch <= rounds; ++epoch) {
          ASSERT_EQ(notify::wait(machine, KernelControl{}, DeviceBell{&bell}, epoch), Waited::rung);
          for (const Word word : to) ASSERT_EQ(word, epoch);
          notify::ring_relaxed(machine, DeviceBell{&back}, epoch);
        }
      });
}

TEST(Put, lines_bring_their_words_without_a_bell) {
  const Word rounds = static_cast<Word>(effort(2000, 100));
  std::array<Line, 5> there{}, back{};
  together(
      [&](simt::CpuThread& machine) {
        std::array<Word, 5> words{};
        for (Word epoch = 1; epoch <= rounds; ++epoch) {
          for (Word i = 0; i < words.size(); ++i) words[i] = 10 * epoch + i;
          notify::put_lines(machine, there.data(), epoch, words.data(), words.size(), notify::Block{});
          ASSERT_EQ(notify::take_lines(machine, KernelControl{}, back.data(), epoch, words.data(), words.size(), 0,
                                       notify::Block{}),
                    Waited::rung);
          for (Word i = 0; i < words.size(); ++i) ASSERT_EQ(words[i], 10 * epoch + i);
        }
      },
      [&](simt::CpuThread& machine) {
        std::array<Word, 5> words{};
        for (Word epoch = 1; epoch <= rounds; ++epoch) {
          ASSERT_EQ(notify::take_lines(machine, KernelControl{}, there.data(), epoch, words.data(), words.size(), 0,
                                       notify::Warp{}),
                    Waited::rung);
          notify::put_lines(machine, back.data(), epoch, words.data(), words.size(), notify::Warp{});
        }
      });
}

TEST(Put, lines_that_do_not_come_end_the_wait_and_are_named) {
  simt::CpuThread machine = thread_of_host();
  std::array<Line, 2> lines{};
  lines[0] = {3, 77};
  std::array<Word, 2> words{};
  notify::Told told{};
  KernelControl control;
  control.told = &told;
  control.patience_ns = 1'000'000;
  EXPECT_EQ(notify::take_lines(machine, control, lines.data(), 3, words.data(), words.size(), 42, notify::Block{}),
            Waited::timed_out);
  EXPECT_EQ(words[0], 77u);
  EXPECT_EQ(told.waits_for, 42u);
  EXPECT_EQ(told.wanted, 3u);
  EXPECT_EQ(told.seen, 0u);
}

}  // namespace
}  // namespace brant::test
