#pragma once

#include <cstdint>
#include <vector>

#include "brant/core/operation.h"
#include "brant/notify/bell.h"
#include "brant/notify/notifier.h"

namespace brant::mpi {

class PartitionedSend;

/// The bells of the partitions of a send, and the waits for them: `PartitionBells` is the program's view.
class ReadyBells {
 public:
  /// Throws Error.
  ReadyBells(PartitionedSend& send, int partitions);
  ReadyBells(const ReadyBells&) = delete;
  ReadyBells& operator=(const ReadyBells&) = delete;
  ~ReadyBells();

  /// A message of the request begins: its partitions are ready when their bells reach the next epoch, which they may
  /// have by now. Tells `PartitionedSend::rung`.
  void await_next() noexcept;
  /// The CPU says of a partition that it is ready, and the bell is not awaited.
  void withdraw(int partition) noexcept;

  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] bool has(int partition) const noexcept {
    return partition >= 0 && static_cast<std::size_t>(partition) < waits_.size();
  }
  [[nodiscard]] Bell& bell(int partition) noexcept { return bells_[static_cast<std::size_t>(partition)]; }

 private:
  struct Wait {
    ReadyBells* self = nullptr;
    int partition = 0;
    Op op;
  };

  PartitionedSend& send_;
  Notifier notifier_;
  std::vector<Bell> bells_;
  std::vector<Wait> waits_;
  std::uint64_t epoch_ = 0;
};

}  // namespace brant::mpi
