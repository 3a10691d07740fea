#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/chare/activity.h"
#include "models/chare/channel_desk.h"
#include "models/chare/collections.h"
#include "models/chare/enrolment.h"
#include "models/chare/latecomers.h"

namespace brant::detail {

/// Says who waits for what on this rank: for the reports of a deadlock and of a silence.
class WaitReport {
 public:
  static constexpr std::size_t kLinesMax = 64;  ///< Of all ranks together.

  WaitReport(const ProgramContext& context, const Activity& activity, Collections& collections, const ReadyQueue& queue,
             const DataCalls& data_calls, const Sending& sending, const Ending& ending, const ChannelDesk& desk,
             const Answers& answers, const Latecomers& latecomers, const Enrolment& enrolment) noexcept;

  /// This rank's share, one line each.
  std::vector<std::string> lines();
  /// A call that was sent and has not been delivered; empty if none is here.
  [[nodiscard]] std::string first_undelivered();
  /// See Service::stalled.
  bool stalled(std::chrono::nanoseconds idle) noexcept;

 private:
  /// What chares wait for outside calls; by chare.
  struct ChannelWaits {
    std::string text;
    std::int64_t since = 0;
    int count = 0;
  };
  using ChannelWaitsOf = std::unordered_map<const ChareBase*, ChannelWaits>;

  [[nodiscard]] std::string describe(const am::Message& message, const char* state);
  ChannelWaitsOf channel_waits(std::vector<std::string>& others);
  void describe_chare(const Collection& collection, const ChareBase& chare, const ChannelWaitsOf& channels,
                      std::vector<std::string>& lines) const;

  const ProgramContext& context_;
  const Activity& activity_;
  Collections& collections_;
  const ReadyQueue& queue_;
  const DataCalls& data_calls_;
  const Sending& sending_;
  const Ending& ending_;
  const ChannelDesk& desk_;
  const Answers& answers_;
  const Latecomers& latecomers_;
  const Enrolment& enrolment_;
};

}  // namespace brant::detail
