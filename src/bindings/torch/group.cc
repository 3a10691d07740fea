#include "bindings/torch/group.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace brant::distributed {
namespace {

/// The same at both ends, whose ranks of the job are in it, since a channel has two ends; and with luck of no other tag
/// or group: one that is open already is refused.
ChannelId channel_id(const std::string& name, std::int64_t tag, Rank one, Rank other) {
  const std::pair<int, int> ends = std::minmax(one.value, other.value);
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  const auto add = [&](const void* data, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<const std::uint8_t*>(data)[i]) * 0x100000001b3U;
  };
  add(name.data(), name.size());
  add(&tag, sizeof tag);
  add(&ends.first, sizeof ends.first);
  add(&ends.second, sizeof ends.second);
  return ChannelId{static_cast<std::uint32_t>((hash ^ (hash >> 32U)) % kChannelIdMax)};
}

}  // namespace

struct Group::Place {
  AnyReceive* all = nullptr;
  int peer = 0;
  std::vector<std::byte> bytes;
  Op op;
};

/// Each member may be the one: its message lands in a place of its own, and what comes second is kept.
struct Group::AnyReceive {
  Group* group = nullptr;
  Call* call = nullptr;
  Buffer landing;
  std::int64_t tag = 0;
  std::deque<Place> places;
  std::size_t pending = 1;  ///< The one who posts counts as one.

  void came(Place& place, const OpResult& result) noexcept {
    if (result.ok()) {
      place.bytes.resize(result.bytes);
      if (call->source < 0) {
        take(place);
      } else {
        group->lane(place.peer, tag).early.push_back(std::move(place.bytes));
      }
    } else if (call->source < 0 && result.status != Status::canceled) {
      call->result.status = result.status;  // if nobody else sends
      call->peer = place.peer;
    }
    one_less();
  }

  void take(Place& place) noexcept {
    call->source = place.peer;
    call->result = {Status::ok, place.bytes.size()};
    group->take(landing, place.bytes);
    for (Place& other : places) {
      if (&other != &place && other.op.pending()) other.op.cancel();
    }
  }

  void one_less() noexcept {
    if (--pending != 0) return;
    if (call->source < 0 && call->result.ok()) call->result.status = Status::canceled;
    group->one_less(*call);
  }
};

Group::Group(Job& job, const std::vector<Rank>& members, std::string name, std::chrono::milliseconds timeout)
    : job_(job),
      name_(std::move(name)),
      timeout_(timeout),
      team_(job.runtime(), members, TeamOptions{.patience = timeout}) {}

Group::Lane& Group::lane(int peer, std::int64_t tag) {
  const auto [place, made] = lanes_.try_emplace({peer, tag});
  if (!made) return place->second;
  try {
    place->second.channel = Channel::open(job_.runtime(), team_.member(peer),
                                          channel_id(name_, tag, team_.member(rank()), team_.member(peer)));
  } catch (...) {
    lanes_.erase(place);
    throw;
  }
  return place->second;
}

Call& Group::begin(Done done) {
  auto call = std::make_unique<Call>(*this, std::move(done));
  Call& begun = *call;
  calls_.emplace(&begun, std::move(call));
  if (!open_) begun.result.status = Status::shutting_down;
  return begun;
}

Completion Group::sink_of(Call& call) noexcept {
  return {[](void* self, const OpResult& result) noexcept {
            auto& ended = *static_cast<Call*>(self);
            ended.result.join(result);
            ended.group.one_less(ended);
          },
          &call};
}

/// Messages have no patience of their own, as collectives have.
void Group::limit(Call& call) {
  constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 365);
  call.limit.call = &call;
  call.limit.fire = [](Timer& self) noexcept {
    Call& late = *static_cast<Call::Limit&>(self).call;
    late.late = true;
    late.group.job_.note_late(late.group);
  };
  job_.runtime().worker().set_timer(call.limit, deadline_after(std::min(timeout_, longest)));
}

