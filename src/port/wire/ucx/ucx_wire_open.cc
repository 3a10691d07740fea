// Opening, connecting, disconnecting and closing: the control half of UcxWire. The data half is in ucx_wire.cc.
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "port/wire/ucx/ucx_atomics.h"
#include "port/wire/ucx/ucx_config.h"
#include "port/wire/ucx/ucx_envelope.h"
#include "port/wire/ucx/ucx_remote_memory.h"
#include "port/wire/ucx/ucx_status.h"
#include "port/wire/ucx/ucx_wire.h"

namespace brant::port {
namespace ucx {
namespace {

constexpr std::size_t kAmEagerBytesMost = std::size_t{1} << 20;

/// Bounds of the waiting in disconnect and close; both normally end after a few calls.
constexpr int kDisconnectProgressMost = 256;
constexpr auto kCloseMost = std::chrono::milliseconds(100);

std::uint64_t random_owner() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) ^ static_cast<std::uint64_t>(::getpid());
}

/// Processes with the same number share memory in UCX's eyes: one boot of one machine and one IPC namespace.
std::uint64_t host_number() {
  std::string name;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> name;
  std::error_code error;
  name += std::filesystem::read_symlink("/proc/self/ns/ipc", error).string();
  return checksum_of(std::as_bytes(std::span(name)));
}

void check_options(const UcxOptions& options) {
  const auto refuse = [](std::string_view what) {
    throw Error(Status::invalid_argument, fmt::format("wire ucx: {}", what));
  };
  if (options.requests_max == 0) refuse("requests_max is 0; at least 1 operation must fit");
  if (options.messages_max == 0) refuse("messages_max is 0; at least 1 message must fit");
  if (options.am_eager_bytes_max > kAmEagerBytesMost)
    refuse(fmt::format("am_eager_bytes_max is {}; at most {}", options.am_eager_bytes_max, kAmEagerBytesMost));
}

/// One to the wire of that name which its user has closed. Null: there is none.
UcxEndpoint* take_kept(std::span<const std::unique_ptr<UcxEndpoint>> endpoints, std::uint64_t owner) noexcept {
  for (const auto& endpoint : endpoints) {
    if (endpoint->owner != owner || !endpoint->kept) continue;
    endpoint->kept = endpoint->closed = false;
    return endpoint.get();
  }
  return nullptr;
}

}  // namespace

UcxWire::UcxWire(const UcxOptions& options)
    : library_(ucx_library()),
      messages_max_(options.messages_max),
      peer_errors_on_same_host_(options.peer_errors_on_same_host),
      mixed_versions_(options.mixed_versions) {
  check_options(options);
  try {
    owner_ = random_owner();
    host_ = host_number();
    context_ = open_context(library_, options);
    open_worker(options);
    read_capabilities();
    capabilities_.am_eager_bytes_max = options.am_eager_bytes_max;
    pack_address();
    register_am_slots();
    prepare_params();
    remote_memory_ = std::make_unique<UcxRemoteMemory>(*this);
    atomics_ = std::make_unique<UcxAtomics>(*this);
  } catch (...) {
    release_ucx();
    throw;
  }
}

UcxWire::~UcxWire() {
  // From here on no callback may touch an op of the caller.
  if (requests_ != nullptr) {
    requests_->for_each_pending([this](UcxRequest& request) {
      request.op = nullptr;
      if (request.kind == RequestKind::receive) library_.request_cancel(worker_, &request);
    });
  }
  while (InboxMessage* message = inbox_.pop()) {
    if (message->descriptor != nullptr) library_.am_data_release(worker_, message->descriptor);
    inbox_.give(*message);
  }
  remote_memory_.reset();
  close_endpoints();
  release_ucx();
}

void UcxWire::release_ucx() noexcept {
  if (worker_ != nullptr) library_.worker_destroy(worker_);
  if (context_ != nullptr) library_.cleanup(context_);
  worker_ = nullptr;
  context_ = nullptr;
}

void UcxWire::open_worker(const UcxOptions& options) {
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE | UCP_ATTR_FIELD_MEMORY_TYPES;
  ucs_status_t status = library_.context_query(context_, &attributes);
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  if (status == UCS_OK) status = library_.worker_create(context_, &params, &worker_);
  if (status == UCS_OK && options.sleep) status = library_.worker_get_efd(worker_, &event_fd_);
  if (status != UCS_OK) {
    throw Error(status_of(status), fmt::format("wire ucx: UCX {} could not open a worker: {}. Cure: check UCX_TLS, the "
                                               "free space of /dev/shm and the limit of "
                                               "open files, or `brant doctor`.",
                                               library_.version, library_.status_string(status)));
  }
  requests_ = std::make_unique<UcxRequestPool>(*this, attributes.request_size, options.requests_max);
  const auto has = [&](ucs_memory_type_t type) { return (attributes.memory_types >> type & 1u) != 0; };
  const auto bit = [](MemoryKind kind) { return 1u << static_cast<unsigned>(kind); };
  capabilities_.kinds = bit(MemoryKind::host) | bit(MemoryKind::pinned);
  if (has(UCS_MEMORY_TYPE_CUDA)) capabilities_.kinds |= bit(MemoryKind::cuda);
  if (has(UCS_MEMORY_TYPE_CUDA_MANAGED)) capabilities_.kinds |= bit(MemoryKind::cuda_managed);
}

