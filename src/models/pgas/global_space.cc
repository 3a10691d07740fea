#include "brant/pgas/global_space.h"

#include "models/pgas/space_state.h"

namespace brant {

GlobalSpace::GlobalSpace(Runtime& runtime) : runtime_(runtime) {
  auto& service = runtime.worker().engine().service<SpaceService>();
  if (service.state() != nullptr)
    throw Error(Status::invalid_argument, "this runtime has a GlobalSpace: use GlobalSpace::of");
  state_ = std::make_unique<SpaceState>(*this, service);
}

GlobalSpace::~GlobalSpace() = default;

GlobalSpace& GlobalSpace::of(Runtime& runtime) {
  SpaceState* state = runtime.worker().engine().service<SpaceService>().state();
  if (state == nullptr)
    throw Error(Status::not_found, "this runtime has no GlobalSpace: make one before others use its segments");
  return state->space();
}

GlobalSegment GlobalSpace::create(MemoryKind kind, std::size_t bytes) {
  Memory memory = runtime_.allocate(kind, bytes);
  const Buffer view = memory;
  return GlobalSegment(state_->owned().add(std::move(memory), view));
}

GlobalSegment GlobalSpace::adopt(Buffer memory) { return GlobalSegment(state_->owned().add(Memory{}, memory)); }

Status GlobalSpace::post_reach(GlobalPtr<const std::byte> at, Op& op) noexcept { return state_->post_reach(at, op); }

Status GlobalSpace::post_put(GlobalPtr<std::byte> to, ConstBuffer from, Op& op, CopyOptions options) noexcept {
  // A put only reads it.
  const Buffer local(const_cast<void*>(from.data), from.bytes, from.kind);
  return state_->post_move(CopyRecord::Task::put, to, local, op, options);
}

Status GlobalSpace::post_get(GlobalPtr<const std::byte> from, Buffer to, Op& op, CopyOptions options) noexcept {
  return state_->post_move(CopyRecord::Task::get, from, to, op, options);
}

Status GlobalSpace::post_copy(GlobalPtr<const std::byte> from, GlobalPtr<std::byte> to, std::size_t bytes, Op& op,
                              CopyOptions options) noexcept {
  return state_->post_copy(from, to, bytes, op, std::move(options));
}

Status GlobalSpace::post_put_value(GlobalPtr<std::byte> to, ConstBuffer value, Op& op, CopyOptions options) noexcept {
  const Buffer local(const_cast<void*>(value.data), value.bytes, value.kind);
  return state_->post_value(CopyRecord::Task::put, to, local, op, options);
}

Status GlobalSpace::post_get_value(GlobalPtr<const std::byte> from, Buffer to, Op& op, CopyOptions options) noexcept {
  return state_->post_value(CopyRecord::Task::get, from, to, op, options);
}

Status GlobalSpace::post_atomic(GlobalPtr<std::byte> at, const Atomic& what, Op& op, void* before) noexcept {
  return state_->post_atomic(at, what, op, before);
}

Status GlobalSpace::post_fence(Rank rank, Op& op) noexcept { return state_->post_fence(rank, op); }

void* GlobalSpace::host_address(GlobalPtr<const std::byte> at, std::size_t bytes) const noexcept {
  return state_->host_address(at, bytes);
}

void* GlobalSpace::device_address(GlobalPtr<const std::byte> at, std::size_t bytes) const noexcept {
  return state_->device_address(at, bytes);
}

}  // namespace brant
