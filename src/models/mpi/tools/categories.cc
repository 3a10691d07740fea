#include "models/mpi/tools/categories.h"

#include "models/mpi/tools/control_variables.h"
#include "models/mpi/tools/performance_variables.h"

namespace brant::mpi::tools {

namespace {

std::vector<int> all_settings() {
  std::vector<int> indices(control_variables().size());
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int>(i);
  return indices;
}

std::vector<int> variables_of(Subject subject) {
  std::vector<int> indices;
  const std::vector<PerformanceVariable>& all = performance_variables();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].subject == subject) indices.push_back(static_cast<int>(i));
  return indices;
}

std::vector<Category> make_categories() {
  return {
      {"brant", "What brant tells of itself.", {}, {}, {1, 2, 3, 4}},
      {"brant_settings", "What governs how brant works.", all_settings(), {}, {}},
      {"brant_messages", "What is under way at this rank.", {}, variables_of(Subject::messages), {}},
      {"brant_paths", "Which way messages and their bytes went.", {}, variables_of(Subject::paths), {}},
      {"brant_process", "How this process waits, and what went wrong.", {}, variables_of(Subject::process), {}},
  };
}

}  // namespace

const std::vector<Category>& categories() {
  static const auto& all = *new std::vector<Category>(make_categories());
  return all;
}

}  // namespace brant::mpi::tools
