#include "cli/calibrate/model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "bench/runner/channel_contender.h"
#include "bench/runner/options.h"
#include "bench/runner/statistics.h"
#include "bench/runner/us_since.h"
#include "cli/calibrate/measure.h"
#include "cli/calibrate/packs.h"
#include "cli/calibrate/rings.h"
#include "core/paths/calibration_text.h"

namespace brant::cli::calibrate {
namespace {

namespace model = bench::model;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kSmall = 8;
constexpr std::size_t kLarge = std::size_t{16} << 20;
constexpr std::size_t kPairsBytes = std::size_t{4} << 20;
constexpr std::size_t kPairsWindow = 4;
constexpr std::size_t kFloodMax = 64;
constexpr int kTurns = 3;
constexpr double kBudgetUs = 5'000;
constexpr int kFloods = 200;
constexpr int kLargeFloods = 5;

class ModelMeasurement {
 public:
  explicit ModelMeasurement(bench::Session& session) : session_(session) {}

  ModelFindings run() {
    std::vector<std::size_t> sizes = bench::sizes_between(kSmall, kLarge);
    // Messages that no cache holds are a segment of their own, which needs three points.
    for (const std::size_t more : {kLarge / 8 * 3, kLarge / 4 * 3}) sizes.push_back(more);
    std::sort(sizes.begin(), sizes.end());
    const Findings findings = measure_paths(session_, {.sizes = sizes, .turns = kTurns, .budget_us = kBudgetUs});
    all_.pairs = session_.ranks() / 2;
    if (session_.reports()) fit_paths(findings);
    measure_messages();
    measure_copies();
    session_.barrier();
    const MemoryKind device = session_.runtime().device_kind();
    measure_pairs(MemoryKind::host);
    if (device != MemoryKind::host) {
      measure_pairs(device);
      if (session_.reports()) measure_kernels();
    } else {
      all_.notes.emplace_back(
          "not measured: rings between a kernel and the CPU, and kernels that pack: this process "
          "has no device");
    }
    session_.barrier();
    if (!session_.reports()) return {};
    return {std::move(all_), findings.busy};
  }

 private:
  void fit_paths(const Findings& findings) {
    const CalibratedMachine& machine = findings.calibration.machine;
    all_.brant = machine.brant;
    all_.ucx = machine.ucx;
    all_.cuda = machine.cuda;
    all_.host = machine.host;
    all_.gpus = machine.gpus;
    all_.notes = findings.notes;
    for (const EndPair ends : kAllEndPairs) {
      for (const Path path : kPaths) fit_path(findings.calibration, path, ends);
    }
  }

  void fit_path(const Calibration& calibration, Path path, EndPair ends) {
    const auto measured = calibration.points(path, ends);
    if (measured.empty()) return;
    model::PathParameters parameters;
    parameters.path = path_name(path);
    parameters.from = from_name(ends);
    parameters.to = to_name(ends);
    std::vector<model::Point> points;
    for (const CostPoint& point : measured) {
      const auto bytes = static_cast<double>(point.bytes);
      points.push_back({bytes, point.us});
      parameters.best_gb_s = std::max(parameters.best_gb_s, bytes / point.us / 1e3);
      if (point.bytes == kSmall && !ends.from_device) one_way_us_ = std::min(one_way_us_, point.us);
    }
    const std::string name = fmt::format("{} from {} to {}", path_name(path), from_name(ends), to_name(ends));
    // Where a cache ends, times jump by more than a line tells: the sizes before it are described all the same.
    const std::size_t least = points.size() * 2 / 3;
    for (;;) {
      try {
        parameters.postal = model::fit_postal(points);
        break;
      } catch (const Error& fault) {
        if (fault.status() != Status::not_supported || points.size() <= least) {
          all_.notes.push_back(fmt::format("left out: {}: {}", name, fault.what()));
          return;
        }
        points.pop_back();
      }
    }
    if (points.size() < measured.size()) {
      all_.notes.push_back(fmt::format("{}: no line describes messages above {}", name,
                                       bench::format_size(static_cast<std::size_t>(points.back().bytes))));
    }
    all_.paths.push_back(std::move(parameters));
  }

