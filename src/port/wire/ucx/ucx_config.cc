#include "port/wire/ucx/ucx_config.h"

#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/env.h"
#include "base/log.h"
#include "brant/base/status.h"

namespace brant::port::ucx {
namespace {

struct Setting {
  const char* key;
  const char* value;
};

/// Why these values: docs/gotchas/ucx.md, with the measurements.
constexpr std::array kDefaults = {
    Setting{"RNDV_PIPELINE_ERROR_HANDLING", "y"},  // endpoints that report failures may stage GPU transfers
    Setting{"MAX_RNDV_RAILS", "1"},                // a second rail of another speed only adds variance
    Setting{"CUDA_COPY_DMABUF", "no"},             // UCX 1.22.0 crashes in the probe for managed pools
    Setting{"CUDA_COPY_RETAIN_PRIMARY_CTX", "y"},  // progress may run on a thread without a current context
    Setting{"TCP_CONN_NB", "y"},           // a connect to a host that is gone must not hold the process for a minute
    Setting{"TCP_MAX_CONN_RETRIES", "1"},  // and is given up after seconds
};

/// For failure reports on one host: without this, and with cma, endpoints that report failures leave shared memory for
/// TCP.
constexpr std::array kReporting = {
    Setting{"MM_ERROR_HANDLING", "y"},
};

/// The transports that are left out, as UCX_TLS says it. sysv: posix does the same, and two kinds of shared memory only
/// cost start-up time. cma: see kReporting. tcp: a listener that nobody needs.
std::string transports(const UcxOptions& options) {
  std::string left_out = options.peer_errors_on_same_host ? "^cma,sysv" : "^sysv";
  if (!options.other_hosts) left_out += ",tcp";
  return left_out;
}

struct ConfigRelease {
  const UcxLibrary& library;
  ucp_config_t* config;
  ~ConfigRelease() { library.config_release(config); }
};

bool user_has_set(const std::string& key) { return !env(("UCX_" + key).c_str()).empty(); }

/// Keys of modules that are absent (CUDA_* without a driver) are refused by UCX: that is no fault.
void modify(const UcxLibrary& library, ucp_config_t* config, const std::string& key, const std::string& value) {
  if (user_has_set(key)) return;
  const ucs_status_t status = library.config_modify(config, key.c_str(), value.c_str());
  if (status != UCS_OK)
    log::debug("wire ucx: UCX {} does not take {}={}: {}", library.version, key, value, library.status_string(status));
}

}  // namespace

ucp_context_h open_context(const UcxLibrary& library, const UcxOptions& options) {
  ucp_config_t* config = nullptr;
  ucs_status_t status = library.config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) {
    throw Error(
        Status::invalid_argument,
        fmt::format(
            "wire ucx: UCX {} could not read its configuration: {}. Cure: check the UCX_* environment variables.",
            library.version, library.status_string(status)));
  }
  const ConfigRelease release{library, config};
  modify(library, config, "TLS", transports(options));
  for (const Setting& setting : kDefaults) modify(library, config, setting.key, setting.value);
  if (options.peer_errors_on_same_host) {
    for (const Setting& setting : kReporting) modify(library, config, setting.key, setting.value);
  }
  for (const auto& [key, value] : options.settings) modify(library, config, key, value);

  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA;
  if (options.sleep) params.features |= UCP_FEATURE_WAKEUP;
  params.estimated_num_eps = options.endpoints_expected;
  params.name = "brant";
  ucp_context_h context = nullptr;
  // The oldest interface we use, not that of the headers: UCX warns when it is older than what it is asked for.
  status = library.init_version(1, 16, &params, config, &context);
  if (status != UCS_OK) {
    throw Error(Status::io_error,
                fmt::format("wire ucx: UCX {} ({}) could not start: {}. Cure: check UCX_TLS ({}) and `brant doctor`.",
                            library.version, library.path, library.status_string(status),
                            user_has_set("TLS") ? env("UCX_TLS") : "not set"));
  }
  return context;
}

}  // namespace brant::port::ucx
