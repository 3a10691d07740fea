#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "brant/core/op.h"
#include "brant/core/reply.h"
#include "brant/core/runtime.h"
#include "brant/ops/rpc/function.h"
#include "core/engine.h"
#include "ops/am/messenger.h"
#include "ops/rpc/call_header.h"
#include "ops/rpc/carrier.h"
#include "ops/rpc/functions.h"
#include "ops/rpc/landings.h"
#include "ops/rpc/outboxes.h"
#include "ops/rpc/parts.h"
#include "ops/rpc/waiting_answers.h"

namespace brant::remote {

/// Remote calls of one runtime: messages that run functions, and those that answer. What comes is queued by the
/// messenger's handler, and run one by one where completions are fired.
///
/// No call waits for another process to run: a function runs whether or not its answer can leave, its message is
/// released as soon as it has ended, and answers need no room in a window. So two processes that flood each other go
/// on. What is bounded: calls on their way by the window, calls that wait by the outbox, answers by the calls that
/// their receiver waits for.
///
/// The worker's thread.
class RpcService final : public Service {
 public:
  explicit RpcService(Engine& engine);
  ~RpcService() override = default;

  void live_in(Runtime& runtime) noexcept { runtime_ = &runtime; }
  [[nodiscard]] Runtime& runtime() noexcept { return *runtime_; }

  // --- calling
  /// Null: no memory.
  am::Message* open(const CallHeader& header, std::size_t bytes) noexcept;
  /// Of one that was not sent.
  void drop(am::Message& message) noexcept { carrier_.drop(message); }
  [[nodiscard]] Carrier& carrier() noexcept { return carrier_; }
  /// See Outboxes::post.
  Status post(Rank to, am::Message& message, bool at_once) noexcept { return outboxes_.post(to, message, at_once); }
  /// The same of a call that is answered: `waiting` is delivered once, before the return unless that is ok.
  Status ask(Rank to, const Function& function, am::Message& message, const detail::Waiting& waiting,
             bool at_once) noexcept;
  [[nodiscard]] const WaitingAnswers& answers() const noexcept { return answers_; }

  // --- answering
  void send_answer(Rank to, am::Message& message) noexcept { outboxes_.post_answer(to, message); }
  /// Of one that came.
  void release(am::Message& message) noexcept;
  void fail(const Invocation& invocation, const std::exception_ptr& error) noexcept;
  void enter(RunningCall& call) noexcept;
  void leave(RunningCall& call) noexcept;

  // --- distributed objects
  void add_part(DistributedPart& part) { run_first(parts_.add(part)); }
  [[nodiscard]] Parts& parts() noexcept { return parts_; }

  // --- Service
  unsigned part_from(Peer& peer) noexcept override;
  void peer_ended(Peer& peer) noexcept override;
  void look_around() noexcept override;
  bool stalled(std::chrono::nanoseconds idle, bool for_ever) noexcept override;
  bool forget(Peer& peer) noexcept override;
  void let_go() noexcept override;

 private:
  /// For answers that the farewell of a program has overtaken.
  static constexpr auto kLateAnswers = std::chrono::seconds(1);
  /// A program that has ended before anything of remote calls came from it: it may have made no Rpc, and then nobody
  /// there answers.
  struct Silent {
    Rank rank;
    TimePoint until{};
  };

  [[nodiscard]] bool has_heard(Rank peer) const noexcept { return heard_[static_cast<std::size_t>(peer.value)]; }
  static void on_message(void* self, am::Message& message) noexcept;
  static void on_data(void* self, am::Message& message) noexcept;
  static void on_trouble(void* self, Rank peer, Status status) noexcept;
  void enqueue(am::Message& message) noexcept;
  void wake() noexcept;
  void run_first(am::MessageList calls) noexcept;
  void take_turn() noexcept;
  void run(am::Message& message) noexcept;
  void run_call(am::Message& message, const CallHeader& header) noexcept;
  void call_function(const Function& function, am::Message& message, const CallHeader& header) noexcept;
  void require_data(const Function& function, const am::Message& message, const CallHeader& header) const;
  void blame_message(const Function& function, am::Message& message, std::uint32_t number) noexcept;
  void send_failure(Rank to, std::uint32_t number, Status status, const std::string& text) noexcept;
  void say_unknown(am::Message& message, const CallHeader& header) noexcept;
  void hear_unknown(const am::Message& message, const CallHeader& header) noexcept;

  Engine& engine_;
  Carrier carrier_;
  am::Messenger& messenger_;
  const Rank rank_;
  Runtime* runtime_ = nullptr;
  Functions functions_;
  Parts parts_;
  WaitingAnswers answers_;
  Outboxes outboxes_;
  Landings landings_;
  am::MessageList due_;                            ///< What came and was not run yet.
  Op turn_;                                        ///< Pending while something is to be run.
  std::vector<std::pair<Rank, Status>> troubles_;  ///< Who waits for these peers was not told yet.
  std::vector<bool> heard_;                        ///< By rank of the job: something of remote calls came from it.
  std::vector<Silent> silent_;
  RunningCall* running_ = nullptr;
  bool parted_ = false;  ///< The program here has ended: calls of others are refused.
};

}  // namespace brant::remote