  /// o_s, o_r and g, of messages of 8 bytes in memory of the host; L is what is left of the way.
  void measure_messages() {
    session_.use(MemoryKind::host, Path::automatic, kLarge);
    std::vector<double> sends, receives;
    for (int i = 0; i < kFloods; ++i) flood(sends, receives);
    if (session_.leads()) {
      receives.resize(kFloods);
      session_.partner().receive(std::as_writable_bytes(std::span(receives)));
    } else {
      session_.partner().send(std::as_bytes(std::span(receives)));
    }
    const std::vector<model::Point> points = floods();
    if (!session_.reports()) return;
    model::LogGp& messages = all_.messages;
    messages.send = median_of(sends);
    messages.receive = median_of(receives);
    try {
      messages.gap = model::fit_postal(points).segments.back().us_per_byte;  // a message more, in place of a byte more
    } catch (const Error& fault) {
      messages.gap = messages.send;
      all_.notes.push_back(fmt::format("the gap between messages is taken to be o_s: {}", fault.what()));
    }
    const double left = one_way_us_ - messages.send.value - messages.receive.value;
    const double latency = std::isfinite(left) ? std::max(left, 0.0) : 0.0;
    messages.latency = {latency, latency, latency};
  }

  /// The median, with an interval from resampled medians: by order statistics, which need no assumption.
  static model::Figure median_of(std::vector<double>& samples) {
    const double median = bench::summarize(samples).p50;  // sorts them
    const auto n = static_cast<double>(samples.size());
    const double spread = 1.96 * std::sqrt(n) / 2;
    const auto at = [&](double place) { return samples[static_cast<std::size_t>(std::clamp(place, 0.0, n - 1))]; };
    return {median, std::min(median, at(n / 2 - spread)), std::max(median, at(n / 2 + spread))};
  }

  /// Messages that follow each other: the leader's time of a post, the partner's of a progress that completes one.
  void flood(std::vector<double>& sends, std::vector<double>& receives) {
    Window window(kFloodMax);
    Channel& channel = session_.channel();
    const bool leads = session_.leads();
    if (session_.pair() != 0) {
      receives.push_back(0);
      session_.barrier();
      return session_.barrier();
    }
    if (!leads) {
      for (std::size_t i = 0; i < kFloodMax; ++i)
        window.add(Moment::delivered, [&](Op& op) noexcept { return channel.post_recv(session_.landing(kSmall), op); });
    }
    session_.barrier();
    const auto begin = Clock::now();
    if (leads) {
      for (std::size_t i = 0; i < kFloodMax; ++i)
        window.add(Moment::source_free,
                   [&](Op& op) noexcept { return channel.post_send(session_.source(kSmall), op); });
      sends.push_back(bench::us_since(begin) / kFloodMax);
    } else {
      receives.push_back(progress_us(window) / kFloodMax);
    }
    session_.runtime().wait(window.drain()).or_throw("calibrate: small messages");
    session_.barrier();
  }

  double progress_us(Window& window) {
    double us = 0;
    const auto until = Clock::now() + std::chrono::seconds(10);
    while (window.pending() > 0 && Clock::now() < until) {
      const std::size_t before = window.pending();
      const auto begin = Clock::now();
      session_.runtime().worker().progress();
      if (window.pending() < before) us += bench::us_since(begin);
    }
    return us;
  }

  /// Microseconds of 1, 2, ... 64 messages and a reply.
  std::vector<model::Point> floods() {
    std::vector<model::Point> points;
    const bench::Options options = [] {
      bench::Options wanted;
      wanted.window = kFloodMax;
      return wanted;
    }();
    bench::ChannelContender contender(session_, options);
    for (std::size_t count = 1; count <= kFloodMax; count *= 2) {
      std::vector<double> us(kFloods);
      session_.barrier();
      if (session_.pair() == 0) contender.windows(kSmall, count, us);
      points.push_back({static_cast<double>(count), bench::summarize(us).p50});
    }
    return points;
  }

