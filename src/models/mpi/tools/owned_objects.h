#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace brant::mpi::tools {

/// Objects that a program has handles of. A handle is looked for among them before anything is read, so that one that
/// was freed, or is of somebody else, is found to be so.
template <typename T>
class OwnedObjects {
 public:
  template <typename... Values>
  T& make(Values&&... values) {
    return *objects_.emplace_back(std::make_unique<T>(std::forward<Values>(values)...));
  }
  /// Null: it is none of them.
  template <typename Handle>
  [[nodiscard]] T* find(Handle handle) const noexcept {
    const auto found = place_of(handle);
    return found != objects_.end() ? found->get() : nullptr;
  }
  /// False: it is none of them.
  template <typename Handle>
  [[nodiscard]] bool erase(Handle handle) noexcept {
    const auto found = place_of(handle);
    if (found == objects_.end()) return false;
    objects_.erase(found);
    return true;
  }
  void clear() noexcept { objects_.clear(); }

  [[nodiscard]] auto begin() const noexcept { return objects_.begin(); }
  [[nodiscard]] auto end() const noexcept { return objects_.end(); }

 private:
  template <typename Handle>
  [[nodiscard]] auto place_of(Handle handle) const noexcept {
    return std::ranges::find(objects_, reinterpret_cast<const T*>(handle), &std::unique_ptr<T>::get);
  }

  std::vector<std::unique_ptr<T>> objects_;
};

}  // namespace brant::mpi::tools
