#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "solver.h"

namespace jacobi {

/// Faces over channels: one to each neighbour.
///
/// The block outlives it: what is in flight uses the block's memory. Thread rule: the worker's thread.
class ChannelHalo final : public Halo {
 public:
  explicit ChannelHalo(const Block& block) noexcept : block_(block) {}

  /// Each neighbour once, before the first exchange. Both ends give the channel between them.
  void add(int side, int neighbour, brant::Channel channel) {
    links_.emplace_back(side, neighbour, std::move(channel));
  }

  void receive_ghosts() override;
  void send_faces() override;
  brant::Task<void> finish() override;

 private:
  struct Link {
    Link(int side_in, int neighbour_in, brant::Channel channel_in) noexcept
        : side(side_in), neighbour(neighbour_in), channel(std::move(channel_in)) {}
    int side;
    int neighbour;
    brant::Channel channel;
    std::optional<brant::Operation> incoming;
    std::optional<brant::Operation> outgoing;
  };

  /// Throws if the operation has failed, or moved another number of bytes.
  void require(const Link& link, const brant::OpResult& result, const char* what, std::size_t expected) const;

  const Block& block_;
  std::deque<Link> links_;
};

}  // namespace jacobi
