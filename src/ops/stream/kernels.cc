#include "ops/stream/kernels.h"

#include <algorithm>
#include <array>
#include <cstring>

// Made by brant_fatbin from kernels.cu.
extern "C" const unsigned char stream_kernels_fatbin[];
extern "C" const std::size_t stream_kernels_fatbin_bytes;

namespace brant {
namespace {

using stream_steps::Decision;
using stream_steps::Receive;

constexpr unsigned kThreads = 512;
constexpr std::uint64_t kBytesPerBlock = kThreads * 16;
constexpr unsigned kBlocksMax = 32;  // 347 GB/s of NVLink's 363; the others are for the user's kernels

/// The thread of an emulated stream: a block by itself.
struct StreamThread : simt::CpuThread {
  using CpuThread::CpuThread;

  void copy(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept {
    if (bytes != 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
};

struct HostEnds {
  StreamMailbox& own;
  StreamMailbox& peer;
  StreamControl& control;
  StreamThread machine;

  explicit HostEnds(const port::HostLaunch& launch) noexcept
      : own(*launch.pointer<StreamMailbox>(0)),
        peer(*launch.pointer<StreamMailbox>(1)),
        control(*launch.pointer<StreamControl>(2)),
        machine(launch.engine_address) {}
};

void send_on_host(const port::HostLaunch& launch) noexcept {
  HostEnds ends(launch);
  Decision decision;
  stream_steps::send(ends.machine, ends.own, ends.peer, ends.control, launch.pointer<std::byte>(3),
                     launch.value<std::uint64_t>(4), launch.pointer<StreamControl::Report>(5), decision);
}

void start_on_host(const port::HostLaunch& launch) noexcept {
  HostEnds ends(launch);
  stream_steps::start_receive(ends.machine, ends.own, ends.peer, ends.control, launch.value<Receive>(3));
}

void finish_on_host(const port::HostLaunch& launch) noexcept {
  HostEnds ends(launch);
  Decision decision;
  stream_steps::finish_receive(ends.machine, ends.own, ends.control, launch.pointer<StreamControl::Report>(3),
                               decision);
}

void receive_on_host(const port::HostLaunch& launch) noexcept {
  HostEnds ends(launch);
  stream_steps::start_receive(ends.machine, ends.own, ends.peer, ends.control, launch.value<Receive>(3));
  Decision decision;
  stream_steps::finish_receive(ends.machine, ends.own, ends.control, launch.pointer<StreamControl::Report>(4),
                               decision);
}

template <typename... Args>
constexpr std::array<std::size_t, sizeof...(Args)> kSizesOf{sizeof(Args)...};

using Mailbox = StreamMailbox*;
using Control = StreamControl*;
using Report = StreamControl::Report*;

}  // namespace

Status StreamKernels::load(port::Device& device) noexcept {
  kernels_ = device.kernels();
  if (kernels_ == nullptr) return Status::not_supported;
  const auto image = std::as_bytes(std::span(stream_kernels_fatbin, stream_kernels_fatbin_bytes));
  const auto one = [&](port::Kernel*& kernel, const char* symbol, port::HostKernel on_host,
                       std::span<const std::size_t> arguments) {
    const Result<port::Kernel*> loaded = kernels_->load({image, symbol, on_host, arguments});
    if (loaded) kernel = *loaded;
    return loaded.status();
  };
  Status status = one(send_, "brant_stream_send", &send_on_host,
                      kSizesOf<Mailbox, Mailbox, Control, std::byte*, std::uint64_t, Report>);
  if (status == Status::ok) {
    status = one(start_, "brant_stream_start", &start_on_host, kSizesOf<Mailbox, Mailbox, Control, Receive>);
  }
  if (status == Status::ok) {
    status = one(finish_, "brant_stream_finish", &finish_on_host, kSizesOf<Mailbox, Mailbox, Control, Report>);
  }
  if (status == Status::ok) {
    status =
        one(receive_, "brant_stream_receive", &receive_on_host, kSizesOf<Mailbox, Mailbox, Control, Receive, Report>);
  }
  return status;
}

template <typename... Args>
Status StreamKernels::launch(port::Kernel* kernel, unsigned blocks, unsigned threads, port::Stream* stream,
                             Args... arguments) const noexcept {
  port::LaunchShape shape;
  shape.grid[0] = blocks;
  shape.block[0] = threads;
  std::array<void*, sizeof...(Args)> addresses{static_cast<void*>(&arguments)...};
  return kernels_->launch(kernel, shape, addresses.data(), stream);
}

Status StreamKernels::send(const Ends& ends, const std::byte* from, std::uint64_t bytes, Report report,
                           port::Stream* stream) const noexcept {
  const std::uint64_t blocks =
      bytes <= StreamMailbox::kEagerBytes ? 1 : std::min<std::uint64_t>(kBlocksMax, bytes / kBytesPerBlock + 1);
  return launch(send_, static_cast<unsigned>(blocks), kThreads, stream, ends.own, ends.peer, ends.control, from, bytes,
                report);
}

Status StreamKernels::start(const Ends& ends, const Receive& receive, port::Stream* stream) const noexcept {
  return launch(start_, 1, 1, stream, ends.own, ends.peer, ends.control, receive);
}

Status StreamKernels::finish(const Ends& ends, Report report, port::Stream* stream) const noexcept {
  return launch(finish_, 1, kThreads, stream, ends.own, ends.peer, ends.control, report);
}

Status StreamKernels::receive(const Ends& ends, const Receive& receive, Report report,
                              port::Stream* stream) const noexcept {
  return launch(receive_, 1, kThreads, stream, ends.own, ends.peer, ends.control, receive, report);
}

}  // namespace brant
