#include "models/chare/collection.h"

#include <fmt/format.h>

#include "models/chare/collections.h"

namespace brant::detail {
namespace {

thread_local Birth t_birth;

/// Sets what a constructor reads, and puts back what was (a constructor may make others).
class BirthScope {
 public:
  explicit BirthScope(const Birth& birth) noexcept : before_(std::exchange(t_birth, birth)) {}
  ~BirthScope() { t_birth = before_; }
  BirthScope(const BirthScope&) = delete;
  BirthScope& operator=(const BirthScope&) = delete;

 private:
  Birth before_;
};

/// The first of the block of `rank` when `total` elements lie on `ranks` ranks as evenly as possible.
std::uint64_t block_begin(std::uint64_t total, std::uint64_t ranks, std::uint64_t rank) noexcept {
  return rank * (total / ranks) + std::min(rank, total % ranks);
}

std::uint64_t block_owner(std::uint64_t total, std::uint64_t ranks, std::uint64_t number) noexcept {
  const std::uint64_t each = total / ranks, longer = total % ranks, in_longer = longer * (each + 1);
  return number < in_longer ? number / (each + 1) : longer + (number - in_longer) / each;
}

}  // namespace

const Birth& present_birth() noexcept { return t_birth; }

bool PlacementRule::can_be_dense() const noexcept {
  std::uint64_t total = 1;
  for (int i = 0; i < dimensions; ++i) {
    const std::int32_t here = extent.coordinate(i);
    if (here <= 0 || total > kElementsMax / static_cast<std::uint32_t>(here)) return false;
    total *= static_cast<std::uint32_t>(here);
  }
  return dimensions > 0;
}

std::uint64_t PlacementRule::total() const noexcept {
  std::uint64_t total = 1;
  for (int i = 0; i < dimensions; ++i) total *= static_cast<std::uint32_t>(extent.coordinate(i));
  return total;
}

std::uint64_t PlacementRule::linear(const ElementKey& key) const noexcept {
  std::uint64_t number = 0;
  for (int i = 0; i < dimensions; ++i) {
    number = number * static_cast<std::uint32_t>(extent.coordinate(i)) + static_cast<std::uint32_t>(key.coordinate(i));
  }
  return number;
}

ElementKey PlacementRule::key_at(std::uint64_t number) const noexcept {
  ElementKey key;
  for (int i = dimensions; i-- > 0;) {
    const auto extent_here = static_cast<std::uint32_t>(extent.coordinate(i));
    key.set_coordinate(i, static_cast<std::int32_t>(number % extent_here));
    number /= extent_here;
  }
  return key;
}

Collection::Collection(Collections& home, const ProgramContext& context, std::uint32_t id, const ClassInfo& chare_class,
                       const PlacementRule& rule, const PlacementInfo* function, std::vector<std::int32_t> listed)
    : home_(home),
      context_(context),
      id_(id),
      class_(chare_class),
      rule_(rule),
      function_(function),
      listed_(std::move(listed)),
      self_(context.rank),
      total_(rule.dense != 0 ? rule.total() : 0) {
  scope_.ranks = context.ranks;
  for (int i = 0; i < rule.dimensions; ++i) {
    scope_.extent[static_cast<std::size_t>(i)] = rule.dense != 0 ? rule.extent.coordinate(i) : 0;
  }
}

Collection::~Collection() { destroy_all(); }

Core& Collection::core() const noexcept { return context_.core; }

bool Collection::singles() const noexcept { return (id_ & kSinglesBit) != 0; }

/// Those that one rank makes come from there in their order.
void Collection::note_made(const ElementKey& key) {
  if (!deleted_.empty()) deleted_.erase(key);
  if (!singles()) return;
  const SingleNumber number = SingleNumber::of(key);
  last_made_[number.maker] = number.count;
}

void Collection::note_deleted(const ElementKey& key) {
  if (dense() || singles()) return;
  const std::uint64_t number = deletions_so_far_++;
  if (number < kDeletedMax) {
    deletions_.push_back(key);
  } else {
    ElementKey& oldest = deletions_[number % kDeletedMax];
    // It may have been made again since, and deleted again.
    const auto found = deleted_.find(oldest);
    if (found != deleted_.end() && found->second == number - kDeletedMax) deleted_.erase(found);
    oldest = key;
  }
  deleted_[key] = number;
}

bool Collection::was_deleted(const ElementKey& key) const noexcept {
  if (!singles()) return dense() || deleted_.contains(key);
  const SingleNumber number = SingleNumber::of(key);
  const auto last = last_made_.find(number.maker);
  return last != last_made_.end() && number.count <= last->second;
}

std::int32_t Collection::home_of(const ElementKey& key) const {
  const auto ranks = static_cast<std::uint64_t>(scope_.ranks);
  if (ranks == 1) return 0;
  if (singles()) return SingleNumber::rank_of(key);
  switch (rule_.kind) {
    case Placement::Kind::listed:
    case Placement::Kind::block: {
      const std::uint64_t number = rule_.linear(key);
      if (number < listed_.size()) return listed_[number];
      if (number < total_) [[likely]]
        return static_cast<std::int32_t>(block_owner(total_, ranks, number));
      throw Error(Status::invalid_argument,
                  fmt::format("a message names {}, which is outside the array", name_of(key)));
    }
    case Placement::Kind::round_robin:
      return static_cast<std::int32_t>((dense() ? rule_.linear(key) : static_cast<std::uint32_t>(key.coordinate(0))) %
                                       ranks);
    case Placement::Kind::function: {
      const std::int32_t rank = function_->rank_of(key, scope_);
      if (rank >= 0 && rank < scope_.ranks) return rank;
      throw Error(Status::invalid_argument,
                  fmt::format("the placement function {} puts {} on rank {}: the job has ranks 0 to {}",
                              function_->owner, name_of(key), rank, scope_.ranks - 1));
    }
    default: return static_cast<std::int32_t>(key.hash() % ranks);
  }
}

ChareBase* Collection::find(const ElementKey& key) const noexcept {
  if (table_.empty()) return nullptr;
  const std::size_t mask = table_.size() - 1;
  for (std::size_t at = key.hash() & mask;; at = (at + 1) & mask) {
    ChareBase* element = table_[at];
    if (element == nullptr || element->key_ == key) return element;
  }
}

am::MessageList Collection::take_waiting(const ElementKey& key) {
  const auto early = waiting.find(key);
  if (early == waiting.end()) return {};
  const am::MessageList list = early->second;
  waiting.erase(early);
  return list;
}

void Collection::grow() {
  if ((size_ + 1) * 2 <= table_.size()) return;
  std::vector<ChareBase*> larger(std::max<std::size_t>(8, table_.size() * 2));
  const std::size_t mask = larger.size() - 1;
  for (ChareBase* element : table_) {
    if (element == nullptr) continue;
    std::size_t at = element->key_.hash() & mask;
    while (larger[at] != nullptr) at = (at + 1) & mask;
    larger[at] = element;
  }
  table_ = std::move(larger);
}

void Collection::enter(ChareBase& element) {
  const std::size_t mask = table_.size() - 1;
  std::size_t at = element.key_.hash() & mask;
  while (table_[at] != nullptr) at = (at + 1) & mask;
  table_[at] = &element;
  ++size_;
  if (!holes_.empty()) {
    element.slot_ = holes_.back();
    holes_.pop_back();
    slots_[element.slot_] = &element;
  } else {
    element.slot_ = static_cast<std::uint32_t>(slots_.size());
    slots_.push_back(&element);
  }
}

std::uint32_t Collection::first_round() const noexcept { return home_.first_round(id_); }

void Collection::construct(const ElementKey& key, const ConstructorInfo& constructor, ReadArchive& arguments,
                           std::uint32_t first_round) {
  if (find(key) != nullptr) {
    throw Error(Status::invalid_argument, "the element exists already: destroy it first, or use another index");
  }
  grow();
  ChareBase* element = nullptr;
  {
    const BirthScope scope({this, key, first_round});
    element = constructor.construct(arguments);
  }
  enter(*element);
  note_made(key);
  home_.element_made(*this, first_round);
}

void Collection::construct_all(const ConstructorInfo& constructor, Chares& chares, const am::Message& message,
                               std::size_t arguments_at) {
  const auto ranks = static_cast<std::uint64_t>(scope_.ranks);
  const auto self = static_cast<std::uint64_t>(self_);
  std::uint64_t begin = 0, end = total_, stride = 1;
  if (rule_.kind == Placement::Kind::block) {
    begin = block_begin(total_, ranks, self);
    end = block_begin(total_, ranks, self + 1);
  } else if (rule_.kind == Placement::Kind::round_robin) {
    begin = self;
    stride = ranks;
  }
  const bool all_mine = rule_.kind == Placement::Kind::block || rule_.kind == Placement::Kind::round_robin;
  if (all_mine && end > begin) slots_.reserve((end - begin) / stride + 1);
  for (std::uint64_t number = begin; number < end; number += stride) {
    const ElementKey key = rule_.key_at(number);
    if (!all_mine && home_of(key) != self_) continue;
    ReadArchive arguments(&chares, message.data + arguments_at, message.bytes - arguments_at);
    try {
      construct(key, constructor, arguments);
    } catch (...) {
      throw ConstructionFailed{key, std::current_exception()};
    }
  }
}

void Collection::destroy(ChareBase& element, Gone how) noexcept {
  const std::size_t mask = table_.size() - 1;
  std::size_t hole = element.key_.hash() & mask;
  while (table_[hole] != &element) hole = (hole + 1) & mask;
  // Closes the gap, so that no search stops too early.
  for (std::size_t at = (hole + 1) & mask; table_[at] != nullptr; at = (at + 1) & mask) {
    const std::size_t home = table_[at]->key_.hash() & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    table_[hole] = table_[at];
    hole = at;
  }
  table_[hole] = nullptr;
  slots_[element.slot_] = nullptr;
  try {
    holes_.push_back(element.slot_);
    note_deleted(element.key_);
  } catch (const std::bad_alloc&) {  // a slot is lost, and a diagnosis
  }
  --size_;
  home_.element_gone(*this, element, how);
  class_.destroy(element);
}

void Collection::destroy_all() noexcept {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot] != nullptr) class_.destroy(*std::exchange(slots_[slot], nullptr));
  }
  slots_.clear();
  holes_.clear();
  table_.clear();
  size_ = 0;
}

std::string Collection::name_of(const ElementKey& key) const {
  if (singles()) {
    const SingleNumber number = SingleNumber::of(key);
    return fmt::format("{} (single, number {} of rank {})", class_name(), number.count, number.maker);
  }
  return fmt::format("{}{}", class_name(), index_text(key, class_.dimensions, class_.index_bytes));
}

}  // namespace brant::detail
