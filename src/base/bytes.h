#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace brant {

/// FNV-1a. Against damage, not against malice.
inline std::uint64_t checksum_of(std::span<const std::byte> bytes) noexcept {
  std::uint64_t sum = 14695981039346656037u;
  for (const std::byte b : bytes) sum = (sum ^ static_cast<std::uint64_t>(b)) * 1099511628211u;
  return sum;
}

/// Packs a record for another process of the same architecture: numbers as they are, strings and byte runs with a
/// length.
class ByteWriter {
 public:
  template <typename T>
    requires std::is_trivially_copyable_v<T>
  void number(T value) {
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), raw, raw + sizeof(T));
  }
  void run(std::span<const std::byte> bytes) {
    number(static_cast<std::uint32_t>(bytes.size()));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void text(std::string_view text) { run(std::as_bytes(std::span(text.data(), text.size()))); }
  [[nodiscard]] const std::vector<std::byte>& bytes() const noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what ByteWriter wrote. Reading past the end gives zeros and sets `failed`, so a record of another version is
/// noticed once, at the end.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

  template <typename T>
    requires std::is_trivially_copyable_v<T>
  T number() noexcept {
    T value{};
    if (rest_.size() < sizeof(T)) {
      fail();
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  std::span<const std::byte> run() noexcept {
    const auto length = number<std::uint32_t>();
    if (rest_.size() < length) {
      fail();
      return {};
    }
    const auto result = rest_.first(length);
    rest_ = rest_.subspan(length);
    return result;
  }
  std::string text() {
    const auto bytes = run();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// Bytes that were not read.
  [[nodiscard]] std::size_t left() const noexcept { return rest_.size(); }
  [[nodiscard]] bool failed() const noexcept { return failed_; }

 private:
  void fail() noexcept {
    failed_ = true;
    rest_ = {};
  }

  std::span<const std::byte> rest_;
  bool failed_ = false;
};

}  // namespace brant
