#pragma once

#include <string>

#include <ucp/api/ucp.h>

namespace brant::port::ucx {

constexpr const char* kSoname = "libucp.so.0";
constexpr unsigned kOldestMajor = 1;
constexpr unsigned kOldestMinor = 16;

/// The UCX functions brant uses, found with dlsym. One set per process, loaded on first use and never unloaded (UCX
/// keeps a thread and hooks of its own).
struct UcxLibrary {
  decltype(&ucp_get_version) get_version = nullptr;
  decltype(&ucp_get_version_string) get_version_string = nullptr;
  decltype(&ucp_config_read) config_read = nullptr;
  decltype(&ucp_config_modify) config_modify = nullptr;
  decltype(&ucp_config_release) config_release = nullptr;
  decltype(&ucp_init_version) init_version = nullptr;
  decltype(&ucp_cleanup) cleanup = nullptr;
  decltype(&ucp_context_query) context_query = nullptr;
  decltype(&ucp_worker_create) worker_create = nullptr;
  decltype(&ucp_worker_destroy) worker_destroy = nullptr;
  decltype(&ucp_worker_query) worker_query = nullptr;
  decltype(&ucp_worker_release_address) worker_release_address = nullptr;
  decltype(&ucp_worker_get_address) worker_get_address = nullptr;
  decltype(&ucp_worker_progress) worker_progress = nullptr;
  decltype(&ucp_worker_get_efd) worker_get_efd = nullptr;
  decltype(&ucp_worker_arm) worker_arm = nullptr;
  decltype(&ucp_worker_set_am_recv_handler) worker_set_am_recv_handler = nullptr;
  decltype(&ucp_ep_create) ep_create = nullptr;
  decltype(&ucp_ep_query) ep_query = nullptr;
  decltype(&ucp_ep_close_nbx) ep_close_nbx = nullptr;
  decltype(&ucp_ep_flush_nbx) ep_flush_nbx = nullptr;
  decltype(&ucp_tag_send_nbx) tag_send_nbx = nullptr;
  decltype(&ucp_tag_recv_nbx) tag_recv_nbx = nullptr;
  decltype(&ucp_tag_probe_nb) tag_probe_nb = nullptr;
  decltype(&ucp_request_cancel) request_cancel = nullptr;
  decltype(&ucp_request_check_status) request_check_status = nullptr;
  decltype(&ucp_request_free) request_free = nullptr;
  decltype(&ucp_am_send_nbx) am_send_nbx = nullptr;
  decltype(&ucp_am_recv_data_nbx) am_recv_data_nbx = nullptr;
  decltype(&ucp_am_data_release) am_data_release = nullptr;
  decltype(&ucp_mem_map) mem_map = nullptr;
  decltype(&ucp_mem_unmap) mem_unmap = nullptr;
  decltype(&ucp_mem_query) mem_query = nullptr;
  decltype(&ucp_rkey_pack) rkey_pack = nullptr;
  decltype(&ucp_rkey_buffer_release) rkey_buffer_release = nullptr;
  decltype(&ucp_ep_rkey_unpack) ep_rkey_unpack = nullptr;
  decltype(&ucp_rkey_destroy) rkey_destroy = nullptr;
  decltype(&ucp_rkey_ptr) rkey_ptr = nullptr;
  decltype(&ucp_put_nbx) put_nbx = nullptr;
  decltype(&ucp_get_nbx) get_nbx = nullptr;
  decltype(&ucp_atomic_op_nbx) atomic_op_nbx = nullptr;  ///< Of benchmarks: see UcxAtomics.
  decltype(&ucs_status_string) status_string = nullptr;

  std::string path;           ///< The file libucp was loaded from.
  std::string version;        ///< "1.22.0"
  unsigned version_code = 0;  ///< major << 16 | minor << 8 | release
  std::string remark;         ///< Whose it is, and why that matters, if others brought it; else empty.
};

/// Loads on the first call. Thread-safe. Throws Error (see open.h).
const UcxLibrary& ucx_library();

}  // namespace brant::port::ucx
