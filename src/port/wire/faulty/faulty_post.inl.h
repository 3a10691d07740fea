#pragma once

#include "port/wire/faulty/faulty.h"

namespace brant::port {

template <typename Start>
Status FaultyWire::post(FaultPoint point, WireEndpoint* endpoint, WireOp& op, Start&& start) noexcept {
  if (op.request != nullptr) return Status::invalid_argument;
  const FaultRule* rule = rule_for(point);
  if (rule != nullptr && rule->effect == FaultEffect::refuse) {
    ++counts_.refused;
    return rule->status;
  }
  Shadow* shadow = take();
  if (shadow == nullptr) return Status::no_memory;
  shadow->outer = &op;
  shadow->endpoint = endpoint;
  shadow->losing = rule != nullptr && rule->effect == FaultEffect::lose;
  if (rule != nullptr && rule->effect == FaultEffect::fail) {
    ++counts_.failed;
    report_later(*shadow, rule->status);
    return Status::in_progress;
  }
  const Status status = start(*shadow);
  if (policy_.while_posting) policy_.while_posting();
  if (status == Status::in_progress) {
    shadow->started = true;
    op.request = static_cast<WireOp*>(shadow);
    op.status = Status::in_progress;
    return Status::in_progress;
  }
  op.bytes = shadow->bytes;
  op.tag = shadow->tag;
  if (status == Status::ok && (shadow->losing || policy_.completion_delay > 0)) {
    shadow->status = status;
    op.request = static_cast<WireOp*>(shadow);
    on_inside_complete(*shadow);
    return Status::in_progress;
  }
  op.status = status;
  give(*shadow);
  return status;
}

}  // namespace brant::port
