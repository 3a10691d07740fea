#pragma once

#include <string>
#include <vector>

#include "models/chare/channel_desk.h"
#include "models/chare/following.h"

namespace brant::detail {

/// How the state of an element goes to another rank. The same object for as long as the program runs.
struct Handover {
  const ConstructorInfo* constructor = nullptr;  ///< Makes it again of what `state` says.
  std::vector<std::byte> (*state)(ChareBase& chare) = nullptr;
};

/// What travels behind the state of an element, and behind that the ranks that send to it directly.
struct PassportTail {
  std::uint32_t epoch = 0;
  std::uint32_t epoch_before = 0;
  std::uint32_t awaited = 0;
  std::uint32_t senders = 0;
  std::uint32_t next_reduction = 0;
};

/// Takes elements from rank to rank. What calls them follows (`Following`); what cannot be taken along pins them.
class Moving {
 public:
  Moving(const ProgramContext& context, Collections& collections, DataCalls& data_calls, Messages& messages,
         Sending& sending, ReadyQueue& queue, const ChannelDesk& desk, Following& following, Ending& ending) noexcept;

  /// From here on `chare` lives at `to`, as soon as everything that stands before this in the queue has run and its
  /// last move has settled. Throws Error: invalid_argument if it cannot move, saying why.
  void move(ChareBase& chare, std::int32_t to, const Handover& how);
  /// What pins an element; empty if it can move.
  [[nodiscard]] std::string pinned_by(const ChareBase& chare) const;

  void run_depart(am::Message& message, const Envelope& envelope);
  void run_moved(am::Message& message, const Envelope& envelope);
  /// A message for an element that is about to leave. True: it goes along.
  [[nodiscard]] bool hold(const Collection& collection, am::Message& message, const Envelope& envelope,
                          const ElementKey& key);

 private:
  [[nodiscard]] bool has_data_coming(const ChareBase& chare) const noexcept;
  void depart(Collection& collection, ChareBase& chare, place::Identity id);
  /// It does not go, or is no more: what was to go along runs here.
  void stay(ArrayPlaces& places, ChareBase* chare, place::Identity id) noexcept;

  const ProgramContext& context_;
  Collections& collections_;
  DataCalls& data_calls_;
  Messages& messages_;
  Sending& sending_;
  ReadyQueue& queue_;
  const ChannelDesk& desk_;
  Following& following_;
  Ending& ending_;
};

}  // namespace brant::detail
