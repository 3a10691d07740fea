#include "ops/courier/courier_on_host.h"

#include <exception>
#include <memory>
#include <new>

#include "base/log.h"
#include "ops/courier/dispatcher.h"
#include "ops/courier/host_machine.h"
#include "ops/courier/worker_group.h"

namespace brant::courier {
namespace {

/// The stream's thread is the first dispatcher; the others, the group beside them, and the groups apart have each one
/// of their own.
class Crew {
 public:
  Crew(const Launch& launch, HostMachine::Reach reach, BlockDesk& block) noexcept
      : launch_(launch), reach_(reach), block_(block) {}

  void prepare() const noexcept {
    HostMachine machine = this->machine();
    Dispatcher<HostMachine>(machine, launch_, block_, 0).prepare();
  }
  [[nodiscard]] unsigned size() const noexcept { return launch_.dispatchers + launch_.groups; }
  void work(unsigned member) const noexcept {
    HostMachine machine = this->machine();
    GroupDesk desk{};
    if (member < launch_.dispatchers) {
      Dispatcher<HostMachine>(machine, launch_, block_, member).run();
    } else if (member == launch_.dispatchers) {
      WorkerGroup<HostMachine>(machine, launch_, desk).run_beside(block_);
    } else {
      WorkerGroup<HostMachine>(machine, launch_, desk).run_apart();
    }
  }

 private:
  [[nodiscard]] HostMachine machine() const noexcept { return {reach_, &launch_.host->fault}; }

  const Launch& launch_;
  const HostMachine::Reach reach_;
  BlockDesk& block_;
};

}  // namespace

void courier_on_host(const port::HostLaunch& host_launch) noexcept {
  auto launch = host_launch.value<Launch>(0);
  launch.device = static_cast<DeviceDesk*>(host_launch.engine_address(launch.device));
  if (launch.device == nullptr) return;
  const std::unique_ptr<BlockDesk> block(new (std::nothrow) BlockDesk());
  if (block != nullptr) {
    const Crew crew(launch, host_launch.engine_address, *block);
    crew.prepare();
    if (simt::run_at_once(crew.size(), [&](unsigned member) noexcept { crew.work(member); })) return;
  }
  // Blocks that never start: but the launch after this one counts on all of them.
  log::error("the emulated courier has no {} threads or no memory to run with", launch.dispatchers + launch.groups);
  std::terminate();
}

}  // namespace brant::courier
