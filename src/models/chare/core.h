#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "brant/chare/chares.h"
#include "brant/chare/detail/core.h"
#include "models/chare/channel_desk.h"
#include "models/chare/collection.h"
#include "models/chare/collection_ids.h"
#include "models/chare/data_call.h"
#include "models/chare/enrolment.h"
#include "models/chare/envelope.h"
#include "models/chare/queue.h"
#include "models/chare/quiet.h"
#include "models/chare/registry.h"
#include "models/chare/replies.h"
#include "models/chare/teams.h"
#include "ops/am/messenger.h"
#include "ops/channel/table.h"

namespace brant::detail {

/// Collections with this bit hold the single chares of the class whose number the other bits are.
inline constexpr std::uint32_t kSinglesBit = 0x8000'0000u;

/// Thrown by `Collection::construct_all`: which element it was.
struct ConstructionFailed {
  ElementKey key;
  std::exception_ptr cause;
};

/// The chares of one process: where they are, what waits for them, and how messages reach them.
///
/// A message's way: `open` gives a block, the templates pack the arguments into it, `post` routes it: into the queue,
/// to another rank, or, when that rank is behind, into its outbox. `step` moves the network, empties outboxes and runs
/// messages from the queue.
class Core {
 public:
  Core(Chares& chares, Engine& engine, const ChareOptions& options);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  [[nodiscard]] Chares& chares() const noexcept { return chares_; }
  [[nodiscard]] std::int32_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::int32_t ranks() const noexcept { return ranks_; }
  [[nodiscard]] Registry& registry() const noexcept { return registry_; }

  /// Compares the programs of all ranks. Throws version_mismatch.
  void connect();

  // --- packing and sending
  am::Message& make(const Envelope& envelope, std::size_t bytes);
  /// Before a call is packed: holds the caller back while too much is undelivered. Throws limit_reached.
  void make_room() {
    if (undelivered_ >= options_.undelivered_max || undelivered_bytes_ >= options_.undelivered_bytes_max) [[unlikely]] {
      hold_back();
    }
  }
  void post(am::Message& message);
  void drop(am::Message& message) noexcept;

  /// A message that came from another rank, or waited since for what it names to be enrolled.
  void take_in(am::Message& message);
  /// True: it was damaged, and is gone with the rank that wrote it.
  bool drop_if_damaged(am::Message& message) noexcept;
  [[nodiscard]] Enrolment& enrolment() noexcept { return enrolment_; }

  [[nodiscard]] ChannelDesk& channel_desk() noexcept { return channel_desk_; }

  // --- data arguments (running_data.cc)
  [[nodiscard]] DataLanes& data_lanes() noexcept { return lanes_; }

  // --- collections
  /// Null if its creation has not arrived yet. Those of single chares always exist.
  Collection* find_collection(std::uint32_t id);
  /// The same once its elements are made.
  Collection* ready_collection(std::uint32_t id) {
    Collection* collection = find_collection(id);
    return collection != nullptr && collection->ready ? collection : nullptr;
  }
  std::uint32_t new_collection_id();
  /// It was an array, and is destroyed.
  [[nodiscard]] bool has_gone(std::uint32_t id) const noexcept {
    return (id & kSinglesBit) == 0 && !collections_.contains(id) && collection_ids_.has_gone(id);
  }
  std::uint64_t new_single() noexcept { return singles_made_++; }
  [[nodiscard]] std::string name_of(const Target& target);
  /// "heat::Block (array 3)".
  [[nodiscard]] std::string name_of_array(std::uint32_t id);
  [[nodiscard]] Teams& teams() noexcept { return *teams_; }
  /// What was called of a section before its definition came goes on.
  void section_known(std::uint64_t section);
  // The first element of all is the teams themselves.
  std::uint32_t first_round(std::uint32_t id) noexcept { return teams_ != nullptr ? teams_->first_round(id) : 0; }
  void element_made(const Collection& collection, std::uint32_t first_round) {
    if (teams_ != nullptr) teams_->born(collection, first_round);
  }
  void element_gone(const Collection& collection, const ChareBase& element) noexcept {
    teams_->gone(collection, element);
  }

