#include "cli/calibrate/measure.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "bench/runner/channel_contender.h"
#include "bench/runner/statistics.h"
#include "cli/calibrate/load.h"
#include "core/engine.h"
#include "core/paths/calibration_store.h"
#include "core/paths/path_choice.h"
#include "ops/mover/mover.h"
#include "port/memory/adapters.h"

namespace brant::cli::calibrate {
namespace {

constexpr std::size_t kTrialRounds = 4;  ///< Warm-up, and how long one takes.
constexpr int kProcesses = 2;
constexpr double kRoundsMin = 6;
constexpr double kRoundsMax = 2'000;

class Measurement {
 public:
  Measurement(bench::Session& session, const Effort& effort)
      : session_(session),
        effort_(effort),
        engine_(session.runtime().worker().engine()),
        peer_(engine_.peers().connect(session.channel_partner())) {}

  Findings run() {
    const LoadWatch load(kProcesses);
    measure_kind(MemoryKind::host, {Path::shm, Path::ucx});
    measure_mapped();
    const MemoryKind device = session_.runtime().device_kind();
    if (device == MemoryKind::host) {
      note("no device memory: this process has no GPU to itself");
    } else {
      findings_.courier_bytes = courier_bytes(device);
      measure_kind(device, {Path::courier, Path::copy_engine, Path::ucx, Path::staged});
    }
    describe_machine();
    if (std::string complaint = load.complaint(); !complaint.empty()) {
      findings_.busy = true;
      findings_.notes.push_back(std::move(complaint));
    }
    return session_.reports() ? std::move(findings_) : Findings{};
  }

 private:
  void note(const std::string& missing) { findings_.notes.push_back("not measured: " + missing); }

  std::size_t courier_bytes(MemoryKind device) {
    if (engine_.peers().mutual_kind(peer_) != device) return 0;
    return engine_.service<Mover>().courier_bytes();
  }

  PathQuery query(MemoryKind kind, Path forced) {
    PathQuery query;
    query.kind = kind;
    query.shm_open = peer_.link != nullptr;
    query.peer_maps = query.shm_open && engine_.peers().mutual_kind(peer_) == kind;
    query.courier_bytes = findings_.courier_bytes;
    query.wire_takes_kind = engine_.wire().capabilities().takes(kind);
    query.forced = forced;
    return query;
  }

  /// Both processes see the same, so both leave out the same.
  void measure_kind(MemoryKind kind, std::initializer_list<Path> paths) {
    for (int turn = 0; turn < effort_.turns; ++turn) {
      for (const Path path : paths) {
        if (choose_path(query(kind, path)).status == Status::ok) measure_path(kind, path);
      }
    }
    engine_.set_path_order(PathOrder::defaults());
    for (const Path path : paths) {
      const PathChoice choice = choose_path(query(kind, path));
      if (choice.status != Status::ok) {
        note(fmt::format("{} memory, {}: {}", memory_kind_name(kind), path_name(path), choice.reason));
      } else if (findings_.calibration.points(path, EndPair::of(kind, kind)).empty()) {
        note(fmt::format("{} memory, {}: its messages went by other paths", memory_kind_name(kind), path_name(path)));
      }
    }
  }

  /// There is nothing to choose, the receiver copies such messages itself; what that costs is to be said.
  void measure_mapped() {
    if (peer_.link == nullptr) return;
    for (int turn = 0; turn < effort_.turns; ++turn) {
      session_.use(MemoryKind::host, Path::automatic, effort_.sizes.back());
      const bench::Options options;
      bench::ChannelContender contender(session_, options);
      for (const std::size_t bytes : effort_.sizes) {
        if (bytes >= kOfferedBytes) measure_size(contender, kFromMapped, Path::shm, bytes);
      }
    }
    if (findings_.calibration.points(Path::shm, kFromMapped).empty())
      note("host memory that the receiver maps: it could not");
  }

