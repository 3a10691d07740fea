// A kernel that leaves its window, in a build that looks: nothing else of brant is in this program, which was built to
// look or not to look like all the others.
#undef NDEBUG
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "brant/pgas/device_window.cuh"

namespace brant {
namespace {

using notify::KernelControl;
using pgas::DeviceWindow;
using simt::CpuThread;
using simt::Word;

/// Two members of 4096 bytes, and memory on both sides of each.
class WindowBounds : public testing::Test {
 protected:
  WindowBounds() {
    for (unsigned member = 0; member < 2; ++member) window_.bases[member] = &parts_[member][512];
    window_.bytes = 4096;
    window_.members = 2;
  }

  std::array<std::vector<Word>, 2> parts_ = {std::vector<Word>(1536), std::vector<Word>(1536)};
  DeviceWindow window_;
  CpuThread machine_{[](void* pointer) noexcept { return pointer; }};
  std::array<Word, 4> words_{};
};
using WindowBoundsDeathTest = WindowBounds;

TEST_F(WindowBounds, what_lies_inside_passes) {
  pgas::put(machine_, KernelControl{}, window_, 1, 4096 - 32, words_.data(), 32);
  pgas::get(machine_, KernelControl{}, window_, 1, 0, words_.data(), 32);
  pgas::put(machine_, KernelControl{}, window_, 1, 4096, words_.data(), 0);
  float before = 1;
  pgas::fetch_add(machine_, KernelControl{}, window_, 1, 4092, 1.0f, before);
  EXPECT_EQ(before, 0.0f);
  EXPECT_EQ(pgas::notify_member(machine_, KernelControl{}, window_, 0, 4088, 1), notify::Waited::rung);
  EXPECT_TRUE(pgas::test(machine_, window_, 4088, 1));
}

TEST_F(WindowBoundsDeathTest, what_lies_outside_stops_the_kernel) {
  Word before = 0;
  float number = 0;
  EXPECT_DEATH(pgas::put(machine_, KernelControl{}, window_, 1, 4096 - 24, words_.data(), 32),
               "32 bytes at offset 4072 of member 1.*2 members and 4096 bytes");
  EXPECT_DEATH(pgas::get(machine_, KernelControl{}, window_, 1, ~Word{0}, words_.data(), 8), "8 bytes at offset 184");
  EXPECT_DEATH(pgas::put_notify(machine_, KernelControl{}, window_, 1, 0, words_.data(), 8, 4096, 1), "offset 4096");
  EXPECT_DEATH(pgas::notify_member(machine_, KernelControl{}, window_, 1, 12, 1), "at a multiple of 8");
  EXPECT_DEATH(static_cast<void>(pgas::wait(machine_, KernelControl{}, window_, 8192, 1)), "offset 8192 of member 0");
  EXPECT_DEATH(static_cast<void>(pgas::test(machine_, window_, 4092, 1)), "offset 4092");
  EXPECT_DEATH(static_cast<void>(pgas::fetch_add(machine_, KernelControl{}, window_, 1, 4096, 1, before)),
               "8 bytes at offset 4096");
  EXPECT_DEATH(static_cast<void>(pgas::fetch_add_relaxed(machine_, KernelControl{}, window_, 1, 4, 1, before)),
               "multiple of 8");
  EXPECT_DEATH(static_cast<void>(pgas::compare_swap(machine_, KernelControl{}, window_, 1, 6, 0, 1, number)),
               "multiple of 4");
  EXPECT_DEATH(static_cast<void>(pgas::barrier(machine_, KernelControl{}, window_, 4088, 1)), "offset 4096");
}

}  // namespace
}  // namespace brant
