#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "port/boot/tcp_store/stream.h"

namespace brant::port::tcp_store {

using Bytes = std::vector<std::byte>;

/// A client of torch's TCPStore, which both of its servers (with libuv and without) understand: PyTorch 2.1 and later.
/// A question is a byte that names it and its arguments, numbers little-endian, runs of bytes after a length of 64
/// bits; see docs/gotchas/torchrun.md. All keys get the prefix. One thread; failures as in Stream.
class Client {
 public:
  using Clock = Stream::Clock;

  /// A part of a value, as servers bound what they take in one piece.
  static constexpr std::size_t kMaxValue = std::size_t{1} << 20;

  explicit Client(std::string prefix) : prefix_(std::move(prefix)) {}

  /// peer_rejected if nobody is there.
  Status connect(const std::string& host, int port, Clock::time_point deadline);

  /// There is no answer to it; what the connection carries later finds it done.
  Status set(std::string_view key, std::span<const std::byte> value, Clock::time_point deadline);
  /// Sets the key if nobody has; `value` becomes what it is now.
  Status set_once(std::string_view key, std::string& value, Clock::time_point deadline);
  /// Adds one to a counter; `value` becomes what it is now.
  Status increment(std::string_view key, std::int64_t& value, Clock::time_point deadline);
  /// Which of them exist.
  Status check(std::span<const std::string> keys, std::vector<bool>& exist, Clock::time_point deadline);
  /// All of them must exist: a server ends the connection otherwise.
  Status get(std::span<const std::string> keys, std::vector<Bytes>& values, Clock::time_point deadline);

  /// Until the key exists. After timed_out the question stays open, and wait() may be called again.
  Status wait(std::string_view key, Clock::time_point deadline);

  [[nodiscard]] const std::string& error() const noexcept { return stream_.error(); }

 private:
  /// Takes back the question of wait(), as its answer must not be taken for another's.
  Status stop_waiting(Clock::time_point deadline);
  Status ask(std::span<const std::byte> question, Clock::time_point deadline);
  Status receive_run(std::size_t longest, Bytes& run, Clock::time_point deadline);
  Status receive_byte(std::uint8_t largest, std::uint8_t& byte, Clock::time_point deadline);

  std::string prefix_;
  Stream stream_;
  bool waiting_ = false;
};

}  // namespace brant::port::tcp_store
