#pragma once

#include <deque>
#include <vector>

#include "models/halo/exchange.h"
#include "models/halo/transfers.h"

namespace brant::halo {

/// Mode `shapes`: each message from one block to another goes straight from field to field, packed and unpacked by its
/// channel.
class ShapedExchange final : public Exchange {
 public:
  ShapedExchange(Runtime& runtime, const HaloOptions& options);

  [[nodiscard]] std::size_t messages() const noexcept override { return layout_.sends().size(); }
  [[nodiscard]] std::size_t message_bytes() const noexcept override;

 private:
  struct Part {
    Transfer* transfer = nullptr;
    std::size_t field = 0;
    std::vector<ByteRun> runs;  ///< Of an indexed shape.
    Shape shape;
  };

  void add(const std::vector<Link>& links, bool is_send);
  [[nodiscard]] Shape shape_of(Part& part, const Link& link, bool is_send) const;
  void require_ready(std::span<const Buffer>) const override { transfers_.require_open(); }
  Task<void> exchange(std::span<const Buffer> fields) override;
  void give_up() noexcept override { transfers_.give_up(); }

  Transfers transfers_;
  std::deque<Part> parts_;  ///< Receives first.
};

}  // namespace brant::halo
