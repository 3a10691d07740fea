#include "port/memory/devices.h"

#include <string>

#include <gtest/gtest.h>

#include "support/environment.h"

namespace brant::port {
namespace {

using test::ScopedVariable;
using Gpu = DeviceRequest::Gpu;

bool machine_has_a_gpu() { return !list_gpus().empty(); }

TEST(Devices, an_empty_list_comes_with_a_reason) {
  std::string reason = "unchanged";
  const bool empty = list_gpus(&reason).empty();
  EXPECT_EQ(empty, !reason.empty());
}

TEST(Devices, none_is_the_host_even_with_a_gpu) {
  EXPECT_EQ(open_device({.gpu = Gpu::none})->capabilities().name, "host");
}

TEST(Devices, emulated_takes_the_rank_as_its_number) {
  const auto device = open_device({.gpu = Gpu::emulated, .local_rank = 3, .local_size = 4});
  EXPECT_EQ(device->capabilities().name, "emulated");
  EXPECT_EQ(device->capabilities().ordinal, 3);
}

TEST(Devices, automatic_without_a_gpu_is_the_host) {
  if (machine_has_a_gpu()) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(open_device({})->capabilities().name, "host");
}

TEST(Devices, a_gpu_demanded_but_missing_is_an_error_with_the_reason) {
  if (machine_has_a_gpu()) GTEST_SKIP() << "this machine has a GPU";
  std::string reason;
  list_gpus(&reason);
  for (const DeviceRequest& request : {DeviceRequest{.gpu = Gpu::cuda}, DeviceRequest{.ordinal = 0}}) {
    try {
      open_device(request);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::not_supported);
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  }
}

TEST(Devices, a_cost_that_is_no_number_is_refused_by_name) {
  for (const char* value : {"fast", "-1", "1us", "nan"}) {
    const ScopedVariable variable("BRANT_EMULATED_US", value);
    try {
      open_device({.gpu = Gpu::emulated});
      ADD_FAILURE() << "no error for " << value;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("BRANT_EMULATED_US"), std::string::npos) << error.what();
    }
  }
  const ScopedVariable variable("BRANT_EMULATED_US", "1.5");
  EXPECT_NE(open_device({.gpu = Gpu::emulated}), nullptr);
}

}  // namespace
}  // namespace brant::port
