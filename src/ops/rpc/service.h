#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "brant/core/op.h"
#include "brant/core/reply.h"
#include "brant/core/runtime.h"
#include "brant/ops/rpc/function.h"
#include "core/engine.h"
#include "core/per_peer.h"
#include "core/pollers.h"
#include "core/reply_table.h"
#include "ops/am/messenger.h"
#include "ops/rpc/call_header.h"
#include "ops/rpc/functions.h"
#include "ops/rpc/outbox.h"
#include "ops/rpc/parts.h"

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
class RpcService final : public Service, private Poller {
 public:
  explicit RpcService(Engine& engine);
  ~RpcService() override = default;

  void live_in(Runtime& runtime) noexcept { runtime_ = &runtime; }
  [[nodiscard]] Runtime& runtime() noexcept { return *runtime_; }

  // --- calling
  /// Null: no memory.
  am::Message* open(const CallHeader& header, std::size_t bytes) noexcept;
  void release(am::Message& message) noexcept { messenger_.release(message); }
  /// ok: taken over. Else the caller keeps it: limit_reached, peer_lost, invalid_argument, shutting_down.
  Status post(Rank to, am::Message& message, bool at_once) noexcept;
  /// The same of a call that is answered: `waiting` is delivered once, before the return unless that is ok.
  Status ask(Rank to, const Function& function, am::Message& message, const detail::Waiting& waiting,
             bool at_once) noexcept;
  /// Tells who waits for an answer that there will be none.
  void refuse(const detail::Waiting& waiting, const Function& function, Rank to, Status status) const noexcept;

  // --- answering
  /// Takes it over: it leaves now or later, or `to` is no more.
  void send_answer(Rank to, am::Message& message) noexcept;
  void fail(const Invocation& invocation, const std::exception_ptr& error) noexcept;
  void enter(RunningCall& call) noexcept;
  void leave(RunningCall& call) noexcept;

  // --- distributed objects
  void add_part(DistributedPart& part);
  [[nodiscard]] Parts& parts() noexcept { return parts_; }

  // --- Service
  unsigned part_from(Peer& peer) noexcept override;
  bool stalled(std::chrono::nanoseconds idle, bool for_ever) noexcept override;
  bool forget(Peer& peer) noexcept override;
  void let_go() noexcept override;

  /// Calls that wait for an answer, and messages that wait to be run. For tests.
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_count_; }
  [[nodiscard]] std::size_t due() const noexcept { return due_count_; }

 private:
  struct AskedFunction {
    const Function* function = nullptr;
  };
  struct PeerOutbox {
    Rank rank;
    Outbox box;
  };
  using WaitingCalls = detail::ReplyTable<AskedFunction>;

  static void on_message(void* self, am::Message& message) noexcept;
  static void on_trouble(void* self, Rank peer, Status status) noexcept;
  Status keep(Rank to, am::Message& message) noexcept;
  Outbox* outbox_of(Rank peer) noexcept;
  void wake() noexcept;
  void run_first(am::MessageList calls) noexcept;
  void take_turn() noexcept;
  void run(am::Message& message) noexcept;
  void run_call(am::Message& message, const CallHeader& header) noexcept;
  void call_function(const Function& function, am::Message& message, const CallHeader& header) noexcept;
  void take_answer(am::Message& message, const CallHeader& header) noexcept;
  void blame_message(const Function& function, am::Message& message, std::uint32_t number) noexcept;
  std::uint32_t expect(const detail::Waiting& waiting, const Function& function, Rank of) noexcept;
  detail::Waiting take(WaitingCalls::Entry& line) noexcept;
  void fail_waiting(WaitingCalls::Entry& line, Status status, const std::string& text) noexcept;
  void send_failure(Rank to, std::uint32_t number, Status status, const std::string& text) noexcept;
  void say_unknown(am::Message& message, const CallHeader& header) noexcept;
  void fail_all_of(std::int32_t rank, bool any, Status status) noexcept;
  void note_trouble(Rank peer, Status status) noexcept;
  [[nodiscard]] std::string unknown_text(const Function& function, std::int32_t rank) const;
  [[noreturn]] void end_program(Status status, const std::string& text) const noexcept;
  unsigned poll() noexcept override;

  Engine& engine_;
  am::Messenger& messenger_;
  const Rank rank_;
  Runtime* runtime_ = nullptr;
  Functions functions_;
  Parts parts_;
  WaitingCalls waiting_;
  std::size_t waiting_count_ = 0;
  PerPeer<PeerOutbox> outboxes_;
  Outbox::Tally own_;    ///< Calls of this process to itself that were not run yet.
  am::MessageList due_;  ///< What came and was not run yet.
  std::size_t due_count_ = 0;
  Op turn_;                                        ///< Pending while something is to be run.
  std::vector<std::pair<Rank, Status>> troubles_;  ///< Who waits for these peers was not told yet.
  RunningCall* running_ = nullptr;
  bool parted_ = false;  ///< The program here has ended: calls of others are refused.
  bool closed_ = false;  ///< The runtime ends: nothing is sent any more.
};

}  // namespace brant::remote
