#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "port/wire.h"

/// A network inside one process: several wires ("ranks") share a LoopbackNetwork and one thread drives them all. With
/// the default options a message arrives when it is sent, in order, and costs no allocation: good enough for a job of
/// one rank. With delays and shuffling a seed decides what arrives when, so that a test can search for orders that
/// break a protocol, and repeat them.
///
///     LoopbackNetwork network({.seed = 7, .delay_max = 3, .shuffle_tags = true});
///     auto left = network.open_wire();
///     auto right = network.open_wire();
///     WireEndpoint* to_right = *left->connect(right->address());
namespace brant::port {

/// Moves bytes between memories of which one or both are not host accessible. False: it could not.
using LoopbackCopy = bool (*)(void* context, Buffer to, ConstBuffer from) noexcept;

struct LoopbackOptions {
  std::uint64_t seed = 1;
  /// A message arrives after this many `progress` calls of its receiver, drawn between the two. One-sided operations:
  /// of their initiator.
  unsigned delay_min = 0;
  unsigned delay_max = 0;
  bool shuffle_pairs = false;  ///< Messages of different senders to one receiver overtake each other.
  bool shuffle_tags =
      false;  ///< So do messages of one sender that differ in tag (or active-message id). Equal tags never do.
  std::size_t eager_bytes_max = 8192;  ///< Longer tagged messages complete at the sender when the receive has matched.
  std::size_t am_eager_bytes_max = 8192;  ///< Longer payloads wait for am_receive.
  std::size_t am_header_bytes_max = 4096;
  std::size_t requests_max = 65536;  ///< Per wire: operations in flight; more return limit_reached.
  std::size_t messages_max = 16384;  ///< Per wire: arrived and unreceived messages that were sent eagerly; then tagged
                                     ///< ones wait at the sender and am_send returns limit_reached.
  bool reports_truncation_to_sender = true;
  std::uint32_t extra_kinds =
      0;  ///< Bits (1 << MemoryKind) that `copy` can move, besides host, pinned and cuda_managed.
  LoopbackCopy copy = nullptr;
  void* copy_context = nullptr;
};

namespace loopback {
class Fabric;
}

/// Owns the shared state. Must outlive its wires. Not thread-safe: one thread for the network and all its wires.
class LoopbackNetwork {
 public:
  /// Throws Error(invalid_argument) when the options contradict each other.
  explicit LoopbackNetwork(const LoopbackOptions& options = {});
  ~LoopbackNetwork();

  /// A new wire; wires are numbered 0, 1, 2 ... in the order of opening. Throws std::bad_alloc.
  std::unique_ptr<Wire> open_wire();

  /// Makes the wire fall silent as a process does that is killed: nothing reaches it and nothing leaves it any more,
  /// what was under way is lost, and nobody is told. Its own calls do nothing.
  void kill(std::size_t wire_index) noexcept;

 private:
  std::unique_ptr<loopback::Fabric> fabric_;
};

/// A wire of its own network, for a job of one rank. Throws like the above.
std::unique_ptr<Wire> open_loopback_wire(const LoopbackOptions& options = {});

}  // namespace brant::port
