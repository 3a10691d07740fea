#pragma once

#include <optional>
#include <string>

#include "brant/brant.h"
#include "brant/halo.h"
#include "solver.h"

namespace jacobi {

/// Which of models.h.
enum class Model { channel, message, halo };

/// What the command line said, checked as far as it can be without knowing the job.
struct Options {
  Extent size{256, 256, 256};
  Plan plan;
  brant::Path path = brant::Path::automatic;
  std::optional<brant::MemoryKind> memory;  ///< Nothing: the device's kind, or host.
  Model model = Model::channel;
  brant::HaloMode halo = brant::HaloMode::fused;  ///< How, of model halo.
  bool computes = true;                           ///< Or nothing but exchanges, which leave the field as it is.
  int chares_per_process = 1;
  bool check = false;
  bool compare = false;
  std::string output;
  std::string json;
};

/// Parses. Nothing: the program has done what was asked (--help) or said what is wrong, and ends with `exit_code`.
/// Only the first process of a job prints.
std::optional<Options> parse_options(int argc, char** argv, int& exit_code);

/// The device that these options need. Follows BRANT_GPU where they leave it open.
brant::RuntimeOptions runtime_options(const Options& options);

}  // namespace jacobi
