#include "devices.h"

#include <fmt/format.h>

namespace apps {

brant::RuntimeOptions runtime_options_for(std::optional<brant::MemoryKind> kind) {
  brant::RuntimeOptions options = brant::RuntimeOptions::from_environment();
  if (kind == brant::MemoryKind::host) options.gpu = brant::GpuChoice::none;
  if (kind == brant::MemoryKind::cuda) options.gpu = brant::GpuChoice::cuda;
  if (kind == brant::MemoryKind::emulated) options.gpu = brant::GpuChoice::emulated;
  return options;
}

void require_device(brant::Status status, const char* what) {
  if (status == brant::Status::ok) return;
  throw brant::Error(status, fmt::format("the device failed to {}: {}", what, brant::status_text(status)));
}

}  // namespace apps
