#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "brant/brant.h"

/// What all rows of programs have in common (docs/numbers/README.md).
namespace apps {

using Json = nlohmann::ordered_json;

/// Versions and machine.
void describe_machine(Json& row, brant::Runtime& runtime);

/// Of samples in ascending order, at least one: by nearest rank.
double percentile(std::span<const double> sorted, double share);
/// {"min", "p50", "p99"} of samples in any order, at least one.
Json quantiles(std::vector<double> samples);

/// The name of the path with the most bytes, of one number for each path; "none": all are 0.
std::string path_of_most(std::span<const double> bytes);
std::string name_of_path(std::size_t path);

/// As one line, without its end.
std::string line_of(const Json& row);
/// Writes them behind what the file has, one a line. Throws io_error, naming `--json`.
void append_lines(const std::string& file, std::span<const std::string> lines);

}  // namespace apps
