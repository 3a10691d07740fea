#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "brant/base/status.h"
#include "port/boot/launcher/frame.h"

namespace brant::port::launcher {

/// Writes ranks for people: "ranks 0, 2-5"; long lists are cut. One rank: "rank 3". None: "no rank".
std::string format_ranks(std::span<const int> ranks);

/// What the launcher remembers for its job: the values, who waits in a fence, who is gone. No sockets, no clock, so
/// that every interleaving can be tested by calling it. One thread.
class Store {
 public:
  /// One process may put this much in all; reaching it is limit_reached.
  static constexpr std::size_t kMaxBytesPerRank = std::size_t{64} << 20;

  struct Answer {
    Status status = Status::ok;
    std::string text;
  };
  struct FenceAnswer {
    int rank = 0;
    std::uint64_t id = 0;
    Answer answer;
  };

  explicit Store(int size);

  /// A process (re)opens its bootstrap: what it staged and its place in a fence are forgotten, its values stay.
  void open(int rank);
  /// Kept aside until the next fence of all.
  Answer put(int rank, const Put& put);
  /// The answers come from take_answers(), now or later.
  void enter_fence(int rank, std::uint64_t id);
  /// The process no longer waits. Its fence is answered timed_out, naming who is missing; nothing if it was answered
  /// before.
  void cancel_fence(int rank, std::uint64_t id);
  /// `rank` cannot take part in any fence again; fences that wait or will wait are answered peer_lost with `reason`.
  void leave(int rank, const std::string& reason);
  [[nodiscard]] bool gone(int rank) const { return !members_[static_cast<std::size_t>(rank)].gone.empty(); }

  /// The records of ranks from `get.rank` on, as many as fit; fails only for a rank or key out of range.
  Answer get(const Get& get, std::vector<std::byte>& payload) const;

  std::vector<FenceAnswer> take_answers() { return std::exchange(answers_, {}); }

 private:
  struct Member {
    std::map<std::string, std::vector<std::byte>> staged;
    std::map<std::string, std::vector<std::byte>> visible;
    std::size_t bytes = 0;
    std::optional<std::uint64_t> fence;
    std::string gone;  // why; empty while it takes part
  };

  Member& member(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  void settle();
  void answer_waiting(const Answer& answer);
  [[nodiscard]] std::vector<int> missing() const;

  std::vector<Member> members_;
  std::string first_loss_;
  int waiting_ = 0;
  std::vector<FenceAnswer> answers_;
};

}  // namespace brant::port::launcher
