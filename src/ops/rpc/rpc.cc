// The seam between the typed surface (templates) and the service: plain functions.
#include "brant/ops/rpc.h"

#include <algorithm>

#include "ops/lane/data_sources.h"
#include "ops/rpc/data_block.h"
#include "ops/rpc/service.h"

namespace brant {
namespace remote {
namespace {

am::Message& message_of(void* message) noexcept { return *static_cast<am::Message*>(message); }

}  // namespace

Runtime& runtime_of(RpcService& service) noexcept { return service.runtime(); }

Packing open_answer(const Invocation& invocation, std::size_t bytes) noexcept {
  am::Message* message = invocation.service->open({0, invocation.number, CallKind::result}, bytes);
  return message == nullptr ? Packing{} : Packing{message, message->data};
}

void drop_answer(const Invocation& invocation, const Packing& packing) noexcept {
  invocation.service->release(message_of(packing.message));  // of a result, which has no data
}

void send_answer(const Invocation& invocation, const Packing& packing) noexcept {
  invocation.service->send_answer(invocation.source, message_of(packing.message));
}

lane::DataOrigin* take_sources(RpcService& service, const Function& function, detail::DataSource* sources,
                               lane::DataMeta* metas) {
  return lane::take_sources(service.carrier().lanes(), {}, function.name, sources, metas, function.data);
}

Buffer landed_data(const Invocation& invocation, std::size_t index, lane::LandingBlock** block) noexcept {
  return Landings::landed(message_of(invocation.message), index, block);
}

void fail_invocation(const Invocation& invocation, const std::exception_ptr& error) noexcept {
  invocation.service->fail(invocation, error);
}

}  // namespace remote

PackedCall::PackedCall(remote::RpcService& service, const remote::Function& function, Rank to, std::size_t bytes,
                       const remote::PackedData& data) noexcept
    : service_(&service), function_(&function), to_(to) {
  const std::size_t in_front = remote::data_block_bytes(function.data);
  am::Message* message = service.open({function.hash, 0, remote::CallKind::call, function.data}, in_front + bytes);
  if (message == nullptr) {
    service.carrier().lanes().release(data.first, Status::no_memory);
    return;
  }
  message_ = message;
  arguments_ = message->data + in_front;
  if (function.data == 0) return;
  remote::set_data_header(*message, {remote::place_of(data.first), detail::DataState::origins, function.data});
  std::copy_n(data.metas, function.data, remote::data_metas(*message));
}

PackedCall::~PackedCall() {
  if (message_ != nullptr) service_->drop(remote::message_of(message_));
}

Status PackedCall::post(bool at_once) noexcept {
  if (message_ == nullptr) return Status::no_memory;
  const Status status = service_->post(to_, remote::message_of(message_), at_once);
  if (status == Status::ok) message_ = nullptr;
  return status;
}

Status PackedCall::send() noexcept { return post(false); }

Status PackedCall::try_send() noexcept { return post(true); }

Status PackedCall::ask(const detail::Waiting& waiting, bool at_once) noexcept {
  if (message_ == nullptr) {
    service_->answers().refuse(waiting, *function_, to_, Status::no_memory);
    return Status::no_memory;
  }
  const Status status = service_->ask(to_, *function_, remote::message_of(message_), waiting, at_once);
  if (status == Status::ok) message_ = nullptr;
  return status;
}

Rpc::Rpc(Runtime& runtime) : service_(&runtime.worker().engine().service<remote::RpcService>()) {
  service_->live_in(runtime);
}

void Rpc::throw_no_memory() { throw Error(Status::no_memory, "no memory for the message of a remote call"); }

}  // namespace brant
