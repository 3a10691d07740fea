#include "models/pgas/window_proxy.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/log.h"
#include "models/pgas/space_state.h"

namespace brant {

using pgas::ProxyAct;
using pgas::ProxyOrder;

namespace {

constexpr unsigned kTakenAtOnce = 16;  // orders in a poll
// So long after an order the process stays awake. Nobody tells it of a later one, for which it looks so often: who has
// computed for long loses a fiftieth of that at most.
constexpr auto kAwakeAfterOrder = std::chrono::milliseconds(500);
constexpr auto kBetweenLooks = std::chrono::milliseconds(10);

ProxyAct act_of(const ProxyOrder& what) noexcept { return static_cast<ProxyAct>(what.act); }
bool puts(ProxyAct act) noexcept { return act == ProxyAct::put || act == ProxyAct::put_notify; }
bool moves(ProxyAct act) noexcept { return puts(act) || act == ProxyAct::get; }
bool flags(ProxyAct act) noexcept {
  return act == ProxyAct::notify || act == ProxyAct::put_notify || act == ProxyAct::notify_of_barrier;
}

/// What a kernel has ordered, which may be anything.
Atomic atomic_of(const ProxyOrder& what) noexcept {
  constexpr pgas::Word kNone = 0xff;  // no operation, and no type
  return {static_cast<AtomicOp>(std::min(what.payload[2], kNone)),
          static_cast<AtomicType>(std::min(what.payload[3], kNone)), what.payload[0], what.payload[1]};
}

Memory zeros(Runtime& runtime, MemoryKind kind, std::size_t bytes) {
  Memory memory = runtime.allocate(kind, bytes);
  const std::vector<std::byte> none(bytes);
  runtime.copy(memory, ConstBuffer(none.data(), bytes, MemoryKind::host));
  return memory;
}

}  // namespace

WindowProxy::WindowProxy(SpaceState& space, std::vector<GlobalPtr<std::byte>> places, std::size_t bytes)
    : space_(space),
      places_(std::move(places)),
      bytes_(bytes),
      host_(zeros(space.runtime(), MemoryKind::pinned, sizeof(pgas::ProxyHostPart))),
      device_(zeros(space.runtime(), space.runtime().device_kind(), sizeof(pgas::ProxyDevicePart))),
      ring_{static_cast<pgas::ProxyHostPart*>(host_.data()), static_cast<pgas::ProxyDevicePart*>(device_.data())},
      ring_end_(*ring_.host) {
  for (Order& order : orders_) order.proxy = this;
  fire = [](Timer& timer) noexcept { static_cast<WindowProxy&>(timer).look_later(); };
  space_.engine().pollers().attach(*this);
}

WindowProxy::~WindowProxy() { leave_pollers(); }

void WindowProxy::leave_pollers() noexcept {
  space_.engine().pollers().detach(*this);
  space_.engine().timers().clear(*this);
}

/// Every poll says so: it begins to rest, or ends that.
void WindowProxy::note_orders(unsigned taken) noexcept {
  const TimePoint now = space_.engine().clock().recently();
  if (taken != 0 || begun_ != ring_end_.taken()) {
    ordered_at_ = now;
    rests_ = false;
  } else if (!rests_ && now - ordered_at_ > kAwakeAfterOrder) {
    rests_ = true;
    look_later();
  }
}

/// The look itself is the poll of the step that fires the timer.
void WindowProxy::look_later() noexcept {
  if (!rests_) return;
  try {
    space_.engine().timers().set(*this, Clock::now() + kBetweenLooks);
  } catch (const std::bad_alloc&) {
    rests_ = false;
  }
}

bool WindowProxy::uses(std::int32_t rank, std::uint32_t segment) const noexcept {
  return std::ranges::any_of(places_, [&](auto at) { return at.rank() == rank && at.segment() == segment; });
}

void WindowProxy::close(bool is_own) noexcept {
  own_is_retired_ = own_is_retired_ || is_own;
  fail(Status::not_found, places_.size(), "a segment of it is retired");
}

void WindowProxy::look_around() noexcept {
  for (std::size_t member = 0; member < places_.size() && fault_ == Status::ok; ++member) {
    const std::int32_t rank = places_[member].rank();
    if (rank != space_.rank() && space_.has_gone(rank))
      fail(Status::peer_lost, member, "its process has died or ended");
  }
}

void WindowProxy::fail(Status status, std::size_t member, const char* why) noexcept {
  if (fault_ != Status::ok) return;
  fault_ = status;
  if (member < places_.size()) {
    lost_member_ = places_[member].where();
    log::error(
        "a window for kernels of {} members is lost by member {} ({}): {} ({}). Kernels that wait in it end as aborted",
        places_.size(), member, describe(places_[member]), why, status_text(status));
  }
  ring_end_.set_fault();
}

unsigned WindowProxy::poll() noexcept {
  unsigned events = 0;
  while (events < kTakenAtOnce && ring_end_.taken() - begun_ < pgas::kProxySlots) {
    Order& order = order_at(ring_end_.taken());
    if (!ring_end_.take(order.what)) break;
    begin(order);
    ++events;
  }
  note_orders(events);
  Before before;
  for (std::uint64_t number = begun_; number != ring_end_.taken(); ++number) {
    Order& order = order_at(number);
    if (go_on(order, before)) ++events;
    if (order.stage == Stage::done && number == begun_) {
      ++begun_;
    } else {
      note(order, before);
    }
  }
  if (is_over()) leave_pollers();  // its kernels end by the fault, and this process may sleep
  return events;
}

void WindowProxy::begin(Order& order) noexcept {
  order.stage = moves(act_of(order.what)) ? Stage::move : Stage::act;
  order.under_way = false;
  if (fault_ != Status::ok || is_sound(order.what)) return;
  fail(Status::invalid_argument, order.what.member,
       "a kernel has ordered what is not inside the window, more than 64 bytes from or to a null pointer, a flag or an "
       "atomic that is not at a multiple of its size, or an atomic that does not exist");
}

bool WindowProxy::is_sound(const ProxyOrder& what) const noexcept {
  const auto inside = [&](pgas::Word offset, pgas::Word bytes) { return offset <= bytes_ && bytes <= bytes_ - offset; };
  const ProxyAct act = act_of(what);
  if (what.member >= places_.size()) return false;
  if (moves(act) && !inside(what.place, what.bytes)) return false;
  if (moves(act) && what.local == 0 && what.bytes > pgas::kProxyPayloadBytes) return false;  // the order has no more
  if (flags(act) && (what.flag % 8 != 0 || !inside(what.flag, 8))) return false;
  if (act == ProxyAct::atomic) {
    const Atomic atomic = atomic_of(what);
    return atomic.exists() && what.place % atomic.bytes() == 0 && inside(what.place, atomic.bytes());
  }
  return moves(act) || flags(act) || act == ProxyAct::flush;
}

void WindowProxy::note(const Order& order, Before& before) noexcept {
  if (order.stage == Stage::done) return;
  const ProxyAct act = act_of(order.what);
  before.any = true;
  if (puts(act) && order.stage == Stage::move) before.puts = true;
  if (!flags(act)) return;
  (act == ProxyAct::notify_of_barrier ? before.flags_of_barriers : before.flags) = true;
  before.flagged |= 1u << order.what.member;
}

bool WindowProxy::may_act(const ProxyOrder& what, const Before& before) noexcept {
  switch (act_of(what)) {
    case ProxyAct::put:
    case ProxyAct::get: return true;
    case ProxyAct::notify_of_barrier: return !before.puts && !before.flags && (before.flagged >> what.member & 1) == 0;
    case ProxyAct::notify:
    case ProxyAct::put_notify:
    case ProxyAct::atomic: return !before.puts && !before.flags && !before.flags_of_barriers;
    case ProxyAct::flush: return !before.any;
  }
  return true;
}

/// True: something has happened.
bool WindowProxy::go_on(Order& order, const Before& before) noexcept {
  if (order.stage == Stage::done || order.under_way) return false;
  if (fault_ != Status::ok) {
    finish(order, true);
    return true;
  }
  if (order.stage == Stage::act && !may_act(order.what, before)) return false;
  order.op.delivered = {&WindowProxy::on_ended, &order};
  order.under_way = true;
  const Status status = order.stage == Stage::move ? post_move(order) : post_act(order);
  if (status == Status::in_progress) return true;
  order.under_way = false;
  if (status == Status::limit_reached) return false;  // the next poll tries again
  ended(order, status);
  return true;
}

void WindowProxy::on_ended(void* record, const OpResult& result) noexcept {
  auto& order = *static_cast<Order*>(record);
  order.under_way = false;
  order.proxy->ended(order, result.status);
}

void WindowProxy::ended(Order& order, Status status) noexcept {
  if (status != Status::ok) {
    fail(status, order.what.member, "what a kernel ordered could not be performed");
    return finish(order, true);
  }
  const ProxyAct act = act_of(order.what);
  if (order.stage == Stage::move && act == ProxyAct::put_notify) {
    order.stage = Stage::act;
    return;
  }
  if (flags(act)) space_.wake_for(places_[order.what.member]);
  finish(order, false);
}

void WindowProxy::finish(Order& order, bool failed) noexcept {
  order.stage = Stage::done;
  const ProxyAct act = act_of(order.what);
  std::size_t bytes = 0;
  if (act == ProxyAct::get && order.what.local == 0) bytes = order.what.bytes;
  if (act == ProxyAct::atomic) bytes = sizeof(pgas::Word);
  ring_end_.answer(order.what.turn, failed, std::span(order.value).first(failed ? 0 : bytes));
}

Status WindowProxy::post_move(Order& order) noexcept {
  ProxyOrder& what = order.what;
  const GlobalPtr<std::byte> at = places_[what.member] + static_cast<std::ptrdiff_t>(what.place);
  KnownSegment* const known = space_.directory().find_open(at.rank(), at.segment());
  if (known == nullptr) return Status::not_found;
  const bool is_put = puts(act_of(what));
  Buffer local(reinterpret_cast<void*>(what.local), what.bytes);  // its kind is the driver's to say
  if (what.local == 0)
    local = Buffer(is_put ? static_cast<void*>(what.payload) : order.value, what.bytes, MemoryKind::host);
  return is_put ? known->remote.post_put(at.offset(), local, order.op)
                : known->remote.post_get(at.offset(), local, order.op);
}

Status WindowProxy::post_act(Order& order) noexcept {
  const ProxyOrder& what = order.what;
  const ProxyAct act = act_of(what);
  if (flags(act)) return post_flag(order);
  if (act != ProxyAct::atomic) return Status::ok;
  const GlobalPtr<std::byte> at = places_[what.member] + static_cast<std::ptrdiff_t>(what.place);
  KnownSegment* const known = space_.directory().find_open(at.rank(), at.segment());
  if (known == nullptr) return Status::not_found;
  const Atomic atomic = atomic_of(what);
  std::memset(order.value, 0, sizeof(pgas::Word));  // of 4 bytes the others are none, nor is there a value of a store
  void* const before = atomic.operation == AtomicOp::store ? nullptr : order.value;
  return known->remote.post_atomic(at.offset(), atomic, order.op, before);
}

Status WindowProxy::post_flag(Order& order) noexcept {
  const GlobalPtr<std::byte> at = places_[order.what.member] + static_cast<std::ptrdiff_t>(order.what.flag);
  KnownSegment* const known = space_.directory().find_open(at.rank(), at.segment());
  if (known == nullptr) return Status::not_found;
  std::memcpy(order.value, &order.what.epoch, sizeof(order.what.epoch));
  return known->remote.post_put(at.offset(), Buffer(order.value, sizeof(order.what.epoch), MemoryKind::host), order.op);
}

}  // namespace brant
