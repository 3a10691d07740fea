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

/// Blocks do not wait for each other: one after the other, as at all members.
void on_host(const port::HostLaunch& launch) noexcept {
  const auto call = launch.value<StreamCall>(0);
  for (std::uint64_t block = 0; block < launch.blocks; ++block) {
    simt::CpuThread machine(launch.engine_address, static_cast<unsigned>(launch.first_block + block),
                            launch.shape.grid[0]);
    StreamRounds<simt::CpuThread>(machine, call).run();
  }
}

}  // namespace

Status StreamKernels::load(port::Device& device) noexcept {
  kernels_ = device.kernels();
  if (kernels_ == nullptr) return Status::not_supported;
  const auto image = std::as_bytes(std::span(coll_kernels_fatbin, coll_kernels_fatbin_bytes));
  const Result<port::Kernel*> loaded = kernels_->load({image, "brant_coll_stream", &on_host, kArgumentBytes});
  if (loaded) kernel_ = *loaded;
  return loaded.status();
}

Status StreamKernels::launch(const StreamCall& call, unsigned blocks, port::Stream* stream) const noexcept {
  port::LaunchShape shape;
  shape.grid[0] = blocks;
  shape.block[0] = kThreads;
  StreamCall value = call;
  std::array<void*, 1> arguments{&value};
  return kernels_->launch(kernel_, shape, arguments.data(), stream);
}

}  // namespace brant::coll
