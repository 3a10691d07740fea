#pragma once

#include <string>
#include <vector>

namespace brant::cli {

/// What `brant bench latency --model python` is asked for, as it stands on the command line; empty: its own default.
struct PythonBenchmark {
  std::string sizes;  ///< In bytes, with commas between.
  std::string memory;
  std::string alloc;
  std::string json;
  std::string iterations;
  std::vector<std::string> peers;
  bool check = false;
};

/// Replaces this process by `brant run -n 2 -- python3 -m brant.bench`. Returns only by throwing Error.
[[noreturn]] void run_python(const PythonBenchmark& benchmark);

}  // namespace brant::cli
