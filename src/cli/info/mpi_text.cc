#include "cli/info/mpi_text.h"

#include <cstddef>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "models/mpi/coverage.h"

namespace brant::cli::info {

namespace {

using mpi::CoveredFunction;

constexpr std::size_t kLineMost = 118;

/// The names that are implemented, or those that are not, in lines.
std::string names(std::span<const CoveredFunction> functions, bool implemented) {
  std::string text;
  std::size_t column = kLineMost;
  for (const CoveredFunction& function : functions) {
    if (function.implemented != implemented) continue;
    const std::string_view name = function.name;
    if (column + name.size() + 1 > kLineMost) {
      text += "\n     ";
      column = 5;
    }
    text += ' ';
    text += name;
    column += name.size() + 1;
  }
  return text;
}

std::string chapter_text(std::span<const CoveredFunction> functions) {
  std::size_t implemented = 0;
  for (const CoveredFunction& function : functions) implemented += function.implemented ? 1 : 0;
  std::string text = fmt::format("{:<42} {:>3} of {:>3}\n", functions.front().chapter, implemented, functions.size());
  if (implemented != 0) text += fmt::format("  implemented{}\n", names(functions, true));
  if (implemented != functions.size() && implemented != 0)
    text += fmt::format("  not yet{}\n", names(functions, false));
  return text;
}

}  // namespace

std::string mpi_text() {
  const std::span<const CoveredFunction> all = mpi::covered_functions();
  std::string text;
  std::size_t implemented = 0;
  std::size_t standard = 0;
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = begin;
    while (end < all.size() && std::string_view(all[end].chapter) == all[begin].chapter) {
      const bool of_standard = std::string_view(all[end].name).starts_with("MPI_");
      standard += of_standard ? 1 : 0;
      implemented += of_standard && all[end].implemented ? 1 : 0;
      ++end;
    }
    text += chapter_text(all.subspan(begin, end - begin));
    begin = end;
  }
  return text + fmt::format("{:<42} {:>3} of {:>3}\n", "MPI 5.0", implemented, standard);
}

}  // namespace brant::cli::info
