#pragma once

#include <deque>
#include <mutex>
#include <optional>

#include "models/mpi/ranks/program_image.h"

namespace brant::mpi {

/// What a rank's code is to run at its end: destructors of thread-local objects, functions given to atexit, destructors
/// of static objects, and the functions that the linker lists, in this order.
class ExitFunctions {
 public:
  /// Called with the argument, and for on_exit with the exit code before it.
  struct Function {
    void (*plain)(void*) = nullptr;
    void (*with_code)(int, void*) = nullptr;
    void* argument = nullptr;
  };

  /// `image` outlives this.
  explicit ExitFunctions(const ProgramImage& image) noexcept : image_(image) {}

  /// On any thread.
  void add(const Function& function);
  /// On the stack of the rank.
  void add_thread_local(const Function& function) { thread_locals_.push_back(function); }
  /// Runs them, the last one that was added first, on the stack of the rank. One of them may call this, as exit within
  /// atexit does: then the rest runs there.
  void run(int code);

 private:
  std::optional<Function> take_last();

  const ProgramImage& image_;
  std::mutex mutex_;
  std::deque<Function> functions_;
  std::deque<Function> thread_locals_;
  std::size_t linked_done_ = 0;  ///< Functions of fini_array.
  bool fini_done_ = false;
};

}  // namespace brant::mpi
