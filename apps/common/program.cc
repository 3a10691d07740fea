#include "program.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "brant/device.h"

namespace apps {
namespace {

void tell(const char* what) {
  fmt::print(stderr, "error: {}\n", what);
  std::fflush(stderr);
}

/// Leaves the word to another process: our end would make the launcher end it, perhaps before it has spoken. Bounded,
/// since there may be no such process, and longer than the second in which `brant run` lets others end by themselves.
void let_others_speak() { std::this_thread::sleep_for(std::chrono::milliseconds(1500)); }

/// Bytes this process may allocate of a kind; host memory is shared by the processes of the host.
double memory_of(brant::Runtime& runtime, brant::MemoryKind kind) {
  if (!brant::host_accessible(kind)) return static_cast<double>(runtime.device().info().memory_bytes);
  const double host = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  return host / runtime.local_size();
}

}  // namespace

bool is_first_process() {
  for (const char* name : {"BRANT_RANK", "PMIX_RANK"}) {
    if (const char* rank = std::getenv(name)) return std::string_view(rank) == "0";
  }
  return true;
}

std::optional<int> parse(CLI::App& app, int argc, char** argv, const std::function<void()>& take) {
  try {
    app.parse(argc, argv);
    take();
    return std::nullopt;
  } catch (const CLI::Success& asked) {
    return is_first_process() ? app.exit(asked) : 0;
  } catch (const CLI::ParseError& error) {
    if (is_first_process()) fmt::print(stderr, "error: {}. See {} --help\n", error.what(), app.get_name());
    return 2;
  }
}

void with_runtime(const brant::RuntimeOptions& options, const std::function<void(brant::Runtime&)>& job) {
  brant::Runtime runtime(options);
  try {
    job(runtime);
  } catch (const brant::Error&) {
    if (!is_first_process()) let_others_speak();  // while the first can still reach this one
    throw;
  }
}

int run_program(const std::function<int()>& program) {
  try {
    const int exit_code = program();
    if (exit_code != 0 && !is_first_process()) let_others_speak();
    return exit_code;
  } catch (const brant::Error& error) {
    // What every process finds is told by the first; a lost peer is the echo of an error told elsewhere.
    if (error.status() == brant::Status::peer_lost || !is_first_process()) let_others_speak();
    tell(error.what());
  } catch (const std::exception& error) {
    tell(error.what());
  }
  return 1;
}

void require_memory(brant::Runtime& runtime, brant::MemoryKind kind, double bytes, const std::string& what) {
  const double available = memory_of(runtime, kind);
  if (available <= 0 || bytes <= available) return;
  throw brant::Error(
      brant::Status::no_memory,
      fmt::format("{} on {} processes need {:.1f} GB of {} memory per process, and there are {:.1f}: use "
                  "a smaller --size or more processes",
                  what, runtime.size(), bytes / 1e9, brant::memory_kind_name(kind), available / 1e9));
}

}  // namespace apps
