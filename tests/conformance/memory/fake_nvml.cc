// A stand-in for NVIDIA's management library, built as libnvidia-ml.so.1 beside the stand-in for the driver: its GPUs
// hang on NVLink switches, 6 links each.
#include <cstdint>
#include <cstdio>

namespace {

int g_started = 0;  // calls of nvmlInit less those of nvmlShutdown

}  // namespace

extern "C" {

[[gnu::visibility("default")]] int nvmlInit_v2() { return ++g_started, 0; }
[[gnu::visibility("default")]] int nvmlShutdown() { return --g_started, 0; }
[[gnu::visibility("default")]] const char* nvmlErrorString(int) { return "as told"; }
[[gnu::visibility("default")]] int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  unsigned bus = 0;
  if (std::sscanf(bus_id, "%*x:%x:", &bus) != 1 || bus < 0x1b) return 6;
  *device = reinterpret_cast<void*>(static_cast<std::uintptr_t>(bus));
  return g_started == 1 ? 0 : 1;
}
[[gnu::visibility("default")]] int nvmlDeviceGetNvLinkState(void*, unsigned link, int* state) {
  return *state = 1, link < 6 ? 0 : 2;
}
[[gnu::visibility("default")]] int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int* type) {
  return *type = 2, 0;
}
[[gnu::visibility("default")]] int nvmlDeviceGetTopologyCommonAncestor(void*, void*, int* level) {
  return *level = 50, 0;
}
[[gnu::visibility("default")]] int fake_nvml_started() { return g_started; }

}  // extern "C"
