#pragma once

#include <cstddef>
#include <functional>
#include <string>

/// How the stand-ins for NCCL in the processes of one host see what each of them gives: by a file in shared memory.
class FakeExchange {
 public:
  /// The same `name` at all. Nothing is shared before the first call.
  void join(const std::string& name, int rank, int ranks);
  /// `use` may look at what all have given (`given`) until it returns. False: the others did not come in time, or there
  /// is no room.
  bool run(const void* mine, std::size_t bytes, const std::function<void()>& use);
  [[nodiscard]] const std::byte* given(int rank) const;
  void leave();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return ranks_; }

 private:
  bool open();
  bool meet();

  std::string name_;
  int rank_ = 0;
  int ranks_ = 1;
  std::size_t meetings_ = 0;
  std::byte* base_ = nullptr;
};
