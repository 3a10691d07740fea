#include "ops/notify/ticket.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"

namespace brant {
namespace {

constexpr std::uint32_t kMagic = 0x62727462;  // "brtb"
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeadBytes = 2 * sizeof(std::uint32_t) + sizeof(std::uint64_t);
static_assert(kHeadBytes + sizeof(port::ExportRecord) + 64 <= BellTicket::kBytesMax);

[[noreturn]] void refuse(Status status, std::size_t bytes, const char* what) {
  throw Error(status, fmt::format("a ticket of a bell of {} bytes {}: pass the bytes of Bell::ticket as they are",
                                  bytes, what));
}

}  // namespace

BellTicket::BellTicket(std::span<const std::byte> packed) noexcept {
  if (packed.size() > bytes_.size()) return;  // of no use
  size_ = static_cast<std::uint32_t>(packed.size());
  std::copy(packed.begin(), packed.end(), bytes_.begin());
}

BellTicket pack_ticket(const TicketOfBell& content) {
  ByteWriter body;
  body.number(content.rank);
  body.number(content.pid);
  body.number(content.number);
  body.number(content.address);
  body.number(content.record);
  ByteWriter whole;
  whole.number(kMagic);
  whole.number(kVersion);
  whole.number(checksum_of(body.bytes()));
  std::vector<std::byte> packed = whole.bytes();
  packed.insert(packed.end(), body.bytes().begin(), body.bytes().end());
  return BellTicket(packed);
}

TicketOfBell unpack_ticket(const BellTicket& ticket) {
  const std::span<const std::byte> bytes = ticket.bytes();
  if (bytes.size() <= kHeadBytes) refuse(Status::invalid_argument, bytes.size(), "is none");
  ByteReader head(bytes.first(kHeadBytes));
  const std::span<const std::byte> body = bytes.subspan(kHeadBytes);
  if (head.number<std::uint32_t>() != kMagic) refuse(Status::invalid_argument, bytes.size(), "is none");
  if (head.number<std::uint32_t>() != kVersion) {
    refuse(Status::version_mismatch, bytes.size(), "is of another version of brant");
  }
  if (head.number<std::uint64_t>() != checksum_of(body)) refuse(Status::invalid_argument, bytes.size(), "is damaged");
  ByteReader reader(body);
  TicketOfBell content;
  content.rank = reader.number<std::int32_t>();
  content.pid = reader.number<std::int64_t>();
  content.number = reader.number<std::uint32_t>();
  content.address = reader.number<std::uint64_t>();
  content.record = reader.number<port::ExportRecord>();
  const port::ExportRecord& record = content.record;
  const bool sound = !reader.failed() && content.rank >= 0 && content.address != 0 && content.address % 8 == 0 &&
                     record.offset <= record.bytes && record.bytes - record.offset >= sizeof(std::uint64_t) &&
                     static_cast<unsigned>(record.kind) < static_cast<unsigned>(kMemoryKindCount);
  if (!sound) refuse(Status::invalid_argument, bytes.size(), "contradicts itself");
  return content;
}

}  // namespace brant
