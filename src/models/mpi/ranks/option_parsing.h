#pragma once

#include <getopt.h>

#include <vector>

#include "models/mpi/ranks/program_image.h"

namespace brant::mpi {

/// getopt for one of several ranks. The C library keeps one state for the process, part of it where nobody sees it.
/// When another rank has parsed since, this one's state is made again: its calls are repeated on the arguments they
/// were given.
class OptionParsing {
 public:
  struct Call {
    int (*function)(const Call& call, int argc, char* const* argv);
    int argc;
    char* const* argv;
    const char* options;
    const option* long_options = nullptr;
    int* long_index = nullptr;
  };

  explicit OptionParsing(const ProgramImage& image);

  /// One call of getopt or of its like.
  int parse(const Call& call);
  /// For programs that use the C library's variables where these are: put in place when the rank runs, kept when it
  /// does not.
  void resume() noexcept;
  void suspend() noexcept;

 private:
  struct Variables {
    int index = 1;
    int errors = 1;
    int option = '?';
    char* argument = nullptr;
  };

  [[nodiscard]] bool has_copies() const noexcept { return index_ != &::optind; }
  [[nodiscard]] Variables read() const noexcept;
  void write(const Variables& variables) const noexcept;
  void repeat(const Call& call);

  // Of the program: its own copies, or the C library's variables.
  int* index_;
  int* errors_;
  int* option_;
  char** argument_;
  Variables kept_;
  char* const* parsed_ = nullptr;  ///< The arguments of the calls so far.
  std::vector<char*> arguments_;   ///< As they were when the parsing began: it moves them.
  std::vector<int> indices_;       ///< optind at each call so far.
};

}  // namespace brant::mpi
