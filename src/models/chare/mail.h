#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "brant/chare/detail/mail.h"
#include "models/chare/collection.h"

namespace brant::detail {

/// The calls and whens of one chare that wait for each other. Made with the first of either, and kept then.
struct Mail {
  static constexpr std::size_t kKeptMax = 65'536;

  struct Kept {
    ReadArchive arguments;  ///< In the message, which is retained.
    Invocation invocation;
  };
  /// The kept calls of one entry, in order of arrival: a vector whose front is mostly what is taken.
  struct Box {
    const EntryInfo* entry = nullptr;
    std::vector<Kept> calls;
    std::size_t front = 0;

    [[nodiscard]] std::size_t size() const noexcept { return calls.size() - front; }
    void take_out(std::size_t place) noexcept;
  };

  IntrusiveList<WhenWaiter, &WhenWaiter::hook> waiters;
  std::vector<Box> boxes;

  /// The mail of a chare; null if it never had any.
  static Mail* find(const ChareBase& chare) noexcept { return chare.mail_; }
  static Mail& of(ChareBase& chare);
  static std::string name_of(const ChareBase& chare) { return chare.collection_->name_of(chare.key_); }
  static Core& core_of(const ChareBase& chare) noexcept { return chare.collection_->core(); }
  /// Lets waiters go, and reports what was kept.
  static void close(ChareBase& chare) noexcept;

  Box& box_of(const EntryInfo& entry);
};

/// A call of an awaited entry has arrived: the first when that matches takes it, or it is kept. Throws what the body
/// throws; limit_reached. A when whose predicate throws ends with that.
void offer_to_whens(const Invocation& invocation, const ReadArchive& arguments);

/// "Block[3]::halo on rank 1, which no when has taken" for the first chare that keeps one; empty if none does.
std::string first_kept(const std::unordered_map<std::uint32_t, std::unique_ptr<Collection>>& collections);

}  // namespace brant::detail