  /// Several messages of 4 MB at once, by 1, 2, ... pairs at once, as brant itself chooses their path.
  void measure_pairs(MemoryKind kind) {
    session_.use(kind, Path::automatic, kPairsBytes);
    bench::Options options;
    options.window = kPairsWindow;
    bench::ChannelContender contender(session_, options);
    std::vector<model::PairsPoint> points;
    std::string path;
    for (int turn = 0; turn < kTurns * (session_.ranks() / 2); ++turn) {
      const int pairs = 1 + turn / kTurns;
      std::vector<double> us;
      session_.barrier();
      if (session_.pair() < pairs) {
        us.resize(kLargeFloods + 1);
        contender.windows(kPairsBytes, kPairsWindow, us);
        us.erase(us.begin());  // maps what it meets for the first time
        path = contender.path();
      }
      std::vector<double> all = session_.gather(us);
      if (session_.reports())
        points.push_back({pairs, static_cast<double>(kPairsBytes), bench::summarize(all).p50 / kPairsWindow});
    }
    if (session_.reports()) fit_pairs(kind, path, points);
  }

  void fit_pairs(MemoryKind kind, const std::string& path, const std::vector<model::PairsPoint>& points) {
    const std::string ends = host_accessible(kind) ? "host" : "device";
    const auto fits = [&](const model::PathParameters& each) {
      // Memory of brant can be mapped.
      const bool mapped = each.from == "mapped" || ends == "device";
      return each.path == path && each.to == ends && (path != "shm" || mapped);
    };
    const auto found = std::find_if(all_.paths.begin(), all_.paths.end(), fits);
    if (found == all_.paths.end()) {
      all_.notes.push_back(fmt::format("not fitted: several pairs at once, {} memory by {}: its path has no fit",
                                       memory_kind_name(kind), path));
      return;
    }
    found->best_gb_s = std::max(found->best_gb_s, model::best_rate(points));
    try {
      // Messages that follow each other wait for no latency.
      found->rate = model::fit_max_rate(points, 0);
    } catch (const Error& fault) {
      all_.notes.push_back(fmt::format("not fitted: several pairs at once, {}: {}", path, fault.what()));
    }
  }

  void measure_kernels() {
    all_.notify = measure_rings(session_.runtime());
    try {
      all_.pack = measure_packs(session_.runtime());
    } catch (const Error& fault) {
      if (fault.status() != Status::not_supported) throw;
      all_.notes.push_back(fmt::format("left out: kernels that pack: {}", fault.what()));
    }
  }

  void measure_copies() {
    if (!session_.reports()) return;
    Runtime& runtime = session_.runtime();
    const MemoryKind device = runtime.device_kind();
    measure_copy("host", MemoryKind::host, MemoryKind::host);
    if (device == MemoryKind::host) return;
    measure_copy("device", device, device);
    measure_copy("up", MemoryKind::pinned, device);
    measure_copy("down", device, MemoryKind::pinned);
  }

  void measure_copy(const char* what, MemoryKind from, MemoryKind to) {
    Runtime& runtime = session_.runtime();
    const Memory source = runtime.allocate(from, kLarge);
    const Memory target = runtime.allocate(to, kLarge);
    const bool by_cpu = from == MemoryKind::host && to == MemoryKind::host;
    const auto copy = [&](std::size_t bytes) {
      by_cpu ? static_cast<void>(std::memcpy(target.data(), source.data(), bytes))
             : runtime.copy(target.part(0, bytes), source.part(0, bytes));
    };
    if (by_cpu) std::memset(source.data(), 1, kLarge);
    model::CopyParameters found{what, 0, 0, 0};
    for (std::size_t bytes = 1024; bytes <= kLarge; bytes *= 4) {
      copy(bytes);
      std::vector<double> us(9);
      const std::size_t times = std::max<std::size_t>(1, (std::size_t{64} << 10) / bytes);
      for (double& each : us) {
        const auto begin = Clock::now();
        for (std::size_t i = 0; i < times; ++i) copy(bytes);
        each = bench::us_since(begin) / static_cast<double>(times);
      }
      const bench::Summary summary = bench::summarize(us);
      if (found.us == 0) found.us = summary.p50;
      found.best_gb_s = std::max(found.best_gb_s, static_cast<double>(bytes) / summary.min / 1e3);
      found.large_gb_s = static_cast<double>(bytes) / summary.p50 / 1e3;
    }
    all_.copies.push_back(found);
  }

