#pragma once

#include <cstdint>
#include <span>

#include "core/engine.h"

namespace brant {

/// The flags in the memory of the link to a peer (`Link::flags_there`), as this process's device reaches them.
class FlagPage {
 public:
  FlagPage(Engine& engine, Peer& peer) noexcept : engine_(engine), peer_(peer) {}
  FlagPage(const FlagPage&) = delete;
  FlagPage& operator=(const FlagPage&) = delete;
  ~FlagPage() { close(); }

  /// Makes them reachable on first use. Empty: the device does not reach them.
  [[nodiscard]] std::span<std::uint64_t> words() noexcept {
    if (state_ == State::unknown) open();
    return words_;
  }
  [[nodiscard]] bool is_open() const noexcept { return state_ == State::reached; }
  /// Nobody uses them any more. May wait for the device.
  void close() noexcept;

 private:
  void open() noexcept;

  Engine& engine_;
  Peer& peer_;
  enum class State : std::uint8_t { unknown, reached, out_of_reach } state_ = State::unknown;
  std::span<std::uint64_t> words_;
};

}  // namespace brant
