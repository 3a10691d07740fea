#pragma once

#include <memory>
#include <span>
#include <string>

#include "bench/rma/rma.h"
#include "bench/runner/session.h"
#include "brant/base/buffer.h"

namespace brant::bench {

/// What carries puts and gets out, in both processes of a job: brant or a rival. All throw Error.
class RmaPlayer {
 public:
  RmaPlayer() = default;
  RmaPlayer(const RmaPlayer&) = delete;
  RmaPlayer& operator=(const RmaPlayer&) = delete;
  virtual ~RmaPlayer() = default;

  /// As rows name it; empty for brant.
  [[nodiscard]] virtual std::string peer() const = 0;
  [[nodiscard]] virtual std::string peer_version() const { return {}; }
  /// It has such memory, and such a sync.
  [[nodiscard]] virtual bool plays(const RmaCase& which) const = 0;
  /// The pattern of what follows. Collective.
  virtual void use(RmaPattern pattern) = 0;
  /// Looks at every byte. Collective. Rivals have nothing to prove here.
  virtual void check(const RmaCase& which, std::size_t times) {
    static_cast<void>(which);
    static_cast<void>(times);
  }
  /// A sample per entry, in microseconds: of a transfer, a window, or for `inject` one post. They mean something where
  /// the transfers are made. Both processes call it; the target is back at once unless it is notified.
  virtual void measure(const RmaCase& which, std::span<double> us) = 0;
  /// The path that the latest samples took.
  [[nodiscard]] virtual std::string path() const = 0;
};

/// The memory of this process for each pattern, made once: at who puts and gets its local end, at the target what is
/// exposed.
class RmaPlaces {
 public:
  /// Of `bytes` each, for these patterns.
  RmaPlaces(Session& session, const std::vector<RmaPattern>& patterns, std::size_t bytes);

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Of the end that this process has in a pattern.
  [[nodiscard]] Buffer mine(RmaPattern pattern) const;
  /// `mine` by its letter.
  [[nodiscard]] Buffer of(RmaMemory memory) const;
  [[nodiscard]] bool has(RmaMemory memory) const noexcept { return space(memory).bytes() != 0; }

 private:
  [[nodiscard]] const Space& space(RmaMemory memory) const noexcept {
    return spaces_[static_cast<std::size_t>(memory)];
  }

  const bool leads_;
  const std::size_t bytes_;
  std::array<Space, 3> spaces_;
};

std::unique_ptr<RmaPlayer> make_brant_player(Session& session, const RmaPlaces& places, const RmaBench& bench);
std::unique_ptr<RmaPlayer> make_ucx_player(Session& session, const RmaPlaces& places);

}  // namespace brant::bench
