#include "port/boot/key_values.h"

#include <array>
#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/random_bytes.h"
#include "port/boot/key_value.h"

namespace brant::port {

Status stage(KeyValues& staged, const std::string& key, std::span<const std::byte> value, std::string& error) {
  error = key_value_fault(key, value.size());
  if (!error.empty()) return Status::invalid_argument;
  std::size_t bytes = value.size();
  for (const auto& [other, before] : staged) bytes += other == key ? 0 : before.size();
  if (bytes > kMaxStagedBytes) {
    error = fmt::format("more than {} bytes were put before one fence", kMaxStagedBytes);
    return Status::limit_reached;
  }
  staged[key].assign(value.begin(), value.end());
  return Status::ok;
}

std::string question_fault(int rank, int size, const std::string& key) {
  if (rank >= 0 && rank < size) return key_value_fault(key, 0);
  return fmt::format("there is no rank {} in a job of {}", rank, size);
}

Result<std::vector<std::byte>> find_value(const KeyValues& values, int rank, const std::string& key,
                                          std::string& error) {
  const auto found = values.find(key);
  if (found != values.end()) return found->second;
  error = fmt::format("rank {} put no value '{}' before a fence of all", rank, key);
  return Status::not_found;
}

std::vector<std::byte> pack(const KeyValues& values) {
  ByteWriter writer;
  for (const auto& [key, value] : values) {
    writer.text(key);
    writer.run(value);
  }
  return writer.bytes();
}

bool unpack(std::span<const std::byte> bytes, KeyValues& values) {
  ByteReader reader(bytes);
  while (reader.left() > 0 && !reader.failed()) {
    const std::string key = reader.text();
    const std::span<const std::byte> value = reader.run();
    if (reader.failed() || !key_value_fault(key, value.size()).empty()) return false;
    values[key].assign(value.begin(), value.end());
  }
  return !reader.failed();
}

void abort_alone(int exit_code, const std::string& message) noexcept {
  log::error("the job is aborted with exit code {}: {}", exit_code, message);
  std::_Exit(abort_exit_code(exit_code));
}

std::string random_job_id() {
  std::array<std::uint64_t, 2> number{};
  fill_with_random_bytes(std::as_writable_bytes(std::span(number)), "the id of the job");
  return fmt::format("{:016x}{:016x}", number[0], number[1]);
}

}  // namespace brant::port
