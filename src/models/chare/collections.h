#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <unordered_map>

#include "models/chare/collection.h"
#include "models/chare/collection_ids.h"
#include "models/chare/program_context.h"

namespace brant::detail {

class Gatherings;

/// Collections with this bit hold the single chares of the class whose number the other bits are.
inline constexpr std::uint32_t kSinglesBit = 0x8000'0000u;

/// All collections that one process knows, by number. One of them has the `Gatherings`, a chare of ours, which hears of
/// every element that is made or goes.
class Collections {
 public:
  using ById = std::unordered_map<std::uint32_t, std::unique_ptr<Collection>>;

  explicit Collections(const ProgramContext& context) noexcept;
  Collections(const Collections&) = delete;
  Collections& operator=(const Collections&) = delete;

  /// Null if its creation has not arrived yet. Those of single chares always exist.
  Collection* find(std::uint32_t id) {
    if (last_found_ != nullptr && last_found_->id() == id) [[likely]]
      return last_found_;
    return look_up(id);
  }
  /// The same once its elements are made.
  Collection* ready(std::uint32_t id) {
    Collection* collection = find(id);
    return collection != nullptr && collection->ready ? collection : nullptr;
  }
  /// It was an array, and is destroyed.
  [[nodiscard]] bool has_gone(std::uint32_t id) const noexcept {
    return (id & kSinglesBit) == 0 && !by_id_.contains(id) && ids_.has_gone(id);
  }
  [[nodiscard]] const ById& all() const noexcept { return by_id_; }

  /// For an array that is made here. Throws limit_reached.
  std::uint32_t new_id();
  /// For a single chare that is made here.
  std::uint64_t new_single() noexcept { return singles_made_++; }
  /// What a message describes that creates a collection. It has no elements yet.
  Collection& make(const am::Message& message, const Envelope& envelope);
  void erase(std::uint32_t id) noexcept;
  /// At the end. A destructor that looks for a chare finds none from now on; the array it belongs to it knows itself.
  ById take_all() noexcept;

  [[nodiscard]] std::string name_of(const Target& target);
  /// "heat::Block (array 3)".
  [[nodiscard]] std::string name_of_array(std::uint32_t id);

  /// The first element of all is the gatherings themselves.
  Gatherings& make_gatherings();
  [[nodiscard]] Gatherings& gatherings() noexcept { return *gatherings_; }
  /// The first reduction that an element made now takes part in.
  std::uint32_t first_round(std::uint32_t id) noexcept;
  void element_made(const Collection& collection, std::uint32_t first_round);
  void element_gone(const Collection& collection, const ChareBase& element, Gone how) noexcept;

 private:
  Collection* look_up(std::uint32_t id);

  const ProgramContext& context_;
  CollectionIds ids_;
  ById by_id_;
  Collection* last_found_ = nullptr;  ///< Most messages go to the collection of the one before.
  Gatherings* gatherings_ = nullptr;  ///< A single chare of ours.
  std::uint64_t singles_made_ = 0;
};

}  // namespace brant::detail
