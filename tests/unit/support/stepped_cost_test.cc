// The counter of costs counts, what is written in assembler exactly.
#include "support/stepped_cost.h"

#include <pthread.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <vector>

#include <gtest/gtest.h>

#include "support/x86_instruction.h"

namespace brant::test {
namespace {

X86Instruction seen(std::initializer_list<std::uint8_t> bytes) {
  std::array<std::uint8_t, 16> code{};
  std::copy(bytes.begin(), bytes.end(), code.begin());
  return look_at(code.data());
}

TEST(X86Instruction, calls_are_told_from_other_instructions) {
  EXPECT_TRUE(seen({0xE8, 1, 2, 3, 4}).call);
  EXPECT_FALSE(seen({0xE8, 1, 2, 3, 4}).by_pointer);
  EXPECT_TRUE(seen({0xFF, 0x50, 0x18}).call) << "call *0x18(%rax)";
  EXPECT_TRUE(seen({0xFF, 0x50, 0x18}).by_pointer);
  EXPECT_TRUE(seen({0x41, 0xFF, 0xD4}).by_pointer) << "call *%r12";
  EXPECT_TRUE(seen({0xFF, 0x15, 1, 2, 3, 4}).call) << "call *x(%rip), by the linker's table";
  EXPECT_FALSE(seen({0xFF, 0x15, 1, 2, 3, 4}).by_pointer);
  EXPECT_TRUE(seen({0xC3}).returns);
  EXPECT_FALSE(seen({0xFF, 0x70, 0x18}).call) << "push 0x18(%rax)";
  EXPECT_FALSE(seen({0x48, 0x8B, 0xE8}).call) << "mov %rax,%rbp";
  EXPECT_FALSE(seen({0xC5, 0xF8, 0x77}).call) << "vzeroupper";
}

TEST(X86Instruction, jumps_by_pointer_are_last_calls_and_tables_are_not) {
  EXPECT_TRUE(seen({0xFF, 0x60, 0x20}).by_pointer) << "jmp *0x20(%rax)";
  EXPECT_FALSE(seen({0xFF, 0x60, 0x20}).call);
  EXPECT_FALSE(seen({0xFF, 0x25, 1, 2, 3, 4}).by_pointer) << "jmp *x(%rip)";
  EXPECT_FALSE(seen({0xFF, 0x24, 0xC5, 1, 2, 3, 4}).by_pointer) << "jmp *table(,%rax,8)";
  EXPECT_TRUE(seen({0xFF, 0xE0}).by_register) << "jmp *%rax";
  EXPECT_FALSE(seen({0x3E, 0xFF, 0xE0}).by_register) << "notrack jmp *%rax";
  EXPECT_TRUE(seen({0x48, 0x01, 0xD0}).addition) << "add %rdx,%rax";
}

TEST(X86Instruction, what_orders_memory_is_told) {
  EXPECT_TRUE(seen({0xF0, 0x48, 0x0F, 0xC1, 0x07}).locked) << "lock xadd %rax,(%rdi)";
  EXPECT_TRUE(seen({0x66, 0xF0, 0x83, 0x07, 1}).locked) << "lock addw";
  EXPECT_TRUE(seen({0x87, 0x07}).locked) << "xchg %eax,(%rdi)";
  EXPECT_FALSE(seen({0x87, 0xC8}).locked) << "xchg %ecx,%eax";
  EXPECT_TRUE(seen({0x0F, 0xAE, 0xF0}).locked) << "mfence";
  EXPECT_FALSE(seen({0x0F, 0xAE, 0xE8}).locked) << "lfence";
  EXPECT_FALSE(seen({0x48, 0x89, 0x07}).locked) << "mov %rax,(%rdi)";
}

TEST(X86Instruction, system_calls_and_string_copies_are_told) {
  EXPECT_TRUE(seen({0x0F, 0x05}).system_call);
  EXPECT_FALSE(seen({0x0F, 0x04}).system_call);
  EXPECT_EQ(seen({0xF3, 0xA4}).string_copy, 1u);
  EXPECT_EQ(seen({0xF3, 0x48, 0xA5}).string_copy, 8u);
  EXPECT_TRUE(seen({0xF3, 0x48, 0xA5}).repeated);
  EXPECT_FALSE(seen({0xF3, 0x48, 0xAB}).repeated) << "rep stos";
}

TEST(SteppedCost, instructions_are_counted_one_by_one) {
  const auto of_nothing = cost_of([] { __asm__ volatile(""); });
  const auto of_five = cost_of([] { __asm__ volatile("nop\n nop\n nop\n nop\n nop"); });
  EXPECT_EQ(of_five.instructions, of_nothing.instructions + 5);
  EXPECT_EQ(of_nothing.calls, 0u);
  EXPECT_EQ(of_nothing.instructions, 0u);
}

TEST(SteppedCost, what_orders_memory_is_counted) {
  long word = 0;
  const auto cost = cost_of([&] {
    __asm__ volatile("lock addq $1, %0\n mfence" : "+m"(word));
    __asm__ volatile("xchg %%rax, %0" : "+m"(word) : : "rax");
  });
  EXPECT_EQ(cost.locked, 3u);
  EXPECT_EQ(cost.system_calls, 0u);
}

TEST(SteppedCost, a_system_call_is_counted_and_what_follows_it_too) {
  const auto cost = cost_of([] {
    long number = 39;  // getpid
    __asm__ volatile("syscall\n nop\n nop" : "+a"(number) : : "rcx", "r11", "memory");
    __asm__ volatile("lock addq $0, (%%rsp)" : : : "memory");
  });
  EXPECT_EQ(cost.system_calls, 1u);
  EXPECT_EQ(cost.locked, 1u);
}

struct Shape {
  virtual ~Shape() = default;
  virtual int sides() const { return 0; }
};
struct Square final : Shape {
  [[gnu::noinline]] int sides() const override { return 4; }
};
/// The compiler jumps here: the call is the last thing it does.
[[gnu::noinline]] int sides_of(const Shape& shape) { return shape.sides(); }

TEST(SteppedCost, a_virtual_call_is_counted_and_one_that_comes_last_too) {
  const Square square;
  const Shape* volatile shape = &square;
  volatile int sides = 0;
  const auto cost = cost_of([&] {
    sides = shape->sides() + 1;
    sides = sides_of(*shape);
  });
  EXPECT_EQ(cost.pointer_calls, 2u);
  EXPECT_EQ(cost.calls, 3u);
  EXPECT_EQ(sides, 4);
}

/// Seven ways, far enough from each other for a table of jumps.
[[gnu::noinline]] void choose(int way, volatile int& out) {
  switch (way) {
    case 0: out = out + 3; break;
    case 1: out = out * 5; break;
    case 2: out = 7; break;
    case 3: out = out - 9; break;
    case 4: out = out ^ 11; break;
    case 5: out = out / 13; break;
    case 6: out = out | 17; break;
    default: break;
  }
}

TEST(SteppedCost, a_switch_is_no_call) {
  volatile int way = 4, out = 0;
  const auto cost = cost_of([&] { choose(way, out); });
  EXPECT_EQ(cost.calls, 1u);
  EXPECT_EQ(cost.pointer_calls, 0u);
}

TEST(SteppedCost, copies_are_counted_with_their_bytes) {
  std::vector<char> from(5000, 'x'), to(5000);
  volatile std::size_t bytes = 5000;
  const auto by_library = cost_of([&] { std::memcpy(to.data(), from.data(), bytes); });
  EXPECT_EQ(by_library.copies, 1u);
  EXPECT_EQ(by_library.copied_bytes, 5000u);
  const auto in_place = cost_of([&] {
    void *target = to.data(), *source = from.data();
    std::size_t words = 20;
    __asm__ volatile("rep movsq" : "+D"(target), "+S"(source), "+c"(words) : : "memory");
  });
  EXPECT_EQ(in_place.copies, 1u);
  EXPECT_EQ(in_place.copied_bytes, 160u);
  EXPECT_LT(in_place.instructions, 20u) << "the turns of one instruction are one";
}

TEST(SteppedCost, allocations_and_locks_are_counted) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const auto cost = cost_of([&] {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    void* volatile made = std::malloc(100);
    std::free(made);
  });
  EXPECT_EQ(cost.allocations, 1u);
  EXPECT_EQ(cost.locks, 1u);
  EXPECT_GE(cost.locked, 1u) << "a mutex is atomic";
}

}  // namespace
}  // namespace brant::test
