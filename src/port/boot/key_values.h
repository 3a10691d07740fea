#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "brant/base/result.h"

/// Values by keys as bootstrap adapters hold them that have no server to do it: until a fence, and of each rank behind
/// it.
namespace brant::port {

/// What one process puts for one fence.
using KeyValues = std::map<std::string, std::vector<std::byte>>;

/// Values that wait for a fence; a server may hold every process's at once.
inline constexpr std::size_t kMaxStagedBytes = std::size_t{64} << 20;
/// Keeps the arithmetic of deadlines from overflowing.
inline constexpr std::chrono::hours kLongestFence{24 * 365};

/// Keeps a value for the next fence. invalid_argument, limit_reached: `error` says why. Throws bad_alloc.
Status stage(KeyValues& staged, const std::string& key, std::span<const std::byte> value, std::string& error);

/// What is wrong with a question for a value of a rank, in words; empty if nothing is.
std::string question_fault(int rank, int size, const std::string& key);

/// not_found, with `error`, for a key that the rank has put nothing for.
Result<std::vector<std::byte>> find_value(const KeyValues& values, int rank, const std::string& key,
                                          std::string& error);

/// As one run of bytes.
std::vector<std::byte> pack(const KeyValues& values);
/// Adds what a run of bytes holds. False if it is damaged.
bool unpack(std::span<const std::byte> bytes, KeyValues& values);

/// Ends this process, for adapters that can tell nobody of it.
[[noreturn]] void abort_alone(int exit_code, const std::string& message) noexcept;

/// 32 hexadecimal digits that no other job has.
std::string random_job_id();

}  // namespace brant::port
