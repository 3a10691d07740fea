#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/unique_fd.h"
#include "multi/wire/peer_protocol.h"
#include "port/wire.h"

namespace brant::port::test {

/// A second process with a UCX wire (the program wire_peer), connected to `wire` of this one. The destructor ends it.
class PeerProcess {
 public:
  /// Starts the program and connects both ways. Throws Error when it cannot.
  explicit PeerProcess(Wire& wire, bool peer_errors = false);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  [[nodiscard]] WireEndpoint* endpoint() const noexcept { return endpoint_; }
  [[nodiscard]] const std::vector<std::byte>& address() const noexcept { return address_; }

  /// Tells the peer, and waits (moving our wire) until it has started.
  bool tell(const Command& command);
  /// Waits, moving our wire, for the end of a command; the number of failed operations, or nothing in time.
  std::optional<std::uint64_t> finished(std::chrono::milliseconds limit = std::chrono::seconds(20));

  struct Segment {
    std::uint64_t address = 0;
    std::vector<std::byte> key;
  };
  std::optional<Segment> segment(std::uint64_t bytes, bool ordinary);

  void kill();  ///< SIGKILL, and waits until the process is gone.
  void freeze() const;
  /// Asks it to end; its exit code, or -1.
  int quit();

 private:
  std::optional<Answer> next_answer(std::chrono::milliseconds limit);

  Wire& wire_;
  UniqueFd socket_;
  pid_t pid_ = -1;
  std::vector<std::byte> address_;
  WireEndpoint* endpoint_ = nullptr;
  std::vector<Answer> early_;  ///< Ends that came while another answer was waited for.
};

}  // namespace brant::port::test
