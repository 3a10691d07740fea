#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "brant/base/status.h"
#include "brant/coll/collectives.h"
#include "ops/coll/call_words.h"
#include "ops/coll/fold.h"

namespace brant::coll {

/// Who carries out a call: how many, and which of them this is.
struct Members {
  unsigned count = 1;
  unsigned self = 0;
};

/// The root alone gives something.
constexpr bool comes_from_root(CollectiveKind kind) noexcept {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::scatter;
}

/// A call whose arguments were found to fit together, as the algorithms take it: plain pointers, and `in` is where this
/// member's data is also where it works in place.
struct Work {
  CollectiveKind kind = CollectiveKind::none;
  Folding folding;
  unsigned root = 0;
  std::size_t element = 1;  ///< What is not to be cut.
  /// Of the vector (barrier: 0; broadcast, reduce, allreduce, scan, exscan) or of one block (the others; where blocks
  /// differ, the largest).
  std::uint64_t bytes = 0;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  /// Where blocks differ: those that lie in `out`, by the member that gives them (allgather, gather at the root,
  /// alltoall), and those that lie in `in`, by the member that gets them (scatter at the root, reduce_scatter,
  /// alltoall). Of neighbours, by edge. Empty: all have `bytes`.
  std::span<const std::uint64_t> blocks;
  std::span<const std::uint64_t> in_blocks;
  /// Not all know all sizes, and so `bytes` is the largest that this member knows: how many rounds it takes is agreed
  /// in the first one.
  bool uneven = false;
  Neighbours neighbours;
  CallWords words;
  std::uint64_t result_bytes = 0;  ///< What this member gets.
  std::uint64_t in_bytes = 0;      ///< What is read of the call's `in`, and written of its `out`.
  std::uint64_t out_bytes = 0;

  [[nodiscard]] bool is_root(const Members& members) const noexcept { return root == members.self; }
  /// Of a member's block in `out`.
  [[nodiscard]] std::uint64_t block_bytes(std::size_t member) const noexcept {
    return blocks.empty() ? bytes : blocks[member];
  }
  [[nodiscard]] std::uint64_t block_offset(std::size_t member) const noexcept;
  /// The same of a member's block in `in`.
  [[nodiscard]] std::uint64_t in_block_bytes(std::size_t member) const noexcept {
    return in_blocks.empty() ? bytes : in_blocks[member];
  }
  [[nodiscard]] std::uint64_t in_block_offset(std::size_t member) const noexcept;
};

/// Looks at the arguments of a call. invalid_argument: `why` says what does not fit, and the cure. What kind of memory
/// the buffers are is not looked at.
Status make_work(const Collective& call, const Members& members, Work& work, std::string& why);

}  // namespace brant::coll
