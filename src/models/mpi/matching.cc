#include "models/mpi/matching.h"

namespace brant::mpi {

unsigned Matching::wildcards_of(const MatchKey& key) noexcept {
  return (key.source == MPI_ANY_SOURCE ? 1u : 0u) | (key.tag == MPI_ANY_TAG ? 2u : 0u);
}

bool Matching::post(PostedReceive& receive) noexcept {
  if (!receives_.push_back(receive.wanted, receive)) return false;
  receive.order = next_order_++;
  ++with_wildcards_[wildcards_of(receive.wanted)];
  ++posted_;
  return true;
}

Matching::Receives::Found Matching::find(const MatchKey& key) const noexcept {
  Receives::Found first;
  const auto consider = [&](unsigned wildcards, const MatchKey& wanted) noexcept {
    if (with_wildcards_[wildcards] == 0) return;
    const Receives::Found found = receives_.find(wanted);
    if (found.item != nullptr && (first.item == nullptr || found.item->order < first.item->order)) first = found;
  };
  consider(0, key);
  consider(1, key.any_source());
  consider(2, key.any_tag());
  consider(3, key.any());
  return first;
}

PostedReceive* Matching::find_receive(const MatchKey& key) const noexcept { return find(key).item; }

void Matching::withdraw(PostedReceive& receive) noexcept {
  receives_.remove(receive.wanted, receive);
  count_out(receive);
}

void Matching::count_out(const PostedReceive& receive) noexcept {
  --with_wildcards_[wildcards_of(receive.wanted)];
  --posted_;
}

bool Matching::keep(EarlyMessage& message) noexcept {
  const MatchKey& key = message.key;
  if (!exact_.push_back(key, message)) return false;
  const bool of_source = of_source_.push_back(key.any_tag(), message);
  const bool of_tag = of_source && of_tag_.push_back(key.any_source(), message);
  if (of_tag && of_context_.push_back(key.any(), message)) {
    ++kept_;
    return true;
  }
  if (of_tag) of_tag_.remove(key.any_source(), message);
  if (of_source) of_source_.remove(key.any_tag(), message);
  exact_.remove(key, message);
  return false;
}

EarlyMessage* Matching::find_message(const MatchKey& wanted) const noexcept {
  if (kept_ == 0) return nullptr;
  switch (wildcards_of(wanted)) {
    case 0: return exact_.front(wanted);
    case 1: return of_tag_.front(wanted);
    case 2: return of_source_.front(wanted);
    default: return of_context_.front(wanted);
  }
}

std::size_t Matching::kept_bytes() const noexcept {
  std::size_t bytes = 0;
  exact_.for_each([&bytes](const EarlyMessage& message) noexcept { bytes += message.message->bytes; });
  return bytes;
}

void Matching::remove(EarlyMessage& message) noexcept {
  const MatchKey& key = message.key;
  exact_.remove(key, message);
  of_source_.remove(key.any_tag(), message);
  of_tag_.remove(key.any_source(), message);
  of_context_.remove(key.any(), message);
  --kept_;
}

}  // namespace brant::mpi
