#pragma once

#include <array>
#include <coroutine>
#include <memory>
#include <optional>
#include <vector>

#include "brant/chare.h"
#include "decomposition.h"
#include "solver.h"
#include "stencil.h"

namespace jacobi {

/// How the faces of chares travel.
enum class Model { channel, message };

/// The blocks of one process, one for each of its chares: block b of the decomposition belongs to process
/// b / (blocks per process).
struct Blocks {
  std::vector<std::unique_ptr<Block>> block;
  std::vector<std::unique_ptr<Stencil>> stencil;  ///< Goes first: it works on the block.

  [[nodiscard]] int first(int rank) const noexcept { return rank * static_cast<int>(block.size()); }
};

/// What every chare of a run is told.
struct PatchOrder {
  std::int64_t iterations = 0;
  std::int64_t warmup = 0;
  std::int64_t residual_every = 0;
  bool overlap = false;
  Model model = Model::message;
  brant::Path path = brant::Path::automatic;  ///< Of channels.
};

/// What it answers: sums over the timed iterations, in microseconds.
struct PatchResult {
  double iteration = 0.0;
  double compute = 0.0;
  double communication = 0.0;
  double residual = 0.0;
  std::vector<float> samples;  ///< Only of the first patch.
  void serialize(auto& archive) { archive(iteration, compute, communication, residual, samples); }
};

/// A block as a chare: it iterates as a coroutine, and lets the other chares of its process run while its faces travel.
/// With messages, a face is a device argument of `halo`, and the post entry says in which ghost cells it lands; with
/// channels, there is one to each neighbour.
class Patch : public brant::Chare<Patch> {
 public:
  Patch();
  brant::Task<PatchResult> solve(PatchOrder order);

  /// A neighbour's face of an iteration lies in the ghost cells of `side`.
  void halo(brant::DeviceData face, std::int64_t iteration, int side);
  brant::Buffer post(brant::Post<&Patch::halo>, const brant::DeviceMeta& face, std::int64_t iteration, int side);

 private:
  struct Link {
    std::optional<brant::Channel> channel;
    std::optional<brant::Operation> incoming;
    std::optional<brant::Operation> outgoing;
  };
  struct Exchanged;  // to be awaited: all faces of this iteration have come and gone
  struct Times {
    double total = 0.0, compute = 0.0, communication = 0.0;
  };

  brant::Task<void> open_channels(brant::Path path);
  brant::Task<Times> iterate(bool overlap);
  brant::Task<void> finish(Step step);
  void post_receives();
  void send_faces();
  brant::Task<void> end_operations();
  void look();

  Block& block_;
  Stencil& stencil_;
  std::array<std::optional<int>, kSides> neighbour_;
  std::array<Link, kSides> links_;
  Model model_ = Model::message;
  std::int64_t iteration_ = 0;
  int neighbours_ = 0;
  std::array<int, 2> arrived_{};  ///< Faces of this iteration and of the next, by parity.
  int sending_ = 0;
  std::coroutine_handle<> waiting_;
};

struct PatchRun {
  Timing timing;
  double residual = 0.0;
};

/// Runs all patches of a job. Collective; throws what a patch failed with on the root, device or network errors on all.
PatchRun run_patches(brant::Runtime& runtime, Star& star, Blocks& blocks, const Decomposition& decomposition,
                     const PatchOrder& order);

}  // namespace jacobi
