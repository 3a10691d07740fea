#pragma once

#include <cstddef>
#include <exception>

#include "models/chare/activity.h"
#include "models/chare/data_calls.h"
#include "models/chare/ending.h"
#include "models/chare/program_context.h"
#include "models/chare/queue.h"
#include "models/chare/sending.h"

namespace brant::detail {

/// Where the data arguments of calls land: in memory that a post entry names, in memory of the runtime where none does,
/// or, staged there, before anybody can know. A message whose data is coming stands in no queue, and goes back to it
/// when all is here.
class DataLandings {
 public:
  DataLandings(const ProgramContext& context, Activity& activity, DataCalls& calls, Messages& messages,
               Sending& sending, ReadyQueue& queue, Ending& ending) noexcept;

  /// True: all is here, and the method may run. False: the message was taken over. Throws what the post entry throws,
  /// and what became of the data.
  bool ready(ChareBase& chare, const EntryInfo& entry, am::Message& message, const Envelope& envelope);
  /// Takes data from the network (or, of a broadcast of this process, from its sources) into memory of the runtime.
  /// `wanted`: the message stands in no queue. May be called from inside the network. Throws limit_reached, no_memory.
  void stage(am::Message& message, const Envelope& envelope, bool wanted);
  /// Before the chares of an ending program are destroyed: nothing may write into their memory any more.
  void abandon() noexcept;
  /// What other processes have not taken yet lies in memory that the chares free. All ranks take it, whoever ends
  /// first.
  void await_sources() noexcept;

 private:
  void lend(DataPart& part, const DataMeta& meta, const DataOrigin* origin);
  void name(DataPart& part, const Landing& landing, const DataMeta& meta, std::size_t index, std::int32_t source,
            bool local);
  Buffer check(const Landing& named, const DataMeta& meta, std::size_t index, std::int32_t source, bool local,
               AskedMemory& answer);
  DataCall& prepare(ChareBase& chare, const EntryInfo& entry, am::Message& message, const Envelope& envelope);
  void fill(DataCall& call, am::Message& message, const Envelope& envelope, DataState filling) noexcept;
  void settle(DataPart& part, Status status) noexcept;
  static void part_ended(DataPart& part, Status status) noexcept;
  void complete(DataCall& call) noexcept;
  void require_landed(const am::Message& message, const Envelope& envelope) const;
  void staged(DataCall& call, am::Message& message, const Envelope& envelope);
  static void drop_swallowed(DataCall& call) noexcept;
  void take_back() noexcept;

  const ProgramContext& context_;
  Activity& activity_;
  DataCalls& calls_;
  Messages& messages_;
  Sending& sending_;
  ReadyQueue& queue_;
  Ending& ending_;
};

}  // namespace brant::detail
