#include "ops/channel/stall_report.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/seconds.h"
#include "core/am_ids.h"
#include "ops/channel/table.h"

namespace brant {
namespace {

/// What a process that stands still tells the other end of its channels. The ends follow it.
struct AccountHeader {
  std::int32_t rank = -1;
  std::uint32_t is_answer = 0;
};

constexpr std::size_t kNamedMax = 8;

/// "message 3 of channel 0 from rank 1 (8 bytes of host memory)".
std::string text_of(const ChannelWait& wait) {
  const std::string buffer = fmt::format("{} bytes of {} memory", wait.bytes, memory_kind_name(wait.kind));
  if (!wait.is_send) {
    return fmt::format("message {} of channel {} from rank {} ({})", wait.number, wait.channel, wait.peer, buffer);
  }
  if (wait.held_back) {
    return fmt::format("room in channel {} to rank {}, which is behind with its receives ({})", wait.channel, wait.peer,
                       buffer);
  }
  return fmt::format("rank {} to receive message {} of channel {} ({})", wait.peer, wait.number, wait.channel, buffer);
}

/// "15.2 s for message 3 ...; 12.0 s for ...".
std::string text_of(const std::vector<ChannelWait>& waits, TimePoint now) {
  std::string text;
  for (std::size_t i = 0; i < std::min(waits.size(), kNamedMax); ++i) {
    text +=
        fmt::format("{}{:.1f} s for {}", text.empty() ? "" : ", ", in_seconds(now - waits[i].since), text_of(waits[i]));
  }
  if (waits.size() > kNamedMax) text += fmt::format(", and for {} more", waits.size() - kNamedMax);
  return text;
}

}  // namespace

StallReport::StallReport(ChannelTable& table) : table_(table), engine_(table.engine()) {
  engine_.held_messages().claim(am_id::kChannelStall, &StallReport::on_account, this);
}

bool StallReport::tell(std::chrono::nanoseconds idle, bool for_ever) noexcept {
  try {
    const std::vector<ChannelWait> waiting = table_.waits();
    if (waiting.empty()) return false;
    log::warn("rank {} has waited {}; nothing has moved for {:.1f} s{}", engine_.job().rank,
              text_of(waiting, engine_.clock().recently()), in_seconds(idle), unopened_text(waiting));
    Peer* peer = engine_.peers().find(waiting.front().peer);
    if (peer == nullptr || !for_ever || !waits_only_for(*peer)) return true;
    if (peer->same_process) {
      judge(*peer, {});
    } else {
      send_account(*peer, false);
    }
  } catch (const std::bad_alloc&) {
    log::warn("nothing has moved for {:.1f} s, and no memory is left to say what this process waits for",
              in_seconds(idle));
  }
  return true;
}

/// ". Rank 1 has not opened channel 0, or has closed it"; empty if the other ends of all that waits are open. Throws
/// bad_alloc.
std::string StallReport::unopened_text(const std::vector<ChannelWait>& waits) const {
  std::string text;
  std::uint64_t last_key = ~std::uint64_t{0};
  for (const ChannelWait& wait : waits) {
    const ChannelId id{wait.channel};
    const AnnouncedEnds::Announced* other = table_.announced().find(id, 1 - wait.side, wait.peer);
    if (other != nullptr && other->rank == wait.peer) continue;
    const std::uint64_t key = side_key(id, wait.side);
    if (std::exchange(last_key, key) == key) continue;
    text += fmt::format(". Rank {} has not opened channel {}, or has closed it", wait.peer, wait.channel);
  }
  return text;
}

/// Nothing but `peer` can end the wait in which this process stands, as far as brant knows.
bool StallReport::waits_only_for(const Peer& peer) const {
  const std::vector<ChannelWait> waiting = table_.waits();
  return engine_.waiting().for_ever() && !engine_.sleeping().process_goes_on() && !waiting.empty() &&
         engine_.completions().pending() == waiting.size() &&
         std::ranges::all_of(waiting, [&](const ChannelWait& wait) { return wait.peer == peer.rank.value; });
}

std::vector<ChannelEnd> StallReport::ends_with(const Peer& peer) const {
  std::vector<ChannelEnd> ends = table_.ends();
  std::erase_if(ends, [&](const ChannelEnd& end) { return end.peer != peer.rank.value; });
  return ends;
}

void StallReport::send_account(Peer& peer, bool is_answer) {
  const std::vector<ChannelEnd> ends = ends_with(peer);
  std::vector<std::byte> header(sizeof(AccountHeader) + ends.size() * sizeof(ChannelEnd));
  if (account_.under_way || peer.endpoint == nullptr || peer.lost ||
      header.size() > engine_.wire().capabilities().am_header_bytes_max) {
    return;  // then it remains at the report of the waits
  }
  const AccountHeader head{peer.rank_there, is_answer ? 1u : 0u};
  std::memcpy(header.data(), &head, sizeof(head));
  std::memcpy(header.data() + sizeof(head), ends.data(), ends.size() * sizeof(ChannelEnd));
  account_.on_complete = [](port::WireOp& op) noexcept { static_cast<Account&>(op).under_way = false; };
  const Status status = engine_.wire().am_send(peer.endpoint, am_id::kChannelStall, header, {}, account_);
  account_.under_way = status == Status::in_progress;
}

void StallReport::on_account(void* self, port::AmMessage& message) noexcept {
  auto& report = *static_cast<StallReport*>(self);
  AccountHeader head;
  const std::size_t bytes = message.header.size();
  const bool whole = bytes >= sizeof(head) && (bytes - sizeof(head)) % sizeof(ChannelEnd) == 0;
  if (whole) std::memcpy(&head, message.header.data(), sizeof(head));
  Peer* peer = report.engine_.peers().find(head.rank);
  if (!whole || peer == nullptr) {
    report.engine_.wire().am_discard(message);
    return report.engine_.peers().distrust(head.rank, "an account of channels that contradicts itself");
  }
  try {
    if (!report.waits_only_for(*peer)) return;
    std::vector<ChannelEnd> theirs((bytes - sizeof(head)) / sizeof(ChannelEnd));
    std::memcpy(theirs.data(), message.header.data() + sizeof(head), bytes - sizeof(head));
    if (head.is_answer == 0) report.send_account(*peer, true);
    report.judge(*peer, std::move(theirs));
  } catch (const std::bad_alloc&) {  // only a diagnosis is lost
  }
}

/// Both processes wait for nothing but each other: `theirs` says what the other has sent and received.
void StallReport::judge(Peer& peer, std::vector<ChannelEnd> theirs) {
  std::vector<ChannelEnd> ends = ends_with(peer);
  ends.insert(ends.end(), theirs.begin(), theirs.end());
  if (deadlock_told_ || !nothing_comes(std::move(ends))) return;
  deadlock_told_ = true;
  const std::vector<ChannelWait> waiting = table_.waits();
  const std::string mine = text_of(waiting, engine_.clock().recently());
  if (peer.same_process) {
    log::warn("deadlock: rank {} waits for itself: {}. Nothing of that is under way", engine_.job().rank, mine);
    return;
  }
  std::string other;
  for (const ChannelEnd& end : theirs) {
    const std::string_view separator = other.empty() ? "" : "; ";
    if (end.first_receiving != ChannelEnd::kNone)
      other += fmt::format("{}message {} of channel {} from here", separator, end.first_receiving, end.channel);
    else if (end.first_sending != ChannelEnd::kNone)
      other += fmt::format("{}a receive of message {} of channel {} here", separator, end.first_sending, end.channel);
  }
  std::string cure = unopened_text(waiting);
  for (const ChannelEnd& end : theirs) {
    if (table_.open_end(ChannelId{end.channel}, 1 - end.side, peer.rank.value) != nullptr) continue;
    cure += fmt::format(". Rank {} has not opened channel {}, or has closed it", engine_.job().rank, end.channel);
  }
  if (cure.empty()) cure = ". One of them must send, or receive, first";
  log::warn(
      "deadlock: ranks {} and {} wait for each other, and nothing is under way between them. This one waits {}; rank "
      "{} for {}{}",
      engine_.job().rank, peer.rank.value, mine, peer.rank.value, other, cure);
}

}  // namespace brant
