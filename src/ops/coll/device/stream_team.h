#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "brant/coll/team.h"
#include "core/engine.h"
#include "ops/coll/device/stream_kernels.h"
#include "ops/coll/device/stream_plan.h"
#include "ops/coll/fault.h"
#include "ops/mapping/table.h"

namespace brant::coll {

/// What a member tells the others of its board.
struct StreamOffer {
  Status status = Status::ok;  ///< Else it has none, and this is why.
  std::uint64_t address = 0;   ///< Over there.
  port::ExportRecord record;
};

/// What a member has for its team's collectives on streams: its board in device memory, those of the others as its
/// device reaches them, and the words by which its kernels and the CPU talk.
class StreamTeam {
 public:
  /// `peers`: by member, null for this one.
  StreamTeam(Engine& engine, const StreamKernels& kernels, const Members& members, std::span<Peer* const> peers,
             const TeamOptions& options, const StreamBands& bands);
  StreamTeam(const StreamTeam&) = delete;
  StreamTeam& operator=(const StreamTeam&) = delete;
  /// No kernel uses it any more. May wait for the device.
  ~StreamTeam();

  /// Null, or why these members' kernels cannot meet.
  [[nodiscard]] const char* obstacle() const noexcept;
  /// Makes the board. What it says is for all others.
  StreamOffer make() noexcept;
  /// Maps the boards of the others. ok, or the first thing that went wrong, which `why` names.
  Status map(std::span<const StreamOffer> offers, std::string& why) noexcept;

  /// Whether kernels reach such memory.
  [[nodiscard]] bool reaches(MemoryKind kind) const noexcept;
  /// How the kernels of all members carry out a call that they can.
  [[nodiscard]] StreamPlan plan(const Work& work) const noexcept {
    return stream_plan_for({work.kind, members_.count, work.bytes, bands_, way_});
  }
  Status enqueue(const Work& work, const StreamPlan& plan, port::Stream* stream) noexcept;
  /// Kernels that wait give up, and those behind them do nothing.
  void abort() noexcept;
  [[nodiscard]] bool is_aborted() const noexcept { return aborted_; }
  /// What a kernel has found, if it has found something.
  bool find_fault(Fault& fault) const noexcept;
  /// Which call a kernel was last seen to wait in, and for which member. False: none had to wait long.
  bool find_wait(std::uint64_t& call, unsigned& member) const noexcept;

 private:
  [[nodiscard]] MemoryKind kind() const noexcept;
  [[nodiscard]] std::size_t board_bytes() const noexcept;
  Status allocate() noexcept;

  Engine& engine_;
  const StreamKernels& kernels_;
  const Members members_;
  const std::vector<Peer*> peers_;
  const std::chrono::nanoseconds patience_;
  const StreamWay way_;
  const StreamBands bands_;
  const std::shared_ptr<MappingTable> mappings_;  ///< Outlives the leases.
  std::array<StreamBoard*, kStreamMembersMax> boards_{};
  std::array<MappingLease, kStreamMembersMax> leases_;
  StreamTalk* talk_ = nullptr;
  bool aborted_ = false;
};

}  // namespace brant::coll
