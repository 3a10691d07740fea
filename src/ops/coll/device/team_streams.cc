#include "ops/coll/device/team_streams.h"

#include <algorithm>
#include <new>
#include <vector>

#include "base/log.h"
#include "ops/coll/team_state.h"

namespace brant::coll {
namespace {

template <typename T>
Buffer bytes_of(std::vector<T>& items) noexcept {
  return {items.data(), items.size() * sizeof(T), MemoryKind::host};
}

}  // namespace

/// All come to the same end: whatever goes wrong at one is told to all, and they say it.
OpResult TeamStreams::prepare() noexcept {
  if (streams_ != nullptr || team_.fault_.happened()) return {team_.fault_.status(), 0};
  try {
    std::vector<StreamOffer> offers(team_.members_.count);
    std::vector<Status> mapped(team_.members_.count);
    std::vector<Peer*> peers;
    peers.reserve(team_.watches_.size());
    for (const auto& watch : team_.watches_) peers.push_back(watch.peer);
    const auto refused = [&](unsigned member, Status status) {
      log::error("team {}: no collectives on streams: member {} (rank {} of the job) cannot take part ({}){}",
                 team_.name_, member, team_.ranks_[member].value, status_text(status),
                 member == team_.members_.self ? "" : "; its log says why");
      return OpResult{status, 0};
    };
    const auto say = [&](const char* why) {
      log::error("team {}: no collectives on streams here: {}. Use Team::run, which takes device memory too",
                 team_.name_, why);
    };

    StreamOffer own;
    std::unique_ptr<StreamTeam> streams;
    const Result<const StreamKernels*> kernels = team_.table_.stream_kernels();
    if (!kernels) {
      own.status = kernels.status();
      say("the device runs no kernels of brant");
    } else {
      streams = std::make_unique<StreamTeam>(team_.engine_, **kernels, team_.members_, peers, team_.options_,
                                             stream_bands_of(team_.bands_, team_.members_.count));
      if (const char* why = streams->obstacle()) {
        own.status = Status::not_supported;
        say(why);
      } else {
        own = streams->make();
      }
    }
    const ConstBuffer told(&own, sizeof(own), MemoryKind::host);
    if (const OpResult result = team_.run(allgather(told, bytes_of(offers)), TeamWay::automatic); !result.ok())
      return result;
    for (unsigned m = 0; m < team_.members_.count; ++m) {
      if (offers[m].status != Status::ok) return refused(m, offers[m].status);
    }

    std::string why;
    const Status status = streams->map(offers, why);
    if (status != Status::ok) say(why.c_str());
    const ConstBuffer outcome(&status, sizeof(status), MemoryKind::host);
    if (const OpResult result = team_.run(allgather(outcome, bytes_of(mapped)), TeamWay::automatic); !result.ok())
      return result;
    for (unsigned m = 0; m < team_.members_.count; ++m) {
      if (mapped[m] != Status::ok) return refused(m, mapped[m]);
    }
    streams_ = std::move(streams);
    team_.engine_.deferrals().note_waiting_kernels(+1);
    return {Status::ok, 0};
  } catch (const std::bad_alloc&) {
    return {Status::no_memory, 0};
  }
}

Status TeamStreams::enqueue(const Collective& call, port::Stream* stream) noexcept {
  look();
  if (team_.fault_.happened()) {
    team_.say_fault();
    return team_.fault_.status();
  }
  if (streams_ == nullptr || stream == nullptr) {
    log::error("team {}: a collective for a stream {}", team_.name_,
               stream == nullptr ? "without a stream" : "before Team::prepare_streams, which all members call");
    return Status::invalid_argument;
  }
  try {
    std::string why;
    Work work;
    if (const Status status = make_work(call, team_.members_, work, why); status != Status::ok) {
      log::error("team {}: {}", team_.name_, why);
      return status;
    }
    if (const char* reason = why_not_by_kernels(work, team_.members_.count, team_.options_.stream_way)) {
      log::error("team {}: {} on a stream: {}", team_.name_, collective_name(work.kind), reason);
      return Status::not_supported;
    }
    Sides sides;
    if (const Status status = look_at_memory(team_.engine_.memory_kinds(), call, work, team_.name_, sides);
        status != Status::ok)
      return status;
    const bool in_reached = work.in_bytes == 0 || streams_->reaches(sides.in);
    if (!in_reached || (work.out_bytes != 0 && !streams_->reaches(sides.out))) {
      log::error("team {}: {} on a stream: kernels do not reach {} memory: use memory of the device, or pinned",
                 team_.name_, collective_name(work.kind), memory_kind_name(in_reached ? sides.out : sides.in));
      return Status::wrong_kind;
    }
    const StreamPlan plan = streams_->plan(work);
    const Status status = streams_->enqueue(work, plan, stream);
    if (status == Status::ok) team_.journal_.queue(work.words, static_cast<std::uint8_t>(plan.algorithm), coarse_now());
    return status;
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

std::string_view TeamStreams::plan(const Collective& call) const noexcept {
  try {
    std::string why;
    Work work;
    const unsigned members = team_.members_.count;
    const StreamWay way = team_.options_.stream_way;
    if (members > kStreamMembersMax || make_work(call, team_.members_, work, why) != Status::ok) return {};
    if (why_not_by_kernels(work, members, way) != nullptr) return {};
    const StreamBands bands = stream_bands_of(team_.bands_, members);
    return stream_algorithm_name(stream_plan_for({work.kind, members, work.bytes, bands, way}).algorithm);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

void TeamStreams::look() noexcept {
  if (streams_ == nullptr || team_.fault_.happened()) return;
  std::uint64_t call = 0;
  unsigned member = 0;
  if (streams_->find_wait(call, member)) team_.journal_.note_kernels(call, member);
  Fault fault;
  if (streams_->find_fault(fault)) team_.fail(fault);
}

void TeamStreams::abort() noexcept {
  if (streams_ == nullptr || streams_->is_aborted()) return;
  streams_->abort();
  team_.engine_.deferrals().note_waiting_kernels(-1);
}

void TeamStreams::retire() noexcept {
  if (streams_ == nullptr) return;
  abort();
  team_.table_.retired_streams().take(std::move(streams_), team_.fault_.happened());
}

}  // namespace brant::coll
