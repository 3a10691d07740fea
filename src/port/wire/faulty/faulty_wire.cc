#include <utility>

#include <fmt/format.h>

#include "brant/base/status.h"
#include "port/wire/faulty/faulty.h"
#include "port/wire/faulty/faulty_memory.h"
#include "port/wire/faulty/faulty_post.inl.h"

namespace brant::port {
namespace {

void check(const FaultPolicy& policy) {
  for (const FaultRule& rule : policy.rules) {
    const bool sensible = (rule.nth > 0 || (rule.rate > 0 && rule.rate <= 1)) && rule.status != Status::ok &&
                          rule.status != Status::in_progress;
    if (sensible) continue;
    throw Error(
        Status::invalid_argument,
        fmt::format("wire faulty: a rule with nth {}, rate {} and status {} can never apply or would be no fault",
                    rule.nth, rule.rate, status_name(rule.status)));
  }
}

}  // namespace

FaultyWire::FaultyWire(std::unique_ptr<Wire> inside, FaultPolicy policy)
    : policy_(std::move(policy)), random_state_(policy_.seed), inside_(std::move(inside)) {
  check(policy_);
  capabilities_ = inside_->capabilities();
  capabilities_.name = fmt::format("faulty({})", capabilities_.name);
  if (RemoteMemory* memory = inside_->remote_memory()) memory_ = std::make_unique<FaultyMemory>(*this, *memory);
}

FaultyWire::~FaultyWire() = default;

/// SplitMix64, as in the loopback network.
bool FaultyWire::chance(double rate) noexcept {
  if (rate <= 0) return false;
  std::uint64_t z = random_state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53 < rate;
}

const FaultRule* FaultyWire::rule_for(FaultPoint point) noexcept {
  const std::uint64_t number = ++posts_[static_cast<std::size_t>(point)];
  for (const FaultRule& rule : policy_.rules) {
    if (rule.point != point) continue;
    if (rule.nth > 0 ? rule.nth == number : chance(rule.rate)) return &rule;
  }
  return nullptr;
}

FaultyWire::Shadow* FaultyWire::take() noexcept {
  if (free_ == nullptr) {
    try {
      free_ = &shadows_.emplace_back();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  Shadow* shadow = std::exchange(free_, free_->following);
  *shadow = Shadow{};
  shadow->wire = this;
  shadow->on_complete = &FaultyWire::on_inside_complete;
  return shadow;
}

void FaultyWire::give(Shadow& shadow) noexcept {
  shadow.outer = nullptr;
  shadow.following = free_;
  free_ = &shadow;
}

FaultyWire::Shadow* FaultyWire::shadow_of(const WireOp& op) const noexcept {
  auto* shadow = static_cast<Shadow*>(static_cast<WireOp*>(op.request));
  return shadow != nullptr && shadow->outer == &op ? shadow : nullptr;
}

void FaultyWire::report_later(Shadow& shadow, Status status) noexcept {
  shadow.status = status;
  shadow.started = false;
  // What was withdrawn is told at once, as every wire promises.
  const unsigned delay = status == Status::canceled ? 0 : policy_.completion_delay;
  shadow.due = tick_ + delay;
  if (delay > 0) ++counts_.delayed;
  shadow.outer->request = static_cast<WireOp*>(&shadow);
  ready_.push(shadow);
  ++ready_count_;
}

void FaultyWire::on_inside_complete(WireOp& op) noexcept {
  auto& shadow = static_cast<Shadow&>(op);
  FaultyWire& wire = *shadow.wire;
  shadow.started = false;
  if (shadow.losing) {
    shadow.lost = true;
    ++wire.counts_.lost;
    return;
  }
  wire.report_later(shadow, shadow.status);
}

void FaultyWire::end_lost(Shadow& shadow) noexcept {
  shadow.lost = false;
  report_later(shadow, Status::canceled);
}

void FaultyWire::disconnect(WireEndpoint* endpoint) noexcept {
  inside_->disconnect(endpoint);
  for (Shadow& shadow : shadows_) {
    if (shadow.outer == nullptr || shadow.endpoint != endpoint || endpoint == nullptr) continue;
    shadow.losing = false;
    if (shadow.lost) end_lost(shadow);
  }
}

void FaultyWire::cancel(WireOp& op) noexcept {
  Shadow* shadow = shadow_of(op);
  if (shadow == nullptr) return;
  if (shadow->endpoint == nullptr) shadow->losing = false;
  if (shadow->started) inside_->cancel(*shadow);
  if (shadow->lost && shadow->endpoint == nullptr) end_lost(*shadow);
}

void FaultyWire::take_back(WireOp& op) noexcept {
  if (Shadow* shadow = shadow_of(op); shadow != nullptr && shadow->started) inside_->take_back(*shadow);
  cancel(op);
}

void FaultyWire::abandon(WireOp& op) noexcept {
  Shadow* shadow = shadow_of(op);
  if (shadow == nullptr) return;
  if (shadow->endpoint == nullptr) shadow->losing = false;
  if (shadow->started) inside_->abandon(*shadow);
  if (shadow->lost && shadow->endpoint == nullptr) end_lost(*shadow);
}

Status FaultyWire::tag_send(WireEndpoint* endpoint, std::uint64_t tag, ConstBuffer source, WireOp& op) noexcept {
  return post(FaultPoint::tag_send, endpoint, op,
              [&](Shadow& shadow) { return inside_->tag_send(endpoint, tag, source, shadow); });
}

Status FaultyWire::tag_recv(std::uint64_t tag, std::uint64_t mask, Buffer landing, WireOp& op) noexcept {
  return post(FaultPoint::tag_recv, nullptr, op,
              [&](Shadow& shadow) { return inside_->tag_recv(tag, mask, landing, shadow); });
}

Status FaultyWire::am_send(WireEndpoint* endpoint, unsigned id, std::span<const std::byte> header, ConstBuffer payload,
                           WireOp& op) noexcept {
  return post(FaultPoint::am_send, endpoint, op,
              [&](Shadow& shadow) { return inside_->am_send(endpoint, id, header, payload, shadow); });
}

Status FaultyWire::am_receive(AmMessage& message, Buffer landing, WireOp& op) noexcept {
  return post(FaultPoint::am_receive, nullptr, op,
              [&](Shadow& shadow) { return inside_->am_receive(message, landing, shadow); });
}

void FaultyWire::set_am_handler(unsigned id, AmHandler handler, void* context) noexcept {
  if (id >= am_slots_.size()) return;
  am_slots_[id] = {this, id, handler, context};
  inside_->set_am_handler(id, handler != nullptr ? &FaultyWire::on_message : nullptr, &am_slots_[id]);
}

void FaultyWire::set_failure_handler(FailureHandler handler, void* context) noexcept {
  failure_handler_ = handler;
  failure_context_ = context;
  inside_->set_failure_handler(handler, context);
}

unsigned FaultyWire::tell_failures() noexcept {
  const std::vector<WireEndpoint*> failed = std::exchange(failed_, {});
  if (failure_handler_ == nullptr) return 0;
  for (WireEndpoint* endpoint : failed) failure_handler_(failure_context_, endpoint);
  return static_cast<unsigned>(failed.size());
}

void FaultyWire::on_message(void* slot, AmMessage& message) noexcept {
  const AmSlot mine = *static_cast<AmSlot*>(slot);
  FaultyWire& wire = *mine.wire;
  ++wire.handled_;
  if (message.data != nullptr && wire.chance(wire.policy_.repeat_rate)) {
    try {
      wire.repeats_.push_back(
          {mine.id, {message.header.begin(), message.header.end()}, {message.data, message.data + message.bytes}});
      ++wire.counts_.repeated;
    } catch (const std::bad_alloc&) {
      // Then it is not repeated; the counter tells.
    }
  }
  mine.handler(mine.context, message);
}

unsigned FaultyWire::progress() noexcept {
  if (held_) return 0;
  ++tick_;
  return inside_->progress() + (ready_.empty() && repeats_.empty() ? 0u : 1u);
}

unsigned FaultyWire::deliver_repeats(unsigned limit) noexcept {
  unsigned done = 0;
  // Those that come up meanwhile are of messages that are repeats already: they wait for the next call.
  for (std::size_t left = repeats_.size(); left > 0 && done < limit; --left, ++done) {
    const Repeat repeat = std::move(repeats_.front());
    repeats_.pop_front();
    AmMessage message;
    message.header = repeat.header;
    const std::byte nothing{};
    message.data = repeat.payload.empty() ? &nothing : repeat.payload.data();
    message.bytes = repeat.payload.size();
    const AmSlot& slot = am_slots_[repeat.id];
    if (slot.handler != nullptr) slot.handler(slot.context, message);
  }
  return done;
}

unsigned FaultyWire::deliver_due(unsigned limit) noexcept {
  unsigned done = 0;
  for (std::size_t left = ready_count_; left > 0 && done < limit; --left) {
    // One turn around the list: those whose time has not come go to its end, in their order.
    auto* shadow = static_cast<Shadow*>(ready_.pop());
    if (shadow->due > tick_) {
      ready_.push(*shadow);
      continue;
    }
    --ready_count_;
    ++done;
    WireOp& outer = *shadow->outer;
    outer.status = shadow->status;
    outer.bytes = shadow->bytes;
    outer.tag = shadow->tag;
    outer.request = nullptr;
    give(*shadow);
    if (outer.on_complete != nullptr) outer.on_complete(outer);
  }
  return done;
}

unsigned FaultyWire::deliver(unsigned limit) noexcept {
  if (held_) return 0;
  unsigned done = deliver_repeats(limit);
  const unsigned before = std::exchange(handled_, 0);
  if (done < limit) inside_->deliver(limit - done);
  done += std::exchange(handled_, before);
  return done + deliver_due(limit - done) + tell_failures();
}

bool FaultyWire::arm() noexcept {
  return !held_ && ready_.empty() && repeats_.empty() && failed_.empty() && inside_->arm();
}

RemoteMemory* FaultyWire::remote_memory() noexcept { return memory_.get(); }

}  // namespace brant::port
