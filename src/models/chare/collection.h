#pragma once

#include <cassert>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "brant/chare/chare.h"
#include "brant/chare/detail/core.h"
#include "brant/chare/placement.h"
#include "models/chare/array_places.h"
#include "models/chare/envelope.h"
#include "ops/am/message.h"

namespace brant::detail {

class Collections;
struct ProgramContext;

struct KeyHash {
  std::size_t operator()(const ElementKey& key) const noexcept { return static_cast<std::size_t>(key.hash()); }
};

/// Says where elements live. Travels in the message that creates a collection.
struct PlacementRule {
  Placement::Kind kind = Placement::Kind::hashed;
  std::uint8_t dense = 0;
  std::uint16_t function = 0;
  std::int32_t dimensions = 0;
  ElementKey extent;

  static constexpr std::uint64_t kElementsMax = (std::uint64_t{1} << 32) - 1;
  /// Each takes memory, and the network stands still while they are constructed.
  static constexpr std::uint64_t kElementsPerRankMax = std::uint64_t{1} << 27;
  /// Of an array whose placement is a list, which travels in one message.
  static constexpr std::uint64_t kListedMax = std::uint64_t{1} << 24;

  /// Of a dense array every dimension has 1 or more, and it has kElementsMax elements at most.
  [[nodiscard]] bool can_be_dense() const noexcept;
  /// Number of elements of a dense array.
  [[nodiscard]] std::uint64_t total() const noexcept;
  /// Row-major.
  [[nodiscard]] std::uint64_t linear(const ElementKey& key) const noexcept;
  [[nodiscard]] ElementKey key_at(std::uint64_t number) const noexcept;
  /// That a dense array has such an element.
  [[nodiscard]] bool has(const ElementKey& key) const noexcept {
    const std::uint64_t number = linear(key);
    return number < total() && key_at(number) == key;
  }
  /// What the list takes in the message that makes the collection, in front of the constructor's arguments.
  [[nodiscard]] std::size_t listed_bytes() const noexcept {
    constexpr std::size_t aligned = 16;
    if (kind != Placement::Kind::listed) return 0;
    return (static_cast<std::size_t>(total()) * sizeof(std::int32_t) + aligned - 1) / aligned * aligned;
  }
};

static_assert(sizeof(PlacementRule) + 2 * sizeof(std::uint16_t) <= kCreateBytes);

/// Thrown by `Collection::construct_all`: which element it was.
struct ConstructionFailed {
  ElementKey key;
  std::exception_ptr cause;
};

/// Whether an element that is destroyed here lives on elsewhere.
enum class Gone : std::uint8_t { for_good, elsewhere };

/// One array, or the single chares of one class, as one process sees it: the rule that places all elements, and those
/// that live here.
class Collection {
 public:
  static constexpr std::size_t kDeletedMax = 4096;

  Collection(Collections& home, const ProgramContext& context, std::uint32_t id, const ClassInfo& chare_class,
             const PlacementRule& rule, const PlacementInfo* function, std::vector<std::int32_t> listed = {});
  ~Collection();
  Collection(const Collection&) = delete;
  Collection& operator=(const Collection&) = delete;

  [[nodiscard]] Core& core() const noexcept;
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] const ClassInfo& chare_class() const noexcept { return class_; }
  /// "heat::Block": of C++, unless a binding has said what its users call it.
  [[nodiscard]] std::string_view class_name() const noexcept {
    return class_name_.empty() ? class_.owner : std::string_view(class_name_);
  }
  void set_class_name(std::string_view name) {
    if (class_name_.empty()) class_name_ = name;
  }
  [[nodiscard]] const PlacementRule& rule() const noexcept { return rule_; }
  /// The ranks of all elements, where the placement is a list.
  [[nodiscard]] const std::vector<std::int32_t>& listed() const noexcept { return listed_; }
  [[nodiscard]] bool dense() const noexcept { return rule_.dense != 0; }
  /// The single chares of one class.
  [[nodiscard]] bool singles() const noexcept;

