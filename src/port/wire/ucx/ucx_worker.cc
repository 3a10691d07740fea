#include "port/wire/ucx/ucx_worker.h"

#include <unistd.h>

#include <random>

#include <fmt/format.h>

#include "port/wire/ucx/ucx_config.h"
#include "port/wire/ucx/ucx_status.h"

namespace brant::port::ucx {
namespace {

std::uint64_t random_owner() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) ^ static_cast<std::uint64_t>(::getpid());
}

}  // namespace

UcxWorker::UcxWorker(const UcxOptions& options)
    : library_(ucx_library()), owner_(random_owner()), context_(open_context(library_, options)) {
  try {
    open(options);
  } catch (...) {
    close();
    throw;
  }
}

void UcxWorker::open(const UcxOptions& options) {
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE | UCP_ATTR_FIELD_MEMORY_TYPES;
  ucs_status_t status = library_.context_query(context_, &attributes);
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (status == UCS_OK) status = library_.worker_create(context_, &params, &worker_);
  if (status == UCS_OK && options.sleep) status = library_.worker_get_efd(worker_, &event_fd_);
  if (status != UCS_OK) {
    throw Error(status_of(status), fmt::format("wire ucx: UCX {} could not open a worker: {}. Cure: check UCX_TLS, the "
                                               "free space of /dev/shm and the limit of "
                                               "open files, or `brant doctor`.",
                                               library_.version, library_.status_string(status)));
  }
  request_bytes_ = attributes.request_size;
  memory_types_ = attributes.memory_types;
}

WireCapabilities UcxWorker::capabilities() const {
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  if (library_.worker_query(worker_, &attributes) != UCS_OK)
    throw Error(Status::internal, "wire ucx: UCX does not tell its largest active-message header");
  WireCapabilities capabilities;
  capabilities.name = "ucx";
  capabilities.version = fmt::format("UCX {} ({})", library_.version, library_.path);
  capabilities.remark = library_.remark;
  capabilities.active_messages = true;
  capabilities.remote_memory = true;
  capabilities.between_processes = true;
  capabilities.can_sleep = event_fd_ >= 0;
  capabilities.reports_truncation_to_sender = false;
  capabilities.am_header_bytes_max = attributes.max_am_header;
  const auto has = [&](ucs_memory_type_t type) { return (memory_types_ >> type & 1u) != 0; };
  const auto bit = [](MemoryKind kind) { return 1u << static_cast<unsigned>(kind); };
  capabilities.kinds = bit(MemoryKind::host) | bit(MemoryKind::pinned);
  if (has(UCS_MEMORY_TYPE_CUDA)) capabilities.kinds |= bit(MemoryKind::cuda);
  if (has(UCS_MEMORY_TYPE_CUDA_MANAGED)) capabilities.kinds |= bit(MemoryKind::cuda_managed);
  return capabilities;
}

void UcxWorker::close() noexcept {
  if (worker_ != nullptr) library_.worker_destroy(worker_);
  if (context_ != nullptr) library_.cleanup(context_);
  worker_ = nullptr;
  context_ = nullptr;
}

void UcxWorker::set_handler(unsigned id, ucp_am_recv_callback_t callback, void* self, std::uint32_t flags) const {
  ucp_am_handler_param_t param{};
  param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG |
                     UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
  param.id = id;
  param.cb = callback;
  param.arg = self;
  param.flags = flags;
  const ucs_status_t status = library_.worker_set_am_recv_handler(worker_, &param);
  if (status == UCS_OK) return;
  throw Error(status_of(status),
              fmt::format("wire ucx: UCX refuses active message id {}: {}", id, library_.status_string(status)));
}

Status UcxWorker::send_header(ucp_ep_h to, unsigned id, std::span<const std::byte> header,
                              unsigned flags) const noexcept {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_COPY_HEADER | UCP_AM_SEND_FLAG_EAGER | flags;
  params.user_data = const_cast<UcxLibrary*>(&library_);
  params.cb.send = [](void* request, ucs_status_t, void* library) {
    static_cast<const UcxLibrary*>(library)->request_free(request);
  };
  ucs_status_ptr_t answer = library_.am_send_nbx(to, id, header.data(), header.size(), nullptr, 0, &params);
  return UCS_PTR_IS_ERR(answer) ? status_of(UCS_PTR_STATUS(answer)) : Status::ok;
}

}  // namespace brant::port::ucx