void UcxWire::read_capabilities() {
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  if (library_.worker_query(worker_, &attributes) != UCS_OK)
    throw Error(Status::internal, "wire ucx: UCX does not tell its largest active-message header");
  capabilities_.name = "ucx";
  capabilities_.version = fmt::format("UCX {} ({})", library_.version, library_.path);
  capabilities_.active_messages = true;
  capabilities_.remote_memory = true;
  capabilities_.between_processes = true;
  capabilities_.can_sleep = event_fd_ >= 0;
  capabilities_.reports_truncation_to_sender = false;
  capabilities_.am_header_bytes_max = attributes.max_am_header;
}

void UcxWire::pack_address() {
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  const ucs_status_t status = library_.worker_get_address(worker_, &address, &bytes);
  if (status != UCS_OK)
    throw Error(status_of(status), fmt::format("wire ucx: UCX gives no address: {}", library_.status_string(status)));
  Envelope envelope;
  envelope.kind = EnvelopeKind::address;
  envelope.version_code = library_.version_code;
  envelope.detail = peer_errors_on_same_host_ ? 1 : 0;
  envelope.base = host_;
  envelope.owner = owner_;
  try {
    address_ = pack_envelope(envelope, {reinterpret_cast<const std::byte*>(address), bytes});
  } catch (...) {
    library_.worker_release_address(worker_, address);
    throw;
  }
  library_.worker_release_address(worker_, address);
}

/// UCX gets all ids at once: a message that comes before its handler was set then waits in the inbox instead of being
/// dropped by UCX.
void UcxWire::register_am_slots() {
  for (unsigned id = 0; id < am_slots_.size(); ++id) {
    am_slots_[id].wire = this;
    am_slots_[id].id = id;
    ucp_am_handler_param_t param{};
    param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG |
                       UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
    param.id = id;
    param.cb = &UcxWire::on_am_arrived;
    param.arg = &am_slots_[id];
    param.flags = UCP_AM_FLAG_WHOLE_MSG;
    const ucs_status_t status = library_.worker_set_am_recv_handler(worker_, &param);
    if (status != UCS_OK)
      throw Error(status_of(status),
                  fmt::format("wire ucx: UCX refuses active message id {}: {}", id, library_.status_string(status)));
  }
}

void UcxWire::prepare_params() noexcept {
  constexpr std::uint32_t kCommon =
      UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  send_params_.op_attr_mask = kCommon;
  send_params_.cb.send = &UcxWire::on_sent;
  recv_params_.op_attr_mask = kCommon | UCP_OP_ATTR_FIELD_RECV_INFO;
  recv_params_.cb.recv = &UcxWire::on_tag_received;
  recv_params_.recv_info.tag_info = &recv_info_;
  am_params_.op_attr_mask = kCommon | UCP_OP_ATTR_FIELD_FLAGS;
  am_params_.cb.send = &UcxWire::on_sent;
  am_recv_params_.op_attr_mask = kCommon | UCP_OP_ATTR_FIELD_RECV_INFO;
  am_recv_params_.cb.recv_am = &UcxWire::on_am_landed;
  am_recv_params_.recv_info.length = &am_landed_bytes_;
  one_sided_params_.op_attr_mask = kCommon;
  one_sided_params_.cb.send = &UcxWire::on_sent;
}

ucp_request_param_t& UcxWire::one_sided_params(UcxRequest& request, MemoryKind kind) noexcept {
  one_sided_params_.op_attr_mask =
      UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  one_sided_params_.request = &request;
  one_sided_params_.memory_type = memory_type_of(kind);
  return one_sided_params_;
}

RemoteMemory* UcxWire::remote_memory() noexcept { return remote_memory_.get(); }

bool UcxWire::arm() noexcept {
  if (event_fd_ < 0 || !completed_.empty() || !inbox_.empty() || failures_due_) return false;
  return library_.worker_arm(worker_) == UCS_OK;
}

void UcxWire::on_endpoint_failed(void* endpoint, ucp_ep_h, ucs_status_t status) noexcept {
  auto& mine = *static_cast<UcxEndpoint*>(endpoint);
  mine.wire->fail(mine);
  log::info("wire ucx: UCX lost the peer {:016x}: {}", mine.owner, mine.wire->library_.status_string(status));
}

