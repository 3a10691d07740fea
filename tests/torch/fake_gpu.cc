// Puts brant's emulated device under PyTorch in the place of a GPU, so that streams, events and tensors "on cuda:0" are
// there on any machine: what the backend of torch.distributed does with them runs as on GPUs. PyTorch has no kernels
// for these tensors; they are filled and read by the functions here, in the order of the current stream.
#include <ATen/ops/from_blob.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "brant/device.h"

namespace {

constexpr c10::StreamId kFirstOfPool = 100;  // programs name those before it

brant::Runtime* g_runtime = nullptr;
thread_local c10::StreamId t_current = 1;

c10::Device fake_device() { return c10::Device(c10::DeviceType::CUDA, 0); }

/// Made when it is first used. Never destroyed, as nothing here: the runtime goes first.
brant::Stream& stream_of(c10::StreamId id) {
  static auto& mutex = *new std::mutex;
  static auto& streams = *new std::map<c10::StreamId, brant::Stream>;
  const std::scoped_lock lock(mutex);
  const auto [place, made] = streams.try_emplace(id);
  if (made) place->second = g_runtime->device().create_stream();
  return place->second;
}

void require(brant::Status status) { TORCH_CHECK(status == brant::Status::ok, brant::status_text(status)); }

brant::Event& event_of(void* event) { return *static_cast<brant::Event*>(event); }

class FakeGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
  c10::Device exchangeDevice(c10::Device) const override { return fake_device(); }
  c10::Device getDevice() const override { return fake_device(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Stream getStream(c10::Device) const override { return named(t_current); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
    static c10::StreamId next = kFirstOfPool;
    return named(next++);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return named(std::exchange(t_current, stream.id())); }
  void* getStreamNativeHandle(const c10::Stream stream) const override { return stream_of(stream.id()).native(); }
  bool queryStream(const c10::Stream& stream) const override {
    return stream_of(stream.id()).poll() == brant::Status::ok;
  }
  void synchronizeStream(const c10::Stream& stream) const override { require(stream_of(stream.id()).synchronize()); }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (*event == nullptr) *event = new brant::Event(g_runtime->device().create_event());
    require(stream_of(stream.id()).record(event_of(*event)));
  }
  void block(void* event, const c10::Stream& stream) const override {
    require(stream_of(stream.id()).wait_for(event_of(event)));
  }
  bool queryEvent(void* event) const override { return event_of(event).poll() == brant::Status::ok; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}

 private:
  static c10::Stream named(c10::StreamId id) { return c10::Stream(c10::Stream::UNSAFE, fake_device(), id); }
};

void install(std::uintptr_t runtime) {
  static const FakeGuard guard;
  g_runtime = reinterpret_cast<brant::Runtime*>(runtime);
  const c10::impl::DeviceGuardImplRegistrar registered(c10::DeviceType::CUDA, &guard);
}

brant::Memory& memory_of(brant::MemoryKind kind, std::size_t bytes) {
  return *new brant::Memory(g_runtime->allocate(kind, std::max<std::size_t>(bytes, 4)));
}

at::Tensor make(std::int64_t count) {
  const auto options = at::TensorOptions().dtype(at::kFloat).device(fake_device());
  brant::Memory& memory = memory_of(brant::MemoryKind::emulated, static_cast<std::size_t>(count) * sizeof(float));
  return at::for_blob(memory.data(), {count}).options(options).target_device(fake_device()).make_tensor();
}

void fill(const at::Tensor& tensor, float value) {
  brant::Memory& values = memory_of(brant::MemoryKind::pinned, tensor.nbytes());
  std::fill_n(values.as<float>(), tensor.numel(), value);
  require(stream_of(t_current).copy({tensor.data_ptr(), tensor.nbytes()}, {values.data(), tensor.nbytes()}));
}

/// What the current stream finds there.
std::vector<float> values_of(const at::Tensor& tensor) {
  brant::Memory& values = memory_of(brant::MemoryKind::pinned, tensor.nbytes());
  require(stream_of(t_current).copy({values.data(), tensor.nbytes()}, {tensor.data_ptr(), tensor.nbytes()}));
  require(stream_of(t_current).synchronize());
  return {values.as<float>(), values.as<float>() + tensor.numel()};
}

/// Gives the current stream something to do: copies of 4 MB.
void keep_busy(int copies) {
  static const brant::Memory& from = memory_of(brant::MemoryKind::emulated, 1 << 22);
  static const brant::Memory& to = memory_of(brant::MemoryKind::emulated, 1 << 22);
  for (int i = 0; i < copies; ++i) require(stream_of(t_current).copy(to, from));
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("install", &install);
  module.def("make", &make);
  module.def("fill", &fill);
  module.def("read", &values_of);
  module.def("keep_busy", &keep_busy);
  module.def("use_stream", [](std::int64_t id) { t_current = id; });
}
