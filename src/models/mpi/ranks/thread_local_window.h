#pragma once

#include <cstddef>
#include <vector>

namespace brant::mpi {

class ImageRank;
class ProgramImage;

/// A program's own thread-local variables lie directly below the thread pointer: its code has been linked with their
/// distances from it. There lies, in a process of several ranks, a window that the loader's executable reserves in
/// every thread: its only thread-local variable. The bytes of the rank that runs are in the window of the ranks'
/// thread, those of the others are kept aside. Threads that a rank starts have a window of their own.
class ThreadLocalWindow {
 public:
  static constexpr std::size_t kBytes = 16384;
  static constexpr std::size_t kAlignment = 4096;

  /// The bytes that a thread of this image starts with.
  explicit ThreadLocalWindow(const ProgramImage& image);

  /// To the window of the calling thread, and back.
  void load() const noexcept;
  /// An address of the calling thread's window.
  [[nodiscard]] static bool holds(const void* address) noexcept;
  void save() noexcept;

  /// Which rank's code the calling thread was started for; null for the ranks' own thread and those of the process.
  [[nodiscard]] static ImageRank*& owner() noexcept;
  /// Throws Error (not_supported) if the window is not where the linker was to put it.
  static void check();

 private:
  std::size_t span_ = 0;  ///< From the first of the bytes to the thread pointer.
  std::vector<std::byte> bytes_;
};

}  // namespace brant::mpi
