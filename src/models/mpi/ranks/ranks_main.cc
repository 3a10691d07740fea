// brant-ranks PROGRAM [ARGUMENTS...]: runs an MPI program as several ranks in this process. `brant run --ranks` puts it
// before the program; under other launchers users do.

#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "brant/base/status.h"
#include "models/mpi/rank_placement.h"
#include "models/mpi/rank_threads.h"
#include "models/mpi/ranks/fault_report.h"
#include "models/mpi/ranks/image_program.h"
#include "models/mpi/ranks/rank_scheduler.h"

namespace brant::mpi {
namespace {

// What shells and `brant run` end with.
constexpr int kCannotRun = 126;
constexpr int kNotFound = 127;
constexpr std::int64_t kStackBytes = std::int64_t{8} << 20;
constexpr std::int64_t kLeastStackBytes = std::int64_t{64} << 10;

/// The number in a variable, `fallback` if it is unset or empty.
std::int64_t number(const char* name, std::int64_t fallback, std::int64_t least, std::int64_t most) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == 0) return fallback;
  std::int64_t value = 0;
  const std::from_chars_result result = std::from_chars(text, text + std::strlen(text), value);
  if (result.ec != std::errc() || *result.ptr != 0 || value < least || value > most) {
    throw Error(Status::invalid_argument,
                fmt::format("{}='{}' should be a number from {} to {}", name, text, least, most));
  }
  return value;
}

struct Share {
  int process = 0;
  int processes = 1;
};

/// Which of the job's processes this is, as its launcher says. MPI_Init asks the launcher itself, and refuses what does
/// not agree with that.
Share share_of_process() {
  struct Names {
    const char* process;
    const char* processes;
  };
  constexpr std::array<Names, 5> kLaunchers = {{{"BRANT_RANK", "BRANT_SIZE"},
                                                {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                                {"PMI_RANK", "PMI_SIZE"},
                                                {"RANK", "WORLD_SIZE"},
                                                {"SLURM_PROCID", "SLURM_NTASKS"}}};
  constexpr int kMost = std::numeric_limits<int>::max();
  for (const Names& names : kLaunchers) {
    if (std::getenv(names.process) == nullptr || std::getenv(names.processes) == nullptr) continue;
    const auto processes = static_cast<int>(number(names.processes, 1, 1, kMost));
    return {.process = static_cast<int>(number(names.process, 0, 0, processes - 1)), .processes = processes};
  }
  return {};
}

RankPlacement placement_in(const Share& share) {
  const auto ranks =
      static_cast<int>(number("BRANT_MPI_RANKS", share.processes, share.processes, std::numeric_limits<int>::max()));
  return {.ranks = ranks, .processes = share.processes};
}

int run(const std::vector<std::string>& arguments) {
  ExecutableFile file = read_executable_file(find_program(arguments[0]));
  const bool share_libraries = number("BRANT_MPI_SHARE_LIBRARIES", 0, 0, 1) != 0;
  const std::int64_t stack_bytes =
      number("BRANT_MPI_STACK", kStackBytes, kLeastStackBytes, std::numeric_limits<std::int64_t>::max() / 2);
  const Share share = share_of_process();
  const RankPlacement placement = placement_in(share);
  const int count = placement.count_in(share.process);
  // Neither ends: threads of the program may run on, and functions of it be called, until the process has ended.
  auto* program = new ImageProgram(std::move(file), arguments, count, share_libraries);
  auto* scheduler = new RankScheduler(*program, count, static_cast<std::size_t>(stack_bytes));
  use_rank_threads(*scheduler);
  report_faults(*scheduler, placement.first_in(share.process));
  return scheduler->run();
}

int main(int argc, char** argv) {
  int first = 1;
  if (argc > first && std::string_view(argv[first]) == "--") ++first;
  const bool asks_for_help = argc > 1 && std::string_view(argv[1]) == "--help";
  if (argc <= first || asks_for_help) {
    std::fputs(
        "brant-ranks PROGRAM [ARGUMENTS...] runs an MPI program as several ranks in this process: as many of "
        "BRANT_MPI_RANKS as fall to it. `brant run -n PROCESSES --ranks RANKS -- PROGRAM` starts it.\n",
        asks_for_help ? stdout : stderr);
    return asks_for_help ? 0 : kCannotRun;
  }
  const std::vector<std::string> arguments(argv + first, argv + argc);
  ::program_invocation_name = argv[first];  // in messages of the C library
  try {
    return run(arguments);
  } catch (const Error& error) {
    std::fprintf(stderr, "brant-ranks: %s\n", error.what());
    return error.status() == Status::not_found ? kNotFound : kCannotRun;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "brant-ranks: '%s' cannot run: %s\n", argv[first], error.what());
    return kCannotRun;
  }
}

}  // namespace
}  // namespace brant::mpi

int main(int argc, char** argv) { return brant::mpi::main(argc, argv); }
