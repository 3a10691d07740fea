#include "models/mpi/checks/census.h"

#include <map>
#include <string_view>

#include <fmt/format.h>

#include "models/mpi/checks/checks.h"
#include "models/mpi/process.h"

namespace brant::mpi {

namespace {

constexpr const char* kNames[] = {"request", "communicator", "datatype", "window"};

}  // namespace

void Census::add(Kind kind, const void* object) noexcept {
  Entry& entry = entries_.try_emplace(object, Entry{}).first->second;
  entry = {kind, current_rank().id, checks()->current_call(), entry.handles + 1};
}

void Census::remove(const void* object) noexcept {
  const auto found = entries_.find(object);
  if (found != entries_.end() && --found->second.handles == 0) entries_.erase(found);
}

const char* Census::maker_of(const void* object) const noexcept {
  const auto found = entries_.find(object);
  return found != entries_.end() ? found->second.call : nullptr;
}

std::vector<const Request*> Census::requests_of(RankId rank) const {
  std::vector<const Request*> found;
  for (const auto& [object, entry] : entries_) {
    if (entry.kind == Kind::request && entry.rank == rank) found.push_back(static_cast<const Request*>(object));
  }
  return found;
}

std::string Census::left_by(RankId rank) const {
  std::map<Kind, std::map<std::string_view, std::size_t>> calls;
  std::map<Kind, std::size_t> numbers;
  for (const auto& [object, entry] : entries_) {
    // Requests that were freed go by themselves.
    if (entry.rank != rank || (entry.kind == Kind::request && static_cast<const Request*>(object)->freed)) continue;
    calls[entry.kind][entry.call] += entry.handles;
    numbers[entry.kind] += entry.handles;
  }
  std::string text;
  for (const auto& [kind, made] : calls) {
    const std::size_t number = numbers[kind];
    text += fmt::format("{}{} {}{} (", text.empty() ? "" : ", ", number, kNames[static_cast<std::size_t>(kind)],
                        number == 1 ? "" : "s");
    const char* between = "";
    for (const auto& [call, times] : made) {
      text += fmt::format("{}{}: {}", between, call, times);
      between = ", ";
    }
    text += ')';
  }
  return text;
}

}  // namespace brant::mpi