void Group::end_late() {
  if (!open_) return;
  std::vector<Call*> withdrawn;  // a call for each send: its source is not read any more once the channel is closed
  for (const auto& [call, owned] : calls_) {
    if (call->late) {
      call->result.join({Status::timed_out, 0});
      fault_ = "A message" + (call->peer < 0 ? std::string() : " with rank " + std::to_string(call->peer)) +
               " was not done within " + std::to_string(timeout_.count()) + " ms, and the group has ended";
    }
    for (Op& op : call->ops) {
      if (op.source_free.fire == nullptr || !op.pending()) continue;
      op.detach();
      withdrawn.push_back(call);
    }
  }
  close();
  for (Call* call : withdrawn) one_less(*call);
}

/// What a post returned: it is one more that is under way, or it has ended.
void Group::post(Call& call, Status posted) noexcept {
  if (posted == Status::in_progress) {
    ++call.pending;
  } else {
    call.result.join({posted, 0});
  }
}

void Group::one_less(Call& call) noexcept {
  if (--call.pending != 0) return;
  if (call.limit.place != Timer::kIdle) job_.runtime().worker().clear_timer(call.limit);
  const auto place = calls_.find(&call);
  std::unique_ptr<Call> ended = std::move(place->second);
  calls_.erase(place);
  if (!ended->result.ok()) ended->text = explain(*ended);
  job_.finish(std::move(ended));
}

std::string Group::explain(const Call& call) const {
  const std::string who = call.peer < 0 ? "" : " with rank " + std::to_string(call.peer);
  std::string text = "process group " + name_ + who + ": " + std::string(status_text(call.result.status));
  if (open_ && call.peer < 0 && !team_.fault().empty()) text += ". " + team_.fault();
  if (!fault_.empty()) text += ". " + fault_;
  return text;
}

void Group::take(Buffer landing, const std::vector<std::byte>& message) {
  if (message.empty()) return;
  if (landing.kind == MemoryKind::host) {
    std::memcpy(landing.data, message.data(), message.size());
  } else {
    job_.runtime().copy(landing, ConstBuffer(message.data(), message.size(), MemoryKind::host));
  }
}

void Group::in_order(StreamHandle stream, std::function<void()> post) {
  if (stream == nullptr && gates_.empty()) return post();
  Gate gate;
  if (stream != nullptr) {
    const Device device = job_.runtime().device();
    gate.passed = device.create_event();
    const Status status = device.borrow_stream(stream).record(gate.passed);
    if (status != Status::ok) throw Error(status, "process group " + name_ + ": the GPU's stream cannot be waited for");
  }
  gate.post = std::move(post);
  gates_.push_back(std::move(gate));
  job_.note_gates(+1);
}

unsigned Group::pass_gates() {
  unsigned passed = 0;
  while (!gates_.empty()) {
    // Without a stream it only waits for those before it. What a device reports, the call will find too.
    const bool has_stream = gates_.front().passed.native() != nullptr;
    if (open_ && has_stream && gates_.front().passed.poll() == Status::in_progress) break;
    const std::function<void()> post = std::move(gates_.front().post);
    gates_.pop_front();
    job_.note_gates(-1);
    ++passed;
    post();
  }
  return passed;
}

void Group::prepare_streams() {
  // Calls that wait come before, at all members.
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  while (!gates_.empty()) {
    static_cast<void>(job_.runtime().worker().progress());
    static_cast<void>(pass_gates());
    if (std::chrono::steady_clock::now() > deadline)
      throw Error(Status::timed_out, "process group " + name_ + ": the GPU did not get to a call within the time-out");
  }
  streams_ = team_.prepare_streams().ok() ? Streams::ready : Streams::none;
}

bool Group::streams_take(const std::vector<Collective>& calls) {
  if (!open_) return false;
  if (streams_ == Streams::not_asked) prepare_streams();
  return streams_ == Streams::ready &&
         std::ranges::all_of(calls, [&](const Collective& call) { return !team_.explain_on_stream(call).empty(); });
}

Outcome Group::enqueue(const std::vector<Collective>& calls, StreamHandle stream) {
  for (const Collective& call : calls) {
    const Status status = team_.enqueue(call, stream);
    if (status == Status::ok) continue;
    const std::string why = fault();
    return {status, "process group " + name_ + ": " + std::string(collective_name(call.kind)) + " on a stream: " +
                        std::string(status_text(status)) + (why.empty() ? "; the log says why" : ". " + why)};
  }
  return {};
}

