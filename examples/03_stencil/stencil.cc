// A stencil over chares whose fields live on the GPU, or in host memory where there is none: faces travel as device
// arguments, and a post entry says where each lands. Every cell becomes the mean of its two neighbours, at both ends
// the rod is held at 0 and 100 degrees.
//   brant run -n 4 -- stencil [CHARES] [CELLS] [STEPS]
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "brant/chare.h"
using namespace brant;

class Rod : public Chare<Rod> {
 public:
  Rod(int pieces, int cells)
      : pieces_(pieces), row_(static_cast<std::size_t>(cells) + 2, 0.0), field_(on_device(row_.size())) {
    for (auto& of_step : ghosts_) of_step = {on_device(1), on_device(1)};
    if (index()[0] == pieces_ - 1) row_.back() = 100.0;
    chares().runtime().copy(field_, std::span(row_));
  }

  /// Runs when a neighbour's face of a step lies in the ghost that `post` named.
  void face(DeviceData, int step, int) {
    ++arrived_[static_cast<std::size_t>(step % 2)];
    advance();
  }
  /// Runs before, when only the message is here. A neighbour may be one step ahead: two ghosts take turns.
  Buffer post(Post<&Rod::face>, const DeviceMeta&, int step, int side) {
    return ghosts_[static_cast<std::size_t>(step % 2)][static_cast<std::size_t>(side)];
  }

  /// Does so many steps, and gives the temperature in the middle of this piece.
  Task<double> run(int steps) {
    steps_ = steps;
    send_faces();
    advance();
    co_await done_.future();
    co_return row_[row_.size() / 2];
  }

 private:
  Memory on_device(std::size_t doubles) {
    return chares().runtime().allocate(chares().runtime().device_kind(), doubles * sizeof(double));
  }
  bool has(int side) const { return side == 0 ? index()[0] > 0 : index()[0] + 1 < pieces_; }
  int neighbours() const { return (has(0) ? 1 : 0) + (has(1) ? 1 : 0); }

  /// The first cell to the left neighbour, the last one to the right; there they are the ghosts of the other side.
  void send_faces() {
    const std::size_t last = row_.size() - 2;
    for (const int side : {0, 1}) {
      if (!has(side)) continue;
      const Buffer cell = field_.part((side == 0 ? 1 : last) * sizeof(double), sizeof(double));
      const Completion free{[](void* rod, const OpResult&) noexcept { static_cast<Rod*>(rod)->freed(); }, this};
      ++sending_;
      this_array()[index()[0] + (side == 0 ? -1 : 1)].call<&Rod::face>(device(cell, free), step_, 1 - side);
    }
  }
  void freed() {
    --sending_;
    advance();
  }

  /// Goes on when the faces of this step are here, and the cells that were sent may be overwritten.
  void advance() {
    int& arrived = arrived_[static_cast<std::size_t>(step_ % 2)];
    while (step_ < steps_ && arrived == neighbours() && sending_ == 0) {
      arrived = 0;
      compute();
      if (++step_ == steps_) return done_.deliver();
      send_faces();
      if (neighbours() != 0) return;  // their faces go on with it
    }
  }
  /// On the host, so that the example needs no kernel; a real program launches one.
  void compute() {
    Runtime& runtime = chares().runtime();
    auto& ghosts = ghosts_[static_cast<std::size_t>(step_ % 2)];
    for (const int side : {0, 1}) {
      const std::size_t place = side == 0 ? 0 : row_.size() - 1;
      if (has(side)) runtime.copy(field_.part(place * sizeof(double), sizeof(double)), ghosts[side == 0 ? 0 : 1]);
    }
    runtime.copy(std::span(row_), field_);
    const std::vector<double> old = row_;
    for (std::size_t i = 1; i + 1 < row_.size(); ++i) row_[i] = 0.5 * (old[i - 1] + old[i + 1]);
    runtime.copy(field_, std::span(row_));
  }

  int pieces_;
  std::vector<double> row_;
  Memory field_;
  std::array<std::array<Memory, 2>, 2> ghosts_;
  std::array<int, 2> arrived_{};
  int sending_ = 0;
  int step_ = 0;
  int steps_ = 0;
  Promise<> done_;
};

Task<void> heat(Chares& chares, int pieces, int cells, int steps) {
  const Array<Rod> rod = create_array<Rod>(chares, pieces, Placement::block(), pieces, cells);
  std::vector<Future<double>> middles;
  for (int i = 0; i < pieces; ++i) middles.push_back(rod[i].ask<&Rod::run>(steps));
  for (Future<double>& middle : middles) std::printf("%.2f ", co_await middle);
  std::printf("degrees along the rod after %d steps\n", steps);
}

int main(int argc, char** argv) {
  const int pieces = argc > 1 ? std::atoi(argv[1]) : 8;
  const int cells = argc > 2 ? std::atoi(argv[2]) : 4;
  const int steps = argc > 3 ? std::atoi(argv[3]) : 2000;
  Runtime runtime;
  Chares chares(runtime);
  return chares.run(heat(chares, pieces, cells, steps));
}
