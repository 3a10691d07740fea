#pragma once

#include <cstddef>
#include <cstdint>

#include "models/chare/collection.h"
#include "models/chare/data_call.h"
#include "models/chare/program_context.h"

namespace brant::detail {

/// The calls of one process whose data is coming, or is here and waits for its method: their records.
class DataCalls {
 public:
  explicit DataCalls(const ProgramContext& context) noexcept : context_(context) {}

  /// A record for a message with `count` arguments; `ended` is told of each part. Throws limit_reached, no_memory.
  DataCall& open(am::Message& message, std::size_t count, DataLandings& landings,
                 void (*ended)(DataPart&, Status) noexcept);
  void close(DataCall& call) noexcept;
  /// What a message that will not run (any more) still holds or announces.
  void discard(am::Message& message) noexcept;

  /// A destroy, and what comes after it, waits until no data comes into the chare's memory any more. True: it does.
  bool put_behind(const ChareBase& chare, am::Message& message, const Envelope& envelope) noexcept;
  /// The same for all chares of a collection.
  bool put_behind(const Collection& collection, am::Message& message) noexcept;

  [[nodiscard]] DataCall* first() const noexcept { return calls_.front(); }
  [[nodiscard]] DataCall* next(const DataCall& call) const noexcept { return calls_.next(call); }
  /// The first whose data is not all here; null if none.
  [[nodiscard]] const DataCall* first_coming() const noexcept;
  /// How many of those there are.
  [[nodiscard]] std::size_t coming() const noexcept;

 private:
  const ProgramContext& context_;
  ObjectPool<DataCall> pool_{std::size_t{1} << 20};
  IntrusiveList<DataCall, &DataCall::hook> calls_;
};

}  // namespace brant::detail
