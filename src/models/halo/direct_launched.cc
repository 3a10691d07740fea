#include "models/halo/direct_launched.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "brant/core/stream_done.h"

namespace brant::halo {

DirectLaunched::DirectLaunched(Runtime& runtime, const Layout& layout, DirectCopies& plan)
    : DirectLaunched(runtime, layout, plan, load_direct_kernel(runtime.device())) {}

// More blocks than run at once would be of no use.
DirectLaunched::DirectLaunched(Runtime& runtime, const Layout& layout, DirectCopies& plan, const DirectKernel& kernel)
    : DirectByDevice(runtime, layout, plan,
                     std::min(blocks_of_use(plan), std::max(blocks_at_once(runtime.device(), kernel.inner()), 1u))),
      kernel_(kernel) {
  static_assert(sizeof(notify::Told) == 128 && sizeof(notify::Asked) == 128);  // one writer for each line
  words_ = runtime.allocate(MemoryKind::pinned, sizeof(notify::Told) + sizeof(notify::Asked));
  std::memset(words_.data(), 0, words_.bytes());
  control_.told = words_.as<notify::Told>();
  control_.asked = reinterpret_cast<const notify::Asked*>(control_.told + 1);
  const auto patience = layout.options().patience;
  control_.patience_ns = patience == Worker::kForever ? 0 : static_cast<Word>(patience.count());
}

Task<bool> DirectLaunched::run_kernel(std::uint64_t first, std::uint64_t times) {
  bool done = true;
  for (std::uint64_t epoch = first; done && epoch < first + times; ++epoch) {
    const Status launched = kernel_.launch(shape_, stream_, control_, on_device_, epoch);
    if (launched != Status::ok) throw_error(launched, "halo: the kernel of mode direct was not launched");
    for (const Phase& landed : plan_.landed) {
      const Status taken = plan_.copies.launch(landed, stream_);
      if (taken != Status::ok) throw_error(taken, "halo: the kernel of mode direct that takes what has landed");
    }
    co_await stream_done(runtime_, stream_);
    done = std::atomic_ref(control_.told->failed).load(std::memory_order_acquire) == 0;
  }
  co_return done;
}

void DirectLaunched::abort() noexcept {
  auto& asked = const_cast<notify::Asked&>(*control_.asked);
  std::atomic_ref(asked.abort).store(1, std::memory_order_release);
}

/// Its waits look whether they were aborted, and the rest of it ends by itself.
void DirectLaunched::stop() noexcept {
  abort();
  static_cast<void>(stream_.synchronize());
}

}  // namespace brant::halo
