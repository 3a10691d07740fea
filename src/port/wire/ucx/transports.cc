#include "port/wire/ucx/transports.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <uct/api/uct.h>
#include <uct/api/version.h>

#include "base/dynamic_library.h"
#include "port/wire/ucx/ucx_library.h"

namespace brant::port {
namespace {

/// The functions of libuct that are needed to list transports.
struct UctLibrary {
  decltype(&uct_query_components) query_components = nullptr;
  decltype(&uct_release_component_list) release_component_list = nullptr;
  decltype(&uct_component_query) component_query = nullptr;
  decltype(&uct_md_config_read) md_config_read = nullptr;
  decltype(&uct_config_release) config_release = nullptr;
  decltype(&uct_md_open) md_open = nullptr;
  decltype(&uct_md_close) md_close = nullptr;
  decltype(&uct_md_query_tl_resources) md_query_tl_resources = nullptr;
  decltype(&uct_release_tl_resource_list) release_tl_resource_list = nullptr;

  /// libuct is mapped already, as a part of libucp. False if a function is missing.
  bool load(const std::string& libucp) {
    const std::string path = (std::filesystem::path(libucp).parent_path() / "libuct.so.0").string();
    const DynamicLibrary libuct(path);
    FunctionFinder functions(libuct);
    functions.need(query_components, "uct_query_components");
    functions.need(release_component_list, "uct_release_component_list");
    functions.need(component_query, "uct_component_query");
    functions.need(md_config_read, "uct_md_config_read");
    functions.need(config_release, "uct_config_release");
    functions.need(md_open, "uct_md_open");
    functions.need(md_close, "uct_md_close");
    functions.need(md_query_tl_resources, "uct_md_query_tl_resources");
    functions.need(release_tl_resource_list, "uct_release_tl_resource_list");
    return functions.missing() == nullptr;
  }
};

void list_domain(const UctLibrary& uct, uct_component_h component, const char* name,
                 std::vector<UcxTransports::Entry>& entries) {
  uct_md_config_t* config = nullptr;
  if (uct.md_config_read(component, nullptr, nullptr, &config) != UCS_OK) return;
  uct_md_h domain = nullptr;
  const ucs_status_t opened = uct.md_open(component, name, config, &domain);
  uct.config_release(config);
  if (opened != UCS_OK) return;
  uct_tl_resource_desc_t* resources = nullptr;
  unsigned count = 0;
  if (uct.md_query_tl_resources(domain, &resources, &count) == UCS_OK) {
    for (unsigned i = 0; i < count; ++i) entries.push_back({resources[i].tl_name, resources[i].dev_name});
    uct.release_tl_resource_list(resources);
  }
  uct.md_close(domain);
}

void list_component(const UctLibrary& uct, uct_component_h component, std::vector<UcxTransports::Entry>& entries) {
  uct_component_attr_t attributes{};
  attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
  if (uct.component_query(component, &attributes) != UCS_OK) return;
  std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
  attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
  attributes.md_resources = domains.data();
  if (domains.empty() || uct.component_query(component, &attributes) != UCS_OK) return;
  for (const uct_md_resource_desc_t& domain : domains) list_domain(uct, component, domain.md_name, entries);
}

}  // namespace

UcxTransports list_ucx_transports() {
  const ucx::UcxLibrary& ucp = ucx::ucx_library();
  UcxTransports result;
  // Unlike libucp's, libuct's interface changes between versions.
  const unsigned compiled = UCT_VERNO_MAJOR << 8 | UCT_VERNO_MINOR;
  if (ucp.version_code >> 8 != compiled) {
    result.reason =
        fmt::format("brant was built with the headers of UCX {}.{}, so it cannot ask UCX {} (`ucx_info -d` can)",
                    UCT_VERNO_MAJOR, UCT_VERNO_MINOR, ucp.version);
    return result;
  }
  UctLibrary uct;
  uct_component_h* components = nullptr;
  unsigned count = 0;
  if (!uct.load(ucp.path) || uct.query_components(&components, &count) != UCS_OK) {
    result.reason = "libuct beside " + ucp.path + " does not answer";
    return result;
  }
  for (unsigned i = 0; i < count; ++i) list_component(uct, components[i], result.entries);
  uct.release_component_list(components);
  if (result.entries.empty()) result.reason = "UCX reports no transport; check the UCX_* environment variables";
  return result;
}

}  // namespace brant::port
