#include "cli/bench_python.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/runner/self_start.h"
#include "brant/base/status.h"

namespace brant::cli {
namespace {

/// The benchmark of Python names memory by who makes the array.
std::string memory_of(const PythonBenchmark& benchmark) {
  const std::string& memory = benchmark.memory;
  if (benchmark.alloc.empty()) return memory == "host" ? "numpy,host" : memory;
  if (benchmark.alloc == "library") return memory;
  if (benchmark.alloc == "malloc" && memory == "host") return "numpy";
  if (benchmark.alloc == "cuda" && memory == "cuda") return "cupy";
  throw Error(Status::invalid_argument,
              fmt::format("--model python has no {} memory by --alloc {}: library, malloc for host memory (NumPy), or "
                          "cuda for cuda memory (CuPy)",
                          memory, benchmark.alloc));
}

}  // namespace

void run_python(const PythonBenchmark& benchmark) {
  if (!bench::started_alone())
    throw Error(Status::invalid_argument,
                "--model python starts its two processes itself: leave `brant run` out, or start `python3 -m "
                "brant.bench` by it");
  std::vector<std::string> command = {bench::own_command().front(), "run", "-n", "2", "--no-prefix", "--quiet", "--"};
  command.insert(command.end(), {"python3", "-m", "brant.bench", "--memory", memory_of(benchmark)});
  const auto add = [&command](const char* option, const std::string& value) {
    if (!value.empty()) command.insert(command.end(), {option, value});
  };
  add("--sizes", benchmark.sizes);
  add("--iterations", benchmark.iterations);
  add("--peer", fmt::format("{}", fmt::join(benchmark.peers, ",")));
  add("--json", benchmark.json);
  if (benchmark.check) command.emplace_back("--check");
  bench::replace_process(std::move(command));
}

}  // namespace brant::cli
