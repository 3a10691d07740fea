#include "ops/am/message_loans.h"

#include <cstring>
#include <new>
#include <utility>

#include "base/log.h"
#include "core/link_services.h"
#include "core/paths/path_choice.h"

namespace brant::am {
namespace {

/// Addresses first; what was written once stays, as the pool's blocks do.
constexpr std::size_t kRegionBytes = std::size_t{128} << 20;

constexpr const char* kContradicts = "a note about lent messages that contradicts itself or what it said before";

template <typename T>
std::span<const std::byte> bytes_of(const T& value) noexcept {
  return std::as_bytes(std::span(&value, 1));
}

template <typename T>
bool read(std::span<const std::byte> bytes, T& value) noexcept {
  if (bytes.size() != sizeof(T)) return false;
  std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof(T));
  return true;
}

WireHeader note_header(std::int32_t rank, std::uint32_t consumed, LoanNote note) noexcept {
  WireHeader header{.consumed = consumed, .source = rank, .service = ServiceId{}, .user = {}};
  std::memcpy(header.user, &note, sizeof(note));
  return header;
}

}  // namespace

void MessageLoans::open_region() noexcept {
  Result<MappedFile> region = MappedFile::create("brant-messages", kRegionBytes);
  if (!region) {
    log::info("rank {}: {} bytes for large messages cannot be shared: {}; they go by the network", engine_.job().rank,
              kRegionBytes, status_text(region.status()));
    return;
  }
  region_.emplace(std::move(*region));
  pool_.use_region(region_->bytes());
}

bool MessageLoans::lend(MessengerLink& link, Message& message) noexcept {
  const std::optional<std::size_t> place = pool_.place_of(message);
  if (!place) return false;
  Loans& loans = link.loans;
  port::Link& shared = *link.peer->link;
  if (loans.terms == Loans::Terms::untold) {
    const Result<MemoryFileRecord> record = region_->record();
    const WireHeader note = note_header(link.peer->rank_there, link.consumed, {.kind = LoanNote::Kind::region});
    const bool told = record && shared.post(link_service::kMessageLoan, bytes_of(note), bytes_of(*record));
    if (told) loans.terms = Loans::Terms::told;
  }
  if (loans.terms != Loans::Terms::mapped || loans.lent.size() == loans.lent.capacity()) return false;
  if (!shared.post(link_service::kMessageLoan, message.wire_header(), bytes_of(LoanPlace{*place, message.bytes})))
    return false;
  message.scratch[0] = loans.lent.size();
  loans.lent.push_back(&message);
  return true;
}

/// False: memory is exhausted.
bool MessageLoans::post_note(MessengerLink& link, const LoanNote& note) noexcept {
  const WireHeader header = note_header(link.peer->rank_there, link.consumed, note);
  return link.peer->link->post_control(link_service::kMessageLoan, bytes_of(header));
}

void MessageLoans::on_note(MessengerLink& link, const WireHeader& header, std::span<const std::byte> payload) noexcept {
  LoanNote note;
  std::memcpy(&note, header.user, sizeof(note));
  switch (note.kind) {
    case LoanNote::Kind::region: return map_theirs(link, payload);
    case LoanNote::Kind::mapped:
    case LoanNote::Kind::unmapped: return agree(link, note.kind == LoanNote::Kind::mapped);
    case LoanNote::Kind::returned: return take_back(link, note.place);
    default: return distrust(link, kContradicts);
  }
}

/// How to map what it lends.
void MessageLoans::map_theirs(MessengerLink& link, std::span<const std::byte> payload) noexcept {
  MemoryFileRecord record;
  std::optional<MappedFile>& known = link.loans.theirs;
  if (!read(payload, record) || known) return distrust(link, kContradicts);
  LoanNote answer{.kind = LoanNote::Kind::unmapped};
  if (Result<MappedFile> theirs = MappedFile::open(record)) {
    known.emplace(std::move(*theirs));
    answer.kind = LoanNote::Kind::mapped;
  }
  static_cast<void>(post_note(link, answer));
}

/// What became of this process's region at the peer.
void MessageLoans::agree(MessengerLink& link, bool mapped) noexcept {
  Loans& loans = link.loans;
  if (loans.terms != Loans::Terms::told) return distrust(link, kContradicts);
  loans.terms = Loans::Terms::refused;
  if (!mapped)
    return log::info("rank {} cannot map this process's messages: large ones go by the network", link.peer->rank.value);
  try {
    loans.lent.reserve(lent_max_);
    loans.terms = Loans::Terms::mapped;
  } catch (const std::bad_alloc&) {  // refused
  }
}

Message* MessageLoans::borrow(MessengerLink& link, const WireHeader& header, std::span<const std::byte> payload,
                              Status& why) noexcept {
  LoanPlace place;
  const bool whole = read(payload, place);
  const std::span<std::byte> theirs = link.loans.theirs ? link.loans.theirs->bytes() : std::span<std::byte>{};
  constexpr std::size_t record = MessagePool::kRecordBytes;
  const bool inside = MessagePool::may_begin_at(place.place) && place.place <= theirs.size() &&
                      theirs.size() - place.place >= record && place.bytes <= theirs.size() - place.place - record;
  if (!whole || !inside) [[unlikely]] {
    distrust(link, whole ? "the place of a lent message, which is outside of what it shares" : kContradicts);
    return nullptr;
  }
  Message* message = pool_.take(0);
  if (message == nullptr) {
    log::error("rank {}: no memory for a message of {} bytes that rank {} has lent", engine_.job().rank, place.bytes,
               header.source);
    why = Status::no_memory;
    return nullptr;
  }
  message->wire = header;
  message->peer = header.source;
  message->data = theirs.data() + place.place + record;
  message->bytes = place.bytes;
  message->borrowed = place.place;
  return message;
}

void MessageLoans::hand_back(MessengerLink& link, std::uint64_t place) noexcept {
  if (link.trouble != Status::ok) return;
  if (post_note(link, {.kind = LoanNote::Kind::returned, .place = place})) link.reported = link.consumed;
}

void MessageLoans::take_back(MessengerLink& link, std::uint64_t place) noexcept {
  std::vector<Message*>& lent = link.loans.lent;
  Message* message = pool_.at(place);
  if (message == nullptr || message->scratch[0] >= lent.size() || lent[message->scratch[0]] != message) {
    return distrust(link, "word of having returned a message that it was not lent");
  }
  lent.back()->scratch[0] = message->scratch[0];
  lent[message->scratch[0]] = lent.back();
  lent.pop_back();
  pool_.give(*message);
}

void MessageLoans::take_all_back(MessengerLink& link) noexcept {
  for (Message* message : link.loans.lent) pool_.give(*message);
  link.loans.lent.clear();
}

}  // namespace brant::am
