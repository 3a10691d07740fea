#pragma once

#include <cstddef>

namespace brant::mpi {

/// Memory for the stack of one rank: address space that becomes memory as it is touched, above pages that nobody may
/// touch, so that a stack which overflows ends the process and overwrites nothing.
class RankStack {
 public:
  /// Throws std::system_error.
  explicit RankStack(std::size_t bytes);
  ~RankStack();
  RankStack(const RankStack&) = delete;
  RankStack& operator=(const RankStack&) = delete;

  /// The end that it grows from.
  [[nodiscard]] std::byte* top() const noexcept { return memory_ + bytes_; }
  [[nodiscard]] std::byte* bottom() const noexcept { return memory_ + kGuardBytes; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_ - kGuardBytes; }
  /// The address is of the pages that nobody may touch.
  [[nodiscard]] bool guards(const void* address) const noexcept { return address >= memory_ && address < bottom(); }

 private:
  static constexpr std::size_t kGuardBytes = std::size_t{64} * 1024;

  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace brant::mpi
