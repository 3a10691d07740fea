#pragma once

#include <cstddef>
#include <new>
#include <vector>

#include "base/object_pool.h"
#include "brant/base/intrusive_list.h"
#include "models/mpi/match_key.h"

namespace brant::mpi {

/// First in, first out, for each key apart. A queue exists as long as something stands in it. The links lie in the
/// items.
template <typename Item, ListHook<Item> Item::* Hook>
class KeyedQueues {
  struct Queue {
    MatchKey key;
    IntrusiveList<Item, Hook> items;
    Queue* next = nullptr;  ///< In its bucket.
  };

 public:
  KeyedQueues() = default;
  KeyedQueues(const KeyedQueues&) = delete;
  KeyedQueues& operator=(const KeyedQueues&) = delete;

  /// The first one with a key, and where it stands.
  struct Found {
    Item* item = nullptr;  ///< Null: there is none.
    Queue** place = nullptr;
  };
  [[nodiscard]] Found find(const MatchKey& key) const noexcept {
    if (buckets_.empty()) return {};
    Queue** place = place_of(key);
    return {*place != nullptr ? (*place)->items.front() : nullptr, place};
  }
  [[nodiscard]] Item* front(const MatchKey& key) const noexcept { return find(key).item; }

  /// False: no memory.
  [[nodiscard]] bool push_back(const MatchKey& key, Item& item) noexcept {
    if (queues_.lent() >= buckets_.size()) grow();
    if (buckets_.empty()) return false;
    Queue** place = place_of(key);
    if (*place == nullptr) {
      *place = queues_.take();
      if (*place == nullptr) return false;
      (*place)->key = key;
    }
    (*place)->items.push_back(item);
    return true;
  }

  /// Of an item that stands in the queue of this key.
  void remove(const MatchKey& key, Item& item) noexcept { remove({&item, place_of(key)}); }
  /// Nothing was put in or removed since it was found.
  void remove(const Found& found) noexcept {
    Queue* queue = *found.place;
    queue->items.remove(*found.item);
    if (!queue->items.empty()) return;
    *found.place = queue->next;
    queues_.give_back(queue);
  }

  /// In no particular order.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const Queue* queue : buckets_)
      for (; queue != nullptr; queue = queue->next)
        for (const Item* item = queue->items.front(); item != nullptr; item = IntrusiveList<Item, Hook>::next(*item))
          visit(*item);
  }

 private:
  /// Where the queue of a key hangs, or would hang: the end of its bucket.
  [[nodiscard]] Queue** place_of(const MatchKey& key) const noexcept {
    Queue** place = &buckets_[key.hash() & (buckets_.size() - 1)];
    while (*place != nullptr && !((*place)->key == key)) place = &(*place)->next;
    return place;
  }

  /// Where there is no memory for more buckets, they get longer.
  void grow() noexcept {
    try {
      std::vector<Queue*> more(buckets_.empty() ? 16 : 2 * buckets_.size());
      for (Queue* queue : buckets_) {
        while (queue != nullptr) {
          Queue* const following = queue->next;
          Queue*& bucket = more[queue->key.hash() & (more.size() - 1)];
          queue->next = bucket;
          bucket = queue;
          queue = following;
        }
      }
      buckets_.swap(more);
    } catch (const std::bad_alloc&) {
    }
  }

  ObjectPool<Queue, 64> queues_{std::size_t{1} << 30};
  mutable std::vector<Queue*> buckets_;  ///< A power of two of them.
};

}  // namespace brant::mpi
