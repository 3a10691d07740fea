#include "conformance/memory/memory_fixture.h"

#include "port/memory/devices.h"

namespace brant::test {

Bytes pattern(std::size_t bytes, unsigned seed) {
  Bytes made(bytes);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::byte& byte : made) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24);
  }
  return made;
}

std::unique_ptr<port::Device> open_subject(const std::string& name, std::string& reason) {
  using Gpu = port::DeviceRequest::Gpu;
  if (name == "host") return port::open_device({.gpu = Gpu::none});
  if (name == "emulated") return port::open_device({.gpu = Gpu::emulated});
  if (port::list_gpus(&reason).empty()) return nullptr;
  return port::open_device({.gpu = Gpu::cuda});
}

Piece::Piece(port::Device& device, MemoryKind kind, std::size_t bytes) : device_(device), kind_(kind), bytes_(bytes) {
  const Result<void*> pointer = device.allocate(kind, bytes);
  EXPECT_TRUE(pointer.ok()) << bytes << " bytes of " << memory_kind_name(kind) << ": " << status_name(pointer.status());
  if (pointer.ok()) pointer_ = *pointer;
}

Piece::~Piece() { free_now(); }

void Piece::free_now() {
  if (pointer_ == nullptr) return;
  EXPECT_EQ(device_.free(pointer_), Status::ok);
  pointer_ = nullptr;
}

StreamScope::StreamScope(port::Device& device) : streams_(*device.streams()) {
  const Result<port::Stream*> stream = streams_.create_stream(port::StreamPriority::normal);
  EXPECT_TRUE(stream.ok()) << status_name(stream.status());
  if (stream.ok()) stream_ = *stream;
}

EventScope::EventScope(port::Device& device, bool timing) : streams_(*device.streams()) {
  const Result<port::Event*> event = streams_.create_event(timing);
  EXPECT_TRUE(event.ok()) << status_name(event.status());
  if (event.ok()) event_ = *event;
}

void MemoryConformance::SetUp() {
  std::string reason;
  device_ = open_subject(GetParam(), reason);
  if (device_ == nullptr) GTEST_SKIP() << GetParam() << ": " << reason;
}

void StreamConformance::SetUp() {
  MemoryConformance::SetUp();
  if (device_ != nullptr && !device_->capabilities().streams)
    GTEST_SKIP() << GetParam() << ": this device has no streams";
}

std::vector<MemoryKind> MemoryConformance::kinds() const {
  std::vector<MemoryKind> offered;
  for (int kind = 1; kind < kMemoryKindCount; ++kind) {
    if (device_->capabilities().offers(static_cast<MemoryKind>(kind))) offered.push_back(static_cast<MemoryKind>(kind));
  }
  return offered;
}

MemoryKind MemoryConformance::device_kind() const {
  for (const MemoryKind kind : {MemoryKind::cuda, MemoryKind::emulated}) {
    if (device_->capabilities().offers(kind)) return kind;
  }
  return MemoryKind::pinned;
}

void MemoryConformance::write(void* destination, std::span<const std::byte> bytes) {
  if (device_->streams() == nullptr) {
    std::memcpy(destination, bytes.data(), bytes.size());
    return;
  }
  const StreamScope stream(*device_);
  ASSERT_EQ(streams().copy(destination, bytes.data(), bytes.size(), stream), Status::ok);
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
}

Bytes MemoryConformance::read(const void* source, std::size_t bytes) {
  Bytes got(bytes);
  if (device_->streams() == nullptr) {
    std::memcpy(got.data(), source, bytes);
    return got;
  }
  const StreamScope stream(*device_);
  EXPECT_EQ(streams().copy(got.data(), source, bytes, stream), Status::ok);
  EXPECT_EQ(streams().synchronize(stream), Status::ok);
  return got;
}

std::string subject_name(const testing::TestParamInfo<std::string>& info) { return info.param; }

}  // namespace brant::test
