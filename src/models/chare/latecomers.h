#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "models/chare/activity.h"
#include "models/chare/answers.h"
#include "models/chare/channel_desk.h"
#include "models/chare/collections.h"
#include "models/chare/data_landings.h"

namespace brant::detail {

/// Messages to what is not here: not yet, then they wait until it is made; or no more, then whoever asked is told, and
/// where nobody waits for an answer the job ends.
class Latecomers {
 public:
  Latecomers(const ProgramContext& context, Activity& activity, Collections& collections, const ChannelDesk& desk,
             DataLandings& landings, Messages& messages, ReadyQueue& queue, Answers& answers, Ending& ending) noexcept;

  /// For a collection that does not exist here.
  void await_creation(am::Message& message, const Envelope& envelope);
  /// It exists now: what waited for that, in its order.
  am::MessageList take_awaiting(std::uint32_t collection);
  /// For an element that does not exist.
  void await_element(Collection& collection, am::Message& message, const Envelope& envelope, const ElementKey& key);
  /// For a section that is not defined here.
  void await_section(am::Message& message, const Envelope& envelope);
  /// What was called of a section before its definition came goes on.
  void section_known(std::uint64_t section);
  /// Adds what waits for sections of a collection that is destroyed.
  void take_of_sections(std::uint32_t collection, am::MessageList& list);

  /// For `whom`, which is gone; `end` says how. Two that are gone both have nothing to tell each other.
  void came_late(am::Message& message, const Envelope& envelope, const std::string& whom,
                 std::string_view end) noexcept;
  /// For a collection that is gone.
  void came_too_late(am::Message& message, const Envelope& envelope);

  /// A call of a collection that was never made; null if none waits.
  [[nodiscard]] const am::Message* first_uncreated_call() const noexcept;
  /// A call of a section that was never made; null if none waits.
  [[nodiscard]] const am::Message* first_undefined() const noexcept;
  /// At the end.
  void let_all_go() noexcept;

 private:
  const ProgramContext& context_;
  Activity& activity_;
  Collections& collections_;
  const ChannelDesk& desk_;
  DataLandings& landings_;
  Messages& messages_;
  ReadyQueue& queue_;
  Answers& answers_;
  Ending& ending_;
  std::unordered_map<std::uint32_t, am::MessageList> uncreated_;  ///< By collection.
  std::unordered_map<std::uint64_t, am::MessageList> undefined_;  ///< By section.
};

}  // namespace brant::detail
