#pragma once

#include <span>
#include <vector>

#include "brant/core/task.h"
#include "brant/halo/direct_steps.cuh"
#include "brant/notify/bell.h"
#include "brant/notify/persistent_kernel.h"
#include "models/halo/copies.h"
#include "models/halo/neighbours.h"

namespace brant::halo {

/// What a process tells a neighbour before the first exchange, in front of its fields.
struct DirectOffer {
  std::uint64_t by_device = 0;  ///< Its fields are device memory.
  std::uint64_t refused = 0;    ///< A Status: why it has nothing to offer; ok else.
  FieldOffer landing;           ///< By device: for narrow rows; of 0 bytes where there are none.
  std::uint64_t lines = 0;      ///< By device: words that it takes from, and sends in, lines.
  std::uint64_t strips = 0;     ///< By device: it rings `arrived` in so many parts, 1 at least.
  BellTicket ready;             ///< By device: bells that the neighbour rings.
  BellTicket arrived;
  BellTicket gone;
};

/// Everything that is copied, and by whom it is wanted. Bases are the fields of this process, those of the neighbours,
/// and by neighbours where narrow rows land: here, then there. What goes in lines is planned as if all of it were
/// narrow rows, and sent by LineTable.
struct DirectCopies {
  std::vector<Neighbour> neighbours;
  Copies copies;
  std::vector<Phase> to;      ///< By neighbours.
  Phase own;                  ///< What stays in this process.
  std::vector<Phase> landed;  ///< By neighbours, one behind another: from where narrow rows land into the ghosts.
  /// Landings are used in turn by so many exchanges that follow each other: then there are as many of all bases.
  std::size_t turns = 1;
  std::vector<std::byte*> bases;

  [[nodiscard]] Phase all_landed() const noexcept {
    return landed.empty() ? Phase{} : Phase{landed.front().first, landed.back().last};
  }
};

/// How mode `direct` copies in one kind of memory: by the device, or by the CPU.
class DirectWay {
 public:
  DirectWay() = default;
  DirectWay(const DirectWay&) = delete;
  DirectWay& operator=(const DirectWay&) = delete;
  virtual ~DirectWay() = default;

  virtual void offer(std::size_t neighbour, DirectOffer& offer) = 0;
  virtual void accept(std::size_t neighbour, const DirectOffer& offer) = 0;
  /// All neighbours are there, and the bases what they are from here on.
  virtual void bind() = 0;
  /// Throws where a neighbour has left.
  virtual void require_ready() const = 0;
  virtual Task<void> exchange(std::uint64_t times) = 0;
  /// For a kernel of the program, by device alone.
  [[nodiscard]] virtual DirectPlan device(unsigned) { return {}; }
  virtual Task<void> accompany(PersistentKernel&, std::uint64_t, Task<bool>) { co_return; }
  /// Nothing touches the fields any more when this returns.
  virtual void give_up() noexcept = 0;
};

}  // namespace brant::halo
