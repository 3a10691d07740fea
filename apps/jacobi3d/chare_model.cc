#include <array>
#include <optional>
#include <utility>

#include "brant/chare.h"
#include "models.h"

namespace jacobi {
namespace {

/// What the chares of this process work on; set while they run. One thread.
struct Scene {
  Share& share;
  Plan plan;
  std::vector<Solution> solutions;
};
Scene* g_scene = nullptr;

/// A block as a chare. Its faces are device arguments of its neighbours' `halo`.
class Patch : public brant::Chare<Patch>, public Halo {
 public:
  brant::Task<void> run() {
    g_scene->solutions[place()] = co_await solve(block_, *g_scene->share.stencils[place()], *this, g_scene->plan);
  }

  /// A neighbour's face of an iteration lies in the ghost cells of `side`.
  void halo(std::int64_t iteration, int, const brant::DeviceData&) {
    ++arrived_[static_cast<std::size_t>(iteration % 2)];
    if (waiting_ && complete()) std::exchange(waiting_, std::nullopt)->deliver();
  }
  /// Where it lands. A neighbour is at most one iteration ahead: it needs our face of this one to end it.
  brant::Buffer post(brant::Post<&Patch::halo>, std::int64_t iteration, int side, const brant::DeviceMeta&) {
    return iteration == iteration_ ? block_.message_in(side) : block_.next_message_in(side);
  }

  void receive_ghosts() override { iteration_ = begun_++; }
  void send_faces() override {
    for (int side = 0; side < kSides; ++side) {
      const std::optional<int> neighbour = g_scene->share.cut.neighbour(index()[0], side);
      if (!neighbour) continue;
      brant::Promise<brant::ConstBuffer> sent;
      leaving_.push_back(sent.future());
      const int opposite = side ^ 1;
      this_array()[*neighbour].call<&Patch::halo>(iteration_, opposite,
                                                  brant::device(block_.message_out(side), std::move(sent)));
    }
  }
  brant::Task<void> finish() override {
    if (!complete()) co_await waiting_.emplace().future();
    arrived() = 0;
    for (brant::Future<brant::ConstBuffer>& free : leaving_) co_await free;
    leaving_.clear();
  }
  brant::Task<double> largest_of_all(double own) override { co_return co_await all_reduce<brant::reduce::Max>(own); }
  [[nodiscard]] std::size_t message_bytes() const override { return block_.message_bytes(); }

 private:
  [[nodiscard]] std::size_t place() const { return static_cast<std::size_t>(index()[0] - g_scene->share.first); }
  [[nodiscard]] int& arrived() noexcept { return arrived_[static_cast<std::size_t>(iteration_ % 2)]; }
  [[nodiscard]] bool complete() noexcept { return arrived() == static_cast<int>(leaving_.size()); }

  Block& block_ = *g_scene->share.blocks[place()];
  std::int64_t iteration_ = 0;
  std::int64_t begun_ = 0;
  std::array<int, 2> arrived_{};  ///< Faces of this iteration and of the next, by parity.
  std::optional<brant::Promise<>> waiting_;
  std::vector<brant::Future<brant::ConstBuffer>> leaving_;  ///< Ready when a face may be overwritten.
};

brant::Task<void> run_all(brant::Chares& chares, int patches) {
  const brant::Array<Patch> all = brant::create_array<Patch>(chares, patches, brant::Placement::block());
  std::vector<brant::Future<>> running;
  running.reserve(static_cast<std::size_t>(patches));
  for (int patch = 0; patch < patches; ++patch) running.push_back(all[patch].ask<&Patch::run>());
  for (brant::Future<>& patch : running) co_await patch;
}

}  // namespace

std::vector<Solution> solve_with_chares(brant::Runtime& runtime, Share& share, const Plan& plan) {
  Scene scene{share, plan, std::vector<Solution>(share.blocks.size())};
  g_scene = &scene;
  brant::Chares chares(runtime);
  const int code = chares.run(run_all(chares, share.cut.processes()));
  g_scene = nullptr;
  if (code == 0) return std::move(scene.solutions);
  throw brant::Error(brant::Status::canceled, chares.failure().empty() ? "the chares failed" : chares.failure());
}

}  // namespace jacobi
