#pragma once

namespace brant::mpi {

/// What the ranks of a process run.
class RankProgram {
 public:
  RankProgram() noexcept = default;
  RankProgram(const RankProgram&) = delete;
  RankProgram& operator=(const RankProgram&) = delete;
  virtual ~RankProgram() = default;

  /// On the stack of the rank with this number among those of the process. The rank has ended when it returns; the
  /// result is its exit code.
  virtual int run(int slot) noexcept = 0;
  /// The rank runs from here on: what is its own of the process, its thread-locals for one, is put in place.
  virtual void resume(int slot) noexcept = 0;
  /// Memory that `suspend` puts aside: the bytes there are another rank's while this one waits.
  [[nodiscard]] virtual bool moves(const void*) const noexcept { return false; }
  /// Another one runs from here on.
  virtual void suspend(int slot) noexcept = 0;
};

}  // namespace brant::mpi
