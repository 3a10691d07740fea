#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/explain/facts.h"
#include "cli/explain/place.h"
#include "core/paths/calibration_store.h"
#include "core/paths/path_choice.h"

namespace brant::cli::explain {

/// What the user asks about.
struct Question {
  Place from;
  Place to;
  std::size_t bytes = 0;
  Path forced = Path::automatic;
  bool other_host = false;
  bool one_process = false;  ///< Both ends are of one process.
};

/// The answer.
struct Report {
  Question question;
  PathChoice choice;
  std::vector<PathVerdict> paths;  ///< Best first, the refused ones last.
  CalibrationInUse numbers;
  std::vector<std::string> notes;  ///< What was assumed because this machine cannot tell.

  /// Of the chosen path; nothing where nothing is known of it.
  [[nodiscard]] std::optional<double> predicted_us() const noexcept;
};

/// Throws Error invalid_argument for the number of a GPU that this machine does not have beside those it has.
void check_devices(const Question& question, const Facts& facts);

/// What a calibration must fit to be used for this question, whose devices were checked.
CalibratedMachine machine_for(const Question& question, const Facts& facts);

/// A pure function.
Report make_report(const Question& question, const Facts& facts, CalibrationInUse numbers);

std::string to_text(const Report& report);
std::string to_json(const Report& report);

}  // namespace brant::cli::explain
