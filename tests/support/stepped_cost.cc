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
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "support/counted_calls.h"
#include "support/x86_instruction.h"

namespace brant::test {
namespace {

constexpr unsigned long kTrapFlag = 0x100;
constexpr std::size_t kPlacesMax = std::size_t{1} << 20;

struct Place {
  std::uintptr_t address;
  int depth;  ///< Calls that have not returned.
};

/// Of the operation that is stepped through. The handler can be told of it by no other means.
struct Steps {
  OperationCost cost;
  std::uintptr_t last = 0;
  bool last_added = false;
  int depth = 0;
  std::array<Place, kPlacesMax> places;  ///< Where it was, as far as there is room.
  std::size_t place_count = 0;
  std::size_t last_pointer_call = 0, last_copy = 0;  ///< Which of these; 0: none.
};
Steps g_steps;
std::uintptr_t g_memcpy = 0, g_memmove = 0;

void note_copy(std::uint64_t bytes) {
  ++g_steps.cost.copies;
  g_steps.cost.copied_bytes += bytes;
  g_steps.last_copy = g_steps.place_count;
}

/// Before the instruction at `place` runs. A repeated one stops after each of its turns.
void note(std::uintptr_t place, std::uint64_t turns) {
  if (std::exchange(g_steps.last, place) == place) return;
  const X86Instruction seen = look_at(reinterpret_cast<const std::uint8_t*>(place));
  const bool jumps_away = seen.by_register && !g_steps.last_added;
  const bool by_pointer = seen.by_pointer || jumps_away;
  g_steps.last_added = seen.addition;
  OperationCost& cost = g_steps.cost;
  ++cost.instructions;
  cost.calls += seen.call || by_pointer;
  cost.pointer_calls += by_pointer;
  cost.locked += seen.locked;
  cost.system_calls += seen.system_call;
  if (g_steps.place_count < kPlacesMax) g_steps.places[g_steps.place_count++] = {place, g_steps.depth};
  g_steps.depth += seen.call - seen.returns;
  if (by_pointer) g_steps.last_pointer_call = g_steps.place_count;
  if (seen.repeated) note_copy(seen.string_copy * turns);
}

/// Does what memcpy and memmove do, and returns for them; nothing elsewhere.
void copy_instead(greg_t* registers) {
  const auto place = static_cast<std::uintptr_t>(registers[REG_RIP]);
  if (place != g_memcpy && place != g_memmove) return;
  const auto bytes = static_cast<std::size_t>(registers[REG_RDX]);
  note_copy(bytes);
  std::memmove(reinterpret_cast<void*>(registers[REG_RDI]), reinterpret_cast<const void*>(registers[REG_RSI]), bytes);
  registers[REG_RAX] = registers[REG_RDI];
  registers[REG_RIP] = *reinterpret_cast<const greg_t*>(registers[REG_RSP]);
  registers[REG_RSP] += static_cast<greg_t>(sizeof(void*));
  --g_steps.depth;
}

/// The kernel takes the trap flag away while this runs, and gives it back.
void on_trap(int, siginfo_t*, void* context) {
  greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  copy_instead(registers);
  note(static_cast<std::uintptr_t>(registers[REG_RIP]), static_cast<std::uint64_t>(registers[REG_RCX]));
}

[[gnu::noinline]] OperationCost step(void (*function)(void*), void* context) {
  g_steps.cost = {};
  g_steps.last = 0;
  g_steps.depth = 0;
  g_steps.place_count = g_steps.last_pointer_call = g_steps.last_copy = 0;
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
  g_memcpy = reinterpret_cast<std::uintptr_t>(::dlsym(RTLD_DEFAULT, "memcpy"));
  g_memmove = reinterpret_cast<std::uintptr_t>(::dlsym(RTLD_DEFAULT, "memmove"));
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

/// Of the calls under way at the end of the way: all they did before each went on to the next.
std::set<std::uintptr_t> places_on_the_way() {
  const std::size_t end = std::max(g_steps.last_pointer_call, g_steps.last_copy);
  std::set<std::uintptr_t> places;
  int depth = end == 0 ? 0 : g_steps.places[end - 1].depth;
  for (std::size_t at = end; at-- != 0;) {
    depth = std::min(depth, g_steps.places[at].depth);
    if (g_steps.places[at].depth == depth) places.insert(g_steps.places[at].address);
  }
  return places;
}

/// "src/ops/x.cc" of "/tree/build/release/../../src/ops/x.cc:12"; empty: it is of no such file.
std::string file_above_the_ports(const std::string& place) {
  const std::size_t source = place.find("src/"), end = place.find(".cc:");
  if (source == std::string::npos || end == std::string::npos) return {};
  const bool ours = source == 0 || place.substr(0, source).ends_with("../");
  const std::string file = place.substr(source, end + 3 - source);
  return ours && !file.starts_with("src/port/") ? file : std::string();
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

std::set<std::string> files_on_the_way() {
  const std::set<std::uintptr_t> places = places_on_the_way();
  std::string command = "addr2line -a -i -e /proc/" + std::to_string(::getpid()) + "/exe";
  const std::uintptr_t base = own_base();
  for (const std::uintptr_t place : places) {
    std::array<char, 24> text;
    std::snprintf(text.data(), text.size(), " %#zx", place - base);
    if (place >= base && place - base < (std::uintptr_t{1} << 32)) command += text.data();
  }
  // NOLINTNEXTLINE(bugprone-command-processor): of our own words, in a test
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> answer(::popen((command + " 2>/dev/null").c_str(), "r"),
                                                               &::pclose);
  std::set<std::string> files;
  std::string outermost;  // of the functions that were inlined into one another the last line has the last one
  std::array<char, 4096> line;
  const auto keep = [&] {
    const std::string file = file_above_the_ports(outermost);
    if (!file.empty()) files.insert(file);
  };
  while (answer && std::fgets(line.data(), line.size(), answer.get()) != nullptr) {
    if (std::string(line.data()).starts_with("0x")) keep();
    outermost = line.data();
  }
  keep();
  return files;
}

}  // namespace brant::test
