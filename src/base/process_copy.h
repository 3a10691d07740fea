#pragma once

namespace brant {

/// Whether the process is still the one in which this object was made: a child of fork() has a copy of everything, of
/// rings, sockets and connections too, and must not speak in its parent's name. Costs a load to ask.
class ProcessCopy {
 public:
  ProcessCopy() noexcept;

  [[nodiscard]] bool is_original() const noexcept { return forks_ == forks_so_far; }

 private:
  static unsigned forks_so_far;  ///< From the first process to this one.
  unsigned forks_;
};

}  // namespace brant
