#pragma once

#include <array>
#include <cstdlib>

namespace brant::mpi {

/// What the C library keeps once for a process behind functions of programs that are one thread each: the numbers of
/// rand, random and drand48, and where strtok stands. Each rank has its own, which begins as that of a process does.
class CLibraryState {
 public:
  CLibraryState() noexcept;
  CLibraryState(const CLibraryState&) = delete;
  CLibraryState& operator=(const CLibraryState&) = delete;

  [[nodiscard]] long random() noexcept;
  void seed_random(unsigned seed) noexcept;
  [[nodiscard]] double uniform() noexcept;     ///< drand48
  [[nodiscard]] long non_negative() noexcept;  ///< lrand48
  [[nodiscard]] long with_sign() noexcept;     ///< mrand48
  void seed_uniform(long seed) noexcept;       ///< srand48
  [[nodiscard]] char* token(char* text, const char* separators) noexcept;

 private:
  random_data random_{};
  std::array<char, 128> numbers_{};  ///< As large as the C library's own.
  drand48_data uniform_{};
  char* rest_ = nullptr;  ///< Of the text that tokens are taken from.
};

}  // namespace brant::mpi
