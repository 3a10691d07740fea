#include "resident.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "brant/halo/halo_modes.h"
#include "host_kernels.h"

// Made by brant_fatbin from kernels.cu.
extern "C" const unsigned char jacobi_kernels_fatbin[];
extern "C" const std::size_t jacobi_kernels_fatbin_bytes;

namespace jacobi {
namespace {

using brant::Status;
using brant::simt::Word;

constexpr unsigned kThreads = 256;
constexpr std::int64_t kPlanesMax = 64;
constexpr std::uint64_t kLaps = 65536;
constexpr std::int64_t kLeftToOthers = 8;  ///< One part of so many.

/// A block of the emulated device: one thread, which sweeps a part of the planes.
class CpuSweeper : public brant::simt::CpuThread {
 public:
  using CpuThread::CpuThread;

  void sweep(double* next, const double* current, const Layout& layout, const Box& box, Word = 1) noexcept {
    const std::int64_t each = (box.high.z - box.low.z + blocks() - 1) / blocks();
    Box part = box;
    part.low.z = std::min(box.low.z + each * block(), box.high.z);
    part.high.z = std::min(part.low.z + each, box.high.z);
    if (!is_empty(part)) host::sweep(reach(next), reach(current), layout, part);
  }
  void sweep_shell(double* next, const double* current, const Layout& layout, const Shell& shell) noexcept {
    for (int box = 0; box < shell.count; ++box) sweep(next, current, layout, shell.box[box]);
  }
};

/// Of a cooperative launch: a call and a thread for each block.
template <typename Plan>
void iterate_on_host(const brant::HostLaunch& launch) noexcept {
  CpuSweeper machine(launch.engine_address, static_cast<unsigned>(launch.first_block), launch.shape.grid[0]);
  iterate_as_told(machine, launch.value<brant::notify::KernelControl>(0), launch.value<Resident<Plan>>(1));
}

std::int64_t tiles_of(const Extent& cells, std::int64_t planes) noexcept {
  return std::int64_t{pieces(cells.x, kCellsPerTile)} * pieces(cells.y, kRowsPerTile) * pieces(cells.z, planes);
}

/// Planes of a tile, so that the last blocks have done their tiles soon. A block that begins a tile waits for memory as
/// long as for some planes.
std::int64_t planes_for(const Extent& cells, std::int64_t room) noexcept {
  constexpr std::int64_t kPlanesToBegin = 2;
  const auto steps = [&](std::int64_t planes) {
    return std::int64_t{pieces(tiles_of(cells, planes), room)} * (planes + kPlanesToBegin);
  };
  std::int64_t best = 1;
  for (std::int64_t planes = 2; planes <= kPlanesMax; planes *= 2) {
    if (steps(planes) < steps(best)) best = planes;
  }
  return best;
}

/// Blocks that have something to do: more would be more to wait for. Those that sweep nothing copy so many bytes.
std::int64_t blocks_of_use(const Block& block, std::int64_t planes, std::size_t sent_bytes, bool computes,
                           std::size_t bytes_of_block) noexcept {
  const auto copying = pieces(static_cast<std::int64_t>(sent_bytes), static_cast<std::int64_t>(bytes_of_block));
  return std::max<std::int64_t>(computes ? tiles_of(block.layout().cells, planes) : copying, 1);
}

template <typename Plan>
using ResidentKernel = brant::Kernel<brant::notify::KernelControl, Resident<Plan>>;

template <typename Plan>
ResidentKernel<Plan> load_kernel(brant::Device device, const char* symbol) {
  const auto image = std::as_bytes(std::span(jacobi_kernels_fatbin, jacobi_kernels_fatbin_bytes));
  return {device, image, symbol, &iterate_on_host<Plan>};
}

brant::LaunchShape shape_of(std::int64_t blocks) noexcept {
  brant::LaunchShape shape;
  shape.block[0] = kThreads;
  shape.grid[0] = static_cast<unsigned>(std::max<std::int64_t>(blocks, 1));
  return shape;
}

/// Blocks that are there at once, with an SM for each: where one waits and another one sweeps on the same SM, each look
/// of the first takes the second one its cache, and an iteration may take ten times as long.
template <typename Kernel>
std::int64_t room_for(brant::Runtime& runtime, brant::Notifier& notifier, const Kernel& kernel) {
  const std::int64_t at_once = brant::PersistentKernel::blocks_at_once(notifier, kernel, shape_of(1));
  const std::int64_t processors = runtime.device().info().processors;
  return std::max<std::int64_t>(std::min(at_once, processors), 1);
}

void require(Status status, const char* what) {
  if (status != Status::ok) throw brant::Error(status, fmt::format("{}: {}", what, brant::status_text(status)));
}

}  // namespace

ResidentSolver::ResidentSolver(brant::Runtime& runtime, Block& block, std::span<brant::HaloExchange, 2> exchanges,
                               brant::HaloMode mode, bool overlaps, bool computes)
    : runtime_(runtime),
      block_(block),
      exchanges_(exchanges),
      computes_(computes),
      notifier_(runtime, {.bells = 16, .others = 32, .waits = 16}),
      together_(notifier_.make({.rung_by = brant::RungBy::device, .seen_by = brant::SeenBy::device})),
      finished_(notifier_.make({.rung_by = brant::RungBy::device, .seen_by = brant::SeenBy::host})),
      laps_(runtime.allocate(brant::MemoryKind::pinned, kLaps * sizeof(Lap))) {
  if (is_bound(mode)) {
    launch_direct(overlaps);
  } else {
    launch_messages(overlaps);
  }
}

template <typename Plan>
Resident<Plan> ResidentSolver::work_of(const std::array<Plan, 2>& plans, unsigned blocks, std::int64_t planes,
                                       bool overlaps) {
  Resident<Plan> work;
  std::ranges::copy(plans, work.halo);
  work.field[0] = block_.current();
  work.field[1] = block_.next();
  work.layout = block_.layout();
  work.whole = block_.whole();
  work.split = block_.split();
  work.planes = static_cast<Word>(planes);
  work.overlaps = overlaps ? 1 : 0;
  work.computes = computes_ ? 1 : 0;
  work.together = together_.device();
  work.arrivals = notifier_.fan_in(blocks);
  work.finished = finished_.device();
  work.laps = laps_.as<Lap>();
  work.laps_max = kLaps;
  return work;
}

void ResidentSolver::launch_direct(bool overlaps) {
  const auto kernel = load_kernel<brant::halo::DirectPlan>(runtime_.device(), "jacobi_resident");
  const std::int64_t room = room_for(runtime_, notifier_, kernel);
  const std::int64_t planes = planes_for(block_.layout().cells, room);
  constexpr std::size_t kCellOfThread = kThreads * sizeof(double);
  const std::int64_t use = blocks_of_use(block_, planes, exchanges_[0].message_bytes(), computes_, kCellOfThread);
  const auto shape = shape_of(std::min(use, room));
  const std::array plans = {exchanges_[0].device(shape.grid[0]), exchanges_[1].device(shape.grid[0])};
  running_ = brant::PersistentKernel::launch(notifier_, kernel, shape, {.name = "jacobi"},
                                             work_of(plans, shape.grid[0], planes, overlaps));
}

/// What moves the messages may have kernels of its own: a part of the device is left to them. One block more than those
/// that copy looks for what comes.
void ResidentSolver::launch_messages(bool overlaps) {
  const auto kernel = load_kernel<brant::halo::MessagePlan>(runtime_.device(), "jacobi_resident_messages");
  const std::int64_t all = room_for(runtime_, notifier_, kernel);
  const std::int64_t room = std::max<std::int64_t>(all - all / kLeftToOthers, 1);
  const std::int64_t planes = planes_for(block_.layout().cells, room);
  const std::int64_t use =
      blocks_of_use(block_, planes, exchanges_[0].message_bytes(), computes_, brant::halo::kChunkBytes) +
      (computes_ ? 0 : 1);
  const auto shape = shape_of(std::min(use, room));
  const std::array plans = {exchanges_[0].device_messages(shape.grid[0]), exchanges_[1].device_messages(shape.grid[0])};
  running_ = brant::PersistentKernel::launch(notifier_, kernel, shape, {.name = "jacobi"},
                                             work_of(plans, shape.grid[0], planes, overlaps));
}

ResidentSolver::~ResidentSolver() {
  for (brant::Op* op : {&finish_, &end_}) {
    if (op->pending()) op->detach();
  }
  running_.close();
}

std::span<const Lap> ResidentSolver::laps() const noexcept {
  return {laps_.as<const Lap>(), static_cast<std::size_t>(std::min(last_run_, kLaps))};
}

std::uint64_t ResidentSolver::uses_of(std::size_t field, std::uint64_t times) const noexcept {
  return (times + ((done_ + field) % 2 == 0 ? 1 : 0)) / 2;
}

brant::Completion ResidentSolver::answer() noexcept {
  return {[](void* self, const brant::OpResult&) noexcept {
            auto& own = *static_cast<ResidentSolver*>(self);
            if (own.waiting_) std::exchange(own.waiting_, std::nullopt)->deliver();
          },
          this};
}

/// True: they are done. False: the kernel has ended.
brant::Task<bool> ResidentSolver::iterate(std::uint64_t times) {
  if (!end_.pending()) {
    end_.delivered = answer();
    const Status status = running_.post_ended(end_);
    if (status != Status::in_progress) throw brant::Error(status, "the kernel 'jacobi' has ended");
  }
  brant::Future<> answered = waiting_.emplace().future();
  finish_.delivered = answer();
  const Status posted = finished_.post_when(finish_, ++items_, brant::Worker::kForever);
  if (posted != Status::in_progress) throw brant::Error(posted, "the bell of the kernel 'jacobi'");
  require(running_.submit({{done_, times, items_, 0}}), "the kernel 'jacobi' takes no iterations");
  co_await answered;
  const bool done = !finish_.pending() && finish_.result.ok();
  if (!done) {
    if (finish_.pending()) finish_.detach();
    running_.close();
  }
  co_return done;
}

brant::Task<bool> ResidentSolver::exchange_second(std::uint64_t times) {
  co_await exchanges_[1].accompany(running_, uses_of(1, times), iterate(times));
  co_return true;
}

brant::Task<void> ResidentSolver::run(std::uint64_t times) {
  if (times == 0) co_return;
  co_await exchanges_[0].accompany(running_, uses_of(0, times), exchange_second(times));
  done_ += times;
  last_run_ = times;
  if (computes_ && times % 2 == 1) block_.swap();
}

}  // namespace jacobi
