#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"

/// What brant puts in front of UCX's own packed addresses and keys. UCX crashes on bytes that are not its own; with the
/// magic, the length and the checksum here nothing foreign or damaged reaches it.
namespace brant::port::ucx {

enum class EnvelopeKind : std::uint32_t { address = 1, key = 2 };

struct Envelope {
  std::uint64_t magic = 0;
  std::uint64_t checksum = 0;  ///< Of everything after this member.
  std::uint32_t total_bytes = 0;
  EnvelopeKind kind = EnvelopeKind::address;
  std::uint32_t version_code = 0;  ///< The UCX version of the sender.
  std::uint32_t detail = 0;  ///< Keys: MemoryKind. Addresses: peer_errors_on_same_host, on which both sides must agree.
  std::uint64_t owner = 0;   ///< A number that names the wire it belongs to.
  std::uint64_t base = 0;    ///< Keys: where the segment begins in the owner's process. Addresses: names the host.
  std::uint64_t bytes = 0;   ///< Keys: its length.
};
static_assert(sizeof(Envelope) == 56, "packed by memcpy: no holes");

inline constexpr std::uint64_t kEnvelopeMagic =
    0x31'78'63'75'74'6e'72'62;  // "brntucx1"; wrong on a machine of the other byte order

/// The envelope followed by `body`; magic, length and checksum are filled in. Throws std::bad_alloc.
inline std::vector<std::byte> pack_envelope(Envelope envelope, std::span<const std::byte> body) {
  constexpr std::size_t kSummedFrom = offsetof(Envelope, total_bytes);
  std::vector<std::byte> packed(sizeof(Envelope) + body.size());
  envelope.magic = kEnvelopeMagic;
  envelope.total_bytes = static_cast<std::uint32_t>(packed.size());
  std::memcpy(packed.data(), &envelope, sizeof(Envelope));
  if (!body.empty()) std::memcpy(packed.data() + sizeof(Envelope), body.data(), body.size());
  envelope.checksum = checksum_of(std::span<const std::byte>(packed).subspan(kSummedFrom));
  std::memcpy(packed.data(), &envelope, sizeof(Envelope));
  return packed;
}

/// The envelope if `packed` is whole and of this kind, else nothing. The body is what follows sizeof(Envelope).
inline std::optional<Envelope> open_envelope(std::span<const std::byte> packed, EnvelopeKind kind) noexcept {
  constexpr std::size_t kSummedFrom = offsetof(Envelope, total_bytes);
  Envelope envelope;
  if (packed.size() <= sizeof(Envelope)) return std::nullopt;
  std::memcpy(&envelope, packed.data(), sizeof(Envelope));
  if (envelope.magic != kEnvelopeMagic || envelope.kind != kind || envelope.total_bytes != packed.size())
    return std::nullopt;
  if (envelope.checksum != checksum_of(packed.subspan(kSummedFrom))) return std::nullopt;
  return envelope;
}

}  // namespace brant::port::ucx
