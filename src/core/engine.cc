#include "core/engine.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/process_stat.h"
#include "base/progress_scope.h"
#include "core/batch_time.h"
#include "core/joined_peers.h"
#include "core/paths/calibration_store.h"
#include "core/shared_memory_fault.h"
#include "port/memory/allocation_map.h"

namespace brant {
namespace {

constexpr unsigned kDeliverLimit = 256;        // handlers and network completions in one progress call
constexpr unsigned kFireLimit = 256;           // user completions in one progress call
constexpr unsigned kPeerCheckInterval = 1024;  // idle progress calls between looks at the clock
constexpr unsigned kBusyWeight = 64;           // so many idle calls count as much as one that may have copied megabytes
constexpr auto kPeerCheckPeriod = std::chrono::milliseconds(2);
constexpr auto kPartingPatience = std::chrono::seconds(1);  // of those that have joined, to hear that this one leaves
constexpr unsigned kSpinWithRoom = 20'000;  // idle progress calls before sleeping when every process has a core
constexpr unsigned kSpinCrowded = 200;      // more processes than cores: a spinning loser keeps the winner off the core

PathOrder open_path_order(const port::Adapters& adapters, const std::string& wanted) {
  const CalibrationInUse found = find_calibration(wanted, machine_of(adapters));
  // All processes of a host read one file: one of them speaks.
  if (!found.refused.empty() && adapters.boot->job().local_rank == 0)
    log::warn("{}. Paths are chosen by the built-in numbers", found.refused);
  return found.measured ? PathOrder(found.calibration) : PathOrder::defaults();
}

/// One that closes its network is about to end, as a rule. Waits for that, a little.
bool ends_soon(std::int32_t pid) noexcept {
  for (int look = 0; look < 50; ++look) {
    const Result<ProcessStat> stat = read_process_stat(pid);
    if (!stat || stat->exiting()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

std::unique_ptr<Statistics> make_statistics(bool published, const port::JobInfo& job) {
  return published ? std::make_unique<Statistics>(job) : std::make_unique<Statistics>();
}

}  // namespace

Engine::Engine(port::Adapters adapters, const Options& options)
    : statistics_(make_statistics(options.statistics, adapters.boot->job())),
      counters_(statistics_->counters()),
      adapters_(std::move(adapters)),
      options_(options),
      path_order_(open_path_order(adapters_, options_.calibration)),
      trace_(Trace::from_environment(job().rank)),
      host_allocations_(device().host_allocations()),
      stall_patience_(options.stall_report) {
  const auto cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  spin_limit_ = job().local_size > cores ? kSpinCrowded : kSpinWithRoom;
  for (unsigned id = 0; id < kAmIds; ++id) {
    am_slots_[id] = {this, id};
    wire().set_am_handler(id, &Engine::hold_message, &am_slots_[id]);
  }
  farewell_.emplace(*this);
  joined_ = std::make_unique<JoinedPeers>(*this);
  wire().set_failure_handler(&Engine::on_endpoint_failed, this);
  if (wire().capabilities().can_sleep) waiter_.add(wire().event_fd());
  if (adapters_.links) {
    waiter_.add(adapters_.links->event_fd());
    adapters_.links->set_fault_handler(
        [](void* self, int rank) noexcept {
          static_cast<Engine*>(self)->distrust(rank, "a record over shared memory that is none");
        },
        this);
  }
  waiter_.add(detector_.event_fd());
  if (adapters_.other_hosts) open_lease();
  PeerRecord record = make_peer_record(adapters_);
  if (lease_) record.lease_address = lease_->address().bytes();
  put_at_boot("brant.peer", pack(record));
}

void Engine::put_at_boot(const char* key, std::span<const std::byte> value) {
  const Status status = boot().put(key, value);
  if (status == Status::ok) return;
  throw Error(status, fmt::format("rank {}: '{}' could not be published to the other ranks: {}. {}", job().rank, key,
                                  status_text(status), boot().last_error()));
}

Engine::~Engine() {
  joined_->close();
  // The network must let go of every record before the layers that own the records go.
  const auto disconnect = [this](Peer& peer) {
    if (peer.endpoint != nullptr) wire().disconnect(peer.endpoint);
    peer.lost = true;  // what still arrives must not be answered
  };
  std::for_each(peers_.begin(), peers_.end(), disconnect);
  joined_->for_each(disconnect);
  while (wire().deliver(kDeliverLimit) != 0) {
  }
  for (unsigned service = 0; service < port::Links::kServices; ++service) claim_link(service, nullptr, nullptr);
  // One layer's records must not be found beside another's once the first has gone.
  const auto let_go = [](Peer& peer) {
    while (peer.outstanding.pop_front() != nullptr) {
    }
  };
  std::for_each(peers_.begin(), peers_.end(), let_go);
  joined_->for_each(let_go);
  release_ops(ready_);
  release_ops(pending_);
  // Not left to the container, which may take either end first.
  for (auto& [key, service] : services_) service.reset();
}

/// Their owners may look at them after this engine has gone. No sink is fired: it would run on a runtime that can no
/// longer be used, and what it points to may have gone before.
void Engine::release_ops(OpList& ops) noexcept {
  while (Op* op = ops.pop_front()) {
    op->engine_ = nullptr;
    if (op->due_ == 0) op->result = {Status::canceled, 0};  // else its outcome is known, and only was not told
    op->due_ = 0;
    if (OpOwner* owner = std::exchange(op->owner_, nullptr)) owner->op_ = nullptr;
  }
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
  if (status != Status::ok) {
    throw Error(status, fmt::format("rank {} of {}: the exchange of addresses failed: {}. {}", job().rank, job().size,
                                    status_text(status), boot().last_error()));
  }
  require_one_wire_version(records, job().rank);
  if (!options_.share_gpu) require_own_gpu(records, job().rank);
  const auto self = static_cast<std::size_t>(job().rank);
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    Peer& peer = peers_.emplace_back();
    peer.rank = Rank{static_cast<std::int32_t>(rank)};
    peer.same_host = records[rank].host_id == records[self].host_id;
    peer.same_process = rank == self;
    peer.rank_there = job().rank;
    peer.rank_in_its_job = peer.rank.value;
    peer.record = records[rank];
  }
  attach_links();
  if (lease_) start_lease();
  // Once all have attached, the two ends of every pair see alike whether they have a link.
  status = boot().fence(options_.boot_timeout);
  if (status != Status::ok) {
    throw Error(status, fmt::format("rank {} of {}: a process was lost during start: {}. {}", job().rank, job().size,
                                    status_text(status), boot().last_error()));
  }
}

void Engine::attach_links() noexcept {
  if (!adapters_.links) return;
  const Peer& self = peers_[static_cast<std::size_t>(job().rank)];
  const auto here = [&](const Peer& peer) { return peer.same_host && !peer.record.link_address.empty(); };
  const auto own_place = std::count_if(peers_.begin(), peers_.begin() + job().rank, here);
  unsigned place = 0;
  for (const Peer& peer : peers_) {
    if (!here(peer)) continue;
    if (&peer != &self) {
      static_cast<void>(
          adapters_.links->attach(peer.rank.value, static_cast<unsigned>(own_place), place, peer.record.link_address));
    }
    ++place;
  }
}

void Engine::shut_down() noexcept {
  if (trace_) trace_->write();
  joined_->leave_all(kPartingPatience);
  // Whoever is ahead keeps the network moving: a peer may still be reading from this process.
  if (job().size > 1) {
    const auto all_live = [&] {
      return std::none_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.lost; });
    };
    farewell_->say();
    for (int round = 0; all_live() && round < 1000; ++round) {
      const auto patience = std::chrono::milliseconds(round < 10 ? 1 : 20);
      const Status status = boot().fence(patience);
      if (status != Status::timed_out) break;
      farewell_->say();
      wire_turn_ = kWireTurnMoving;
      progress_while_moving(patience);
      check_peers();  // one that is lost now will never come
    }
  }
  lease_.reset();  // from here on others leave as well
  if (trace_ && job().rank == 0) trace_->close();
  boot().finalize();
}

Peer& Engine::peer(Rank rank) {
  if (joined_rank::is_one(rank.value)) return joined_->get(rank);
  if (rank.value < 0 || static_cast<std::size_t>(rank.value) >= peers_.size()) {
    throw Error(Status::invalid_argument,
                fmt::format("there is no rank {}: the job has ranks 0 to {}", rank.value, job().size - 1));
  }
  Peer& peer = peers_[static_cast<std::size_t>(rank.value)];
  if (peer.lost) throw Error(Status::peer_lost, fmt::format("rank {} (pid {}) is gone", rank.value, peer.record.pid));
  if (peer.endpoint != nullptr) return peer;
  const bool watchable = runs_elsewhere(peer) && watched_by_kernel(peer);
  if (watchable && !detector_.watch(rank.value, peer.record.pid)) {
    peer.lost = true;
    throw Error(Status::peer_lost, ended_before(peer));
  }
  if (lease_ && !watchable) lease_->watch(rank.value);
  Result<port::WireEndpoint*> endpoint = wire().connect(peer.record.wire_address);
  if (!endpoint) {
    // A process that dies takes its memory along before its end can be seen.
    const bool dying = watchable && endpoint.status() == Status::io_error;
    if (dying) suspect(peer);
    throw Error(dying ? Status::peer_lost : endpoint.status(), why_not_connected(peer, endpoint.status(), dying));
  }
  peer.endpoint = *endpoint;
  if (adapters_.links && !peer.same_process) peer.link = adapters_.links->link(rank.value);
  farewell_->greet(peer);
  return peer;
}

std::string Engine::ended_before(const Peer& peer) const {
  return fmt::format("rank {} (pid {}) ended before rank {} connected to it", peer.rank.value, peer.record.pid,
                     job().rank);
}

std::string Engine::why_not_connected(const Peer& peer, Status status, bool dying) const {
  if (dying && ends_soon(peer.record.pid)) return ended_before(peer);
  return fmt::format("rank {} could not connect to rank {} (pid {}) over {}: {}{}", job().rank, peer.rank.value,
                     peer.record.pid, adapters_.wire->capabilities().version, status_text(status),
                     peer.same_host ? shared_memory_fault(look_at_shared_memory()) : "");
}

/// If it is another process.
bool Engine::watched_by_kernel(const Peer& peer) const noexcept {
  const PeerRecord& mine = peers_[static_cast<std::size_t>(job().rank)].record;
  return peer.same_host && peer.record.pid_namespace == mine.pid_namespace;
}

bool Engine::runs_elsewhere(const Peer& peer) const noexcept {
  const PeerRecord& mine = peers_[static_cast<std::size_t>(job().rank)].record;
  return !watched_by_kernel(peer) || peer.record.pid != mine.pid;
}

MemoryKind Engine::mutual_kind(const Peer& peer) const noexcept {
  const PeerRecord& mine = peers_[static_cast<std::size_t>(job().rank)].record;
  const bool mappable = peer.link != nullptr && mine.mappable_kind == peer.record.mappable_kind;
  return mappable ? mine.mappable_kind : MemoryKind::detect;
}

Peer& Engine::linked_peer(int rank) noexcept {
  Peer& peer = *find_peer(rank);
  if (peer.link == nullptr) peer.link = adapters_.links->link(rank);
  return peer;
}

void Engine::report(OpOwner& owner, Moment moment, const OpResult& result) noexcept {
  Op* op = owner.op_;
  if (op == nullptr) return;
  const Completion& sink = moment == Moment::source_free ? op->source_free : op->delivered;
  if (sink.fire == nullptr) return;
  op->result = result;
  if (op->due_ == 0) {
    pending_.remove(*op);
    ready_.push_back(*op);
  }
  op->due_ = static_cast<std::uint8_t>(op->due_ | (1u << static_cast<unsigned>(moment)));
}

/// Every moment that has a sink. False: there is none.
bool Engine::make_due(Op& op) noexcept {
  if (op.source_free.fire != nullptr) op.due_ |= 1u << static_cast<unsigned>(Moment::source_free);
  if (op.delivered.fire != nullptr) op.due_ |= 1u << static_cast<unsigned>(Moment::delivered);
  return op.due_ != 0;
}

void Engine::complete(Op& op, const OpResult& result) noexcept {
  op.result = result;
  if (!make_due(op)) return;
  op.engine_ = this;
  ready_.push_back(op);
}

void Engine::finish(OpOwner& owner, const OpResult& result) noexcept {
  Op* op = owner.op_;
  if (op == nullptr) return;
  --pending_ops_;
  count_outcome(result.status);
  op->result = result;
  op->owner_ = nullptr;
  owner.op_ = nullptr;
  if (op->due_ != 0) {
    make_due(*op);
    return;
  }
  pending_.remove(*op);
  if (make_due(*op)) {
    ready_.push_back(*op);
  } else {
    op->engine_ = nullptr;
  }
}

void Engine::detach(Op& op) noexcept {
  (op.due_ != 0 ? ready_ : pending_).remove(op);
  op.due_ = 0;
  OpOwner* owner = op.owner_;
  op.owner_ = nullptr;
  op.engine_ = nullptr;
  if (owner == nullptr) return;
  --pending_ops_;
  owner->op_ = nullptr;
  owner->cancel(*owner);
}

Status refuse_pending_op() noexcept {
  log::error(
      "a record of an operation (Op) was posted while it is pending: refused, and the first post goes on. Use "
      "one record for each operation under way, and post it again after its last sink has fired");
  return Status::invalid_argument;
}

void Op::detach() noexcept {
  if (engine_ != nullptr) engine_->detach(*this);
}

void Op::cancel() noexcept {
  if (owner_ != nullptr) owner_->cancel(*owner_);
}

unsigned Engine::fire_ready(unsigned limit) noexcept {
  unsigned fired = 0;
  BatchTime time;
  for (; fired < limit; ++fired) {
    Op* op = ready_.front();
    if (op == nullptr || time.over(fired)) break;
    // One moment at a time: while one sink runs, the other still stands in the record, and goes with it.
    const bool source_free = (op->due_ & 1u) != 0;
    op->due_ = static_cast<std::uint8_t>(op->due_ & (source_free ? ~1u : ~2u));
    if (op->due_ == 0) {
      ready_.remove(*op);
      if (op->owner_ == nullptr) {
        op->engine_ = nullptr;
      } else {
        pending_.push_back(*op);
      }
    }
    // A sink fired once is taken off: neither moment is reported twice, and the record may be posted again by the last
    // sink.
    const Completion sink = std::exchange(source_free ? op->source_free : op->delivered, {});
    const OpResult result = op->result;
    if (sink.fire != nullptr) sink.fire(sink.self, result);
  }
  return fired;
}

void Engine::hold_message(void* slot, port::AmMessage& message) noexcept {
  auto& [engine, id] = *static_cast<AmSlot*>(slot);
  const bool complete = message.bytes == 0 || message.data != nullptr;
  if (!complete || engine->held_.size() >= kHeldMessagesMax) {
    log::error("an active message {} came that nobody claims (held {}, bound {}): dropped", id, engine->held_.size(),
               kHeldMessagesMax);
    if (!complete) engine->wire().am_discard(message);
    return;
  }
  HeldMessage held{id, {message.header.begin(), message.header.end()}, {}};
  if (message.bytes != 0) held.data.assign(message.data, message.data + message.bytes);
  engine->held_.push_back(std::move(held));
}

void Engine::claim_am(unsigned id, port::AmHandler handler, void* context) {
  wire().set_am_handler(id, handler, context);
  std::vector<HeldMessage> earlier;
  std::erase_if(held_, [&](HeldMessage& held) {
    if (held.id != id) return false;
    earlier.push_back(std::move(held));
    return true;
  });
  for (const HeldMessage& held : earlier) {
    port::AmMessage message{held.header, held.data.empty() ? nullptr : held.data.data(), held.data.size(), nullptr};
    handler(context, message);
  }
}

void Engine::look_at_links(unsigned service) noexcept {
  if (!adapters_.links) return;
  const auto look = [&](const Peer& peer) {
    port::Link* link = peer.lost ? nullptr : adapters_.links->link(peer.rank.value);  // whether it is connected or not
    if (link != nullptr) static_cast<void>(link->poll(service));
  };
  std::for_each(peers_.begin(), peers_.end(), look);
  joined_->for_each(look);
}

namespace {

Status past_the_end(const void* data, std::size_t bytes, const port::PointerInfo& info) noexcept {
  log::error("{} bytes at {} reach past the end of their {} allocation of {} bytes at {}", bytes, data,
             memory_kind_name(info.kind), info.bytes, info.base);
  return Status::invalid_argument;
}

bool lies_within(const void* data, std::size_t bytes, const port::PointerInfo& info) noexcept {
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(data) - reinterpret_cast<std::uintptr_t>(info.base);
  return offset <= info.bytes && bytes <= info.bytes - offset;
}

}  // namespace

/// Of host memory only what the device allocated has an end that is known.
Status Engine::check_host(const void* data, std::size_t bytes) noexcept {
  if (host_allocations_ == nullptr) return Status::ok;
  host_range_ = host_allocations_->around(data);
  if (!host_range_.known || host_range_.covers(data, bytes)) return Status::ok;
  const Result<port::PointerInfo> info = host_allocations_->find(data);
  return !info || lies_within(data, bytes, *info) ? Status::ok : past_the_end(data, bytes, *info);
}

Status Engine::find_kind(const void* data, std::size_t bytes, MemoryKind& kind, std::uint64_t* buffer_id) noexcept {
  if (bytes != 0 && (data == nullptr || reinterpret_cast<std::uintptr_t>(data) + bytes < bytes)) [[unlikely]] {
    log::error("{} bytes at {} are no memory: {}", bytes, data,
               data == nullptr ? "pass a buffer" : "the range goes around the end of the addresses");
    return Status::invalid_argument;
  }
  if (kind == MemoryKind::detect && (bytes == 0 || !device().capabilities().streams)) kind = MemoryKind::host;
  if (bytes == 0) return Status::ok;
  if (kind == MemoryKind::host || kind == MemoryKind::pinned) return check_host(data, bytes);
  const Result<port::PointerInfo> info = device().query(data);
  if (kind == MemoryKind::detect) {
    if (!info.ok() && info.status() != Status::not_found) return info.status();
    kind = info.ok() ? info->kind : MemoryKind::host;
    if (!info.ok()) return Status::ok;
  }
  const bool known = info.ok() && info->kind == kind;
  if (!known) {
    log::error(
        "{} bytes at {} were declared as {} memory, but the device {}: pass a live allocation of that kind, or declare "
        "what it is",
        bytes, data, memory_kind_name(kind),
        info.ok() ? fmt::format("says {}", memory_kind_name(info->kind))
                  : "does not know the address (freed, or host memory)");
    return Status::wrong_kind;
  }
  if (buffer_id != nullptr) *buffer_id = info->buffer_id;
  return lies_within(data, bytes, *info) ? Status::ok : past_the_end(data, bytes, *info);
}

void Engine::on_endpoint_failed(void* engine, port::WireEndpoint* endpoint) noexcept {
  auto& self = *static_cast<Engine*>(engine);
  const auto suspect = [&](Peer& peer) {
    if (peer.endpoint == endpoint) self.suspect(peer);
  };
  std::for_each(self.peers_.begin(), self.peers_.end(), suspect);
  self.joined_->for_each(suspect);
}

void Engine::look_around() noexcept {
  const ProgressScope scope;
  check_peers();
  joined_->look_around();
  for (auto& [key, service] : services_) service->look_around();
}

void Engine::check_peers() noexcept {
  if (std::exchange(suspects_, false)) {
    const auto lose_if_suspected = [this](Peer& peer) {
      if (peer.suspected) lose(peer);
    };
    std::for_each(peers_.begin(), peers_.end(), lose_if_suspected);
    joined_->for_each(lose_if_suspected);
  }
  if (lease_) hear_verdicts();
  if (!detector_.watching()) return;
  for (const int rank : detector_.poll()) {
    if (Peer* peer = find_peer(rank)) lose(*peer);
  }
}

void Engine::lose(Peer& peer) noexcept {
  if (peer.lost) return;
  // What it sent before it died already lies in our memory: let it arrive first.
  for (int round = 0; round < 64; ++round) {
    unsigned events = wire().progress() + wire().deliver(kDeliverLimit);
    if (adapters_.links) events += adapters_.links->poll();
    if (events == 0 && round > 3) break;
  }
  if (peer.joined) joined_->on_parting(peer);
  if (!peer.joined || !peer.ended) {
    log::info("rank {} (pid {}) is gone", peer.rank.value, peer.record.pid);
    counters_.peers_lost.add();
  }
  peer.lost = true;
  if (lease_) lease_->give_up(peer.rank.value);
  if (peer.endpoint != nullptr) wire().disconnect(peer.endpoint);
  peer.endpoint = nullptr;
  if (adapters_.links) adapters_.links->drop(peer.rank.value);
  while (PeerOp* op = peer.outstanding.pop_front()) op->lost(*op);
}

unsigned Engine::run_commands() noexcept {
  if (commands_waiting_.load(std::memory_order_acquire) == 0) return 0;
  unsigned count = 0;
  BatchTime time;
  for (Command command; count < kDeliverLimit && !time.over(count) && commands_.pop(command); ++count) {
    commands_waiting_.fetch_sub(1, std::memory_order_relaxed);
    command.function(command.context);
  }
  return count;
}

Status Engine::post(void (*function)(void*) noexcept, void* context) noexcept {
  if (!commands_.push({function, context})) return Status::limit_reached;
  commands_waiting_.fetch_add(1, std::memory_order_release);
  waiter_.wake();
  return Status::ok;
}

void Engine::defer(DeferredWork& work) noexcept {
  if (DeferredList::linked(work)) return;
  if (deferred_.empty()) deferred_since_ = recently_;
  deferred_.push_back(work);
}

void Engine::run_deferred() noexcept {
  DeferredList due;  // what defers itself again stands in the next one
  while (DeferredWork* work = deferred_.pop_front()) due.push_back(*work);
  while (DeferredWork* work = due.pop_front()) work->run_deferred();
}

unsigned Engine::move() noexcept {
  const ProgressScope scope;
  unsigned events = 0;
  if (adapters_.links) events = adapters_.links->poll();
  wire_turn_ += 1 + events;
  // Whoever waits for what came over a link does not wait for a look at the network too, unless that is overdue.
  const unsigned turn = events == 0 ? kWireTurn : kWireTurnMoving;
  if (!adapters_.links || wire_ops_ > 0 || wire_turn_ >= turn) {
    wire_turn_ = 0;
    events += wire().progress();
    events += wire().deliver(kDeliverLimit);
  }
  events += poll_pollers();
  return events;
}

unsigned Engine::progress() noexcept {
  upkeep_ = false;
  const unsigned events = move();
  unsigned user_calls = run_commands();
  if (suspects_) look_around();
  counters_.progress_calls.add();
  calls_since_check_ += events + user_calls == 0 ? 1 : kBusyWeight;
  const bool look_at_clock = calls_since_check_ >= kPeerCheckInterval;
  unsigned timers_fired = 0;
  if (look_at_clock || !timers_.empty()) {
    const TimePoint now = recently_ = Clock::now();
    if (look_at_clock) calls_since_check_ = 0;
    if (!timers_.empty()) timers_fired = timers_.run(now);
    if (look_at_clock && now >= next_peer_check_) {
      next_peer_check_ = now + kPeerCheckPeriod;
      look_around();
    }
  }
  user_calls += fire_ready(kFireLimit);
  if (user_calls + timers_fired != 0) note_user_code();
  if (user_calls != 0 || (events != 0 && !upkeep_)) break_silence();
  return events + user_calls;
}

void Engine::progress_while_moving(std::chrono::nanoseconds limit) noexcept {
  const TimePoint end = deadline_after(limit);
  while (progress() != 0 && Clock::now() < end) {
  }
}

/// A poller may take itself out of the list, or any other: the round goes on with the next of those that stay.
unsigned Engine::poll_pollers() noexcept {
  unsigned events = 0;
  next_poller_ = pollers_.front();
  while (Poller* poller = next_poller_) {
    next_poller_ = PollerList::next(*poller);
    events += poller->poll();
  }
  return events;
}

}  // namespace brant
