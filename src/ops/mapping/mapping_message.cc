#include "ops/mapping/mapping_message.h"

#include <cstring>
#include <span>

#include "core/link_services.h"
#include "port/memory.h"

namespace brant {
namespace {

bool is_status(std::uint16_t code) noexcept { return status_name(static_cast<Status>(code)) != "unknown"; }

}  // namespace

bool post(port::Link& link, const MappingMessage& message) noexcept {
  return link.post_control(link_service::kMapping, std::as_bytes(std::span(&message, 1)));
}

bool read_mapping_message(const std::byte* header, std::size_t payload_bytes, MappingMessage& message) noexcept {
  std::memcpy(&message, header, sizeof(message));
  const std::size_t expected = message.kind == MappingMessage::Kind::exported ? sizeof(port::ExportRecord) : 0;
  return message.kind <= MappingMessage::Kind::handed && is_status(message.outcome) && payload_bytes == expected;
}

}  // namespace brant
