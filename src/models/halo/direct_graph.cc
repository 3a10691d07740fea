#include "models/halo/direct_graph.h"

#include <algorithm>
#include <array>
#include <utility>

#include "brant/core/stream_done.h"
#include "models/halo/require.h"
#include "port/memory.h"

namespace brant::halo {
namespace {

/// Launched at once: what a stream holds is bounded.
constexpr std::uint64_t kLaunchesMax = 64;

}  // namespace

DirectGraph::DirectGraph(Runtime& runtime, const Layout& layout, DirectCopies& plan)
    : DirectGraph(runtime, layout, plan, load_counted_kernel(runtime.device())) {}

DirectGraph::DirectGraph(Runtime& runtime, const Layout& layout, DirectCopies& plan, const CountedKernel& kernel)
    : DirectByLaunches(runtime, layout, plan, kernel.inner()), kernel_(kernel) {
  constexpr std::array<Word, 2> kNone{};
  words_ = runtime.allocate(runtime.device_kind(), sizeof kNone);
  runtime.copy(words_, std::span<const Word>(kNone));
  count_ = {words_.as<Word>(), notifier_.fan_in(shape_.grid[0])};
}

DirectGraph::~DirectGraph() {
  give_up();
  drop_graph();
}

void DirectGraph::drop_graph() noexcept {
  if (graph_ != nullptr) runtime_.device().inner().streams()->destroy_graph(std::exchange(graph_, nullptr));
}

void DirectGraph::bind() {
  drop_graph();  // it has the addresses of the old fields
  DirectByDevice::bind();
  port::Streams& streams = *runtime_.device().inner().streams();
  require(streams.begin_capture(stream_), "halo: the stream of mode graph was not captured");
  Status recorded = kernel_.launch(shape_, stream_, control_, on_device_, count_);
  if (recorded == Status::ok) recorded = plan_.copies.launch(plan_.all_landed(), stream_);
  Result<port::Graph*> graph = streams.end_capture(stream_);
  if (graph.ok()) graph_ = *graph;
  require(recorded, "halo: the kernels of mode graph were not recorded");
  require(graph.status(), "halo: the graph of mode graph was not made");
}

/// One behind another, without the CPU between them.
Task<bool> DirectGraph::run_kernel(std::uint64_t, std::uint64_t times) {
  port::Streams& streams = *runtime_.device().inner().streams();
  note_launched(true);
  for (std::uint64_t left = times; left != 0;) {
    const std::uint64_t launches = std::min(left, kLaunchesMax);
    for (std::uint64_t i = 0; i < launches; ++i) {
      require(streams.launch(graph_, stream_), "halo: the graph of mode graph was not launched");
    }
    left -= launches;
    co_await stream_done(runtime_, stream_);
    if (!all_done()) co_return false;
  }
  note_launched(false);
  co_return true;
}

}  // namespace brant::halo
