#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "port/memory.h"

namespace brant::test {

using Bytes = std::vector<std::byte>;

/// `bytes` bytes that differ from place to place and from seed to seed.
Bytes pattern(std::size_t bytes, unsigned seed);

/// Opens the device called `name`: "host", "emulated" or "cuda". Null, and why, where the machine has none.
std::unique_ptr<port::Device> open_subject(const std::string& name, std::string& reason);

/// A piece of memory of a device, freed at the end of the scope.
class Piece {
 public:
  Piece(port::Device& device, MemoryKind kind, std::size_t bytes);
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  ~Piece();

  [[nodiscard]] std::byte* at(std::size_t offset = 0) const { return static_cast<std::byte*>(pointer_) + offset; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] MemoryKind kind() const { return kind_; }
  template <typename T>
  [[nodiscard]] T* as(std::size_t offset = 0) const {
    return reinterpret_cast<T*>(at(offset));
  }
  void free_now();

 private:
  port::Device& device_;
  MemoryKind kind_;
  std::size_t bytes_;
  void* pointer_ = nullptr;
};

/// A stream, destroyed at the end of the scope.
class StreamScope {
 public:
  explicit StreamScope(port::Device& device);
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;
  ~StreamScope() { streams_.destroy_stream(stream_); }
  operator port::Stream*() const { return stream_; }  // NOLINT(google-explicit-constructor): stands for the handle

 private:
  port::Streams& streams_;
  port::Stream* stream_ = nullptr;
};

/// An event, destroyed at the end of the scope.
class EventScope {
 public:
  explicit EventScope(port::Device& device, bool timing = false);
  EventScope(const EventScope&) = delete;
  EventScope& operator=(const EventScope&) = delete;
  ~EventScope() { streams_.destroy_event(event_); }
  operator port::Event*() const { return event_; }  // NOLINT(google-explicit-constructor)

 private:
  port::Streams& streams_;
  port::Event* event_ = nullptr;
};

/// One adapter under test. Tests skip by capability, not by name.
class MemoryConformance : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;

  port::Device& device() { return *device_; }
  port::Streams& streams() { return *device_->streams(); }
  [[nodiscard]] std::vector<MemoryKind> kinds() const;
  /// The kind that is the device's own, or `pinned` for a device without one.
  [[nodiscard]] MemoryKind device_kind() const;

  /// Bytes in and out of any kind, done when the call returns.
  void write(void* destination, std::span<const std::byte> bytes);
  Bytes read(const void* source, std::size_t bytes);

  std::unique_ptr<port::Device> device_;
};

/// The same, for what needs streams.
class StreamConformance : public MemoryConformance {
 protected:
  void SetUp() override;
};

/// GTest prints these by name.
std::string subject_name(const testing::TestParamInfo<std::string>& info);

}  // namespace brant::test

namespace brant {
/// Failure messages show names instead of numbers.
inline void PrintTo(Status status, std::ostream* out) { *out << status_name(status); }
inline void PrintTo(MemoryKind kind, std::ostream* out) { *out << memory_kind_name(kind); }
}  // namespace brant
