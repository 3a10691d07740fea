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
#include "core/engine.h"
#include "core/join_address.h"
#include "core/joined_rank.h"
#include "port/wire.h"

namespace brant {

/// The processes that have joined this one after its start, or that it has joined (docs/decisions/0044): of other jobs,
/// as a rule. Peers like the others to whatever takes a peer, but of no job's collectives, barriers and chares.
///
/// Whoever calls sends an *ask* with all that the other must know of it, and gets an *answer*; its *ready* ends the
/// meeting. A *farewell* is *heard*, and then nothing of the connection is left at either end. Each word proves that
/// its sender has the key of the address. The worker's thread.
class JoinedPeers {
 public:
  explicit JoinedPeers(Engine& engine);
  JoinedPeers(const JoinedPeers&) = delete;
  JoinedPeers& operator=(const JoinedPeers&) = delete;

  static JoinedPeers& of(Engine& engine) noexcept;

  /// See Runtime::address, join, accept and leave.
  std::string address();
  Rank join(std::string_view address, std::chrono::nanoseconds limit);
  /// The next that nobody was told of; nothing if there is none now.
  std::optional<Rank> take_accepted() noexcept;
  [[nodiscard]] bool has_accepted() noexcept;
  void stop_accepting() noexcept { key_.reset(); }
  void leave(Rank rank, std::chrono::nanoseconds limit);
  /// Of all.
  void leave_all(std::chrono::nanoseconds limit) noexcept;
  /// Whatever still comes is not heard.
  void close() noexcept { closed_ = true; }

  /// Throws invalid_argument, peer_lost.
  Peer& get(Rank rank);
  /// Null if it has left, or never was there.
  [[nodiscard]] Peer* find(std::int32_t rank) noexcept {
    Joined* joined = slots_.size() > joined_rank::slot_of(rank) ? slots_[joined_rank::slot_of(rank)].get() : nullptr;
    return joined != nullptr && joined->peer.rank.value == rank ? &joined->peer : nullptr;
  }
  /// `visit` may make the network move, and so bring new ones, who may be visited too.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (slots_[slot] != nullptr) visit(slots_[slot]->peer);
    }
  }

  /// The engine is about to disconnect one that is lost or has left.
  void on_parting(Peer& peer) noexcept;
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
    Joined(JoinIdentity who, const JoinKey& secret, std::uint64_t name)
        : identity(std::move(who)), key(secret), token(name) {}

    Peer peer;
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

  [[nodiscard]] const PeerRecord& own_record() const noexcept;
  [[nodiscard]] JoinIdentity own_identity() const;
  void require_joining(const char* what) const;
  [[nodiscard]] std::optional<Rank> own_rank_of(const JoinIdentity& identity) const noexcept;
  void require_wire(const JoinIdentity& identity) const;
  Joined& take_slot(JoinIdentity identity, const JoinKey& key, std::uint64_t token, bool called);
  void give_slot_back(Joined& joined) noexcept;
  void connect(Joined& joined);
  [[nodiscard]] Joined* find_given_up(const Joined& joined) noexcept;
  void ask(Joined& joined);
  [[noreturn]] void fail_to_join(Joined& joined, std::chrono::nanoseconds limit);
  void part(Joined& joined) noexcept;
  [[nodiscard]] bool is_forgotten(Joined& joined) noexcept;
  [[nodiscard]] Joined* find_token(std::uint64_t token) noexcept;
  [[nodiscard]] Joined& of(const Peer& peer) noexcept { return *slots_[joined_rank::slot_of(peer.rank.value)]; }

  // joined_peers_words.cc
  static Digest proof_of(const JoinKey& key, const Word& word, std::span<const std::byte> payload);
  Status say(Joined& joined, Kind kind, std::span<const std::byte> payload = {}) noexcept;
  static void on_message(void* joined_peers, port::AmMessage& message) noexcept;
  void hear(const Word& word, std::span<const std::byte> payload);
  void hear_ask(const Word& word, std::span<const std::byte> payload);
  void hear_answer(Joined& joined, const Word& word) noexcept;
  void refuse(const char* why) noexcept;

  Engine& engine_;
  std::optional<JoinKey> key_;  ///< Once somebody was given the address.
  bool closed_ = false;
  bool refused_told_ = false;
  std::vector<std::unique_ptr<Joined>> slots_;  ///< A `Joined` stays in place.
  std::vector<std::uint32_t> generations_;      ///< Of the slots.
  std::deque<Rank> accepted_;
};

}  // namespace brant
