#pragma once

#include <string>

#include "brant/chare/chares.h"
#include "brant/chare/detail/core.h"
#include "models/chare/activity.h"
#include "models/chare/answers.h"
#include "models/chare/arrivals.h"
#include "models/chare/calls.h"
#include "models/chare/channel_desk.h"
#include "models/chare/collections.h"
#include "models/chare/data_calls.h"
#include "models/chare/data_landings.h"
#include "models/chare/ending.h"
#include "models/chare/enrolment.h"
#include "models/chare/following.h"
#include "models/chare/gatherings.h"
#include "models/chare/latecomers.h"
#include "models/chare/making.h"
#include "models/chare/messages.h"
#include "models/chare/moving.h"
#include "models/chare/program_context.h"
#include "models/chare/queue.h"
#include "models/chare/quiet.h"
#include "models/chare/routing.h"
#include "models/chare/running.h"
#include "models/chare/scheduler.h"
#include "models/chare/sending.h"
#include "models/chare/wait_report.h"

namespace brant::detail {

/// The chares of one process: owns the parts, each of which does one thing and knows those before it. What the
/// templates of include/brant/chare reach (the seam: seam*.cc, data_sources.cc, running_task.cc, mail.cc) asks for a
/// part here; the parts themselves do not.
///
/// A message's way: `Messages` gives a block, the templates pack the arguments into it, `Routing` finds out where it
/// goes, `Sending` takes it to another rank, or, when that rank is behind, into its outbox; there it comes in by
/// `Arrivals`, into the queue. `Scheduler` moves the network, empties outboxes and lets `Running` run messages.
class Core {
 public:
  Core(Chares& chares, Engine& engine, const ChareOptions& options);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Compares the programs of all ranks. Throws version_mismatch.
  void connect();
  [[nodiscard]] ChareCounts counts() const noexcept;

  [[nodiscard]] const ProgramContext& context() const noexcept { return context_; }
  [[nodiscard]] Activity& activity() noexcept { return activity_; }
  [[nodiscard]] Collections& collections() noexcept { return collections_; }
  [[nodiscard]] Messages& messages() noexcept { return messages_; }
  [[nodiscard]] Ending& ending() noexcept { return ending_; }
  [[nodiscard]] ChannelDesk& channel_desk() noexcept { return channel_desk_; }
  [[nodiscard]] Answers& answers() noexcept { return answers_; }
  [[nodiscard]] Following& following() noexcept { return following_; }
  [[nodiscard]] Moving& moving() noexcept { return moving_; }
  [[nodiscard]] Routing& routing() noexcept { return routing_; }
  [[nodiscard]] WaitReport& report() noexcept { return report_; }
  [[nodiscard]] Enrolment& enrolment() noexcept { return enrolment_; }
  [[nodiscard]] Scheduler& scheduler() noexcept { return scheduler_; }

 private:
  void let_all_go() noexcept;
  [[nodiscard]] std::string fingerprint() const;

  const ProgramContext context_;
  Activity activity_;
  ReadyQueue queue_;
  Collections collections_{context_};
  DataCalls data_calls_{context_};
  Messages messages_{context_, data_calls_};
  Sending sending_{context_, activity_, messages_, queue_};
  Ending ending_{context_, activity_, messages_, sending_, queue_};
  DataLandings landings_{context_, activity_, data_calls_, messages_, sending_, queue_, ending_};
  ChannelDesk channel_desk_{context_, collections_};
  Answers answers_{context_, messages_, sending_, ending_};
  Latecomers latecomers_{context_,  activity_, collections_, channel_desk_, landings_,
                         messages_, queue_,    answers_,     ending_};
  Following following_{context_,  collections_, messages_, sending_,  queue_,
                       landings_, latecomers_,  ending_,   enrolment_};
  Moving moving_{context_, collections_, data_calls_, messages_, sending_, queue_, channel_desk_, following_, ending_};
  Routing routing_{activity_, collections_, messages_,  sending_, queue_,
                   landings_, latecomers_,  following_, answers_, ending_};
  // What arrives may wait for its enrolment, and arrives again with that: these two know each other.
  Enrolment enrolment_{context_, messages_, sending_, arrivals_};
  WaitReport report_{context_, activity_,     collections_, queue_,      data_calls_, sending_,
                     ending_,  channel_desk_, answers_,     latecomers_, enrolment_};
  Quiet quiet_{context_, activity_, queue_, sending_, ending_, report_};
  Arrivals arrivals_{context_,  activity_, sending_, queue_,     ending_,
                     landings_, report_,   quiet_,   enrolment_, following_};
  Making making_{context_, collections_,  data_calls_, messages_,  queue_,
                 ending_,  channel_desk_, latecomers_, following_, routing_};
  Calls calls_{context_,  activity_,     collections_, data_calls_, messages_,  sending_, queue_,
               landings_, channel_desk_, answers_,     latecomers_, following_, moving_};
  Running running_{context_, activity_, messages_, queue_, ending_, answers_, arrivals_, making_, calls_, moving_};
  Scheduler scheduler_{context_, activity_, collections_, messages_, sending_, queue_,
                       ending_,  answers_,  report_,      quiet_,    running_};
  const GatheringsNeighbours gatherings_neighbours_{context_, activity_,   collections_, ending_,
                                                    answers_, latecomers_, quiet_};
};

}  // namespace brant::detail
