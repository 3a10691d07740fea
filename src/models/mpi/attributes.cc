#include "models/mpi/attributes.h"

#include <algorithm>
#include <iterator>

namespace brant::mpi {

int KeyValues::create(Copy copy, Delete discard, void* extra) {
  keys_.push_back({copy, discard, extra});
  return kFirst + static_cast<int>(keys_.size()) - 1;
}

KeyValues::Key* KeyValues::find(int number) noexcept {
  const bool known = number >= kFirst && static_cast<std::size_t>(number - kFirst) < keys_.size();
  return known && !at(number).freed ? &at(number) : nullptr;
}

void* const* Attributes::find(int number) const noexcept {
  const auto found = std::ranges::find(entries_, number, &Entry::number);
  return found != entries_.end() ? &found->value : nullptr;
}

int Attributes::set(KeyValues& keys, MPI_Comm handle, int number, void* value) {
  const auto known = std::ranges::find(entries_, number, &Entry::number);
  if (known == entries_.end()) {
    entries_.push_back({number, value});
    ++keys.at(number).users;
    return MPI_SUCCESS;
  }
  const KeyValues::Key& key = keys.at(number);
  const int outcome =
      key.discard != MPI_COMM_NULL_DELETE_FN ? key.discard(handle, number, known->value, key.extra) : MPI_SUCCESS;
  if (outcome == MPI_SUCCESS) *std::ranges::find(entries_, number, &Entry::number) = {number, value};
  return outcome;
}

int Attributes::discard(KeyValues& keys, MPI_Comm handle, std::size_t index) noexcept {
  const auto [number, value] = entries_[index];
  const KeyValues::Key key = keys.at(number);
  const int outcome =
      key.discard != MPI_COMM_NULL_DELETE_FN ? key.discard(handle, number, value, key.extra) : MPI_SUCCESS;
  if (outcome != MPI_SUCCESS) return outcome;
  std::erase_if(entries_, [number](const Entry& entry) { return entry.number == number; });
  --keys.at(number).users;
  return MPI_SUCCESS;
}

int Attributes::remove(KeyValues& keys, MPI_Comm handle, int number) noexcept {
  const auto found = std::ranges::find(entries_, number, &Entry::number);
  if (found == entries_.end()) return MPI_SUCCESS;
  return discard(keys, handle, static_cast<std::size_t>(std::distance(entries_.begin(), found)));
}

int Attributes::remove_all(KeyValues& keys, MPI_Comm handle) noexcept {
  while (!entries_.empty()) {
    if (const int outcome = discard(keys, handle, entries_.size() - 1); outcome != MPI_SUCCESS) return outcome;
  }
  return MPI_SUCCESS;
}

int Attributes::copy_to(Attributes& other, KeyValues& keys, MPI_Comm handle) const {
  for (const auto& [number, value] : entries_) {
    const KeyValues::Key key = keys.at(number);
    if (key.copy == MPI_COMM_NULL_COPY_FN) continue;
    void* copied = value;
    int wanted = 1;
    if (key.copy != MPI_COMM_DUP_FN) {
      const int outcome = key.copy(handle, number, key.extra, value, static_cast<void*>(&copied), &wanted);
      if (outcome != MPI_SUCCESS) return outcome;
    }
    if (wanted == 0) continue;
    other.entries_.push_back({number, copied});
    ++keys.at(number).users;
  }
  return MPI_SUCCESS;
}

}  // namespace brant::mpi
