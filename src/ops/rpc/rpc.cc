// The seam between the typed surface (templates) and the service: plain functions.
#include "brant/ops/rpc.h"

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
  invocation.service->release(message_of(packing.message));
}

void send_answer(const Invocation& invocation, const Packing& packing) noexcept {
  invocation.service->send_answer(invocation.source, message_of(packing.message));
}

void fail(const Invocation& invocation, std::exception_ptr error) noexcept {
  invocation.service->fail(invocation, error);
}

}  // namespace remote

PackedCall::PackedCall(remote::RpcService& service, const remote::Function& function, Rank to,
                       std::size_t bytes) noexcept
    : service_(&service), function_(&function), to_(to) {
  am::Message* message = service.open({function.hash, 0, remote::CallKind::call}, bytes);
  if (message == nullptr) return;
  message_ = message;
  arguments_ = message->data;
}

PackedCall::~PackedCall() {
  if (message_ != nullptr) service_->release(remote::message_of(message_));
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
