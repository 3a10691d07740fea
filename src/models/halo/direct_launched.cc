#include "models/halo/direct_launched.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "brant/core/stream_done.h"
#include "core/engine.h"
#include "models/halo/require.h"

namespace brant::halo {

// More blocks than run at once would be of no use.
DirectByLaunches::DirectByLaunches(Runtime& runtime, const Layout& layout, DirectCopies& plan, port::Kernel* kernel)
    : DirectByDevice(
          runtime, layout, plan,
          shape_of(std::min<Word>(most_chunks(plan), blocks_at_once(runtime.device(), kernel, kChunkThreads)),
                   kChunkThreads)) {
  static_assert(sizeof(notify::Told) == 128 && sizeof(notify::Asked) == 128);  // one writer for each line
  words_ = runtime.allocate(MemoryKind::pinned, sizeof(notify::Told) + sizeof(notify::Asked));
  std::memset(words_.data(), 0, words_.bytes());
  control_.told = words_.as<notify::Told>();
  control_.asked = reinterpret_cast<const notify::Asked*>(control_.told + 1);
  const auto patience = layout.options().patience;
  control_.patience_ns = patience == Worker::kForever ? 0 : static_cast<Word>(patience.count());
}

bool DirectByLaunches::all_done() const noexcept {
  return std::atomic_ref(control_.told->failed).load(std::memory_order_acquire) == 0;
}

void DirectByLaunches::abort() noexcept {
  auto& asked = const_cast<notify::Asked&>(*control_.asked);
  std::atomic_ref(asked.abort).store(1, std::memory_order_release);
}

/// Its waits look whether they were aborted, and the rest of it ends by itself.
void DirectByLaunches::stop() noexcept {
  abort();
  static_cast<void>(stream_.synchronize());
  note_launched(false);
}

void DirectByLaunches::note_launched(bool may_run) noexcept {
  if (std::exchange(may_run_, may_run) == may_run) return;
  Engine& engine = runtime_.worker().engine();
  engine.deferrals().note_waiting_kernels(may_run ? +1 : -1);
  if (may_run) {
    engine.late_frees().note_launch();
  } else {
    engine.late_frees().note_end();
  }
}

DirectLaunched::DirectLaunched(Runtime& runtime, const Layout& layout, DirectCopies& plan)
    : DirectLaunched(runtime, layout, plan, load_direct_kernel(runtime.device())) {}

Task<bool> DirectLaunched::run_kernel(std::uint64_t first, std::uint64_t times) {
  note_launched(true);
  for (std::uint64_t epoch = first; epoch < first + times; ++epoch) {
    require(kernel_.launch(shape_, stream_, control_, on_device_, epoch),
            "halo: the kernel of mode direct was not launched");
    require(plan_.copies.launch(plan_.all_landed(), stream_),
            "halo: the kernel of mode direct that takes what has landed");
    co_await stream_done(runtime_, stream_);
    if (!all_done()) co_return false;
  }
  note_launched(false);
  co_return true;
}

}  // namespace brant::halo
