#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stencil.h"

namespace jacobi {

/// How the faces of a block reach its neighbours, and theirs its ghost cells: all that a programming model has to say.
class Halo {
 public:
  Halo() = default;
  Halo(const Halo&) = delete;
  Halo& operator=(const Halo&) = delete;
  virtual ~Halo() = default;

  /// The ghost cells of the block's current field may be written from here on. Early: what a quicker neighbour sends
  /// then finds its place.
  virtual void receive_ghosts() = 0;
  /// Sends the faces. Packing has finished: the network is not ordered with streams.
  virtual void send_faces() = 0;
  /// Ends when all ghost cells have come and all faces may be overwritten. Throws what failed, naming the neighbour.
  virtual brant::Task<void> finish() = 0;
  /// The largest of what all blocks give; each gives one. Throws what failed.
  virtual brant::Task<double> largest_of_all(double own) = 0;
  /// What one exchange sends.
  [[nodiscard]] virtual std::size_t message_bytes() const = 0;
};

struct Plan {
  std::int64_t iterations = 100;    ///< Those that are timed.
  std::int64_t warmup = 10;         ///< Those before them; they count for the field.
  bool overlap = false;             ///< Compute the interior while the faces travel.
  std::int64_t residual_every = 0;  ///< After so many iterations all look how much the last one has changed; 0: never.
};

/// What became of one block. Times are sums over the timed iterations, in microseconds.
struct Solution {
  double iteration = 0.0;
  double compute = 0.0;              ///< The sweep. With overlap, from its start to its end, beside the exchange.
  double communication = 0.0;        ///< Posting the receives, and from packing to the end of unpacking.
  std::vector<double> samples;       ///< Each iteration, at most kSamplesMax.
  double sent_bytes = 0.0;           ///< In each.
  std::optional<Residual> residual;  ///< The last one.
};
inline constexpr std::size_t kSamplesMax = 1'000'000;

/// Iterates on one block. Every block of the grid does, each with a Halo to its neighbours. Throws what the device or
/// the network failed with.
brant::Task<Solution> solve(Block& block, Stencil& stencil, Halo& halo, Plan plan);

}  // namespace jacobi
