// Runs a program as several ranks of one process which take turns, without MPI: COUNT [--share] PROGRAM [ARGUMENTS].
// Programs take a turn by `brant_test_yield`, which this one exports. Prints "ended CODE" for each rank, and what an
// image costs.

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "models/mpi/ranks/image_program.h"
#include "models/mpi/ranks/rank_scheduler.h"

namespace {

using brant::mpi::ImageProgram;
using brant::mpi::RankScheduler;

constexpr std::size_t kStackBytes = std::size_t{1} << 20;

/// Notes how ranks end, so that all of them do.
class Noting final : public brant::mpi::RankProgram {
 public:
  Noting(ImageProgram& program, int ranks) : codes(static_cast<std::size_t>(ranks)), program_(program) {}
  int run(int slot) noexcept override {
    codes[static_cast<std::size_t>(slot)] = program_.run(slot);
    return 0;
  }
  void resume(int slot) noexcept override { program_.resume(slot); }
  void suspend(int slot) noexcept override { program_.suspend(slot); }

  std::vector<int> codes;

 private:
  ImageProgram& program_;
};

RankScheduler* scheduler = nullptr;

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

extern "C" [[gnu::visibility("default")]] void brant_test_yield() { scheduler->yield(); }

int main(int argc, char** argv) {
  const int count = std::stoi(argv[1]);
  const bool share = std::strcmp(argv[2], "--share") == 0;
  const std::vector<std::string> arguments(argv + (share ? 3 : 2), argv + argc);
  ImageProgram* program = nullptr;
  try {
    const std::size_t before = resident_bytes();
    const auto begin = std::chrono::steady_clock::now();
    program = new ImageProgram(brant::mpi::read_executable_file(brant::mpi::find_program(arguments[0])), arguments,
                               count, share);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    fmt::print(stderr, "{} images: {:.3f} ms and {} KiB each\n", count, time.count() / count,
               (resident_bytes() - before) / 1024 / static_cast<std::size_t>(count));
  } catch (const std::exception& error) {
    fmt::print("refused: {}\n", error.what());
    return 2;
  }
  Noting noting(*program, count);
  RankScheduler ranks(noting, count, kStackBytes);
  scheduler = &ranks;
  const int result = ranks.run();
  for (const int code : noting.codes) fmt::print("ended {}\n", code);
  return result;
}
