#include "core/memory_kinds.h"

#include <cstdint>
#include <memory>

#include <gtest/gtest.h>

#include "port/memory/devices.h"

namespace brant {
namespace {

std::unique_ptr<port::Device> device_without_gpu() {
  port::DeviceRequest request;
  request.gpu = port::DeviceRequest::Gpu::none;
  return port::open_device(request);
}

TEST(MemoryKinds, take_undeclared_memory_for_the_hosts_where_there_is_no_other) {
  const auto device = device_without_gpu();
  MemoryKinds kinds(*device);
  int value = 0;
  MemoryKind kind = MemoryKind::detect;
  EXPECT_EQ(kinds.resolve(&value, sizeof(value), kind), Status::ok);
  EXPECT_EQ(kind, MemoryKind::host);
}

TEST(MemoryKinds, refuse_what_is_no_memory) {
  const auto device = device_without_gpu();
  MemoryKinds kinds(*device);
  MemoryKind kind = MemoryKind::host;
  EXPECT_EQ(kinds.resolve(nullptr, 8, kind), Status::invalid_argument);
  EXPECT_EQ(kinds.resolve(nullptr, 0, kind), Status::ok);
  int value = 0;
  EXPECT_EQ(kinds.resolve(&value, SIZE_MAX, kind), Status::invalid_argument) << "it goes around";
}

TEST(MemoryKinds, refuse_null_behind_other_memory_of_the_host) {
  const auto device = device_without_gpu();
  MemoryKinds kinds(*device);
  int value = 0;
  MemoryKind kind = MemoryKind::host;
  EXPECT_EQ(kinds.resolve(&value, sizeof(value), kind), Status::ok);
  EXPECT_EQ(kinds.resolve(nullptr, 8, kind), Status::invalid_argument) << "what is around `value` begins behind null";
  EXPECT_EQ(kinds.resolve(&value, SIZE_MAX, kind), Status::invalid_argument) << "it goes around";
}

TEST(MemoryKinds, know_the_end_of_what_the_device_allocated) {
  const auto device = device_without_gpu();
  MemoryKinds kinds(*device);
  const Result<void*> memory = device->allocate(MemoryKind::host, 4096);
  ASSERT_TRUE(memory.ok());
  MemoryKind kind = MemoryKind::host;
  EXPECT_EQ(kinds.resolve(*memory, 4096, kind), Status::ok);
  EXPECT_EQ(kinds.resolve(*memory, 4097, kind), Status::invalid_argument);
  auto* inside = static_cast<std::byte*>(*memory) + 96;
  EXPECT_EQ(kinds.resolve(inside, 4000, kind), Status::ok) << "from what was found out before";
  EXPECT_EQ(kinds.resolve(inside, 4001, kind), Status::invalid_argument);
  ASSERT_EQ(device->free(*memory), Status::ok);
}

TEST(MemoryKinds, find_memory_wrong_that_was_declared_as_a_kind_which_there_is_not) {
  const auto device = device_without_gpu();
  MemoryKinds kinds(*device);
  int value = 0;
  MemoryKind kind = MemoryKind::cuda;
  EXPECT_EQ(kinds.resolve(&value, sizeof(value), kind), Status::wrong_kind);
}

}  // namespace
}  // namespace brant
