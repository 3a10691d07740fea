#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/rma/kind_pattern.h"
#include "brant/brant.h"

namespace brant::bench {

/// What is timed.
enum class RmaSync {
  block,   ///< One transfer, waited for: latency.
  flood,   ///< A window of them, all waited for together: bandwidth.
  notify,  ///< A window of puts whose target is told of each arrival, and acknowledges the window.
  inject,  ///< The posts of a window alone: what a transfer costs who starts it.
};

/// One line of the table before it is measured.
struct RmaCase {
  RmaDirection direction = RmaDirection::put;
  RmaPattern pattern;
  RmaSync sync = RmaSync::block;
  std::size_t bytes = 8;
  std::size_t window = 1;  ///< Transfers of a sample; 1 for block.

  [[nodiscard]] bool puts() const noexcept { return direction == RmaDirection::put; }
};

/// What the user asked for.
struct RmaBench {
  std::vector<RmaDirection> directions{RmaDirection::put, RmaDirection::get};
  std::vector<RmaPattern> patterns;  ///< Empty: all that this machine has memory for.
  std::vector<RmaSync> syncs{RmaSync::block, RmaSync::flood};
  std::vector<std::size_t> sizes;  ///< Ascending, each once.
  std::size_t window = 64;
  std::size_t iterations = 0;  ///< Samples per line; 0: by size.
  long warmup = -1;            ///< Not timed ones before them; -1: by size.
  GpuChoice device = GpuChoice::automatic;
  Path path = Path::automatic;
  bool busy_target = false;  ///< The target computes and does not call brant while it is put into or got from.
  std::chrono::milliseconds busy_span{100};  ///< So long at a time.
  bool check = false;                        ///< Every byte, in a pass that is not timed.
  bool ucx = false;                          ///< Raw UCX in turns.
  std::string json;
};

[[nodiscard]] constexpr const char* sync_name(RmaSync sync) noexcept {
  switch (sync) {
    case RmaSync::block: return "block";
    case RmaSync::flood: return "flood";
    case RmaSync::notify: return "notify";
    case RmaSync::inject: return "inject";
  }
  return "";
}
[[nodiscard]] constexpr const char* direction_name(RmaDirection direction) noexcept {
  return direction == RmaDirection::put ? "put" : "get";
}

/// Throws Error invalid_argument for what does not go together, with the cure.
void require_sense(const RmaBench& bench);
/// The lines of one pattern, in the order of the table. Puts alone are notified.
std::vector<RmaCase> cases_of(const RmaBench& bench, RmaPattern pattern);
/// Whether transfers lasted until their target was free again, and so were not one-sided: by their median, and by what
/// they take with an idle target. Nothing where the target does not compute for long enough to tell.
std::optional<bool> waited_for_target(double busy_us, double idle_us, std::chrono::milliseconds busy_span) noexcept;

/// Runs it in this job of two processes, of which rank 0 puts and gets, and prints. Throws Error.
void run_rma(const RmaBench& bench);
/// The same by the MPI whose processes these are, for host memory.
void run_rma_of_mpi(const RmaBench& bench, const std::string& library);

}  // namespace brant::bench
