#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "port/wire/loopback/loopback.h"
#include "port/wire/loopback/records.h"

namespace brant::port::loopback {

/// A buffer for the bytes of an eager message that does not fit into its record.
struct StorageBuffer {
  StorageBuffer* next = nullptr;
};

/// What the wires of one network share: who is there, the random numbers, the pools, and how bytes are copied.
class Fabric {
 public:
  explicit Fabric(const LoopbackOptions& options);
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  ~Fabric();

  [[nodiscard]] const LoopbackOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  /// True: what is sent arrives at once and in order.
  [[nodiscard]] bool immediate() const noexcept { return immediate_; }

  std::size_t add(LoopbackWire& wire);
  void remove(std::size_t index) noexcept;
  /// Null when the wire is closed, or there never was one.
  [[nodiscard]] LoopbackWire* wire(std::size_t index) const noexcept {
    return index < wires_.size() ? wires_[index] : nullptr;
  }
  [[nodiscard]] std::span<LoopbackWire* const> wires() const noexcept { return wires_; }

  std::uint64_t random() noexcept;
  std::uint64_t random_delay() noexcept;

  Message* take_message() noexcept { return messages_.take(); }
  /// Room for header and payload, in the record or in a pooled buffer. False: no memory.
  bool give_storage(Message& message, std::size_t bytes) noexcept;
  void give(Message& message) noexcept;

  [[nodiscard]] bool copy(Buffer to, ConstBuffer from) const noexcept;

 private:
  LoopbackOptions options_;
  std::uint64_t id_;
  std::uint64_t random_state_;
  bool immediate_;
  std::vector<LoopbackWire*> wires_;
  Pool<Message, &Message::place, 64> messages_;
  std::size_t storage_bytes_;
  std::vector<std::unique_ptr<std::byte[]>> storage_blocks_;
  StorageBuffer* free_storage_ = nullptr;
};

}  // namespace brant::port::loopback
