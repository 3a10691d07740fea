#include "models/chare/message_check.h"

#include <cstring>

#include "models/chare/collections.h"
#include "models/chare/data_call.h"
#include "models/chare/moving.h"

namespace brant::detail {
namespace {

/// No argument is larger.
constexpr std::uint64_t kDataBytesMax = std::uint64_t{1} << 46;

bool data_fits(const am::Message& message, const Envelope& envelope) noexcept {
  const std::size_t before = static_cast<std::size_t>(data_block(message, envelope) - message.data);
  const std::size_t behind = (envelope.flags & Envelope::kPassedOn) != 0 ? sizeof(Trail) : 0;
  if (message.bytes < before + sizeof(DataHeader) + behind) return false;
  const DataHeader header = data_header(message, envelope);
  const std::size_t left = message.bytes - before - sizeof(DataHeader) - behind;
  const bool counts = header.count != 0 && header.count <= kDataMax && header.count <= left / sizeof(DataMeta);
  if (!counts || header.state != DataState::numbers) return false;  // any other one would hold a pointer
  for (std::uint32_t i = 0; i < header.count; ++i) {
    std::byte raw[sizeof(DataMeta)];
    std::memcpy(raw, data_metas(message, envelope) + i, sizeof(raw));
    if (std::to_integer<unsigned>(raw[offsetof(DataMeta, host_only)]) > 1) return false;  // no bool
    DataMeta meta;
    std::memcpy(static_cast<void*>(&meta), raw, sizeof(meta));
    if (meta.bytes > kDataBytesMax || static_cast<unsigned>(meta.kind) >= static_cast<unsigned>(kMemoryKindCount))
      return false;
  }
  return true;
}

/// Whether a list says for every element a rank of the job, and is all there.
bool lists_ranks(const am::Message& message, const PlacementRule& rule, std::int32_t ranks) noexcept {
  if (rule.dense == 0 || rule.total() > PlacementRule::kListedMax) return false;
  if (message.bytes - kCreateBytes < rule.listed_bytes()) return false;
  for (std::uint64_t at = 0; at < rule.total(); ++at) {
    std::int32_t rank = 0;
    std::memcpy(&rank, message.data + kCreateBytes + at * sizeof(rank), sizeof(rank));
    if (rank < 0 || rank >= ranks) return false;
  }
  return true;
}

bool describes_collection(const am::Message& message, const Envelope& envelope, std::int32_t ranks,
                          const Registry& registry) noexcept {
  if (message.bytes < kCreateBytes || (envelope.collection & kSinglesBit) != 0) return false;
  PlacementRule rule;
  std::memcpy(static_cast<void*>(&rule), message.data, sizeof(rule));
  if (rule.kind > Placement::Kind::listed || rule.dense > 1) return false;
  std::uint16_t number = 0;
  std::memcpy(&number, message.data + sizeof(rule), sizeof(number));
  const auto* chare_class = registry.find<ClassInfo>(number, RegisteredKind::chare_class);
  if (chare_class == nullptr) return registry.is_awaited(number);  // what else it says is checked when that is enrolled
  if (rule.dimensions != chare_class->dimensions) return false;
  if (rule.dense != 0 && !rule.can_be_dense()) return false;
  if (rule.kind == Placement::Kind::listed) return lists_ranks(message, rule, ranks);
  return rule.kind != Placement::Kind::function ||
         registry.find<PlacementInfo>(rule.function, RegisteredKind::placement) != nullptr ||
         registry.is_awaited(rule.function);
}

/// The rank that `reply` names where it names one: the root of a tree.
bool has_root(const Envelope& envelope, std::int32_t ranks) noexcept {
  return envelope.reply < static_cast<std::uint32_t>(ranks);
}

/// Of messages to elements that moved, and of moves.
bool follows_soundly(const am::Message& message, const Envelope& envelope, std::int32_t ranks) noexcept {
  const bool direct = (envelope.flags & Envelope::kDirect) != 0;
  const bool passed_on = (envelope.flags & Envelope::kPassedOn) != 0;
  const std::size_t prefix = (envelope.flags & Envelope::kWide) != 0 ? kWideBytes : 0;
  if (direct == passed_on) return false;
  if (envelope.kind == MessageKind::place) return direct;
  if (envelope.kind == MessageKind::moved) return direct && message.bytes >= prefix + sizeof(PassportTail);
  if (!envelope.to_element()) return false;  // a departure stays within its process
  if (direct) return true;
  if (message.bytes < prefix + sizeof(Trail)) return false;
  Trail trail;
  std::memcpy(&trail, message.data + message.bytes - sizeof(trail), sizeof(trail));
  const auto is_rank = [ranks](std::int32_t rank) { return rank >= 0 && rank < ranks; };
  return is_rank(trail.origin) && is_rank(trail.caller) && trail.by_home <= 1;
}

}  // namespace

bool is_sound(const am::Message& message, std::int32_t ranks, const Registry& registry) noexcept {
  if (message.wire.header_bytes != sizeof(Envelope)) return false;
  if (message.wire.source >= ranks) return false;  // it has joined the process, and has no chares
  const auto envelope = message.header<Envelope>();
  if (envelope.kind < MessageKind::call || envelope.kind > MessageKind::numbers_given) return false;
  const bool by_tree = envelope.by_tree() || envelope.kind == MessageKind::multicast;
  if (by_tree && !has_root(envelope, ranks)) return false;
  if ((envelope.flags & Envelope::kWide) != 0 && message.bytes < kWideBytes) return false;
  if (envelope.has_data()) {
    const bool may = envelope.kind >= MessageKind::call && envelope.kind <= MessageKind::multicast;
    if (!may || !data_fits(message, envelope)) return false;
  }
  const bool of_moves = envelope.kind >= MessageKind::depart && envelope.kind <= MessageKind::place;
  if ((of_moves || envelope.follows()) && !follows_soundly(message, envelope, ranks)) [[unlikely]]
    return false;
  if (envelope.kind == MessageKind::reply) return message.bytes >= kReplyPrefix;
  return envelope.kind != MessageKind::create || describes_collection(message, envelope, ranks, registry);
}

}  // namespace brant::detail
