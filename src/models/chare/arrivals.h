#pragma once

#include "models/chare/data_landings.h"
#include "models/chare/enrolment.h"
#include "models/chare/following.h"
#include "models/chare/quiet.h"
#include "models/chare/wait_report.h"

namespace brant::detail {

/// What comes from other ranks: it is checked, passed on where it goes by the tree, and queued; control messages act at
/// once. What names something that nobody has enrolled here waits with the `Enrolment`, which hands it back.
class Arrivals {
 public:
  Arrivals(const ProgramContext& context, Activity& activity, Sending& sending, ReadyQueue& queue, Ending& ending,
           DataLandings& landings, WaitReport& report, Quiet& quiet, Enrolment& enrolment,
           Following& following) noexcept;

  /// From now on messages of other ranks come here.
  void open();
  /// What still comes is for nobody.
  void close();

  /// A message that came from another rank, or waited since for what it names to be enrolled.
  void take_in(am::Message& message);
  /// True: it was damaged, and is gone with the rank that wrote it.
  bool drop_if_damaged(am::Message& message) noexcept;
  /// A control message, whose turn has come.
  void obey(const am::Message& message, const Envelope& envelope);

 private:
  static void on_message(void* self, am::Message& message) noexcept;
  static void on_trouble(void* self, Rank peer, Status status) noexcept;
  /// Messages of a program that has ended.
  static void receive_late(void* engine, am::Message& message) noexcept;
  /// Gives up who wrote it.
  static void drop_damaged(Engine& engine, am::Message& message) noexcept;
  template <typename T>
  T value_in(const am::Message& message) const;

  const ProgramContext& context_;
  Activity& activity_;
  Sending& sending_;
  ReadyQueue& queue_;
  Ending& ending_;
  DataLandings& landings_;
  WaitReport& report_;
  Quiet& quiet_;
  Enrolment& enrolment_;
  Following& following_;
};

}  // namespace brant::detail