  // --- running
  unsigned step();
  void run_until_ended();
  void run_guarded(ChareBase& chare, const EntryInfo& entry, void (*call)(void*), void* context);
  void fail_invocation(const Invocation& invocation, std::exception_ptr error) noexcept;
  /// The same for who waits at the end of a callback.
  void fail_future(const CallbackTarget& target, const Error& error) noexcept {
    fail_invocation({this, nullptr, nullptr, nullptr, target.rank, target.number}, std::make_exception_ptr(error));
  }
  ReplyTable& replies() noexcept { return replies_; }
  /// One message that runs many calls has taken as long as a round may.
  void note_time_used_up() noexcept { time_used_up_ = true; }
  /// Calls that arrived and wait for a `when`: they count as run, but the program cannot end with them.
  void note_kept(int change) noexcept { kept_ += change; }

  // --- beginning and ending
  /// Throws invalid_argument while the program runs. Of one that has ended `main` is dropped.
  void start(Task<int> main);
  void exit(std::int64_t code);
  void fail_job(const std::string& text) noexcept;
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  /// No entry runs any more.
  [[nodiscard]] bool leaving() const noexcept { return ended_ || stopping_; }
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  [[nodiscard]] ChareCounts counts() const noexcept;
  Promise<>& never() noexcept { return never_; }

  // --- quiescence and deadlock (quiet.cc, waits.cc)
  static constexpr std::size_t kReportLinesMax = 64;
  Quiet& quiet() noexcept { return quiet_; }
  /// For whoever moves data outside messages: quiescence waits until all that started has ended, on whatever rank.
  void note_data_started() noexcept { ++data_started_; }
  void note_data_ended() noexcept { ++data_ended_; }
  [[nodiscard]] Stillness stillness() noexcept;
  [[nodiscard]] std::vector<ChannelEnd> channel_ends() const { return channels_.ends(); }
  [[nodiscard]] bool main_waits() const noexcept { return main_.has_value() && !exiting_; }
  std::vector<std::string> describe_waits();
  /// See Service::stalled.
  bool stalled(std::chrono::nanoseconds idle) noexcept;
  void spread_control(MessageKind kind, std::int64_t code);
  template <typename T>
  void send_quiet(MessageKind kind, std::uint64_t code, const T& value) {
    send_value(0, kind, code, value);
  }
  /// A control message that carries a value.
  template <typename T>
  void send_value(std::int32_t to, MessageKind kind, std::uint64_t code, const T& value) {
    Envelope envelope;
    envelope.kind = kind;
    envelope.key = code;
    SizeArchive size;
    size(value);
    am::Message& message = make(envelope, size.size());
    WriteArchive write(message.data);
    write(value);
    send_to(to, message, envelope);
  }

 private:
  struct Tally {
    std::uint64_t sent = 0, run = 0;
    int answers = 0;
    std::string example;
  };

  static void on_message(void* self, am::Message& message) noexcept;
  static void on_trouble(void* self, Rank peer, Status status) noexcept;

  // core.cc: routing
  void route(am::Message& message);
  void send_to(std::int32_t rank, am::Message& message, const Envelope& envelope);
  Collection& make_collection(const am::Message& message, const Envelope& envelope);
  void forward_by_tree(const am::Message& message, const Envelope& envelope);
  bool flush_outboxes();
  void drain_urgent();
  void enqueue(am::Message& message, const Envelope& envelope) { queue_.push(message, envelope); }
  void count_in(am::Message& message) noexcept;
  void count_out(am::Message& message) noexcept;
  void hold_back();
  bool run_others(am::MessageList& set_aside);
  bool may_run_nested(am::Message& message);

  void make_teams();