  /// Where an element lives, or would, as far as this rank knows. Throws as `home_of` does.
  [[nodiscard]] std::int32_t rank_of(const ElementKey& key) const {
    if (places_ != nullptr) [[unlikely]]
      return places_->directory.rank_of(identity_of(key));
    return home_of(key);
  }
  /// Where the rule places it: where it is made, and where it lives unless it moved. The same on all ranks. Throws
  /// invalid_argument if the user's placement function says nonsense.
  [[nodiscard]] std::int32_t home_of(const ElementKey& key) const;
  /// Of an element of a dense array. Others have none yet, and cannot move. Throws as `home_of` does.
  [[nodiscard]] place::Identity identity_of(const ElementKey& key) const {
    assert(dense());
    return place::Identity::of(home_of(key), rule_.linear(key));
  }
  /// Null: as far as this rank knows, nothing of it ever moved.
  [[nodiscard]] ArrayPlaces* places() const noexcept { return places_.get(); }
  void set_places(std::unique_ptr<ArrayPlaces> places) noexcept { places_ = std::move(places); }
  [[nodiscard]] ChareBase* find(const ElementKey& key) const noexcept;

  /// Constructs an element here. Throws what the constructor throws; invalid_argument if it exists.
  void construct(const ElementKey& key, const ConstructorInfo& constructor, ReadArchive& arguments) {
    // What exists from the start takes part from the start, even if others have begun already.
    construct(key, constructor, arguments, ready ? first_round() : 0);
  }
  /// The same of one whose next reduction is known, since it comes from another rank.
  void construct(const ElementKey& key, const ConstructorInfo& constructor, ReadArchive& arguments,
                 std::uint32_t first_round);
  /// The elements of a dense array that live here.
  void construct_all(const ConstructorInfo& constructor, Chares& chares, const am::Message& message,
                     std::size_t arguments_at);
  void destroy(ChareBase& element, Gone how = Gone::for_good) noexcept;
  void destroy_all() noexcept;
  /// Of an element that does not exist: it did, and is no one who was not made yet. Of a sparse array as far as that is
  /// remembered: of the last `kDeletedMax` that were deleted.
  [[nodiscard]] bool was_deleted(const ElementKey& key) const noexcept;

  /// Local elements by slot, with holes.
  [[nodiscard]] const std::vector<ChareBase*>& slots() const noexcept { return slots_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// "heat::Block[1,2]".
  [[nodiscard]] std::string name_of(const ElementKey& key) const;
  static const Collection& of(const ChareBase& element) noexcept { return *element.collection_; }
  /// "heat::Block[1,2]".
  static std::string name_of(const ChareBase& element) { return element.collection_->name_of(element.key_); }
  static bool busy(const ChareBase& element) noexcept { return element.busy_; }
  static bool& busy_mark(ChareBase& element) noexcept { return element.busy_; }
  static const Leaving& leaving(const ChareBase& element) noexcept { return element.leaving_; }
  static Leaving& leaving_mark(ChareBase& element) noexcept { return element.leaving_; }
  static const RunningTask* first_task(const ChareBase& element) noexcept { return element.tasks_; }
  static const ElementKey& key_of(const ChareBase& element) noexcept { return element.key_; }
  static std::uint32_t next_reduction(const ChareBase& element) noexcept { return element.reductions_; }

  /// False on the rank that makes it, from the call until its message is run: it places elements, but has none.
  bool ready = false;

  /// Messages to elements that were not inserted yet.
  std::unordered_map<ElementKey, am::MessageList, KeyHash> waiting;
  /// Those to one that is here now.
  am::MessageList take_waiting(const ElementKey& key);

 private:
  [[nodiscard]] std::uint32_t first_round() const noexcept;
  void grow();
  void enter(ChareBase& element);
  void note_made(const ElementKey& key);
  void note_deleted(const ElementKey& key);

  Collections& home_;
  const ProgramContext& context_;
  const std::uint32_t id_;
  const ClassInfo& class_;
  std::string class_name_;
  const PlacementRule rule_;
  const PlacementInfo* function_;
  const std::vector<std::int32_t> listed_;
  PlacementScope scope_;
  std::int32_t self_;
  std::uint64_t total_;
  std::vector<ChareBase*> table_;  ///< Open addressing by hash of the key; the size is a power of two.
  std::vector<ChareBase*> slots_;
  std::vector<std::uint32_t> holes_;
  std::size_t size_ = 0;
  // To tell "gone" from "not yet".
  std::unordered_map<ElementKey, std::uint64_t, KeyHash> deleted_;  ///< Of a sparse array: the number of its deletion.
  std::vector<ElementKey> deletions_;                               ///< A ring of the last ones, by that number.
  std::uint64_t deletions_so_far_ = 0;
  std::unordered_map<std::int32_t, std::uint64_t> last_made_;  ///< Of single chares: by who made them, who count them.
  std::unique_ptr<ArrayPlaces> places_;
};

}  // namespace brant::detail
