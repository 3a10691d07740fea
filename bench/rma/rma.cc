#include "bench/rma/rma.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "bench/rma/player.h"
#include "bench/rma/runner.h"
#include "bench/runner/session.h"

namespace brant::bench {
namespace {

/// Small host memory is not shared with other processes, and checks have a place for several small transfers.
constexpr std::size_t kPlaceBytesMin = std::size_t{64} << 10;

class SessionMeeting final : public RmaMeeting {
 public:
  explicit SessionMeeting(Session& session) : session_(session) {}

  [[nodiscard]] bool leads() const override { return session_.leads(); }
  void barrier() override { session_.barrier(); }
  void target_turns_away() override {
    std::array<std::byte, 1> token{};
    leads() ? session_.partner().receive(token) : session_.partner().send(token);
  }

 private:
  Session& session_;
};

RuntimeOptions runtime_options(const RmaBench& bench) {
  RuntimeOptions wanted = RuntimeOptions::from_environment();
  if (bench.device != GpuChoice::automatic) wanted.gpu = bench.device;
  const bool device = bench.patterns.empty() || std::any_of(bench.patterns.begin(), bench.patterns.end(),
                                                            [](RmaPattern each) { return each.needs_device(); });
  // Host memory needs no GPU: there may be more processes than GPUs.
  if (!device && wanted.gpu == GpuChoice::automatic) wanted.gpu = GpuChoice::none;
  return wanted;
}

/// Both processes have a device.
bool both_have_device(Session& session) {
  std::array<std::byte, 1> mine{}, theirs{};
  mine[0] = std::byte{session.runtime().device_kind() != MemoryKind::host};
  if (session.leads()) {
    session.partner().send(mine);
    session.partner().receive(theirs);
  } else {
    session.partner().receive(theirs);
    session.partner().send(mine);
  }
  return mine[0] == std::byte{1} && theirs[0] == std::byte{1};
}

/// Those that were asked for, or those that there is memory for. Throws Error not_supported.
std::vector<RmaPattern> patterns_here(const RmaBench& bench, Session& session) {
  std::vector<RmaPattern> patterns = bench.patterns.empty() ? all_patterns() : bench.patterns;
  if (both_have_device(session)) return patterns;
  const auto device =
      std::find_if(patterns.begin(), patterns.end(), [](RmaPattern each) { return each.needs_device(); });
  if (device == patterns.end()) return patterns;
  if (!bench.patterns.empty()) {
    throw Error(Status::not_supported,
                fmt::format("--pattern {}: g is memory of a device, and not both processes have one. Cure: a machine "
                            "with a GPU for each process (brant doctor says why one is not used), or --device emulated",
                            pattern_name(*device)));
  }
  std::string left_out;
  std::erase_if(patterns, [&](RmaPattern each) {
    if (each.needs_device()) left_out += " " + pattern_name(each);
    return each.needs_device();
  });
  if (session.leads())
    fmt::print("# not measured, for want of a device:{} (--device emulated tries them on threads of the CPU)\n",
               left_out);
  return patterns;
}

}  // namespace

void run_rma(const RmaBench& bench) {
  Session session(runtime_options(bench), "bench rma");
  const std::vector<RmaPattern> patterns = patterns_here(bench, session);
  const RmaPlaces places(session, patterns, std::max(bench.sizes.back(), kPlaceBytesMin));
  std::vector<std::unique_ptr<RmaPlayer>> owned;
  owned.push_back(make_brant_player(session, places, bench));
  if (bench.ucx) owned.push_back(make_ucx_player(session, places));
  std::vector<RmaPlayer*> players;
  players.reserve(owned.size());
  for (const std::unique_ptr<RmaPlayer>& each : owned) players.push_back(each.get());

  SessionMeeting meeting(session);
  RmaRunner runner(bench, meeting, describe_machine(session.runtime()), session.runtime().device_kind());
  runner.print_title(fmt::format("path {}{}", path_name(bench.path), bench.ucx ? ", beside raw UCX" : ""), patterns);
  runner.run(players, patterns);
}

}  // namespace brant::bench
