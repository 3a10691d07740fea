#pragma once

#include <string>
#include <vector>

#include "models/mpi/ranks/c_library_state.h"
#include "models/mpi/ranks/exit_functions.h"
#include "models/mpi/ranks/option_parsing.h"
#include "models/mpi/ranks/program_image.h"
#include "models/mpi/ranks/start_block.h"
#include "models/mpi/ranks/thread_local_window.h"

namespace brant::mpi {

/// A rank that runs an image of its own: the image, and all that the C and C++ libraries keep once for a process though
/// it is the rank's.
class ImageRank {
 public:
  using Main = int (*)(int argc, char** argv, char** environment);

  /// The errors of `ProgramImage`. `arguments` begin with the program's name.
  ImageRank(const ExecutableFile& file, const std::vector<std::string>& arguments);

  /// On the stack of the rank: all of the program's life. Its exit code.
  int run() noexcept;
  /// On the ranks' thread: the rank runs from here on, or another one does.
  void resume() noexcept;
  void suspend() noexcept;

  /// What a program's entry calls, in place of the C library: never returns into it. `legacy_init` runs what has to run
  /// before main, in programs that were linked with a C library older than 2.34; null in others.
  [[noreturn]] void start(Main main, int argc, char** argv, Main legacy_init);
  /// Runs what is to run at the end, and ends the rank.
  [[noreturn]] void exit(int code);
  /// Ends the rank without that.
  [[noreturn]] void leave(int code) noexcept { block_.leave(code); }

  [[nodiscard]] const ProgramImage& image() const noexcept { return image_; }
  [[nodiscard]] ExitFunctions& exit_functions() noexcept { return exit_functions_; }
  [[nodiscard]] OptionParsing& options() noexcept { return options_; }
  [[nodiscard]] CLibraryState& c_library() noexcept { return c_library_; }
  /// What a thread that the rank starts begins with.
  [[nodiscard]] const ThreadLocalWindow& first_thread_locals() const noexcept { return first_thread_locals_; }

 private:
  /// The start of what __cxa_get_globals gives, as the C++ ABI has it.
  struct Exceptions {
    void* caught = nullptr;
    unsigned uncaught = 0;
  };

  void run_first_functions(int argc, char** argv, char** environment);

  ProgramImage image_;
  StartBlock block_;
  ExitFunctions exit_functions_;
  OptionParsing options_;
  CLibraryState c_library_;
  const ThreadLocalWindow first_thread_locals_;
  ThreadLocalWindow thread_locals_;
  Exceptions exceptions_;
};

/// The rank on whose stack the caller is; null elsewhere: on other threads, and where no rank runs.
[[nodiscard]] ImageRank* running_rank() noexcept;

}  // namespace brant::mpi
