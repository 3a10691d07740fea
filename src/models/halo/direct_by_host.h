#pragma once

#include <vector>

#include "models/halo/direct_way.h"
#include "models/halo/transfers.h"

namespace brant::halo {

/// The CPU copies, in memory of the host that is mapped. Words over the channels say when ghosts may be overwritten,
/// and when they are.
class DirectByHost final : public DirectWay {
 public:
  DirectByHost(DirectCopies& plan, Transfers& transfers);

  void offer(std::size_t, DirectOffer&) override {}
  void accept(std::size_t, const DirectOffer&) override {}
  void bind() override {}
  void require_ready() const override {}
  Task<void> exchange(std::uint64_t times) override;
  void give_up() noexcept override {}

 private:
  Task<void> exchange_once();
  void swap_words() noexcept;

  DirectCopies& plan_;
  Transfers& transfers_;
  std::vector<Transfer*> receives_;
  std::vector<Transfer*> sends_;
  std::vector<std::uint64_t> heard_;
  std::uint64_t word_ = 0;
};

}  // namespace brant::halo
