#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "block.h"

namespace jacobi {

/// Exchanges the faces of a block with its neighbours: one channel for each, open for the life of this object.
///
/// An iteration: post_receives, pack (the stencil's), post_sends, wait until finished, complete, unpack.
/// The block outlives it: what is in flight uses the block's memory. Thread rule: the worker's thread.
class HaloExchange {
 public:
  /// Opens the channels. `generation` keeps the channels of one exchange apart from those of another in the same job;
  /// all ranks pass the same. Throws peer_lost, invalid_argument (more than 28 bits of channels).
  HaloExchange(brant::Runtime& runtime, const Block& block, const Decomposition& decomposition, int rank,
               brant::Path path, std::uint32_t generation);

  /// Receives into ghost planes and the receive buffer. Before the sends, so that nothing arrives unexpected. Throws
  /// what the path refused.
  void post_receives();
  /// Packing must have finished: the network is not ordered with streams. Throws what a send refused.
  void post_sends();
  /// True when all ghost cells have arrived and all faces may be overwritten.
  [[nodiscard]] bool finished() const noexcept;
  /// Ends a finished exchange. Throws the first failure, naming the neighbour.
  void complete();

  /// Bytes this block sends in one exchange.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

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

  void require(const Link& link, const brant::OpResult& result, const char* what, std::size_t expected) const;

  const Block& block_;
  std::array<std::optional<Link>, kSides> links_;
  std::size_t bytes_ = 0;
};

}  // namespace jacobi
