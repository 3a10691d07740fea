#pragma once

#include "models/chare/moving.h"

namespace brant::detail {

/// Runs the messages for chares that exist: calls, broadcasts, those of sections, and hellos of channels.
class Calls {
 public:
  Calls(const ProgramContext& context, Activity& activity, Collections& collections, DataCalls& data_calls,
        Messages& messages, Sending& sending, ReadyQueue& queue, DataLandings& landings, ChannelDesk& desk,
        Answers& answers, Latecomers& latecomers, Following& following, Moving& moving) noexcept;

  void run_call(am::Message& message, const Envelope& envelope);
  void run_broadcast(am::Message& message, const Envelope& envelope);
  void run_multicast(am::Message& message, const Envelope& envelope);
  void run_hello(am::Message& message, const Envelope& envelope);

 private:
  /// A broadcast becomes a call of each element of this home: every one has a post entry of its own or shares the data,
  /// or some have moved.
  void fan_out(Collection& collection, am::Message& message, const Envelope& envelope);
  /// A broadcast or multicast becomes a call of one element of this home.
  void call_member(Collection& collection, const ElementKey& key, const am::Message& message, const Envelope& envelope);
  bool data_ready(ChareBase& chare, const EntryInfo& entry, am::Message& message, const Envelope& envelope);
  void invoke(ChareBase& chare, const EntryInfo& entry, am::Message& message, const Envelope& envelope,
              ReadArchive arguments) noexcept;

  const ProgramContext& context_;
  Activity& activity_;
  Collections& collections_;
  DataCalls& data_calls_;
  Messages& messages_;
  Sending& sending_;
  ReadyQueue& queue_;
  DataLandings& landings_;
  ChannelDesk& desk_;
  Answers& answers_;
  Latecomers& latecomers_;
  Following& following_;
  Moving& moving_;
};

}  // namespace brant::detail
