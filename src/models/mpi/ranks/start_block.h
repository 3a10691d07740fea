#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "models/mpi/ranks/program_image.h"

namespace brant::mpi {

/// What a program finds on its stack when it starts, as the kernel lays it: the number of its arguments, these, the
/// environment, and the auxiliary vector. The strings are this object's own, and so the rank's that starts with it.
class StartBlock {
 public:
  /// `arguments` begin with the program's name. The environment is that of the process now.
  StartBlock(const ProgramImage& image, const std::vector<std::string>& arguments);
  StartBlock(const StartBlock&) = delete;
  StartBlock& operator=(const StartBlock&) = delete;

  /// Runs the image from its entry, on the calling stack below the caller's frames, which need room for the block: 8
  /// bytes for each argument and each variable. It has ended when `leave` is called on this stack, with that code.
  int enter() noexcept;
  /// The frames between `enter` and here are gone, without their destructors.
  [[noreturn]] void leave(int code) noexcept;

 private:
  std::uint64_t keep(const char* text);

  std::uint64_t entry_;
  std::vector<std::vector<char>> strings_;
  std::vector<std::uint64_t> words_;
  void* entered_ = nullptr;  ///< The stack pointer of `enter`.
};

}  // namespace brant::mpi
