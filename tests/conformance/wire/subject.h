#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "port/wire.h"

/// What the wire conformance tests run on: two connected wires in one thread. A new adapter adds one maker to
/// subjects().
namespace brant::port::test {

/// Two wires and the endpoints between them.
struct WirePair {
  std::shared_ptr<void> network;  ///< Whatever must outlive the wires.
  std::unique_ptr<Wire> left;
  std::unique_ptr<Wire> right;
  WireEndpoint* to_right = nullptr;
  WireEndpoint* to_left = nullptr;
  WireEndpoint* to_self = nullptr;  ///< From left to left.
};

struct WireSubject {
  std::string name;
  std::function<WirePair()> open;  ///< Throws brant::Error when this machine lacks what it needs.
};

inline void PrintTo(const WireSubject& subject, std::ostream* out) { *out << subject.name; }

/// Every adapter, and the loopback with orders that only a seed knows.
std::vector<WireSubject> subjects();

/// An operation that counts its completions, so that "exactly once" is checked by every test that uses it.
struct Tracked : WireOp {
  int completions = 0;
  Status posted = Status::internal;

  Tracked() {
    on_complete = [](WireOp& op) noexcept { ++static_cast<Tracked&>(op).completions; };
  }
  /// Done in the post or reported since.
  [[nodiscard]] bool done() const { return posted != Status::in_progress || completions > 0; }
  /// The outcome, whichever way it came.
  [[nodiscard]] Status outcome() const {
    return posted == Status::in_progress ? (completions > 0 ? status : Status::in_progress) : posted;
  }
};

/// Moves both wires until `done` holds; false after `limit`, so that no test hangs.
template <typename Done>
bool pump(WirePair& pair, Done&& done, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  const auto until = std::chrono::steady_clock::now() + limit;
  for (unsigned round = 0; !done(); ++round) {
    for (Wire* wire : {pair.left.get(), pair.right.get()}) {
      if (wire == nullptr) continue;
      wire->progress();
      wire->deliver(16);
    }
    if (round % 256 == 255 && std::chrono::steady_clock::now() > until) return false;
  }
  return true;
}

/// Moves both wires for a while; for showing that something does not happen.
inline void pump_for(WirePair& pair, std::chrono::milliseconds time = std::chrono::milliseconds(20)) {
  pump(pair, [] { return false; }, time);
}

inline std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed) {
  std::vector<std::byte> out(bytes);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (i % 8 == 0) state = state * 6364136223846793005u + 1442695040888963407u;
    out[i] = static_cast<std::byte>(state >> (8 + 8 * (i % 7)));
  }
  return out;
}

inline ConstBuffer host(const std::vector<std::byte>& bytes) { return {bytes.data(), bytes.size(), MemoryKind::host}; }
inline Buffer host(std::vector<std::byte>& bytes) { return {bytes.data(), bytes.size(), MemoryKind::host}; }

inline constexpr std::uint64_t kWholeTag = ~std::uint64_t{0};

}  // namespace brant::port::test
