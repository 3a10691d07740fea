// Chare classes that Python may use, and the entries of Python's that C++ calls.
#include <list>
#include <mutex>

#include <fmt/format.h>

#include "brant/chare/expose.h"
#include "brant/chare/python.h"
#include "models/chare/registry.h"

namespace brant::detail {
namespace {

/// Libraries may be opened by several threads.
struct ExposedClasses {
  std::mutex mutex;
  std::list<ExposedClass> lines;
};
ExposedClasses& exposed_classes() {
  static auto* const all = new ExposedClasses;  // never destroyed: lines are named by proxies of an interpreter
  return *all;
}

[[noreturn]] void throw_no_package() {
  throw Error(Status::not_found, "there are no chares of Python here: this process has not imported the package brant");
}

const EntryInfo* find_python_entry(std::string_view detail) noexcept {
  return static_cast<const EntryInfo*>(find_enrolled(RegisteredKind::entry, name_hash("entry", "brant.Chare", detail)));
}

}  // namespace

ExposedClass& expose_class(std::string_view name, const ClassInfo& info) {
  ExposedClasses& all = exposed_classes();
  const std::scoped_lock lock(all.mutex);
  ExposedClass& line = all.lines.emplace_back();
  line.name = name;
  line.info = &info;
  return line;
}

const ExposedClass* find_exposed(std::string_view name) {
  ExposedClasses& all = exposed_classes();
  const std::scoped_lock lock(all.mutex);
  const ExposedClass* found = nullptr;
  for (const ExposedClass& line : all.lines) {
    if (line.name != name) continue;
    if (found != nullptr)
      throw Error(Status::invalid_argument,
                  fmt::format("the classes {} and {} are both exposed to Python as '{}': give one another name",
                              found->info->owner, line.info->owner, name));
    found = &line;
  }
  return found;
}

const ExposedClass* find_exposed_type(std::string_view type_name) noexcept {
  ExposedClasses& all = exposed_classes();
  const std::scoped_lock lock(all.mutex);
  for (const ExposedClass& line : all.lines) {
    if (line.info->owner == type_name) return &line;
  }
  return nullptr;
}

std::vector<std::string> exposed_names() {
  ExposedClasses& all = exposed_classes();
  const std::scoped_lock lock(all.mutex);
  std::vector<std::string> names;
  for (const ExposedClass& line : all.lines) names.push_back(line.name);
  return names;
}

const EntryInfo& python_entry(bool with_data) {
  // Asked for each call: the package may be imported later. The lines of a process with it are few.
  static const EntryInfo* entries[2] = {};
  const EntryInfo*& entry = entries[with_data ? 1 : 0];
  if (entry == nullptr) entry = find_python_entry(with_data ? "from C++, data" : "from C++");
  if (entry == nullptr) throw_no_package();
  return *entry;
}

const ClassInfo& python_class(int dimensions) {
  const std::string text = std::to_string(dimensions);
  const Registered* line =
      find_enrolled(RegisteredKind::chare_class, name_hash("class", "brant.Chare", std::string_view(text)));
  if (line == nullptr) throw_no_package();
  return static_cast<const ClassInfo&>(*line);
}

const ConstructorInfo& python_constructor() {
  const Registered* line =
      find_enrolled(RegisteredKind::constructor, name_hash("constructor", "brant.Chare", "from C++"));
  if (line == nullptr) throw_no_package();
  return static_cast<const ConstructorInfo&>(*line);
}

void throw_no_python_element(const std::string& class_name, const ElementKey& index, int dimensions,
                             const ElementKey& extent, int extent_dimensions) {
  throw Error(Status::invalid_argument,
              fmt::format("{}{} is outside the array, whose extent is {}", class_name, index_text(index, dimensions, 0),
                          index_text(extent, extent_dimensions, 0)));
}

}  // namespace brant::detail
