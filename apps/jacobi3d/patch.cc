#include "patch.h"

#include <chrono>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "clock.h"

namespace jacobi {
namespace {

/// What the chares of this process work on; set while they run. One thread.
struct Scene {
  Blocks* blocks = nullptr;
  const Decomposition* decomposition = nullptr;
};
Scene g_scene;

int opposite(int side) noexcept { return side ^ 1; }

void require(const brant::OpResult& result, const char* what, int peer) {
  if (result.ok()) return;
  throw brant::Error(result.status, fmt::format("could not {} the face of block {}: {}", what, peer,
                                                brant::status_text(result.status)));
}

double larger(double a, double b) noexcept { return std::isnan(a) || a > b ? a : b; }

}  // namespace

struct Patch::Exchanged {
  Patch& patch;
  [[nodiscard]] bool await_ready() const noexcept {
    return patch.arrived_[static_cast<std::size_t>(patch.iteration_ % 2)] == patch.neighbours_ && patch.sending_ == 0;
  }
  void await_suspend(std::coroutine_handle<> waiter) const noexcept { patch.waiting_ = waiter; }
  void await_resume() const noexcept {}
};

Patch::Patch()
    : block_(
          *g_scene.blocks->block[static_cast<std::size_t>(index()[0] - g_scene.blocks->first(chares().rank().value))]),
      stencil_(*g_scene.blocks
                    ->stencil[static_cast<std::size_t>(index()[0] - g_scene.blocks->first(chares().rank().value))]) {
  for (int side = 0; side < kSides; ++side) {
    neighbour_[static_cast<std::size_t>(side)] = g_scene.decomposition->neighbour(index()[0], side);
    neighbours_ += neighbour_[static_cast<std::size_t>(side)].has_value() ? 1 : 0;
  }
}

/// A neighbour is at most one iteration ahead: it needs our face of this one to end it.
brant::Buffer Patch::post(brant::Post<&Patch::halo>, const brant::DeviceMeta&, std::int64_t iteration, int side) {
  return iteration == iteration_ ? block_.message_in(side) : block_.next_message_in(side);
}

void Patch::halo(brant::DeviceData, std::int64_t iteration, int) {
  ++arrived_[static_cast<std::size_t>(iteration % 2)];
  look();
}

void Patch::look() {
  if (waiting_ && Exchanged{*this}.await_ready()) std::exchange(waiting_, {}).resume();
}

brant::Task<void> Patch::open_channels(brant::Path path) {
  std::vector<std::pair<int, brant::Future<brant::Channel>>> opening;
  for (int side = 0; side < kSides; ++side) {
    if (!neighbour_[static_cast<std::size_t>(side)]) continue;
    brant::ChareChannelOptions options;
    options.number = static_cast<std::uint32_t>(axis_of(side));
    options.path = path;
    opening.emplace_back(
        side, brant::open_channel(*this, this_array()[*neighbour_[static_cast<std::size_t>(side)]], options));
  }
  for (auto& [side, future] : opening) links_[static_cast<std::size_t>(side)].channel.emplace(co_await future);
}

void Patch::post_receives() {
  if (model_ != Model::channel) return;
  for (int side = 0; side < kSides; ++side) {
    Link& link = links_[static_cast<std::size_t>(side)];
    if (!link.channel) continue;
    const brant::Buffer landing = block_.message_in(side);
    link.incoming.emplace(brant::Moment::delivered,
                          [&](brant::Op& op) noexcept { return link.channel->post_recv(landing, op); });
  }
}

void Patch::send_faces() {
  for (int side = 0; side < kSides; ++side) {
    const std::optional<int>& to = neighbour_[static_cast<std::size_t>(side)];
    if (!to) continue;
    const brant::ConstBuffer face = block_.message_out(side);
    if (model_ == Model::channel) {
      Link& link = links_[static_cast<std::size_t>(side)];
      link.outgoing.emplace(brant::Moment::source_free,
                            [&](brant::Op& op) noexcept { return link.channel->post_send(face, op); });
      continue;
    }
    ++sending_;
    const brant::Completion free{[](void* self, const brant::OpResult&) noexcept {
                                   auto& patch = *static_cast<Patch*>(self);
                                   --patch.sending_;
                                   patch.look();
                                 },
                                 this};
    this_array()[*to].call<&Patch::halo>(brant::device(face, free), iteration_, opposite(side));
  }
}

brant::Task<void> Patch::end_operations() {
  for (int side = 0; side < kSides; ++side) {
    Link& link = links_[static_cast<std::size_t>(side)];
    if (!link.incoming) continue;
    const brant::OpResult got = co_await *link.incoming;
    const brant::OpResult sent = co_await *link.outgoing;
    require(got, "receive", *neighbour_[static_cast<std::size_t>(side)]);
    require(sent, "send", *neighbour_[static_cast<std::size_t>(side)]);
    link.incoming.reset();
    link.outgoing.reset();
  }
}

/// Lets the others run until a step has ended.
brant::Task<void> Patch::finish(Step step) {
  while (!stencil_.finished(step)) {
    co_await brant::sleep_for(chares().runtime().worker(), std::chrono::nanoseconds(0));
  }
}

brant::Task<Patch::Times> Patch::iterate(bool overlap) {
  const Clock::time_point begin = Clock::now();
  stencil_.start(Step::pack);
  if (overlap) stencil_.start(Step::interior);
  co_await finish(Step::pack);
  send_faces();
  if (overlap && brant::host_accessible(block_.kind())) co_await finish(Step::interior);
  if (model_ == Model::channel) {
    co_await end_operations();
  } else {
    co_await Exchanged{*this};
    arrived_[static_cast<std::size_t>(iteration_ % 2)] = 0;
  }
  stencil_.start(Step::unpack);
  stencil_.start(overlap ? Step::shell : Step::whole);
  co_await finish(Step::unpack);
  const Clock::time_point exchanged = Clock::now();
  co_await finish(overlap ? Step::shell : Step::whole);
  if (overlap) co_await finish(Step::interior);
  const Clock::time_point swept = Clock::now();
  block_.swap();
  ++iteration_;
  Times times;
  times.total = microseconds(begin, swept);
  times.compute = microseconds(overlap ? begin : exchanged, swept);
  times.communication = microseconds(begin, exchanged);
  co_return times;
}

brant::Task<PatchResult> Patch::solve(PatchOrder order) {
  PatchResult result;
  model_ = order.model;
  if (model_ == Model::channel) co_await open_channels(order.path);
  const std::int64_t last = order.warmup + order.iterations;
  for (std::int64_t done = 1; done <= last; ++done) {
    post_receives();
    const Times times = co_await iterate(order.overlap);
    if (done > order.warmup) {
      result.iteration += times.total;
      result.compute += times.compute;
      result.communication += times.communication;
      if (index()[0] == 0 && result.samples.size() < kSamplesMax) {
        result.samples.push_back(static_cast<float>(times.total));
      }
    }
    const bool wanted = order.residual_every > 0 && done % order.residual_every == 0;
    if (wanted || done == last) result.residual = stencil_.largest_change();
  }
  co_return result;
}

namespace {

brant::Task<void> solve_all(brant::Chares& chares, const Decomposition& decomposition, PatchOrder order,
                            PatchRun& run) {
  const int patches = decomposition.processes();
  const brant::Array<Patch> all = brant::create_array<Patch>(chares, patches, brant::Placement::block());
  std::vector<brant::Future<PatchResult>> solving;
  for (int i = 0; i < patches; ++i) solving.push_back(all[i].ask<&Patch::solve>(order));
  run.residual = -std::numeric_limits<double>::infinity();
  for (brant::Future<PatchResult>& one : solving) {
    PatchResult result = co_await one;
    run.timing.iteration += result.iteration;
    run.timing.compute += result.compute;
    run.timing.communication += result.communication;
    run.residual = larger(result.residual, run.residual);
    if (!result.samples.empty()) run.timing.samples = std::move(result.samples);
  }
  const double shares = static_cast<double>(order.iterations) * patches;
  for (double* time : {&run.timing.iteration, &run.timing.compute, &run.timing.communication}) *time /= shares;
}

}  // namespace

PatchRun run_patches(brant::Runtime& runtime, Star& star, Blocks& blocks, const Decomposition& decomposition,
                     const PatchOrder& order) {
  PatchRun run;
  g_scene = {&blocks, &decomposition};
  {
    brant::Chares chares(runtime);
    const int code = chares.run(solve_all(chares, decomposition, order, run));
    star.agree([&] {
      if (code != 0 && !chares.failure().empty()) throw brant::Error(brant::Status::internal, chares.failure());
    });
  }
  g_scene = {};
  run.residual = star.from_root(run.residual);
  for (double* time : {&run.timing.iteration, &run.timing.compute, &run.timing.communication}) {
    *time = star.from_root(*time);
  }
  return run;
}

}  // namespace jacobi
