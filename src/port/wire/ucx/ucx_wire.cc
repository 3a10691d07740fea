#include "port/wire/ucx/ucx_wire.h"

#include <string_view>

#include <fmt/format.h>

namespace brant::port {
namespace ucx {
namespace {

constexpr std::size_t kAmEagerBytesMost = std::size_t{1} << 20;

const UcxOptions& checked(const UcxOptions& options) {
  const auto refuse = [](std::string_view what) {
    throw Error(Status::invalid_argument, fmt::format("wire ucx: {}", what));
  };
  if (options.requests_max == 0) refuse("requests_max is 0; at least 1 operation must fit");
  if (options.messages_max == 0) refuse("messages_max is 0; at least 1 message must fit");
  if (options.am_eager_bytes_max > kAmEagerBytesMost)
    refuse(fmt::format("am_eager_bytes_max is {}; at most {}", options.am_eager_bytes_max, kAmEagerBytesMost));
  return options;
}

WireCapabilities capabilities_of(const UcxWorker& worker, const UcxOptions& options) {
  WireCapabilities capabilities = worker.capabilities();
  capabilities.am_eager_bytes_max = options.am_eager_bytes_max;
  return capabilities;
}

}  // namespace

UcxWire::UcxWire(const UcxOptions& options)
    : worker_(checked(options)),
      capabilities_(capabilities_of(worker_, options)),
      operations_(worker_, capabilities_, options.requests_max),
      endpoints_(worker_, operations_, options),
      address_(endpoints_.own_address()),
      tags_(worker_, operations_, endpoints_),
      messages_(worker_, operations_, endpoints_, capabilities_, options.messages_max),
      remote_memory_(worker_, operations_, endpoints_) {}

/// The worker ends before the memory of the requests, which UCX knows until then.
UcxWire::~UcxWire() {
  const auto cancel = [this](UcxRequest& request) { worker_.library().request_cancel(worker_.handle(), &request); };
  operations_.forget_ops(cancel);
  messages_.drop_arrived();
  remote_memory_.release();
  endpoints_.close();
  worker_.close();
}

unsigned UcxWire::progress() noexcept {
  // A full inbox stops the intake: the transports fill up and hold the senders back.
  return messages_.full() ? 1 : worker_.progress();
}

unsigned UcxWire::deliver(unsigned limit) noexcept {
  unsigned done = 0;
  // By turns, so that neither a stream of completions nor one of messages starves the other.
  while (done < limit) {
    const bool told = operations_.deliver_one();
    if (told) ++done;
    const bool handed_over = done < limit && messages_.deliver_one();
    if (handed_over) ++done;
    if (!told && !handed_over) break;
  }
  if (endpoints_.failures_due()) done += endpoints_.tell_failures();
  return done;
}

bool UcxWire::arm() noexcept {
  if (operations_.any_done() || messages_.any_arrived() || endpoints_.failures_due()) return false;
  return worker_.arm();
}

}  // namespace ucx

std::unique_ptr<Wire> open_ucx_wire(const UcxOptions& options) { return std::make_unique<ucx::UcxWire>(options); }

std::string ucx_version() { return ucx::ucx_library().version; }

std::string ucx_library_path() { return ucx::ucx_library().path; }

}  // namespace brant::port
