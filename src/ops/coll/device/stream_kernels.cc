#include "ops/coll/device/stream_kernels.h"

#include <array>

#include "ops/coll/device/stream_rounds.h"

// Made by brant_fatbin from stream_kernels.cu.
extern "C" const unsigned char coll_kernels_fatbin[];
extern "C" const std::size_t coll_kernels_fatbin_bytes;

namespace brant::coll {
namespace {

constexpr unsigned kThreads = 512;
constexpr std::array<std::size_t, 1> kArgumentBytes{sizeof(StreamCall)};
constexpr std::array<const char*, 4> kNames = {"brant_coll_rooms", "brant_coll_rooms_light", "brant_coll_lines",
                                               "brant_coll_lines_light"};
std::size_t kernel_for(const StreamCall& call) noexcept {
  return (call.algorithm == StreamAlgorithm::lines ? 2 : 0) + (is_light(call) ? 1 : 0);
}

/// Blocks do not wait for each other: one after the other, as at all members.
void on_host(const port::HostLaunch& launch) noexcept {
  const auto call = launch.value<StreamCall>(0);
  for (std::uint64_t block = 0; block < launch.blocks; ++block) {
    simt::CpuThread machine(launch.engine_address, static_cast<unsigned>(launch.first_block + block),
                            launch.shape.grid[0]);
    run_stream_call(machine, call);
  }
}

}  // namespace

Status StreamKernels::load(port::Device& device) noexcept {
  kernels_ = device.kernels();
  if (kernels_ == nullptr) return Status::not_supported;
  const auto image = std::as_bytes(std::span(coll_kernels_fatbin, coll_kernels_fatbin_bytes));
  std::array<port::Kernel*, kNames.size()> all{};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const Result<port::Kernel*> loaded = kernels_->load({image, kNames[i], &on_host, kArgumentBytes});
    if (!loaded) return loaded.status();
    all[i] = *loaded;
  }
  loaded_ = all;
  return Status::ok;
}

Status StreamKernels::launch(const StreamCall& call, unsigned blocks, port::Stream* stream) const noexcept {
  port::LaunchShape shape;
  shape.grid[0] = blocks;
  shape.block[0] = kThreads;
  StreamCall value = call;
  std::array<void*, 1> arguments{&value};
  return kernels_->launch(loaded_[kernel_for(call)], shape, arguments.data(), stream);
}

}  // namespace brant::coll
