#include "models/mpi/tools/name_list.h"

#include <algorithm>

#include "brant/core/path.h"

namespace brant::mpi::tools {

namespace {

NameList make_path_names() {
  NameList list{"brant_path", {}};
  for (const std::string& name : requestable_paths()) {
    Path path = Path::automatic;
    if (path_from_name(name, path)) list.items.push_back({static_cast<int>(path), name});
  }
  return list;
}

}  // namespace

std::optional<int> NameList::value_of(std::string_view text) const noexcept {
  const auto found = std::ranges::find(items, text, &Item::name);
  if (found == items.end()) return std::nullopt;
  return found->value;
}

const NameList& switch_names() {
  static const auto& list = *new NameList{"brant_switch", {{0, "off"}, {1, "on"}}};
  return list;
}

const NameList& path_names() {
  static const auto& list = *new NameList{make_path_names()};
  return list;
}

const NameList& gpu_names() {
  static const auto& list = *new NameList{"brant_gpu", {{0, "auto"}, {1, "none"}, {2, "emulated"}, {3, "cuda"}}};
  return list;
}

const NameList& log_names() {
  static const auto& list = *new NameList{"brant_log", {{0, "error"}, {1, "warn"}, {2, "info"}, {3, "debug"}}};
  return list;
}

const NameList* find_name_list(MPI_T_enum handle) {
  for (const NameList* list : {&switch_names(), &path_names(), &gpu_names(), &log_names()})
    if (handle_of_list(list) == handle) return list;
  return nullptr;
}

/// The program gives it back unchanged, and nobody writes to a list.
MPI_T_enum handle_of_list(const NameList* list) noexcept {
  return reinterpret_cast<MPI_T_enum>(const_cast<NameList*>(list));
}

}  // namespace brant::mpi::tools
