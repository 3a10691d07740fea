#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hmac.h"
#include "brant/base/clock.h"
#include "brant/base/ids.h"
#include "brant/core/joining.h"
#include "core/held_messages.h"
#include "core/join_address.h"
#include "core/joined_slots.h"
#include "core/observe/counters.h"
#include "core/peers.h"
#include "core/progress_clock.h"
#include "core/services.h"
#include "port/boot.h"
#include "port/wire.h"

namespace brant {

class Waiting;

/// How processes join this one after its start, and it others, and how they part (docs/decisions/0044): of other jobs,
/// as a rule. `Peers` keeps them; to whatever takes a peer they are like the others, but of no job's collectives,
/// barriers and chares.
///
/// Whoever calls sends an *ask* with all that the other must know of it, and gets an *answer*; its *ready* ends the
/// meeting. A *farewell* is *heard*, and then nothing of the connection is left at either end. Each word proves that
/// its sender has the key of the address. The worker's thread.
class JoinedPeers {
 public:
  JoinedPeers(const port::JobInfo& job, Joining joining, port::Wire& wire, HeldMessages& messages,
              const ProgressClock& clock, Services& services, Peers& peers, Counters& counters);
  JoinedPeers(const JoinedPeers&) = delete;
  JoinedPeers& operator=(const JoinedPeers&) = delete;

  /// See Runtime::address, join, accept and leave.
  std::string address();
  Rank join(std::string_view address, std::chrono::nanoseconds limit, Waiting& waiting);
  /// `join` in steps: see JoinSteps.
  Rank begin_join(std::string_view address);
  [[nodiscard]] bool is_join_decided(Rank rank) noexcept;
  void end_join(Rank rank, std::chrono::nanoseconds limit);
  /// The next that nobody was told of; nothing if there is none now.
  std::optional<Rank> take_accepted() noexcept;
  [[nodiscard]] bool has_accepted() noexcept;
  void stop_accepting() noexcept { key_.reset(); }
  void leave(Rank rank, std::chrono::nanoseconds limit, Waiting& waiting);
  /// `leave` in steps. False: it has left or died already, and nothing follows.
  bool begin_leave(Rank rank);
  [[nodiscard]] bool is_leave_decided(Rank rank) noexcept;
  void end_leave(Rank rank, std::chrono::nanoseconds limit) noexcept;
  /// Of all.
  void leave_all(std::chrono::nanoseconds limit, Waiting& waiting) noexcept;
  /// Whatever still comes is not heard.
  void close() noexcept { closed_ = true; }

  /// Every few milliseconds: gives back the slots of those who are gone, once nobody knows them any more.
  void look_around() noexcept;

 private:
  enum class Kind : std::uint32_t { ask = 1, answer, ready, farewell, heard };
  static constexpr std::size_t kKinds = 6;
  struct Word {
    Kind kind = Kind::ask;
    std::int32_t number = -1;  ///< ask, answer: by which the sender knows the receiver from now on.
    std::uint64_t token = 0;   ///< Names the connection.
    Digest proof{};            ///< Of the rest, with the payload behind it.
  };
  enum class State : std::uint8_t {
    asking,   ///< We have called, and wait for the answer.
    invited,  ///< We have answered, and wait to hear that it came.
    open,
    given_up,  ///< We have called, and nobody answered in time.
  };
  struct Send : port::WireOp {
    bool busy = false;
  };
  struct Joined {
    Joined(JoinedSlots& in, bool called, JoinIdentity who, const JoinKey& secret, std::uint64_t name);
    ~Joined() { slots.remove(peer); }
    Joined(const Joined&) = delete;
    Joined& operator=(const Joined&) = delete;

    JoinedSlots& slots;
    Peer& peer;
    const JoinIdentity identity;
    const JoinKey key;
    const std::uint64_t token;
    State state = State::asking;
    bool held = false;   ///< Somebody waits for it in a call.
    bool heard = false;  ///< It has heard our farewell.
    TimePoint invited_at{};
    std::vector<std::byte> payload;  ///< Of the ask.
    std::array<Send, kKinds> sends;
  };

  [[nodiscard]] JoinIdentity own_identity() const;
  void require_joining(const char* what) const;
  [[nodiscard]] std::optional<Rank> own_rank_of(const JoinIdentity& identity) const noexcept;
  void require_usable(const JoinIdentity& identity) const;
  Joined& add(JoinIdentity identity, const JoinKey& key, std::uint64_t token, bool called);
  void connect(Joined& joined);
  [[nodiscard]] Joined* find_given_up(const Joined& joined) noexcept;
  void ask(Joined& joined);
  [[noreturn]] void fail_to_join(Joined& joined, std::chrono::nanoseconds limit);
  void part(Joined& joined) noexcept;
  static void on_parting(void* joined_peers, Peer& peer) noexcept;
  [[nodiscard]] bool is_forgotten(Joined& joined) noexcept;
  [[nodiscard]] Joined* find_token(std::uint64_t token) noexcept;
  [[nodiscard]] Joined& of(const Peer& peer) noexcept;
  /// Of one that a call holds.
  [[nodiscard]] Joined* find_held(Rank rank) noexcept;

  // joined_peers_words.cc
  static Digest proof_of(const JoinKey& key, const Word& word, std::span<const std::byte> payload);
  Status say(Joined& joined, Kind kind, std::span<const std::byte> payload = {}) noexcept;
  static void on_message(void* joined_peers, port::AmMessage& message) noexcept;
  void hear(const Word& word, std::span<const std::byte> payload);
  void hear_ask(const Word& word, std::span<const std::byte> payload);
  void hear_answer(Joined& joined, const Word& word) noexcept;
  void refuse(const char* why) noexcept;

  const port::JobInfo& job_;
  const Joining joining_;
  port::Wire& wire_;
  const ProgressClock& clock_;
  Services& services_;
  Peers& peers_;
  Counters& counters_;
  std::optional<JoinKey> key_;  ///< Once somebody was given the address.
  bool closed_ = false;
  bool refused_told_ = false;
  std::vector<std::unique_ptr<Joined>> joined_;  ///< What comes over the network may add some.
  std::deque<Rank> accepted_;
};

}  // namespace brant
