#pragma once

#include "brant/base/ids.h"
#include "core/engine.h"
#include "ops/am/messenger.h"
#include "ops/lane/data_lanes.h"

namespace brant::remote {

/// Sends the messages of calls, and the data that goes beside them.
class Carrier {
 public:
  explicit Carrier(Engine& engine)
      : messenger_(engine.service<am::Messenger>()),
        lanes_(engine.service<lane::DataLanes>()),
        self_{engine.job().rank},
        ranks_(engine.job().size) {}

  /// A call; outcomes are the messenger's, and not_supported: data does not go to a process that has joined.
  Status send(Rank to, am::Message& message) noexcept;
  Status send_answer(Rank to, am::Message& message, am::Flow flow) noexcept {
    return messenger_.send(to, am::ServiceId::rpc, message, flow);
  }
  /// Of one that was not sent.
  void drop(am::Message& message) noexcept;

  [[nodiscard]] am::Messenger& messenger() noexcept { return messenger_; }
  [[nodiscard]] lane::DataLanes& lanes() noexcept { return lanes_; }
  [[nodiscard]] Rank self() const noexcept { return self_; }

 private:
  Status send_with_data(Rank to, am::Message& message) noexcept;

  am::Messenger& messenger_;
  lane::DataLanes& lanes_;
  const Rank self_;
  const int ranks_;
};

}  // namespace brant::remote
