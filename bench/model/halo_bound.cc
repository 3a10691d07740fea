#include "bench/model/halo_bound.h"

#include <algorithm>
#include <optional>

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

/// How cells are copied in a kind of memory: on a device by a kernel, where that was measured.
struct Copying {
  std::optional<double> best_gb_s;
  double launch_us = 0;  ///< And the sight of its end: what it takes at least.
};

Copying copying_of(const Parameters& all, const HaloLoad& load, std::vector<std::string>& unknown) {
  Copying copying;
  if (const CopyParameters* memory = all.copy(load.memory)) copying.best_gb_s = memory->best_gb_s;
  if (load.memory == "device" && all.pack) {
    copying.best_gb_s = all.pack->best_gb_s;
    copying.launch_us = all.pack->postal.segments.front().alpha_us.low;
  } else if (load.launches > 0) {
    unknown.emplace_back("launch");
  }
  if (!copying.best_gb_s) unknown.emplace_back("memory");
  return copying;
}

const Occupied* longest_of(const std::vector<Occupied>& all) {
  const auto longest =
      std::max_element(all.begin(), all.end(), [](const Occupied& a, const Occupied& b) { return a.us < b.us; });
  return longest == all.end() ? nullptr : &*longest;
}

/// Of parts that follow each other.
void add_phase(HaloBound& bound, const std::string& phase, const std::vector<Occupied>& parts) {
  double us = 0;
  for (const Occupied& part : parts) us += part.us;
  if (us <= 0) return;
  bound.us += us;
  bound.phases.push_back({phase, us, longest_of(parts)->resource});
}

void occupy_link(HaloBound& bound, const Parameters& all, const HaloLoad& load, const PathParameters& fastest) {
  occupy(bound, "link", us_at(load.sent_bytes, fastest.best_gb_s));
  if (fastest.path != "staged" || load.sent_bytes <= 0) return;
  for (const char* way : {"down", "up"}) {
    if (const CopyParameters* copy = all.copy(way)) {
      occupy(bound, fmt::format("copy {}", way), us_at(load.sent_bytes, copy->best_gb_s));
    } else {
      bound.unknown.push_back(fmt::format("copy {}", way));
    }
  }
}

/// What the kernels that pack and unpack take, and the copies within the process, where nothing overlaps.
double copies_us(const Parameters& all, const HaloLoad& load) {
  const double outgoing = load.sent_bytes + load.network_bytes;
  if (load.memory == "device" && all.pack && load.launches > 0) {
    const double first = all.pack->postal.us(std::max(load.local_bytes + (load.packs ? outgoing : 0), 1.0));
    return first + (load.launches > 1 ? all.pack->postal.us(std::max(outgoing, 1.0)) : 0);
  }
  const CopyParameters* const memory = all.copy(load.memory);
  if (memory == nullptr) return 0;
  return us_at(load.local_bytes + (load.packs ? 2 * outgoing : 0), memory->large_gb_s) +
         (load.packs ? 2 * memory->us : 0);
}

}  // namespace

HaloBound bound_halo(const Parameters& all, const HaloLoad& load) {
  HaloBound bound;
  const std::vector<const PathParameters*> paths = paths_of(all, load.memory);
  // alpha of a path holds them too.
  const double cpus = all.messages.send.value + all.messages.receive.value;
  occupy_link(bound, all, load, fastest_of(paths));
  const Copying copying = copying_of(all, load, bound.unknown);
  const auto copy_us = [&](double bytes) { return copying.best_gb_s ? us_at(bytes, *copying.best_gb_s) : 0; };
  const double outgoing = load.sent_bytes + load.network_bytes;
  if (load.network_bytes > 0) bound.unknown.emplace_back("network");
  occupy(bound, "progress", load.messages * cpus);
  const Occupied memory{"memory", copy_us(load.local_bytes + (load.packs ? 2 * outgoing : 0))};
  if (!load.packs_first) occupy(bound, memory.resource, memory.us);
  const Occupied* const busiest = longest_of(bound.resources);  // while messages travel

  NotifyParameters rings;
  if (load.notifies && !all.notify) bound.unknown.emplace_back("notification");
  if (load.notifies && all.notify && load.messages > 0) rings = *all.notify;
  const double latency = load.messages > 0 ? std::max(0.0, least_latency(paths) - cpus) : 0;
  const Occupied launch{"launch", copying.launch_us};
  const Occupied none{"", 0};
  const double least = load.packs ? load.smallest_bytes : 0;
  const double packed = load.packs_first ? load.local_bytes + outgoing : least;
  const double unpacked = load.packs_first ? outgoing : least;
  const Occupied travelling = busiest == nullptr ? none : *busiest;
  add_phase(bound, "pack", {load.launches > 0 ? launch : none, {"memory", copy_us(packed)}, {"ring", rings.to_host}});
  add_phase(bound, "comm", {travelling, {"latency", latency}});
  add_phase(bound, "unpack",
            {{"ring", rings.to_device}, load.launches > 1 ? launch : none, {"memory", copy_us(unpacked)}});

  if (load.packs_first) occupy(bound, memory.resource, memory.us);
  occupy(bound, "launch", load.launches * copying.launch_us);
  if (const Occupied* const longest = longest_of(bound.resources)) bound.binds = longest->resource;

  const double parts = load.messages > 0 ? load.messages : outgoing > 0 ? 1 : 0;
  bound.estimate_us = copies_us(all, load) + rings.to_host + rings.to_device +
                      (parts > 0 ? messages_us(all, paths, parts, outgoing / parts) : 0);
  // The two come of different measurements.
  bound.estimate_us = std::max(bound.estimate_us, bound.us);
  return bound;
}

}  // namespace brant::bench::model
