#pragma once

#include <string>
#include <vector>

#include "cli/doctor/facts.h"

namespace brant::cli::doctor {

enum class Level { ok, warning, problem };

struct Finding {
  Level level = Level::ok;
  std::string name;  ///< What was looked at: "UCX", "/dev/shm".
  std::string what;  ///< What was found.
  std::string cure;  ///< Empty if nothing has to be done.
};

// Pure functions: what was found, and the cure.
Finding check_ucx(const Facts& facts);
Finding check_one_ucx(const Facts& facts);
Finding check_cuda(const Facts& facts);
Finding check_visible_devices(const Facts& facts);
Finding check_ucx_takes_cuda(const Facts& facts);
Finding check_listeners(const Facts& facts);
Finding check_gdrcopy(const Facts& facts);
Finding check_infiniband(const Facts& facts);
Finding check_shared_memory(const Facts& facts);
Finding check_memlock(const Facts& facts);
Finding check_ptrace(const Facts& facts);
Finding check_pidfd(const Facts& facts);
Finding check_cores(const Facts& facts);
Finding check_launcher(const Facts& facts);
Finding check_brant_variables(const Facts& facts);
Finding check_ucx_variables(const Facts& facts);

/// All of them, in the order they are printed.
std::vector<Finding> run_checks(const Facts& facts);

[[nodiscard]] const char* level_name(Level level) noexcept;

}  // namespace brant::cli::doctor
