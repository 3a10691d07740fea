#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "port/boot/launcher/frame.h"
#include "port/boot/launcher/store.h"

namespace brant::port::launcher {

/// The launcher's side of the bootstrap: one socket per process, driven by the launcher's own poll loop. Never blocks
/// and keeps at most one frame in and a few replies out per process. One thread.
class Server {
 public:
  using Clock = std::chrono::steady_clock;

  struct AbortRequest {
    int rank = 0;
    int exit_code = 1;
    std::string text;
  };

  /// A process wants a job to be started: see SpawnPlan.
  struct SpawnRequest {
    int rank = 0;
    UniqueFd plan;
    UniqueFd line;
  };

  Server(int size, std::string job_id);

  /// A pair of connected sockets, both close-on-exec: ours and the one to hand to the process. Throws Error.
  static std::pair<UniqueFd, UniqueFd> make_pair();
  /// Takes the launcher's end of `rank`'s socket, which must be non-blocking.
  void add(int rank, UniqueFd ours);

  /// What to poll for `rank`: descriptor (-1: none) and events.
  [[nodiscard]] int fd(int rank) const noexcept;
  [[nodiscard]] short events(int rank) const noexcept;
  void on_ready(int rank, short revents, Clock::time_point now);

  /// The process ended (`how` completes the sentence "rank 3 (pid 17) ..."): nobody waits for it any more.
  void rank_ended(int rank, const std::string& how);
  /// A process that closed its socket and lives on is given up for fences after a moment; call this at the deadline.
  void tick(Clock::time_point now);
  [[nodiscard]] std::optional<Clock::time_point> deadline() const noexcept;

  /// What happened since the last call and the person at the terminal should know.
  std::vector<AbortRequest> take_aborts() { return std::exchange(aborts_, {}); }
  std::vector<SpawnRequest> take_spawns() { return std::exchange(spawns_, {}); }
  std::vector<std::string> take_complaints() { return std::exchange(complaints_, {}); }

 private:
  struct Connection {
    UniqueFd socket;
    bool greeted = false;
    std::vector<std::byte> in;
    std::vector<std::byte> out;
    std::size_t sent = 0;
    std::optional<Clock::time_point> give_up_at;
    std::vector<UniqueFd> files;  ///< That came with the frame that is being read.
  };

  Connection& at(int rank) { return connections_[static_cast<std::size_t>(rank)]; }
  void receive(int rank, Clock::time_point now);
  bool handle_frames(int rank);
  bool handle(int rank, Type type, std::span<const std::byte> body);
  bool handle_hello(int rank, std::span<const std::byte> body);
  void reply(int rank, const Reply& reply);
  void flush(int rank);
  void refuse(int rank, const std::string& why);
  void close(int rank, Clock::time_point now);
  void send_fence_answers();

  std::string job_id_;
  Store store_;
  std::vector<Connection> connections_;
  bool handle_spawn(int rank);
  std::vector<AbortRequest> aborts_;
  std::vector<SpawnRequest> spawns_;
  std::vector<std::string> complaints_;
};

}  // namespace brant::port::launcher