  // running.cc: one message
  unsigned run_ready(unsigned limit);
  void run(am::Message& message) noexcept;
  void run_call(am::Message& message, const Envelope& envelope);
  void run_broadcast(am::Message& message, const Envelope& envelope);
  void run_multicast(am::Message& message, const Envelope& envelope);
  /// A broadcast or multicast becomes a call of one element here.
  void call_member(const ElementKey& key, const am::Message& message, const Envelope& envelope);
  /// The same message for another rank.
  void send_copy(std::int32_t rank, const am::Message& message, const Envelope& envelope);
  void run_create(am::Message& message, const Envelope& envelope);
  void run_insert(am::Message& message, const Envelope& envelope);
  void run_destroy(am::Message& message, const Envelope& envelope);
  void run_destroy_all(am::Message& message, const Envelope& envelope);
  void destroy_collection(Collection& collection);
  void run_reply(am::Message& message, const Envelope& envelope);
  void invoke(ChareBase& chare, const EntryInfo& entry, am::Message& message, const Envelope& envelope,
              ReadArchive arguments) noexcept;
  void missing(Collection& collection, am::Message& message, const Envelope& envelope, const ElementKey& key);
  void came_late(am::Message& message, const Envelope& envelope, const std::string& whom,
                 std::string_view end) noexcept;
  void came_too_late(am::Message& message, const Envelope& envelope);
  void run_hello(am::Message& message, const Envelope& envelope);
  void run_next(am::MessageList& list) noexcept;
  void await_creation(am::Message& message, const Envelope& envelope);
  void fail_waiting(std::uint32_t number, const std::exception_ptr& error);

  // running_data.cc: calls with data arguments
  [[nodiscard]] std::int32_t source_of(const am::Message& message) const noexcept {
    return detail::source_of(message, rank_);
  }
  Status send(std::int32_t to, am::Message& message, const Envelope& envelope, am::Flow flow) {
    return envelope.has_data() ? send_with_data(to, message, envelope, flow)
                               : messenger_.send(Rank{to}, am::ServiceId::chare, message, flow);
  }
  Status send_with_data(std::int32_t to, am::Message& message, const Envelope& envelope, am::Flow flow);
  static void share_data(const am::Message& message, const Envelope& envelope) noexcept;
  DataCall& new_data_call(am::Message& message, std::size_t count);
  void end_data_call(DataCall& call) noexcept;
  static void drop_swallowed(DataCall& call) noexcept;
  void lend_landing(DataPart& part, const DataMeta& meta, const DataOrigin* origin);
  Buffer checked_landing(Buffer landing, const DataMeta& meta, std::size_t index, std::int32_t source, bool local);
  DataCall& prepare_landing(ChareBase& chare, const EntryInfo& entry, am::Message& message, const Envelope& envelope);
  void fill_landings(DataCall& call, am::Message& message, const Envelope& envelope, DataState filling) noexcept;
  void settle(DataPart& part, Status status) noexcept;
  static void part_ended(DataPart& part, Status status) noexcept;
  void data_complete(DataCall& call) noexcept;
  bool data_ready(ChareBase& chare, const EntryInfo& entry, am::Message& message, const Envelope& envelope);
  void require_landed(const am::Message& message, const Envelope& envelope) const;
  void fail_data(ChareBase& chare, const EntryInfo& entry, am::Message& message, const Envelope& envelope,
                 std::exception_ptr error) noexcept;
  void stage(am::Message& message, const Envelope& envelope, bool wanted);
  void data_staged(DataCall& call, am::Message& message, const Envelope& envelope);
  void fan_out(Collection& collection, am::Message& message, const Envelope& envelope);
  void discard_data(am::Message& message) noexcept;
  /// Gives a message back that will not run.
  void let_go(am::Message& message) noexcept {
    if (message.header<Envelope>().has_data()) discard_data(message);
    messenger_.release(message);
  }
  /// A destroy, and what comes after it, waits until no data comes into the chare's memory any more. True: it does.
  bool put_behind_data(const ChareBase& chare, am::Message& message, const Envelope& envelope) noexcept;
  /// The same for all chares of a collection.
  bool put_behind_data(const Collection& collection, am::Message& message) noexcept;
  void abandon_data() noexcept;
  void take_landings_back() noexcept;
  void await_sources() noexcept;
  void let_all_go() noexcept;
  /// Gives up who wrote it.
  static void drop_damaged(Engine& engine, am::Message& message) noexcept;
  static void receive_late(void* engine, am::Message& message) noexcept;
  void look_at_lanes();

