#include "support/stepped_cost.h"

#include <dlfcn.h>
#include <link.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "support/counted_calls.h"
#include "support/x86_instruction.h"

namespace brant::test {
namespace {

constexpr unsigned long kTrapFlag = 0x100;
constexpr std::size_t kPlacesMax = std::size_t{1} << 20;

/// Of the operation that is stepped through. The handler can be told of it by no other means.
struct Steps {
  OperationCost cost;
  std::uintptr_t last = 0;
  bool last_added = false;
  std::uintptr_t end_of_copy = 0;  ///< Where memcpy returns to, while it runs.
  std::uintptr_t memcpy_at = 0, memmove_at = 0;
  std::array<std::uintptr_t, kPlacesMax> places;  ///< Where it was, as far as there is room.
  std::size_t place_count = 0;
};
Steps g_steps;

void note_copy(std::uint64_t bytes) {
  ++g_steps.cost.copies;
  g_steps.cost.copied_bytes += bytes;
}

/// Before the instruction at `place` runs. A repeated one stops after each of its turns.
void note(std::uintptr_t place, const greg_t* registers) {
  if (std::exchange(g_steps.last, place) == place) return;
  const X86Instruction seen = look_at(reinterpret_cast<const std::uint8_t*>(place));
  const bool jumps_away = seen.by_register && !g_steps.last_added;
  const bool last_call = (seen.by_pointer && !seen.call) || jumps_away;
  g_steps.last_added = seen.addition;
  OperationCost& cost = g_steps.cost;
  ++cost.instructions;
  cost.calls += seen.call || last_call;
  cost.pointer_calls += seen.by_pointer || jumps_away;
  cost.locked += seen.locked;
  cost.system_calls += seen.system_call;
  if (place == g_steps.end_of_copy) g_steps.end_of_copy = 0;
  if (place == g_steps.memcpy_at || place == g_steps.memmove_at) {
    note_copy(static_cast<std::uint64_t>(registers[REG_RDX]));
    g_steps.end_of_copy = *reinterpret_cast<const std::uintptr_t*>(registers[REG_RSP]);
  } else if (seen.repeated && g_steps.end_of_copy == 0) {
    note_copy(seen.string_copy * static_cast<std::uint64_t>(registers[REG_RCX]));
  }
  if (g_steps.place_count < kPlacesMax) g_steps.places[g_steps.place_count++] = place;
}

/// The kernel takes the trap flag away while this runs, and gives it back.
void on_trap(int, siginfo_t*, void* context) {
  const greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  note(static_cast<std::uintptr_t>(registers[REG_RIP]), registers);
}

[[gnu::noinline]] OperationCost step(void (*function)(void*), void* context) {
  g_steps.cost = {};
  g_steps.last = g_steps.end_of_copy = 0;
  g_steps.place_count = 0;
  const unsigned long flags = __readeflags();
  start_counting();
  __writeeflags(flags | kTrapFlag);
  function(context);
  __writeeflags(flags);
  const CallCounts calls = stop_counting();
  OperationCost cost = g_steps.cost;
  cost.allocations = calls.allocations;
  cost.locks = calls.locks;
  return cost;
}

/// Of a process with one thread the C library takes locks and counts references without atomics.
void have_another_thread() {
  static const bool there = [] {
    std::thread([] { ::pause(); }).detach();
    return true;
  }();
  static_cast<void>(there);
}

void take_trap() {
  struct sigaction action = {};
  action.sa_sigaction = &on_trap;
  action.sa_flags = SA_SIGINFO;
  if (::sigaction(SIGTRAP, &action, nullptr) != 0) throw std::runtime_error("SIGTRAP cannot be handled");
  g_steps.memcpy_at = reinterpret_cast<std::uintptr_t>(::dlsym(RTLD_DEFAULT, "memcpy"));
  g_steps.memmove_at = reinterpret_cast<std::uintptr_t>(::dlsym(RTLD_DEFAULT, "memmove"));
}

/// Where the program itself was loaded, which addr2line does not know.
std::uintptr_t own_base() {
  std::uintptr_t base = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        *static_cast<std::uintptr_t*>(found) = info->dlpi_addr;
        return 1;  // the first is the program
      },
      &base);
  return base;
}

}  // namespace

OperationCost step_through(void (*function)(void*), void* context) {
  have_another_thread();
  take_trap();
  const OperationCost empty = step([](void*) {}, nullptr);
  OperationCost cost = step(function, context);
  cost.instructions -= empty.instructions;
  cost.calls -= empty.calls;
  cost.pointer_calls -= empty.pointer_calls;
  return cost;
}

std::set<std::string> files_of_last_operation() {
  std::set<std::uintptr_t> places(g_steps.places.begin(), g_steps.places.begin() + g_steps.place_count);
  std::string command = "addr2line -a -i -e /proc/" + std::to_string(::getpid()) + "/exe";
  const std::uintptr_t base = own_base();
  for (const std::uintptr_t place : places) {
    std::array<char, 24> text;
    std::snprintf(text.data(), text.size(), " %#zx", place - base);
    if (place >= base && place - base < (std::uintptr_t{1} << 32)) command += text.data();
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> answer(::popen((command + " 2>/dev/null").c_str(), "r"),
                                                               &::pclose);
  std::set<std::string> files;
  std::string outermost;  // of the functions that were inlined into one another the last line has the last one
  std::array<char, 4096> line;
  const auto keep = [&] {
    const std::size_t source = outermost.find("src/"), end = outermost.find(".cc:");
    const bool ours = source == 0 || (source != std::string::npos && outermost.substr(0, source).ends_with("../"));
    if (ours && end != std::string::npos) files.insert(outermost.substr(source, end + 3 - source));
  };
  while (answer && std::fgets(line.data(), line.size(), answer.get()) != nullptr) {
    if (std::string(line.data()).starts_with("0x")) keep();
    outermost = line.data();
  }
  keep();
  return files;
}

}  // namespace brant::test