  void measure_path(MemoryKind kind, Path path) {
    // An end that is told to use the network has no link, and is faster by the record that announces a message: what
    // the automatic choice would pay for the network is measured on an end that has one.
    const bool by_choice = path == Path::ucx;
    engine_.set_path_order(PathOrder::preferring(path));
    // Messages in memory that the peer can map are always copied from there: what is chosen is for the others.
    const auto alloc = kind == MemoryKind::host ? bench::Alloc::malloc : bench::Alloc::library;
    session_.use(kind, by_choice ? Path::automatic : path, effort_.sizes.back(), alloc);
    const bench::Options options;
    bench::ChannelContender contender(session_, options);
    for (const std::size_t bytes : effort_.sizes) {
      if (path == Path::courier && bytes > findings_.courier_bytes) break;
      measure_size(contender, EndPair::of(kind, kind), path, bytes);
    }
  }

  void measure_size(bench::ChannelContender& contender, EndPair ends, Path path, std::size_t bytes) {
    session_.barrier();
    if (session_.pair() != 0) return session_.barrier();
    std::vector<double> samples(kTrialRounds);
    contender.ping_pong(bytes, samples);
    samples.resize(rounds_after(samples));
    session_.barrier();
    contender.ping_pong(bytes, samples);
    for (double& sample : samples) sample /= 2;
    const double us = bench::summarize(samples).p50;
    // A courier that is not there lets others go first, for one.
    if (contender.path() == path_name(path)) keep_least(path, ends, {bytes, us});
  }

  void keep_least(Path path, EndPair ends, CostPoint point) {
    const auto known = findings_.calibration.points(path, ends);
    const auto earlier =
        std::find_if(known.begin(), known.end(), [&](const CostPoint& each) { return each.bytes == point.bytes; });
    if (earlier != known.end()) point.us = std::min(point.us, earlier->us);
    findings_.calibration.add(path, ends, point);
  }

  /// The side that leads has the times; both need the number.
  std::size_t rounds_after(const std::vector<double>& trial) {
    std::array<std::byte, sizeof(std::uint64_t)> packed{};
    std::uint64_t rounds = 0;
    if (session_.leads()) {
      const double round_us = std::max(*std::min_element(trial.begin(), trial.end()), 0.01);
      rounds = static_cast<std::uint64_t>(std::clamp(effort_.budget_us / round_us, kRoundsMin, kRoundsMax));
      std::memcpy(packed.data(), &rounds, sizeof(rounds));
      session_.partner().send(packed);
    } else {
      session_.partner().receive(packed);
      std::memcpy(&rounds, packed.data(), sizeof(rounds));
    }
    return static_cast<std::size_t>(rounds);
  }

  void describe_machine() {
    CalibratedMachine& machine = findings_.calibration.machine;
    machine = engine_.machine();
    // Processes on the other GPUs of this machine shall find it fitting too.
    if (session_.runtime().device_kind() != MemoryKind::cuda) return;
    std::vector<std::string> gpus = {peer_.record.device_id};
    for (const port::memory::CudaDeviceSummary& device : port::memory::probe_cuda().devices)
      gpus.push_back(device.uuid);
    for (const std::string& gpu : gpus) {
      const bool known = std::find(machine.gpus.begin(), machine.gpus.end(), gpu) != machine.gpus.end();
      if (!known && !gpu.empty()) machine.gpus.push_back(gpu);
    }
  }

  bench::Session& session_;
  const Effort effort_;
  Engine& engine_;
  Peer& peer_;
  Findings findings_;
};

}  // namespace

Findings measure_paths(bench::Session& session, const Effort& effort) {
  if (!session.runtime().worker().engine().peers().connect(session.channel_partner()).same_host) {
    throw Error(Status::not_supported, "the two processes are on different hosts: a calibration is of one");
  }
  return Measurement(session, effort).run();
}

}  // namespace brant::cli::calibrate
