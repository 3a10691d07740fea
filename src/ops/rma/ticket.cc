#include "ops/rma/ticket.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/log.h"

namespace brant {
namespace {

constexpr std::uint32_t kMagic = 0x62727467;  // "brtg"
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeadBytes = 2 * sizeof(std::uint32_t) + sizeof(std::uint64_t);

std::vector<std::byte> packed_body(const TicketContent& content, std::span<const std::byte> key) {
  ByteWriter body;
  body.number(content.rank);
  body.number(content.pid);
  body.number(content.id);
  body.number(content.address);
  body.number(content.bytes);
  body.number(static_cast<std::uint32_t>(content.kind));
  body.number(static_cast<std::uint32_t>(content.exported ? 1 : 0));
  if (content.exported) body.number(content.exports);
  body.run(key);
  return body.bytes();
}

[[noreturn]] void refuse(Status status, std::size_t bytes, const char* what) {
  throw Error(status, fmt::format("a segment ticket of {} bytes {}: pass the bytes of Segment::ticket as they are",
                                  bytes, what));
}

}  // namespace

SegmentTicket::SegmentTicket(std::span<const std::byte> packed) noexcept {
  size_ = static_cast<std::uint32_t>(std::min<std::size_t>(packed.size(), UINT32_MAX));
  if (packed.size() <= bytes_.size()) std::copy(packed.begin(), packed.end(), bytes_.begin());
}

SegmentTicket pack_ticket(const TicketContent& content) {
  std::vector<std::byte> body = packed_body(content, content.key);
  if (kHeadBytes + body.size() > SegmentTicket::kBytesMax - sizeof(std::uint32_t)) {
    log::warn(
        "the network's key of a segment of {} bytes takes {} bytes, more than a ticket holds: the network cannot be "
        "used for it. Fewer network devices make it shorter (UCX_NET_DEVICES)",
        content.bytes, content.key.size());
    body = packed_body(content, {});
  }
  ByteWriter whole;
  whole.number(kMagic);
  whole.number(kVersion);
  whole.number(checksum_of(body));
  std::vector<std::byte> packed = whole.bytes();
  packed.insert(packed.end(), body.begin(), body.end());
  return SegmentTicket(packed);
}

TicketContent unpack_ticket(const SegmentTicket& ticket) {
  // The size may come from elsewhere too: a ticket is often sent as it lies in memory.
  const std::size_t size = ticket.told_size();
  if (size <= kHeadBytes || size > SegmentTicket::kBytesMax - sizeof(std::uint32_t))
    refuse(Status::invalid_argument, size, "is none");
  ByteReader head(ticket.bytes().first(kHeadBytes));
  const std::span<const std::byte> body = ticket.bytes().subspan(kHeadBytes);
  if (head.number<std::uint32_t>() != kMagic) refuse(Status::invalid_argument, size, "is none");
  if (head.number<std::uint32_t>() != kVersion)
    refuse(Status::version_mismatch, size, "is of another version of brant");
  if (head.number<std::uint64_t>() != checksum_of(body)) refuse(Status::invalid_argument, size, "is damaged");
  ByteReader reader(body);
  TicketContent content;
  content.rank = reader.number<std::int32_t>();
  content.pid = reader.number<std::int64_t>();
  content.id = reader.number<std::uint64_t>();
  content.address = reader.number<std::uint64_t>();
  content.bytes = reader.number<std::uint64_t>();
  const auto kind = reader.number<std::uint32_t>();
  content.kind = static_cast<MemoryKind>(kind);
  content.exported = reader.number<std::uint32_t>() != 0;
  if (content.exported) content.exports = reader.number<port::ExportRecord>();
  content.key = reader.run();
  const port::ExportRecord& exports = content.exports;
  // Memory is mapped as `exports` says and reached as the segment's kind says.
  const bool fits =
      !content.exported || (exports.offset <= exports.bytes && content.bytes <= exports.bytes - exports.offset &&
                            static_cast<unsigned>(exports.kind) < static_cast<unsigned>(kMemoryKindCount) &&
                            host_accessible(exports.kind) == host_accessible(content.kind));
  const bool sound = !reader.failed() && content.bytes != 0 && kind != 0 &&
                     kind < static_cast<std::uint32_t>(kMemoryKindCount) &&
                     content.address <= UINT64_MAX - content.bytes && fits;
  if (!sound) refuse(Status::invalid_argument, size, "contradicts itself");
  return content;
}

}  // namespace brant
