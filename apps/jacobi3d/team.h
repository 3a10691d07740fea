#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "brant/brant.h"

namespace jacobi {

/// A channel between rank 0 and every other rank, for what happens outside the iterations. Thread rule: the worker's
/// thread. Throws what a transfer failed with (peer_lost).
class Team {
 public:
  /// Opens the channels: ids from the top of the range downwards, so that a program may use those from 0.
  explicit Team(brant::Runtime& runtime) : runtime_(runtime) {
    for (int leaf = leads() ? 1 : rank(); leaf < (leads() ? size() : rank() + 1); ++leaf) {
      const brant::ChannelId id{brant::kChannelIdMax - static_cast<std::uint32_t>(leaf)};
      channels_.push_back(brant::Channel::open(runtime, brant::Rank{leads() ? leaf : 0}, id));
    }
  }

  [[nodiscard]] int rank() const noexcept { return runtime_.rank().value; }
  [[nodiscard]] bool leads() const noexcept { return rank() == 0; }
  [[nodiscard]] int size() const noexcept { return runtime_.size(); }

  /// Between rank 0 and another one: each names the other. Both wait.
  void send(int peer, brant::ConstBuffer message) {
    const brant::Operation sent = channel(peer).send(message);
    runtime_.wait(sent).or_throw("talking to rank " + std::to_string(peer));
  }
  void receive(int peer, brant::Buffer message) {
    const brant::Operation received = channel(peer).recv(message);
    runtime_.wait(received).or_throw("listening to rank " + std::to_string(peer));
  }

  /// Collective. On rank 0 what every rank gave, in their order; elsewhere what this one gave.
  template <typename T>
    requires std::is_trivially_copyable_v<T>
  std::vector<T> gather(const T& mine) {
    std::vector<T> all(leads() ? static_cast<std::size_t>(size()) : 1, mine);
    if (!leads()) send(0, {&mine, sizeof mine, brant::MemoryKind::host});
    for (int peer = 1; leads() && peer < size(); ++peer) {
      receive(peer, {&all[static_cast<std::size_t>(peer)], sizeof mine, brant::MemoryKind::host});
    }
    return all;
  }

  /// Collective. Nobody returns before everybody called.
  void barrier() {
    char word = 0;
    gather(word);
    if (!leads()) receive(0, {&word, 1, brant::MemoryKind::host});
    for (int peer = 1; leads() && peer < size(); ++peer) send(peer, {&word, 1, brant::MemoryKind::host});
  }

 private:
  [[nodiscard]] brant::Channel& channel(int peer) noexcept {
    return channels_[leads() ? static_cast<std::size_t>(peer) - 1 : 0];
  }

  brant::Runtime& runtime_;
  std::vector<brant::Channel> channels_;  ///< On rank 0 one for each other rank, else one.
};

}  // namespace jacobi
