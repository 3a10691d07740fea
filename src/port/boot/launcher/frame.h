#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "brant/base/status.h"
#include "port/boot/key_value.h"

/// What travels on the socket between `brant run` and one of its processes. Both ends are on one host, so numbers are
/// in the machine's order. A frame is {bytes of the body: u32, type: u16, zero: u16} and the body. The process asks,
/// one question at a time; the launcher answers every hello, put, fence, get and
/// spawn with one `reply`.
namespace brant::port::launcher {

inline constexpr std::uint32_t kMagic = 0x42524e54;  // "BRNT": tells our socket from any other
inline constexpr std::uint32_t kProtocolVersion = 2;
inline constexpr std::size_t kHeaderBytes = 8;
inline constexpr std::size_t kMaxTextBytes = 2048;
inline constexpr std::size_t kMaxBodyBytes = kMaxValueBytes + 2 * kMaxTextBytes;
inline constexpr int kMaxRanks = 1024;

enum class Type : std::uint16_t { hello = 1, put, fence, cancel_fence, get, finalize, abort, reply, spawn };

struct Hello {
  std::uint32_t version = kProtocolVersion;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::string job_id{};
};
struct Put {
  std::string key{};
  std::span<const std::byte> value{};  ///< Of the frame it was decoded from.
};
struct Fence {  ///< Also the body of cancel_fence.
  std::uint64_t id = 0;
};
struct Get {
  std::string key{};
  std::int32_t rank = 0;
};
struct Finalize {};
struct Abort {
  std::int32_t exit_code = 1;
  std::string text{};
};
/// Two descriptors travel with it: the plan, and the launcher's end of the socket.
struct Spawn {};
inline constexpr std::size_t kSpawnFiles = 2;
struct Reply {
  Type to = Type::hello;
  std::uint64_t id = 0;  ///< The fence's id; 0 for the others.
  Status status = Status::ok;
  std::string text{};                    ///< Why, if the status is not ok.
  std::span<const std::byte> payload{};  ///< Of the frame it was decoded from. For `get`: a row of ValueRecords.
};

/// One frame as it goes over the socket, header included.
std::vector<std::byte> encode(const Hello& hello);
std::vector<std::byte> encode(const Put& put);
std::vector<std::byte> encode(const Fence& fence);
std::vector<std::byte> encode_cancel(const Fence& fence);
std::vector<std::byte> encode(const Get& get);
std::vector<std::byte> encode(const Finalize& finalize);
std::vector<std::byte> encode(const Abort& abort);
std::vector<std::byte> encode(const Spawn& spawn);
std::vector<std::byte> encode(const Reply& reply);

/// Reads a body; false if it is malformed: too short, too long, or a field beyond its bound.
bool decode(std::span<const std::byte> body, Hello& hello);
bool decode(std::span<const std::byte> body, Put& put);
bool decode(std::span<const std::byte> body, Fence& fence);
bool decode(std::span<const std::byte> body, Get& get);
bool decode(std::span<const std::byte> body, Abort& abort);
bool decode(std::span<const std::byte> body, Reply& reply);

struct Header {
  std::size_t body_bytes = 0;
  Type type = Type::hello;
};
/// Reads the first kHeaderBytes of a frame; false if it is not a header of ours.
bool decode_header(std::span<const std::byte> bytes, Header& header);

/// The values of consecutive ranks for one key, in the payload of a reply to `get`: one round trip brings as many ranks
/// as fit, because bootstrap reads everybody's record in rank order.
struct ValueRecord {
  bool present = false;
  std::span<const std::byte> value{};
};
void append_record(std::vector<std::byte>& payload, const ValueRecord& record);
/// Takes the first record off `payload`; false at the end or if it is malformed.
bool take_record(std::span<const std::byte>& payload, ValueRecord& record);

}  // namespace brant::port::launcher
