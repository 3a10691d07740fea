#include "port/wire/ucx/ucx_endpoints.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "port/wire/ucx/ucx_envelope.h"
#include "port/wire/ucx/ucx_status.h"

namespace brant::port::ucx {
namespace {

/// Bounds of the waiting in disconnect and close; both normally end after a few calls.
constexpr int kDisconnectProgressMost = 256;
constexpr auto kCloseMost = std::chrono::milliseconds(100);

/// Processes with the same number share memory in UCX's eyes: one boot of one machine and one IPC namespace.
std::uint64_t host_number() {
  std::string name;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> name;
  std::error_code error;
  name += std::filesystem::read_symlink("/proc/self/ns/ipc", error).string();
  return checksum_of(std::as_bytes(std::span(name)));
}

/// Names of transports begin so that reach the memory of a peer without its CPU, or by its kernel.
constexpr std::array kReaching = {"rc_", "dc_", "gga_", "srd", "cma", "knem", "xpmem"};

bool reaches(const UcxLibrary& library, ucp_ep_h endpoint) noexcept {
  std::array<ucp_transport_entry_t, 32> entries{};
  ucp_ep_attr_t attributes{};
  attributes.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
  attributes.transports = {entries.data(), entries.size(), sizeof(ucp_transport_entry_t)};
  if (library.ep_query(endpoint, &attributes) != UCS_OK) return false;
  return std::any_of(entries.begin(), entries.begin() + attributes.transports.num_entries, [](const auto& entry) {
    const std::string_view name(entry.transport_name);
    return std::ranges::any_of(kReaching, [name](const char* begin) { return name.starts_with(begin); });
  });
}

}  // namespace

UcxEndpoints::UcxEndpoints(UcxWorker& worker, UcxOperations& operations, const UcxOptions& options)
    : worker_(worker),
      library_(worker.library()),
      operations_(operations),
      peer_errors_on_same_host_(options.peer_errors_on_same_host),
      mixed_versions_(options.mixed_versions),
      host_(host_number()) {}

std::vector<std::byte> UcxEndpoints::own_address() const {
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  const ucs_status_t status = library_.worker_get_address(worker_.handle(), &address, &bytes);
  if (status != UCS_OK)
    throw Error(status_of(status), fmt::format("wire ucx: UCX gives no address: {}", library_.status_string(status)));
  Envelope envelope;
  envelope.kind = EnvelopeKind::address;
  envelope.version_code = library_.version_code;
  envelope.detail = peer_errors_on_same_host_ ? 1 : 0;
  envelope.base = host_;
  envelope.owner = worker_.owner();
  const auto release = [this](ucp_address_t* packed) { library_.worker_release_address(worker_.handle(), packed); };
  const std::unique_ptr<ucp_address_t, decltype(release)> held(address, release);
  return pack_envelope(envelope, {reinterpret_cast<const std::byte*>(address), bytes});
}

void UcxEndpoints::on_failed(void* endpoint, ucp_ep_h, ucs_status_t status) noexcept {
  auto& mine = *static_cast<UcxEndpoint*>(endpoint);
  mine.table->fail(mine);
  log::info("wire ucx: UCX lost the peer {:016x}: {}", mine.owner, mine.table->library_.status_string(status));
}

void UcxEndpoints::fail(UcxEndpoint& endpoint) noexcept {
  endpoint.failed = true;
  failures_due_ = true;
  operations_.lose(endpoint);
}

void UcxEndpoints::fail_all() noexcept {
  for (const auto& endpoint : endpoints_) fail(*endpoint);
}

unsigned UcxEndpoints::tell_failures() noexcept {
  failures_due_ = false;
  unsigned told = 0;
  for (const auto& endpoint : endpoints_) {
    if (!endpoint->failed || endpoint->closed || std::exchange(endpoint->failure_told, true)) continue;
    if (failure_handler_ == nullptr) continue;
    failure_handler_(failure_context_, reinterpret_cast<WireEndpoint*>(endpoint.get()));
    ++told;
  }
  return told;
}

Result<ucp_ep_h> UcxEndpoints::create(const ucp_address_t* address, UcxEndpoint& endpoint) noexcept {
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = address;
  params.err_handler.cb = &UcxEndpoints::on_failed;
  params.err_handler.arg = &endpoint;
  ucp_ep_h handle = nullptr;
  ucs_status_t status = UCS_ERR_UNREACHABLE;
  if (endpoint.peer_errors) {
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    status = library_.ep_create(worker_.handle(), &params, &handle);
    endpoint.peer_errors = status == UCS_OK;
    if (status == UCS_ERR_UNREACHABLE)
      log::info("wire ucx: no transport to {:016x} reports failures; trying without", endpoint.owner);
  }
  if (status == UCS_ERR_UNREACHABLE) {
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
    status = library_.ep_create(worker_.handle(), &params, &handle);
  }
  if (status == UCS_OK) return handle;
  // Whoever connects knows the peer, and whether its process has ended.
  const auto level = status_of(status) == Status::io_error ? log::Level::info : log::Level::warn;
  log::line(level, "wire ucx: no endpoint to {:016x}: {}. Cure: check UCX_TLS and that the peer lives.", endpoint.owner,
            library_.status_string(status));
  return status_of(status) == Status::in_progress ? Status::internal : status_of(status);
}

Result<WireEndpoint*> UcxEndpoints::connect(std::span<const std::byte> address) noexcept {
  const auto envelope = open_envelope(address, EnvelopeKind::address);
  if (!envelope) {
    log::error("wire ucx: connect: {} bytes that are no address of this adapter, or a damaged one", address.size());
    return Status::invalid_argument;
  }
  if (envelope->version_code != library_.version_code && !mixed_versions_) {
    log::error(
        "wire ucx: the peer {:016x} runs UCX {}.{}.{}, this process {}: mixed versions abort inside UCX. Cure: use one "
        "version everywhere.",
        envelope->owner, envelope->version_code >> 16, envelope->version_code >> 8 & 0xff,
        envelope->version_code & 0xff, library_.version);
    return Status::version_mismatch;
  }
  if ((envelope->detail != 0) != peer_errors_on_same_host_) {
    log::error(
        "wire ucx: the peer {:016x} was opened with peer_errors_on_same_host={}, this wire with {}: UCX aborts on such "
        "pairs. Cure: use one setting "
        "everywhere.",
        envelope->owner, envelope->detail != 0, peer_errors_on_same_host_);
    return Status::version_mismatch;
  }
  if (UcxEndpoint* before = take_kept(envelope->owner)) return reinterpret_cast<WireEndpoint*>(before);
  try {
    // A copy: UCX wants its address aligned.
    const std::vector<std::byte> body(address.begin() + sizeof(Envelope), address.end());
    endpoints_.push_back(std::make_unique<UcxEndpoint>());
    UcxEndpoint& endpoint = *endpoints_.back();
    endpoint.table = this;
    endpoint.owner = envelope->owner;
    endpoint.to_self = envelope->owner == worker_.owner();
    endpoint.peer_errors = peer_errors_on_same_host_ || envelope->base != host_;
    const Result<ucp_ep_h> handle = create(reinterpret_cast<const ucp_address_t*>(body.data()), endpoint);
    if (!handle) {
      endpoints_.pop_back();
      return handle.status();
    }
    endpoint.handle = *handle;
    endpoint.reaches = reaches(library_, *handle);
    return reinterpret_cast<WireEndpoint*>(&endpoint);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

UcxEndpoint* UcxEndpoints::take_kept(std::uint64_t owner) noexcept {
  for (const auto& endpoint : endpoints_) {
    if (endpoint->owner != owner || !endpoint->kept || endpoint->failed) continue;
    endpoint->kept = endpoint->closed = false;
    return endpoint.get();
  }
  return nullptr;
}

/// Null when UCX is done at once or refuses. The answer, if any, must be given to request_free.
ucs_status_ptr_t UcxEndpoints::start_close(UcxEndpoint& endpoint, bool force) noexcept {
  ucp_request_param_t params{};
  if (force) {
    params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  }
  endpoint.closed = true;
  ucs_status_ptr_t answer = library_.ep_close_nbx(std::exchange(endpoint.handle, nullptr), &params);
  return UCS_PTR_IS_ERR(answer) ? nullptr : answer;
}

void UcxEndpoints::disconnect(WireEndpoint* endpoint) noexcept {
  auto* mine = reinterpret_cast<UcxEndpoint*>(endpoint);
  if (mine == nullptr || mine->table != this || mine->closed) return;
  ucs_status_ptr_t closing = nullptr;
  if (mine->peer_errors) {
    closing = start_close(*mine, true);
  } else {
    // UCX cannot withdraw sends in this mode: they are given up below. Nor does it free what it would close: each new
    // endpoint to the same worker would map that one's memory once more.
    mine->closed = mine->kept = true;
  }
  // Also takes in what a dead peer had put into shared memory before it died, so that nothing of it can land later.
  for (int i = 0; i < kDisconnectProgressMost; ++i) {
    const bool busy = worker_.progress() != 0;
    const bool closed = closing == nullptr || library_.request_check_status(closing) != UCS_INPROGRESS;
    if (!busy && closed && mine->pending.first == nullptr) break;
  }
  if (closing != nullptr) library_.request_free(closing);
  mine->sends_given_up = mine->sends_given_up || mine->pending.first != nullptr;
  while (mine->pending.first != nullptr) operations_.give_up(*mine->pending.first);
  mine->pieces_under_way = 0;  // what the peer still says of them is too late
}

void UcxEndpoints::close() noexcept {
  std::vector<ucs_status_ptr_t> closing;
  const auto close = [&](UcxEndpoint& endpoint) {
    if (endpoint.closed && !endpoint.kept) return;
    const bool force = endpoint.peer_errors && (endpoint.failed || endpoint.pending.first != nullptr);
    if (!endpoint.peer_errors && (endpoint.sends_given_up || endpoint.pending.first != nullptr)) return;
    if (ucs_status_ptr_t answer = start_close(endpoint, force); answer != nullptr) closing.push_back(answer);
  };
  try {
    closing.reserve(endpoints_.size());
    for (const auto& endpoint : endpoints_) close(*endpoint);
  } catch (const std::bad_alloc&) {
    log::warn("wire ucx: closing without notice to the peers: no memory");
  }
  const auto until = std::chrono::steady_clock::now() + kCloseMost;
  for (ucs_status_ptr_t answer : closing) {
    while (library_.request_check_status(answer) == UCS_INPROGRESS && std::chrono::steady_clock::now() < until)
      worker_.progress();
    library_.request_free(answer);
  }
}

}  // namespace brant::port::ucx
