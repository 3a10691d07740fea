#include "bench/runner/session.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "bench/runner/contender.h"
#include "core/engine.h"
#include "core/paths/path_choice.h"

namespace brant::bench {
namespace {

constexpr std::size_t kSegmentBytesMin = std::size_t{64} << 10;

// Three families of channels, each with an id per pair or rank; of the first one several in turn.
constexpr std::uint32_t kPairsMax = 0x10000;
ChannelId data_channel(int pair, unsigned turn) noexcept {
  return {static_cast<std::uint32_t>(pair) + turn * kPairsMax};
}
ChannelId partner_channel(int pair) noexcept { return {0x1000000u + static_cast<std::uint32_t>(pair)}; }
ChannelId star_channel(int rank) noexcept { return {0x2000000u + static_cast<std::uint32_t>(rank)}; }

RuntimeOptions runtime_options(const Options& options) {
  RuntimeOptions wanted = RuntimeOptions::from_environment();
  switch (options.memory) {
    case MemoryKind::cuda:
    case MemoryKind::cuda_managed: wanted.gpu = GpuChoice::cuda; break;
    case MemoryKind::emulated: wanted.gpu = GpuChoice::emulated; break;
    case MemoryKind::host:
      // Host memory needs no GPU: there may be more processes than GPUs.
      if (wanted.gpu == GpuChoice::automatic) wanted.gpu = GpuChoice::none;
      break;
    case MemoryKind::pinned:
    case MemoryKind::detect: break;
  }
  return wanted;
}

/// A forced path that cannot carry this memory at all; whether two processes share memory is seen when they try.
void require_path(const Options& options, Runtime& runtime) {
  PathQuery query;
  query.kind = options.memory;
  query.wire_takes_kind = runtime.worker().engine().wire().capabilities().takes(options.memory);
  query.shm_open = query.peer_maps = true;
  query.courier_bytes = 1;
  query.forced = options.path;
  query.one_sided = is_one_sided(options.model);
  if (query.one_sided) query.other_kind = options.memory;
  const PathChoice choice = choose_path(query);
  if (choice.status == Status::ok) return;
  throw Error(choice.status, fmt::format("--path {} cannot carry {} memory: {}", path_name(options.path),
                                         memory_kind_name(options.memory), choice.reason));
}

}  // namespace

Session::Session(const Options& options) : runtime_(runtime_options(options)) {
  require_pairs(command_name(options.kind), ranks());
  require_path(options, runtime_);
  connect();
  // Small host memory is not shared with other processes, whatever is put into it.
  const std::size_t least = is_one_sided(options.model) ? kSegmentBytesMin : 0;
  use(options.memory, options.path, std::max(options.sizes.back(), least), options.alloc);
}

Session::Session(const RuntimeOptions& options, const char* name, int ranks_max, int ranks_min) : runtime_(options) {
  leads_ = ranks() == 1;
  if (leads_ && ranks_min == 1) return;
  require_pairs(name, ranks());
  if (ranks() > ranks_max)
    throw Error(Status::invalid_argument,
                fmt::format("{} takes {}2 processes, not {}", name, ranks_min == 1 ? "1 or " : "", ranks()));
  connect();
}

void Session::connect() {
  const int half = ranks() / 2;
  const int self = runtime_.rank().value;
  leads_ = self < half;
  pair_ = self % half;
  if (self == 0) {
    for (int rank = 1; rank < ranks(); ++rank) star_.emplace_back(runtime_, Rank{rank}, star_channel(rank));
  } else {
    star_.emplace_back(runtime_, Rank{0}, star_channel(self));
  }
  partner_.emplace(runtime_, channel_partner(), partner_channel(pair_));
}

void Session::use(MemoryKind memory, Path path, std::size_t largest, Alloc alloc) {
  channel_ = Channel::open(runtime_, channel_partner(), data_channel(pair_, channels_used_++), {.path = path});
  largest = std::max(largest, kReplyBytes);
  memory_ = memory;
  alloc_ = alloc;
  source_ = Space::make(runtime_, memory, largest, alloc);
  landing_ = Space::make(runtime_, memory, largest, alloc);
}

const Space& Session::scratch(std::size_t bytes) {
  if (scratch_.bytes() < bytes) scratch_ = Space::make(runtime_, memory_, bytes, alloc_);
  return scratch_;
}

UcxBaseline& Session::open_rival(UcxBaselineUse use) {
  close_rival();
  rival_ = open_ucx_baseline(use);
  partner_->send_block(rival_->address());
  rival_->connect(partner_->receive_block());
  partner_->keep_moving(rival_.get());
  for (Link& link : star_) link.keep_moving(rival_.get());
  return *rival_;
}

void Session::close_rival() noexcept {
  if (partner_) partner_->keep_moving(nullptr);
  for (Link& link : star_) link.keep_moving(nullptr);
  rival_.reset();
}

void Session::stay_awake() noexcept {
  partner_->stay_awake();
  for (Link& link : star_) link.stay_awake();
}

void Session::barrier() {
  std::array<std::byte, 1> token{};
  if (reports()) {
    for (Link& link : star_) link.receive(token);
    for (Link& link : star_) link.send(token);
  } else {
    star_.front().send(token);
    star_.front().receive(token);
  }
}

std::vector<double> Session::gather(const std::vector<double>& samples) {
  if (!reports()) {
    if (leads_) star_.front().send_block(std::as_bytes(std::span(samples)));
    return {};
  }
  std::vector<double> all = samples;
  for (int rank = 1; rank < ranks() / 2; ++rank) {
    const std::vector<std::byte> block = star_[static_cast<std::size_t>(rank - 1)].receive_block();
    const std::size_t known = all.size();
    all.resize(known + block.size() / sizeof(double));
    std::memcpy(all.data() + known, block.data(), (all.size() - known) * sizeof(double));
  }
  return all;
}

}  // namespace brant::bench
