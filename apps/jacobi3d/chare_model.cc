#include "brant/chare.h"
#include "channel_halo.h"
#include "models.h"

namespace jacobi {
namespace {

/// What the chares of this process work on; set while they run. One thread.
struct Scene {
  Share& share;
  Plan plan;
  brant::Path path;
  Faces faces;
  std::vector<Solution> solutions;
};
Scene* g_scene = nullptr;

int opposite(int side) noexcept { return side ^ 1; }

/// A block as a chare. Its faces are device arguments of its neighbours' `halo`, unless there are channels.
class Patch : public brant::Chare<Patch>, public Halo {
 public:
  brant::Task<void> run();

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
  void send_faces() override;
  brant::Task<void> finish() override;

 private:
  [[nodiscard]] std::size_t place() const { return static_cast<std::size_t>(index()[0] - g_scene->share.first); }
  [[nodiscard]] std::optional<int> neighbour(int side) const { return g_scene->share.cut.neighbour(index()[0], side); }
  brant::Task<void> open_channels(ChannelHalo& halo);
  [[nodiscard]] int& arrived() noexcept { return arrived_[static_cast<std::size_t>(iteration_ % 2)]; }
  [[nodiscard]] bool complete() noexcept { return arrived() == static_cast<int>(leaving_.size()); }

  Block& block_ = *g_scene->share.blocks[place()];
  std::int64_t iteration_ = 0;
  std::int64_t begun_ = 0;
  std::array<int, 2> arrived_{};  ///< Faces of this iteration and of the next, by parity.
  std::optional<brant::Promise<>> waiting_;
  std::vector<brant::Future<brant::ConstBuffer>> leaving_;  ///< Ready when a face may be overwritten.
};

brant::Task<void> Patch::run() {
  Stencil& stencil = *g_scene->share.stencils[place()];
  Solution& solution = g_scene->solutions[place()];
  if (g_scene->faces == Faces::by_channel) {
    ChannelHalo channels(block_);
    co_await open_channels(channels);
    solution = co_await solve(block_, stencil, channels, g_scene->plan);
  } else {
    solution = co_await solve(block_, stencil, *this, g_scene->plan);
  }
}

brant::Task<void> Patch::open_channels(ChannelHalo& halo) {
  std::vector<std::pair<int, brant::Future<brant::Channel>>> opening;
  for (int side = 0; side < kSides; ++side) {
    if (!neighbour(side)) continue;
    brant::ChareChannelOptions options;
    options.number = static_cast<std::uint32_t>(axis_of(side));
    options.path = g_scene->path;
    opening.emplace_back(side, brant::open_channel(*this, this_array()[*neighbour(side)], options));
  }
  for (auto& [side, channel] : opening) halo.add(side, *neighbour(side), co_await channel);
}

void Patch::send_faces() {
  for (int side = 0; side < kSides; ++side) {
    if (!neighbour(side)) continue;
    brant::Promise<brant::ConstBuffer> sent;
    leaving_.push_back(sent.future());
    this_array()[*neighbour(side)].call<&Patch::halo>(iteration_, opposite(side),
                                                      brant::device(block_.message_out(side), std::move(sent)));
  }
}

brant::Task<void> Patch::finish() {
  if (!complete()) co_await waiting_.emplace().future();
  arrived() = 0;
  for (brant::Future<brant::ConstBuffer>& free : leaving_) co_await free;
  leaving_.clear();
}

brant::Task<void> run_all(brant::Chares& chares, int patches) {
  const brant::Array<Patch> all = brant::create_array<Patch>(chares, patches, brant::Placement::block());
  std::vector<brant::Future<>> running;
  for (int patch = 0; patch < patches; ++patch) running.push_back(all[patch].ask<&Patch::run>());
  for (brant::Future<>& patch : running) co_await patch;
}

}  // namespace

std::vector<Solution> solve_with_chares(brant::Runtime& runtime, Share& share, const Plan& plan, brant::Path path,
                                        Faces faces) {
  Scene scene{share, plan, path, faces, std::vector<Solution>(share.blocks.size())};
  g_scene = &scene;
  brant::Chares chares(runtime);
  const int code = chares.run(run_all(chares, share.cut.processes()));
  g_scene = nullptr;
  if (code == 0) return std::move(scene.solutions);
  throw brant::Error(brant::Status::canceled, chares.failure().empty() ? "the chares failed" : chares.failure());
}

}  // namespace jacobi
