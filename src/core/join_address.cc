#include "core/join_address.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/bytes.h"

namespace brant {
namespace {

constexpr std::string_view kPrefix = "brant-1:";
constexpr std::string_view kBlank = " \t\r\n";
constexpr std::size_t kNameMax = 255;

[[noreturn]] void refuse(Status status, std::size_t characters, std::string_view what) {
  throw Error(status, fmt::format("a text of {} characters {}: pass what Runtime::address gave, whole and as it is",
                                  characters, what));
}

std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// Names go to logs and terminals.
bool is_printable(std::string_view name) noexcept {
  return name.size() <= kNameMax && std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

std::vector<std::byte> pack(const JoinIdentity& identity) {
  ByteWriter writer;
  writer.text(identity.job_id);
  writer.text(identity.host);
  writer.number(identity.rank);
  writer.number(identity.mark);
  writer.run(pack(identity.record));
  return writer.bytes();
}

JoinIdentity unpack_join_identity(std::span<const std::byte> packed) {
  ByteReader reader(packed);
  JoinIdentity identity;
  identity.job_id = reader.text();
  identity.host = reader.text();
  identity.rank = reader.number<std::int32_t>();
  identity.mark = reader.number<ProcessMark>();
  const std::span<const std::byte> record = reader.run();
  const bool sound = !reader.failed() && reader.left() == 0 && identity.rank >= 0 && is_printable(identity.job_id) &&
                     is_printable(identity.host);
  if (!sound) throw Error(Status::invalid_argument, "what it says of its process contradicts itself");
  identity.record = unpack_peer_record(identity.rank, record);
  return identity;
}

std::string text_of(const JoinIdentity& identity) {
  return fmt::format("rank {} of job {} (host {}, pid {})", identity.rank, identity.job_id, identity.host,
                     identity.record.pid);
}

std::string pack(const JoinAddress& address) {
  ByteWriter body;
  body.number(address.key);
  body.run(pack(address.identity));
  ByteWriter whole;
  whole.number(checksum_of(body.bytes()));
  whole.run(body.bytes());
  std::string text = std::string(kPrefix) + to_base64(whole.bytes());
  if (text.size() <= kJoinAddressMax) return text;
  throw Error(Status::limit_reached,
              fmt::format("the address of this process would have {} characters, of {}: its network has too many "
                          "devices. Name those that are to be used (UCX_NET_DEVICES)",
                          text.size(), kJoinAddressMax));
}

JoinAddress unpack_join_address(std::string_view given) {
  const std::string_view text = trimmed(given);
  if (text.size() > kJoinAddressMax || !text.starts_with("brant-"))
    refuse(Status::invalid_argument, text.size(), "is no address of brant");
  if (!text.starts_with(kPrefix))
    refuse(Status::version_mismatch, text.size(), "is an address of another version of brant");
  const auto bytes = from_base64(text.substr(kPrefix.size()));
  if (!bytes) refuse(Status::invalid_argument, text.size(), "is a damaged address");
  ByteReader whole(*bytes);
  const auto sum = whole.number<std::uint64_t>();
  const std::span<const std::byte> body = whole.run();
  if (whole.failed() || whole.left() != 0 || sum != checksum_of(body)) {
    refuse(Status::invalid_argument, text.size(), "is a damaged address");
  }
  ByteReader reader(body);
  JoinAddress address;
  address.key = reader.number<JoinKey>();
  const std::span<const std::byte> identity = reader.run();
  if (reader.failed() || reader.left() != 0) refuse(Status::invalid_argument, text.size(), "is a damaged address");
  try {
    address.identity = unpack_join_identity(identity);
  } catch (const Error& error) {
    refuse(error.status(), text.size(), fmt::format("is an address that cannot be used ({})", error.what()));
  }
  return address;
}

}  // namespace brant
