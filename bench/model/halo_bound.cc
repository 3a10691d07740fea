#include "bench/model/halo_bound.h"

#include <algorithm>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::bench::model {
namespace {

double us_at(double bytes, double gb_s) { return bytes / gb_s / 1e3; }

/// Between memory of this kind: brant's own host memory may be mapped by the receiver.
std::vector<const PathParameters*> paths_of(const Parameters& all, const std::string& memory) {
  std::vector<const PathParameters*> paths;
  for (const PathParameters& path : all.paths) {
    const bool from = path.from == memory || (memory == "host" && path.from == "mapped");
    if (from && path.to == memory) paths.push_back(&path);
  }
  if (paths.empty()) {
    throw Error(Status::not_supported,
                fmt::format("no path between {} memory was measured: run `brant calibrate --model` with it", memory));
  }
  return paths;
}

/// Nothing is faster than the fastest, whichever is taken.
const PathParameters& fastest_of(const std::vector<const PathParameters*>& paths) {
  return **std::max_element(paths.begin(), paths.end(), [](const PathParameters* a, const PathParameters* b) {
    return a->best_gb_s < b->best_gb_s;
  });
}

double least_latency(const std::vector<const PathParameters*>& paths) {
  double least = paths.front()->postal.segments.front().alpha_us.value;
  for (const PathParameters* path : paths) least = std::min(least, path->postal.segments.front().alpha_us.value);
  return least;
}

/// LogGP of m messages of n bytes: o_s + (m - 1) max(g, o_s, n G) + the rest of the last one.
double messages_us(const Parameters& all, const std::vector<const PathParameters*>& paths, double count, double bytes) {
  if (count <= 0) return 0;
  const auto quicker = [&](const PathParameters* a, const PathParameters* b) {
    return a->postal.us(bytes) < b->postal.us(bytes);
  };
  const PiecewisePostal& path = (*std::min_element(paths.begin(), paths.end(), quicker))->postal;
  const double per_byte = path.at(bytes).us_per_byte.value;
  const double gap = std::max({all.messages.gap.value, all.messages.send.value, bytes * per_byte});
  return (count - 1) * gap + path.us(bytes);
}

void occupy(HaloBound& bound, const std::string& resource, double us) {
  if (us > 0) bound.resources.push_back({resource, us});
}

}  // namespace

HaloBound bound_halo(const Parameters& all, const HaloLoad& load) {
  HaloBound bound;
  const std::vector<const PathParameters*> paths = paths_of(all, load.memory);
  const PathParameters& fastest = fastest_of(paths);
  // alpha of a path holds them too.
  const double cpus = all.messages.send.value + all.messages.receive.value;
  occupy(bound, "link", us_at(load.sent_bytes, fastest.best_gb_s));
  if (fastest.path == "staged" && load.sent_bytes > 0) {
    for (const char* way : {"down", "up"}) {
      if (const CopyParameters* copy = all.copy(way)) {
        occupy(bound, fmt::format("copy {}", way), us_at(load.sent_bytes, copy->best_gb_s));
      } else {
        bound.unknown.push_back(fmt::format("copy {}", way));
      }
    }
  }
  const double outgoing = load.sent_bytes + load.network_bytes;
  const double copied = load.local_bytes + (load.packs ? 2 * outgoing : 0);
  const CopyParameters* memory = all.copy(load.memory);
  if (memory != nullptr) {
    occupy(bound, "memory", us_at(copied, memory->best_gb_s));
  } else {
    bound.unknown.emplace_back("memory");
  }
  if (load.network_bytes > 0) bound.unknown.emplace_back("network");
  occupy(bound, "progress", load.messages * cpus);

  const auto longest = std::max_element(bound.resources.begin(), bound.resources.end(),
                                        [](const Occupied& a, const Occupied& b) { return a.us < b.us; });
  if (longest != bound.resources.end()) {
    bound.us = longest->us;
    bound.binds = longest->resource;
  }
  double rings = 0;
  if (load.notifies) {
    if (all.notify) {
      rings = all.notify->to_host + all.notify->to_device;
    } else {
      bound.unknown.emplace_back("notification");
    }
  }
  if (load.messages > 0) bound.us += std::max(0.0, least_latency(paths) - cpus) + rings;
  if (load.packs && memory != nullptr) bound.us += 2 * us_at(load.smallest_bytes, memory->best_gb_s);

  const double packs_us = memory == nullptr ? 0 : us_at(copied, memory->large_gb_s) + (load.packs ? 2 * memory->us : 0);
  const double parts = load.messages > 0 ? load.messages : outgoing > 0 ? 1 : 0;
  bound.estimate_us = packs_us + rings + (parts > 0 ? messages_us(all, paths, parts, outgoing / parts) : 0);
  // The two come of different measurements.
  bound.estimate_us = std::max(bound.estimate_us, bound.us);
  return bound;
}

}  // namespace brant::bench::model
