#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "brant/base/result.h"

namespace brant {

/// What was made, is not lent, and waits for whoever needs one next. There is room for all that were made: giving back
/// allocates nothing, and cannot fail. Whoever has the list destroys what is left in it. One thread.
template <typename T>
class Spares {
 public:
  Spares() = default;
  Spares(const Spares&) = delete;
  Spares& operator=(const Spares&) = delete;

  [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
  /// All that were made and not dropped, those that are lent included.
  [[nodiscard]] std::size_t made() const noexcept { return made_; }
  [[nodiscard]] auto begin() const noexcept { return items_.begin(); }
  [[nodiscard]] auto end() const noexcept { return items_.end(); }

  /// The last one that came back; there must be one.
  T take() noexcept {
    T item = items_.back();
    items_.pop_back();
    return item;
  }
  void give_back(T item) noexcept { items_.push_back(item); }

  /// One more, which is lent. `make()` gives a Result<T>, and is not asked where there is no room to keep it later.
  template <typename Make>
  Result<T> make(Make&& make) noexcept {
    try {
      if (made_ == items_.capacity()) items_.reserve(2 * made_ + 1);
    } catch (const std::bad_alloc&) {
      return Status::no_memory;
    }
    Result<T> item = std::forward<Make>(make)();
    if (item) ++made_;
    return item;
  }
  /// For the caller to destroy; there must be one.
  T drop() noexcept {
    --made_;
    return take();
  }
  /// Those that `is_meant`, likewise.
  template <typename IsMeant>
  void drop_if(IsMeant&& is_meant) noexcept {
    made_ -= std::erase_if(items_, std::forward<IsMeant>(is_meant));
  }

 private:
  std::vector<T> items_;
  std::size_t made_ = 0;
};

}  // namespace brant
