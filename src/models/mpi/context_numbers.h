#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>

namespace brant::mpi {

/// A communicator that is being made, named as all its members name it: by the context of another one that they share,
/// and a tag.
struct Making {
  /// What has no tag of the program: the standard has one such call at a time on a communicator.
  static constexpr std::int32_t kNoTag = -1;

  std::uint32_t parent = 0;
  std::int32_t tag = kNoTag;

  friend auto operator<=>(const Making&, const Making&) noexcept = default;
};

/// The contexts that a rank has used. Threads may make communicators at once; one of them at a time takes part in
/// choosing a number, which the first of the makings under way is never refused for long: so at least that one succeeds
/// at all its members.
class ContextNumbers {
 public:
  /// Above all that this rank has used.
  [[nodiscard]] std::uint32_t next() const noexcept { return next_; }
  void use(std::uint32_t context) noexcept {
    if (context >= next_) next_ = context + 1;
  }

  /// All members of it are there and choose a number. Throws std::bad_alloc.
  void begin(const Making& making) { choosing_.insert(making); }
  void end(const Making& making) noexcept {
    give_back(making);
    choosing_.erase(making);
  }
  /// False: another one has its turn, or comes before it.
  [[nodiscard]] bool take(const Making& making) noexcept {
    if (holder_ || *choosing_.begin() != making) return false;
    holder_ = making;
    return true;
  }
  void give_back(const Making& making) noexcept {
    if (holder_ == making) holder_.reset();
  }

 private:
  std::uint32_t next_ = 2;
  std::set<Making> choosing_;
  std::optional<Making> holder_;
};

}  // namespace brant::mpi
