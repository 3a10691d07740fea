#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/mpi/ranks/image_rank.h"
#include "models/mpi/ranks/rank_program.h"

namespace brant::mpi {

/// A program with an image for each rank. It may not end before the process: threads that the program started, and
/// whatever it handed out pointers to, may outlive the ranks.
class ImageProgram final : public RankProgram {
 public:
  /// Loads the program's libraries and makes all images. `arguments` begin with the program's name, and are every
  /// rank's. `share` is that of `load_needed_libraries`. The errors of that one, of `ThreadLocalWindow::check` and of
  /// `ProgramImage`.
  ImageProgram(ExecutableFile file, const std::vector<std::string>& arguments, int ranks, bool share);

  int run(int slot) noexcept override { return rank(slot).run(); }
  void resume(int slot) noexcept override { rank(slot).resume(); }
  void suspend(int slot) noexcept override { rank(slot).suspend(); }
  [[nodiscard]] bool moves(const void* address) const noexcept override { return ThreadLocalWindow::holds(address); }

  /// The rank whose image holds this address; null if none does. On any thread.
  [[nodiscard]] ImageRank* owner_of(const void* address) const noexcept;

 private:
  [[nodiscard]] ImageRank& rank(int slot) const noexcept { return *ranks_[static_cast<std::size_t>(slot)]; }

  ExecutableFile file_;
  std::vector<std::unique_ptr<ImageRank>> ranks_;
};

/// That of this process; null before it is made.
[[nodiscard]] ImageProgram* image_program() noexcept;

}  // namespace brant::mpi
