#include "models/halo/direct_resident.h"

#include <algorithm>

#include "models/halo/until.h"

namespace brant::halo {
namespace {

/// Threads send a word each where that goes in lines: their blocks need not agree.
LaunchShape resident_shape(Device device, const DirectCopies& plan, const ResidentExchange& kernel) {
  const unsigned at_once = blocks_at_once(device, kernel.inner(), kStayThreads);
  Word words = 0;
  for (const Neighbour& neighbour : plan.neighbours) words += neighbour.words_in_lines;
  const Word sending = std::min<Word>((words + kStayThreads - 1) / kStayThreads, staying_share(at_once));
  return shape_of(std::max<Word>(staying_blocks(most_chunks(plan), at_once), sending), kStayThreads);
}

}  // namespace

DirectResident::DirectResident(Runtime& runtime, const Layout& layout, DirectCopies& plan)
    : DirectResident(runtime, layout, plan, load_resident_kernel(runtime.device())) {}

DirectResident::DirectResident(Runtime& runtime, const Layout& layout, DirectCopies& plan,
                               const ResidentExchange& kernel)
    : DirectByDevice(runtime, layout, plan, resident_shape(runtime.device(), plan, kernel)), kernel_(kernel) {
  finished_ = notifier_.make({.rung_by = RungBy::device, .seen_by = SeenBy::host});
}

void DirectResident::bind() {
  if (end_.pending()) end_.detach();  // of the kernel that is closed: the next run waits for its own
  running_.close();                   // it has the addresses of the old fields
  launched_ = false;
  DirectByDevice::bind();
  const Status copied = stream_.synchronize();
  if (copied != Status::ok) throw_error(copied, "halo: the addresses of the fields did not reach the device");
}

void DirectResident::launch() {
  const PersistentOptions options{.name = "halo exchange", .patience = layout_.options().patience};
  running_ = PersistentKernel::launch(notifier_, kernel_, shape_, options, on_device_, finished_.device());
  launched_ = true;
}

/// Of all of them.
std::chrono::nanoseconds DirectResident::patience_for(std::uint64_t times) const noexcept {
  const std::chrono::nanoseconds one = layout_.options().patience;
  const bool for_ever =
      one == brant::Worker::kForever || one > brant::Worker::kForever / static_cast<std::int64_t>(times);
  return for_ever ? brant::Worker::kForever : one * static_cast<std::int64_t>(times);
}

Completion DirectResident::answer() noexcept {
  return {[](void* self, const OpResult&) noexcept {
            auto& own = *static_cast<DirectResident*>(self);
            own.answered_ = true;
            own.waiter_.resume();
          },
          this};
}

Task<bool> DirectResident::run_kernel(std::uint64_t first, std::uint64_t times) {
  answered_ = false;
  if (!launched_) launch();
  if (!end_.pending()) {
    end_.delivered = answer();
    const Status status = running_.post_ended(end_);
    if (status != Status::in_progress) throw_error(status, "halo: the kernel of mode resident has ended");
  }
  finish_.delivered = answer();
  const Status posted = finished_.post_when(finish_, ++items_, patience_for(times));
  if (posted != Status::in_progress) throw_error(posted, "halo: the bell of mode resident");
  const Status submitted = running_.submit({{first, times, items_, 0}});
  if (submitted != Status::ok) throw_error(submitted, "halo: the kernel of mode resident takes no exchange");
  // It is done, or the kernel has ended.
  co_await Until{waiter_, [this] { return answered_; }};
  const bool done = !finish_.pending() && finish_.result.ok();
  if (!done) stop();  // where one block has waited for too long, others may wait for what comes next
  co_return done;
}

void DirectResident::stop() noexcept {
  if (finish_.pending()) finish_.detach();
  if (end_.pending()) end_.detach();
  running_.close();
}

}  // namespace brant::halo
