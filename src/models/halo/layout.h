#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "brant/halo/halo_exchange.h"
#include "models/halo/plan.h"

namespace brant::halo {

/// What travels from one block to another, as one of its two ends sees it.
struct Link {
  Message message;
  int rank = 0;           ///< Of the process with the other block.
  std::size_t field = 0;  ///< Of this process's, the one at this end.
  std::size_t bytes = 0;
};

/// How the bytes of a field lie.
struct FieldStrides {
  std::size_t cell = 0;
  std::int64_t row = 0;
  std::int64_t plane = 0;
  std::int64_t variable = 0;
  std::int64_t lead = 0;  ///< Before the first array.

  /// Of the first cell of a box.
  [[nodiscard]] std::int64_t first_of(const Box& box) const noexcept {
    return lead + box.low[0] * static_cast<std::int64_t>(cell) + box.low[1] * row + box.low[2] * plane;
  }
};

/// Who exchanges what with whom, from where this process stands. Constant once it is made.
class Layout {
 public:
  /// Throws invalid_argument: options that do not fit one another or the number of processes.
  Layout(const HaloOptions& options, int rank, int ranks);

  [[nodiscard]] const HaloOptions& options() const noexcept { return options_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  [[nodiscard]] int first_block() const noexcept { return first_; }
  [[nodiscard]] int blocks() const noexcept { return count_; }
  [[nodiscard]] int rank_of(int block) const noexcept { return block / count_; }
  /// Throw invalid_argument for a block that this process does not have.
  [[nodiscard]] Cells array_of(int i) const;
  [[nodiscard]] std::size_t field_bytes(int i) const;
  [[nodiscard]] FieldStrides strides_of(int block) const noexcept;
  /// In the order in which both ends of a channel use it: by the numbers of the blocks; ranks above this one come
  /// first. Those with this process itself come last, in both lists in the same order.
  [[nodiscard]] const std::vector<Link>& sends() const noexcept { return sends_; }
  [[nodiscard]] const std::vector<Link>& receives() const noexcept { return receives_; }

  /// Throws invalid_argument (too few, too small), wrong_kind (mixed). Of kind `detect` all are taken as they come.
  void require_fields(std::span<const Buffer> fields) const;

 private:
  /// Throws invalid_argument for a block that this process does not have.
  [[nodiscard]] int checked(int i) const;
  void add(std::vector<Link>& links, std::vector<Message> messages, bool is_send);

  HaloOptions options_;
  Decomposition cut_;
  int rank_;
  int ranks_;
  int first_ = 0;
  int count_ = 0;
  std::vector<Link> sends_;
  std::vector<Link> receives_;
};

}  // namespace brant::halo