  bench::Session& session_;
  model::Parameters all_;
  double one_way_us_ = std::numeric_limits<double>::infinity();
};

std::string shown(const model::Figure& figure, const char* format = "{:.3g} ({:.3g} to {:.3g})") {
  return fmt::format(fmt::runtime(format), figure.value, figure.low, figure.high);
}

/// As rates are read: the slower end of beta is the lower one of the rate.
std::string rate_text(const model::Figure& beta) {
  if (beta.value <= 0) return "any size alike";
  const auto rate = [](double us_per_byte) { return us_per_byte > 0 ? 1e-3 / us_per_byte : HUGE_VAL; };
  return shown({rate(beta.value), rate(beta.high), rate(beta.low)});
}

std::string size_text(double bytes) {
  return std::isfinite(bytes) ? bench::format_size(static_cast<std::size_t>(bytes / 8) * 8) : "-";
}

std::string pack_text(const model::PackParameters& pack) {
  std::string text =
      fmt::format("kernels that pack, until the CPU sees the end, {:.3g} GB/s at best\n", pack.best_gb_s);
  for (const model::Postal& segment : pack.postal.segments) {
    text += fmt::format("{:<29} {:>10}  {:<26} {:<26} {:>6.3f} {:>8.1f}%\n", "", size_text(segment.up_to),
                        shown(segment.alpha_us), rate_text(segment.us_per_byte), pack.postal.r2,
                        100 * pack.postal.residual);
  }
  return text;
}

}  // namespace

ModelFindings measure_model(bench::Session& session) { return ModelMeasurement(session).run(); }

std::string to_text(const model::Parameters& all) {
  std::string text = fmt::format("{:<12} {:<8} {:<8} {:>10}  {:<26} {:<26} {:>6} {:>9}\n", "path", "from", "to",
                                 "up to", "alpha us (95 %)", "GB/s (95 %)", "R2", "residual");
  for (const model::PathParameters& path : all.paths) {
    for (const model::Postal& segment : path.postal.segments) {
      text += fmt::format("{:<12} {:<8} {:<8} {:>10}  {:<26} {:<26} {:>6.3f} {:>8.1f}%\n", path.path, path.from,
                          path.to, size_text(segment.up_to), shown(segment.alpha_us), rate_text(segment.us_per_byte),
                          path.postal.r2, 100 * path.postal.residual);
    }
  }
  text += fmt::format("\nseveral pairs at once ({} measured), GB/s (95 %)\n", all.pairs);
  for (const model::PathParameters& path : all.paths) {
    if (!path.rate) continue;
    const model::Rates& rates = path.rate->rates;
    text +=
        fmt::format("{:<12} {:<8} first {}, each more {}, node {}\n", path.path, path.from, shown(rates.first),
                    rates.more ? shown(*rates.more) : "not measured", rates.node ? shown(*rates.node) : "not reached");
  }
  text += fmt::format("\nmessages of 8 bytes, us (95 %): o_s {}, o_r {}, g {}, L {:.3g}\n", shown(all.messages.send),
                      shown(all.messages.receive), shown(all.messages.gap), all.messages.latency.value);
  for (const model::CopyParameters& copy : all.copies) {
    text += fmt::format("copies, {}: {:.3g} us at least, {:.3g} GB/s, {:.3g} at best\n", copy.what, copy.us,
                        copy.large_gb_s, copy.best_gb_s);
  }
  if (all.notify) {
    text += fmt::format("rings, us: from a kernel to the CPU {:.3g}, from the CPU to a kernel {:.3g}\n",
                        all.notify->to_host, all.notify->to_device);
  }
  if (all.pack) text += pack_text(*all.pack);
  for (const std::string& note : all.notes) text += fmt::format("{}\n", note);
  return text;
}

}  // namespace brant::cli::calibrate
