#include "core/engine.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "core/batch_time.h"
#include "core/job_key.h"
#include "core/paths/calibration_store.h"

namespace brant {
namespace {

constexpr auto kPartingPatience = std::chrono::seconds(1);  // of those that have joined, to hear that this one leaves

PathOrder open_path_order(const port::Adapters& adapters, const std::string& wanted) {
  static_cast<void>(PathOrder::one_sided());  // made now: where a message has to find its path there may be no memory
  const CalibrationInUse found = find_calibration(wanted, machine_of(adapters));
  // All processes of a host read one file: one of them speaks.
  if (!found.refused.empty() && adapters.boot->job().local_rank == 0)
    log::warn("{}. Paths are chosen by the built-in numbers", found.refused);
  return found.measured ? PathOrder(found.calibration) : PathOrder::defaults();
}

std::unique_ptr<Statistics> make_statistics(bool published, const port::JobInfo& job) {
  return published ? std::make_unique<Statistics>(job) : std::make_unique<Statistics>();
}

bool more_than_cores(int processes) noexcept {
  return processes > static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

Engine::Engine(port::Adapters adapters, const Options& options)
    : statistics_(make_statistics(options.statistics, adapters.boot->job())),
      counters_(statistics_->counters()),
      adapters_(std::move(adapters)),
      options_(options),
      path_order_(open_path_order(adapters_, options_.calibration)),
      trace_(Trace::from_environment(job().rank)),
      memory_kinds_(device()),
      held_messages_(wire()),
      leases_(boot(), adapters_.other_hosts, options_.lease),
      peers_(job_, wire(), links_, leases_, counters_),
      farewell_(job_, wire(), held_messages_, links_, commands_, services_, peers_),
      joined_peers_(job_, options_.joining, wire(), held_messages_, clock_, services_, peers_, counters_),
      silence_(options_.stall_report, clock_, services_, peers_),
      progress_(wire(), links_, pollers_, commands_, timers_, clock_, services_, peers_, joined_peers_, completions_,
                silence_, counters_),
      sleeping_(options_.sleep, wire(), links_, pollers_, commands_, timers_, completions_, progress_, waiter_),
      waiting_(more_than_cores(job_.local_size), clock_, timers_, deferrals_, silence_, progress_, sleeping_, counters_,
               trace_.get()) {
  add_alarms();
  PeerRecord record = make_peer_record(adapters_);
  if (leases_.held()) record.lease_address = leases_.address();
  publish(boot(), "brant.peer", pack(record));
  publish_job_key(boot());
}

/// Whatever may wake the worker.
void Engine::add_alarms() {
  if (wire().capabilities().can_sleep) waiter_.add(wire().event_fd());
  if (links_.possible()) waiter_.add(links_.event_fd());
  waiter_.add(peers_.event_fd());
  if (leases_.held()) waiter_.add(leases_.event_fd());
}

Engine::~Engine() {
  joined_peers_.close();
  // The network must let go of every record before the layers that own the records go.
  peers_.disconnect();
  while (wire().deliver(kDeliverLimit) != 0) {
  }
  for (unsigned service = 0; service < port::Links::kServices; ++service) links_.claim(service, nullptr, nullptr);
  // One layer's records must not be found beside another's once the first has gone.
  peers_.forget_outstanding();
  completions_.release();
  services_.end();
}

CalibratedMachine Engine::machine() const { return machine_of(adapters_); }

void Engine::exchange() {
  Status status = boot().fence(options_.boot_timeout);
  std::vector<PeerRecord> records;
  for (int rank = 0; status == Status::ok && rank < job().size; ++rank) {
    const Result<std::vector<std::byte>> packed = boot().get(rank, "brant.peer");
    status = packed.status();
    if (packed.ok()) records.push_back(unpack_peer_record(rank, packed.value()));
  }
  require_start(status, "the exchange of addresses failed");
  require_one_wire_version(records, job().rank);
  if (!options_.share_gpu) require_own_gpu(records, job().rank);
  peers_.meet(std::move(records));
  leases_.start(peers_);
  // Once all have attached, the two ends of every pair see alike whether they have a link.
  require_start(boot().fence(options_.boot_timeout), "a process was lost during start");
}

void Engine::require_start(Status status, const char* failed) {
  if (status == Status::ok) return;
  throw Error(status, fmt::format("rank {} of {}: {}: {}. {}", job().rank, job().size, failed, status_text(status),
                                  boot().last_error()));
}

void Engine::shut_down() noexcept {
  if (trace_) trace_->write();
  joined_peers_.leave_all(kPartingPatience, waiting_);
  // Whoever is ahead keeps the network moving: a peer may still be reading from this process.
  if (job().size > 1) {
    farewell_.say();
    const int rounds = waits_at_end_ ? 1000 : 1;
    for (int round = 0; !peers_.any_lost() && round < rounds; ++round) {
      const auto patience = std::chrono::milliseconds(round < 10 ? 1 : 20);
      const Status status = boot().fence(patience);
      if (status != Status::timed_out) break;
      farewell_.say();
      progress_.look_at_wire();
      progress_.step_while_moving(patience);
      peers_.check();  // one that is lost now will never come
    }
  }
  leases_.end();  // from here on others leave as well
  if (trace_ && job().rank == 0) trace_->close();
  boot().finalize();
}

}  // namespace brant