std::string Group::fault() const {
  if (!fault_.empty() || !open_) return fault_;
  return team_.fault();
}

void Group::collect(const std::vector<Collective>& calls, Done done) {
  Call& call = begin(std::move(done));
  for (const Collective& collective : calls) {
    if (!call.result.ok()) break;
    Op& op = call.ops.emplace_back();
    op.delivered = sink_of(call);
    post(call, team_.post(collective, op));
  }
  one_less(call);
}

void Group::receive(Call& call, Lane& from, Buffer landing) {
  if (from.early.empty()) {
    Op& op = call.ops.emplace_back();
    op.delivered = sink_of(call);
    return post(call, from.channel.post_recv(landing, op));
  }
  const std::vector<std::byte> message = std::move(from.early.front());
  from.early.pop_front();
  if (message.size() > landing.bytes) {
    call.result.join({Status::truncated, message.size()});
  } else {
    take(landing, message);
    call.result.join({Status::ok, message.size()});
  }
}

void Group::exchange(const std::vector<Transfer>& sends, const std::vector<Transfer>& receives, std::int64_t tag,
                     Done done) {
  Call& call = begin(std::move(done));
  try {
    for (const Transfer& transfer : receives) {
      if (!call.result.ok()) break;
      call.peer = transfer.peer;
      if (transfer.memory.bytes != 0) receive(call, lane(transfer.peer, tag), transfer.memory);
    }
    for (const Transfer& transfer : sends) {
      if (!call.result.ok()) break;
      call.peer = transfer.peer;
      if (transfer.memory.bytes == 0) continue;
      Op& op = call.ops.emplace_back();
      op.source_free = sink_of(call);
      post(call, lane(transfer.peer, tag).channel.post_send(transfer.memory, op));
    }
  } catch (const Error& error) {
    call.result.join({error.status(), 0});
  }
  if (call.pending > 1) limit(call);
  one_less(call);
}

Status Group::post_place(Place& place, std::int64_t tag) noexcept {
  try {
    const Buffer landing(place.bytes.data(), place.bytes.size(), MemoryKind::host);
    return lane(place.peer, tag).channel.post_recv(landing, place.op);
  } catch (const Error& error) {
    return error.status();  // the member has ended
  }
}

void Group::receive_any(Buffer landing, std::int64_t tag, Done done) {
  Call& call = begin(std::move(done));
  for (auto& [from, lane] : lanes_) {
    if (from.second != tag || lane.early.empty()) continue;
    receive(call, lane, landing);
    call.source = from.first;
    return one_less(call);
  }
  const auto any = std::make_shared<AnyReceive>();
  any->group = this;
  any->call = &call;
  any->landing = landing;
  any->tag = tag;
  call.keeps = any;  // the last place to come ends the call
  for (int peer = 0; open_ && call.source < 0 && peer < size(); ++peer) {
    if (peer == rank()) continue;
    Place& place = any->places.emplace_back();
    place.all = any.get();
    place.peer = peer;
    place.bytes.resize(landing.bytes);
    place.op.delivered = {[](void* self, const OpResult& result) noexcept {
                            auto& where = *static_cast<Place*>(self);
                            where.all->came(where, result);
                          },
                          &place};
    ++any->pending;
    const Status posted = post_place(place, tag);
    if (posted != Status::in_progress) any->came(place, {posted, place.op.result.bytes});  // it was there already
  }
  limit(call);
  any->one_less();
}

void Group::close() noexcept {
  if (!open_) return;
  open_ = false;
  static_cast<void>(pass_gates());  // these calls end at once
  lanes_.clear();
  team_.close();
}

void Group::abandon() noexcept {
  while (!calls_.empty()) {
    Call& call = *calls_.begin()->second;
    call.result.join({Status::canceled, 0});
    call.pending = 1;
    call.limit.place = Timer::kIdle;
    one_less(call);
  }
}

}  // namespace brant::distributed
