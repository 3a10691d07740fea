#pragma once

#include <functional>
#include <string>
#include <vector>

#include "brant/brant.h"

namespace jacobi {

/// Thrown on every process alike by Star::agree: one of them has to tell.
class AgreedError : public brant::Error {
 public:
  using Error::Error;
};

/// A channel between rank 0 and every other rank, for what happens outside the iterations: agreeing, reducing,
/// gathering.
///
/// All calls except send_to_root and receive_from are collective. Failures (peer_lost) are thrown. Thread rule: the
/// worker's thread.
class Star {
 public:
  /// Opens the channels: ids from the top of the range downwards, so that a program may use those from 0.
  explicit Star(brant::Runtime& runtime);

  [[nodiscard]] int rank() const noexcept { return runtime_.rank().value; }
  [[nodiscard]] bool is_root() const noexcept { return rank() == 0; }
  [[nodiscard]] int size() const noexcept { return runtime_.size(); }

  /// Nobody returns before everybody called.
  void barrier() { static_cast<void>(largest(0.0)); }
  /// The same result on all ranks. A NaN anywhere gives NaN.
  double largest(double mine);
  double sum(double mine);

  /// Runs `action` on every rank. If it throws anywhere, throws AgreedError with the text of the lowest failing rank
  /// everywhere.
  void agree(const std::function<void()>& action);

  /// The root's value on all ranks.
  template <typename T>
  T from_root(T value) {
    broadcast(brant::Buffer(&value, sizeof value, brant::MemoryKind::host));
    return value;
  }

  /// Ordered, one rank at a time; both ends wait.
  void send_to_root(brant::ConstBuffer message);
  void receive_from(int rank, brant::Buffer landing);

 private:
  /// Rank 0 and the others: `value` of all in rank order on the root, then the root's answer everywhere.
  double reduce(double mine, double (*combine)(double, double));
  void broadcast(brant::Buffer value);
  void wait(brant::Operation& operation, int peer);
  [[nodiscard]] brant::Channel& channel_of(int rank) noexcept;

  brant::Runtime& runtime_;
  std::vector<brant::Channel> channels_;  ///< On the root one for each other rank, else one.
};

}  // namespace jacobi