  // ending.cc
  void require_not_running() const;
  void tell_of_leaving() noexcept;
  void on_control(const am::Message& message, const Envelope& envelope);
  void send_control(std::int32_t rank, MessageKind kind, std::int64_t code, const std::string& text,
                    const Tally& tally);
  void stop();
  void add_tally(const Tally& tally);
  void look_at_main();
  void look_at_troubles();
  [[nodiscard]] std::string first_undelivered();
  /// What chares wait for outside calls; by chare.
  struct ChannelWaits {
    std::string text;
    std::int64_t since = 0;
    int count = 0;
  };
  using ChannelWaitsOf = std::unordered_map<const ChareBase*, ChannelWaits>;
  ChannelWaitsOf channel_waits(std::vector<std::string>& others);
  void describe_chare(const Collection& collection, const ChareBase& chare, const ChannelWaitsOf& channels,
                      std::vector<std::string>& lines) const;

  Chares& chares_;
  Engine& engine_;
  am::Messenger& messenger_;
  DataLanes& lanes_;
  ChannelTable& channels_;
  const ChareOptions options_;
  Registry& registry_;
  const std::int32_t rank_;
  const std::int32_t ranks_;
  const std::uint16_t session_;

  CollectionIds collection_ids_;
  ReadyQueue queue_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Collection>> collections_;
  Teams* teams_ = nullptr;            ///< A single chare of ours.
  Collection* last_found_ = nullptr;  ///< Most messages go to the collection of the one before.
  std::unordered_map<std::uint32_t, am::MessageList> unknown_;  ///< For collections whose creation is under way.
  std::unordered_map<std::uint64_t, am::MessageList> unknown_sections_;  ///< The same for sections.
  std::vector<am::MessageList> outboxes_;  ///< Per rank: what its window does not take yet.
  std::size_t in_outboxes_ = 0;
  ReplyTable replies_;
  Enrolment enrolment_{*this};
  ChannelDesk channel_desk_{*this, engine_};
  ObjectPool<DataCall> data_call_pool_{std::size_t{1} << 20};
  IntrusiveList<DataCall, &DataCall::hook> data_calls_;  ///< Whose data is coming, or waits for its method.
  std::uint64_t singles_made_ = 0;

  std::size_t undelivered_ = 0;
  std::size_t undelivered_bytes_ = 0;
  std::uint64_t calls_sent_ = 0;
  std::uint64_t calls_run_ = 0;
  std::uint64_t held_back_ = 0;
  std::int64_t kept_ = 0;
  std::uint64_t wire_sent_ = 0;  ///< Messages to other ranks, without those of the ending.
  std::uint64_t wire_taken_ = 0;
  std::uint64_t ran_ = 0;
  std::uint64_t data_started_ = 0;
  std::uint64_t data_ended_ = 0;
  unsigned running_ = 0;                   ///< Messages whose entry is on the stack.
  std::uint64_t channel_moves_ = 0;        ///< When `stillness` last looked,
  std::int64_t channels_still_since_ = 0;  ///< and since when that is so.
  Quiet quiet_;
  unsigned hold_depth_ = 0;
  bool time_used_up_ = false;  ///< In this round.
  bool in_progress_ = false;   ///< The network is being moved: a coroutine that resumes there must not move it again.

  std::optional<Task<int>> main_;
  Promise<> never_;
  Tally tally_;  ///< Rank 0: what the others answered.
  std::vector<std::pair<Rank, Status>> troubles_;
  bool connected_ = false;
  bool exiting_ = false;   ///< Rank 0: exit was called.
  bool stopping_ = false;  ///< No entry runs any more.
  bool ended_ = false;
  int exit_code_ = 0;
  std::string failure_;
};

}  // namespace brant::detail
