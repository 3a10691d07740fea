#include "ops/courier/courier_on_host.h"

#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "base/log.h"
#include "ops/courier/dispatcher.h"
#include "ops/courier/thread_machine.h"
#include "ops/courier/worker_group.h"

namespace brant::courier {
namespace {

void work_apart(const Launch& launch, ThreadMachine::Reach reach) noexcept {
  ThreadMachine machine(reach, &launch.host->fault);
  GroupDesk desk{};
  WorkerGroup<ThreadMachine>(machine, launch, desk).run_apart();
}

void dispatch(const Launch& launch, ThreadMachine::Reach reach, BlockDesk& block, unsigned index) noexcept {
  ThreadMachine machine(reach, &launch.host->fault);
  Dispatcher<ThreadMachine>(machine, launch, block, index).run();
}

void work_beside(const Launch& launch, ThreadMachine::Reach reach, BlockDesk& block) noexcept {
  ThreadMachine machine(reach, &launch.host->fault);
  GroupDesk desk{};
  WorkerGroup<ThreadMachine>(machine, launch, desk).run_beside(block);
}

}  // namespace

void courier_on_host(const port::HostLaunch& host_launch) noexcept {
  auto launch = host_launch.value<Launch>(0);
  launch.device = static_cast<DeviceDesk*>(host_launch.engine_address(launch.device));
  if (launch.device == nullptr) return;
  const ThreadMachine::Reach reach = host_launch.engine_address;
  try {
    const auto block = std::make_unique<BlockDesk>();
    ThreadMachine machine(reach, &launch.host->fault);
    Dispatcher<ThreadMachine>(machine, launch, *block, 0).prepare();
    // Threads that cannot be had are blocks that never start, but the launch after this one counts on all of them:
    // so they are made before anybody begins.
    std::vector<std::jthread> others;
    others.reserve(launch.groups + launch.dispatchers);
    others.emplace_back(&work_beside, std::cref(launch), reach, std::ref(*block));
    for (unsigned i = 1; i < launch.groups; ++i) others.emplace_back(&work_apart, std::cref(launch), reach);
    for (unsigned i = 1; i < launch.dispatchers; ++i) {
      others.emplace_back(&dispatch, std::cref(launch), reach, std::ref(*block), i);
    }
    dispatch(launch, reach, *block, 0);
  } catch (const std::exception& fault) {
    log::error("the emulated courier has no thread or memory to run with: {}", fault.what());
    std::terminate();
  }
}

}  // namespace brant::courier