void UcxWire::fail(UcxEndpoint& endpoint) noexcept {
  endpoint.failed = true;
  failures_due_ = true;
  atomics_->lose(endpoint);
}

Result<ucp_ep_h> UcxWire::create_endpoint(const ucp_address_t* address, UcxEndpoint& endpoint) noexcept {
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = address;
  params.err_handler.cb = &UcxWire::on_endpoint_failed;
  params.err_handler.arg = &endpoint;
  ucp_ep_h handle = nullptr;
  ucs_status_t status = UCS_ERR_UNREACHABLE;
  if (endpoint.peer_errors) {
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    status = library_.ep_create(worker_, &params, &handle);
    endpoint.peer_errors = status == UCS_OK;
    if (status == UCS_ERR_UNREACHABLE)
      log::info("wire ucx: no transport to {:016x} reports failures; trying without", endpoint.owner);
  }
  if (status == UCS_ERR_UNREACHABLE) {
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
    status = library_.ep_create(worker_, &params, &handle);
  }
  if (status == UCS_OK) return handle;
  // Whoever connects knows the peer, and whether its process has ended.
  const auto level = status_of(status) == Status::io_error ? log::Level::info : log::Level::warn;
  log::line(level, "wire ucx: no endpoint to {:016x}: {}. Cure: check UCX_TLS and that the peer lives.", endpoint.owner,
            library_.status_string(status));
  return status_of(status) == Status::in_progress ? Status::internal : status_of(status);
}

Result<WireEndpoint*> UcxWire::connect(std::span<const std::byte> address) noexcept {
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
  if (UcxEndpoint* before = take_kept(endpoints_, envelope->owner)) return reinterpret_cast<WireEndpoint*>(before);
  try {
    // A copy: UCX wants its address aligned.
    const std::vector<std::byte> body(address.begin() + sizeof(Envelope), address.end());
    endpoints_.push_back(std::make_unique<UcxEndpoint>());
    UcxEndpoint& endpoint = *endpoints_.back();
    endpoint.wire = this;
    endpoint.owner = envelope->owner;
    endpoint.to_self = envelope->owner == owner_;
    endpoint.peer_errors = peer_errors_on_same_host_ || envelope->base != host_;
    const Result<ucp_ep_h> handle = create_endpoint(reinterpret_cast<const ucp_address_t*>(body.data()), endpoint);
    if (!handle) {
      endpoints_.pop_back();
      return handle.status();
    }
    endpoint.handle = *handle;
    return reinterpret_cast<WireEndpoint*>(&endpoint);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

/// Null when UCX is done at once or refuses. The answer, if any, must be given to request_free.
ucs_status_ptr_t UcxWire::start_close(UcxEndpoint& endpoint, bool force) noexcept {
  ucp_request_param_t params{};
  if (force) {
    params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  }
  endpoint.closed = true;
  const ucs_status_ptr_t answer = library_.ep_close_nbx(std::exchange(endpoint.handle, nullptr), &params);
  return UCS_PTR_IS_ERR(answer) ? nullptr : answer;
}

void UcxWire::disconnect(WireEndpoint* endpoint) noexcept {
  auto* mine = reinterpret_cast<UcxEndpoint*>(endpoint);
  if (mine == nullptr || mine->wire != this || mine->closed) return;
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
    const bool busy = library_.worker_progress(worker_) != 0;
    const bool closed = closing == nullptr || library_.request_check_status(closing) != UCS_INPROGRESS;
    if (!busy && closed && mine->pending.first == nullptr) break;
  }
  if (closing != nullptr) library_.request_free(closing);
  while (mine->pending.first != nullptr) give_up(*mine->pending.first);
}

/// Tidy first (what was sent still arrives), by force when a peer does not answer in time.
void UcxWire::close_endpoints() noexcept {
  std::vector<ucs_status_ptr_t> closing;
  const auto close = [&](UcxEndpoint& endpoint) {
    if (endpoint.closed && !endpoint.kept) return;
    const bool force = endpoint.peer_errors && (endpoint.failed || endpoint.pending.first != nullptr);
    if (!endpoint.peer_errors && endpoint.pending.first != nullptr) return;
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
      library_.worker_progress(worker_);
    library_.request_free(answer);
  }
}

}  // namespace ucx

std::unique_ptr<Wire> open_ucx_wire(const UcxOptions& options) { return std::make_unique<ucx::UcxWire>(options); }

std::string ucx_version() { return ucx::ucx_library().version; }

std::string ucx_library_path() { return ucx::ucx_library().path; }

}  // namespace brant::port
