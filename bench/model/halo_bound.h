#pragma once

#include <string>
#include <vector>

#include "bench/model/parameters.h"

namespace brant::bench::model {

/// What one process does in an exchange.
struct HaloLoad {
  std::string memory;         ///< "host" or "device".
  double sent_bytes = 0;      ///< To other processes of the host; as many come back.
  double network_bytes = 0;   ///< To those of other hosts.
  double local_bytes = 0;     ///< Copied within the process.
  double messages = 0;        ///< To other processes, that a CPU posts; 0: kernels write.
  double smallest_bytes = 0;  ///< Of what goes to another process at once.
  bool packs = true;          ///< Cells go through buffers; else straight into the ghosts.
  bool notifies = false;      ///< Kernels and the CPU wait for each other.
  /// All is packed before the first message goes, and unpacked when the last one has come; else messages travel
  /// meanwhile.
  bool packs_first = false;
  int launches = 0;  ///< Of kernels that the CPU launches one after another, and sees end. The first one packs.
};

/// A resource, and how long the exchange occupies it at least.
struct Occupied {
  std::string resource;  ///< "link", "copy down", "copy up", "memory", "network", "progress", "launch".
  double us = 0;
};

/// A part of an exchange that nothing of the other parts can be done in.
struct BoundPhase {
  std::string phase;  ///< "pack", "comm", "unpack".
  double us = 0;
  std::string binds;  ///< What takes most of it: a resource, "ring" or "latency".
};

struct HaloBound {
  double us = 0;           ///< No exchange of this load takes less.
  double estimate_us = 0;  ///< What one takes where nothing overlaps but messages.
  std::string binds;       ///< The resource that is occupied longest; empty: none is.
  std::vector<Occupied> resources;
  std::vector<BoundPhase> phases;    ///< Those that take time, in their order; their sum is the bound.
  std::vector<std::string> unknown;  ///< Resources that are used, and were not measured.
};

/// The bound is the sum of three phases:
///
/// pack    launch of the kernel + what it copies + a ring to the CPU
/// comm    the time of the resource that is occupied longest + the latency of the last message
/// unpack  a ring to the kernel + launch + what it copies
///
/// It copies all messages where they are packed first, else the smallest one, and the others are a matter of the
/// resource "memory". The estimate: pack of all + LogGP of all messages + unpack of all. Throws Error not_supported
/// when nothing is known of this memory.
HaloBound bound_halo(const Parameters& parameters, const HaloLoad& load);

}  // namespace brant::bench::model
