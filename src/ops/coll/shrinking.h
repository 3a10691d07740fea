#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace brant::coll {

/// How the members that live agree on who does not: each says whom it knows to be gone, takes over what others know,
/// and says it again when it has learnt of one. It is agreed once all that live have said the same.
class Shrinking {
 public:
  explicit Shrinking(std::size_t members) : gone_(members), said_(members) {}

  /// True: that is news, to be said to the others.
  bool note_gone(std::size_t member) noexcept {
    const bool news = gone_[member] == std::byte{0};
    gone_[member] = std::byte{1};
    return news;
  }
  /// A member has said whom it knows to be gone: a byte for each. False: no member of ours says that.
  bool hear(std::size_t from, std::span<const std::byte> gone) {
    if (gone.size() != gone_.size()) return false;
    said_[from].assign(gone.begin(), gone.end());
    for (std::size_t m = 0; m < gone.size(); ++m) {
      if (gone[m] != std::byte{0}) gone_[m] = std::byte{1};
    }
    return true;
  }
  [[nodiscard]] bool is_gone(std::size_t member) const { return gone_[member] != std::byte{0}; }
  /// It has said what this member knows.
  [[nodiscard]] bool agrees(std::size_t member) const { return said_[member] == gone_; }
  /// All but `self` that live have.
  [[nodiscard]] bool is_agreed(std::size_t self) const {
    for (std::size_t m = 0; m < gone_.size(); ++m) {
      if (m != self && !is_gone(m) && !agrees(m)) return false;
    }
    return true;
  }
  [[nodiscard]] const std::vector<std::byte>& gone() const { return gone_; }

 private:
  std::vector<std::byte> gone_;
  std::vector<std::vector<std::byte>> said_;
};

}  // namespace brant::coll
