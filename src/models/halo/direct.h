#pragma once

#include <memory>
#include <vector>

#include "models/halo/direct_way.h"
#include "models/halo/exchange.h"
#include "models/halo/transfers.h"

namespace brant::halo {

/// Mode `direct`: the cells go straight into the ghosts of the blocks that need them, in memory that is mapped.
class DirectExchange final : public Exchange {
 public:
  DirectExchange(Runtime& runtime, const HaloOptions& options);
  ~DirectExchange() override { give_up(); }

  [[nodiscard]] std::size_t messages() const noexcept override;
  [[nodiscard]] std::size_t message_bytes() const noexcept override;
  [[nodiscard]] DirectPlan device(unsigned blocks) override;
  void require_device() const override;

 private:
  /// Messages to each neighbour and from it.
  struct Round {
    std::vector<Transfer*> receives;
    std::vector<Transfer*> sends;
    std::vector<std::vector<std::byte>> heard;
    std::vector<std::vector<std::byte>> told;
  };

  void plan_copies();
  [[nodiscard]] std::size_t words_in_lines(const Neighbour& neighbour) const noexcept;
  [[nodiscard]] bool lands_packed(const Neighbour& neighbour, const Box& box) const noexcept;
  /// Give the bytes of narrow rows; the numbers are of bases.
  std::size_t plan_sends(const Neighbour& neighbour, std::size_t fields, std::size_t landing);
  std::size_t plan_landed(const Neighbour& neighbour, std::size_t landing);
  void add_round(Round& round, bool with_fields);
  Task<void> swap(Round& round);
  void choose_way(std::span<const Buffer> fields);
  void tell_offers(std::span<const Buffer> fields);
  void accept_offer(std::size_t neighbour);
  void set_bases(std::span<const Buffer> fields) noexcept;
  Task<void> agree(Status own);
  [[nodiscard]] bool is_bound(std::span<const Buffer> fields) const noexcept;
  Task<void> bind_to(std::span<const Buffer> fields) override;
  void require_ready(std::span<const Buffer> fields) const override;
  Task<void> exchange(std::span<const Buffer> fields) override { return exchange_times(fields, 1); }
  Task<void> exchange_times(std::span<const Buffer> fields, std::uint64_t times) override;
  Task<void> accompany_kernel(PersistentKernel& kernel, std::uint64_t times, Task<bool> work) override;
  void give_up() noexcept override;

  std::shared_ptr<MappingTable> mappings_;  ///< Outlives what is mapped.
  DirectCopies plan_;
  Transfers transfers_;
  Round offers_;
  Round verdicts_;
  bool by_device_ = false;
  bool bound_ = false;
  std::unique_ptr<DirectWay> way_;
};

}  // namespace brant::halo
