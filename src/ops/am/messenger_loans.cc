// Large messages between processes of one host: see loans.h.

#include <cstring>
#include <new>
#include <utility>

#include "base/log.h"
#include "core/link_services.h"
#include "core/paths/path_choice.h"
#include "ops/am/messenger.h"

namespace brant::am {
namespace {

/// Addresses first; what was written once stays, as the pool's blocks do.
constexpr std::size_t kRegionBytes = std::size_t{128} << 20;

/// What a window holds of the smallest that are lent.
constexpr std::size_t kLentMax = Messenger::kWindowUnits / (kShmSmallBytes / Messenger::kUnitBytes);

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

void Messenger::open_region() noexcept {
  Result<MappedFile> region = MappedFile::create("brant-messages", kRegionBytes);
  if (!region) {
    log::info("rank {}: {} bytes for large messages cannot be shared: {}; they go by the network", engine_.job().rank,
              kRegionBytes, status_text(region.status()));
    return;
  }
  region_.emplace(std::move(*region));
  pool_.use_region(region_->bytes());
}

/// False: this one goes another way.
bool Messenger::lend(Link& link, Message& message) noexcept {
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
bool Messenger::post_note(Link& link, const LoanNote& note) noexcept {
  const WireHeader header = note_header(link.peer->rank_there, link.consumed, note);
  return link.peer->link->post_control(link_service::kMessageLoan, bytes_of(header));
}

void Messenger::on_loan(void* context, const port::LinkRecord& record) noexcept {
  auto& self = *static_cast<Messenger*>(context);
  WireHeader header;
  Link* link = self.read_header(record, header);
  if (link == nullptr) return;
  LoanPlace place;
  if (header.service == ServiceId{}) {
    if (self.note_credit(*link, header)) self.on_note(*link, header, record.payload);
  } else if (read(record.payload, place)) {
    if (self.may_arrive(*link, header)) self.borrow(*link, header, place);
  } else {
    self.engine_.distrust(record.rank, kContradicts);
  }
}

void Messenger::on_note(Link& link, const WireHeader& header, std::span<const std::byte> payload) noexcept {
  LoanNote note;
  std::memcpy(&note, header.user, sizeof(note));
  Loans& loans = link.loans;
  MemoryFileRecord record;
  switch (note.kind) {
    case LoanNote::Kind::region: {
      if (!read(payload, record) || loans.theirs) return engine_.distrust(*link.peer, kContradicts);
      Result<MappedFile> theirs = MappedFile::open(record);
      LoanNote answer{.kind = LoanNote::Kind::unmapped};
      if (theirs) {
        loans.theirs.emplace(std::move(*theirs));
        answer.kind = LoanNote::Kind::mapped;
      }
      static_cast<void>(post_note(link, answer));
      return;
    }
    case LoanNote::Kind::mapped:
      if (loans.terms != Loans::Terms::told) return engine_.distrust(*link.peer, kContradicts);
      try {
        loans.lent.reserve(kLentMax);
        loans.terms = Loans::Terms::mapped;
      } catch (const std::bad_alloc&) {
        loans.terms = Loans::Terms::refused;
      }
      return;
    case LoanNote::Kind::unmapped:
      if (loans.terms != Loans::Terms::told) return engine_.distrust(*link.peer, kContradicts);
      loans.terms = Loans::Terms::refused;
      log::info("rank {} cannot map this process's messages: large ones go by the network", link.peer->rank.value);
      return;
    case LoanNote::Kind::returned: return take_back(link, note.place);
    default: return engine_.distrust(*link.peer, kContradicts);
  }
}

/// A message that lies in the memory of its sender.
void Messenger::borrow(Link& link, const WireHeader& header, const LoanPlace& place) noexcept {
  const std::span<std::byte> theirs = link.loans.theirs ? link.loans.theirs->bytes() : std::span<std::byte>{};
  constexpr std::size_t record = MessagePool::kRecordBytes;
  const bool inside = MessagePool::may_begin_at(place.place) && place.place <= theirs.size() &&
                      theirs.size() - place.place >= record && place.bytes <= theirs.size() - place.place - record;
  if (!inside) [[unlikely]]
    return engine_.distrust(*link.peer, "the place of a lent message, which is outside of what it shares");
  Message* message = pool_.take(0);
  if (message == nullptr) {
    log::error("rank {}: no memory for a message of {} bytes that rank {} has lent", engine_.job().rank, place.bytes,
               header.source);
    return give_up(link, Status::no_memory);
  }
  message->wire = header;
  message->peer = header.source;
  message->data = theirs.data() + place.place + record;
  message->bytes = place.bytes;
  message->units = units_of(place.bytes);
  message->borrowed = place.place;
  if (!admit(link, Path::shm, *message)) pool_.give(*message);
}

void Messenger::hand_back(Link& link, std::uint64_t place) noexcept {
  if (link.trouble != Status::ok) return;
  if (post_note(link, {.kind = LoanNote::Kind::returned, .place = place})) link.reported = link.consumed;
}

void Messenger::take_back(Link& link, std::uint64_t place) noexcept {
  std::vector<Message*>& lent = link.loans.lent;
  Message* message = pool_.at(place);
  if (message == nullptr || message->scratch[0] >= lent.size() || lent[message->scratch[0]] != message) {
    return engine_.distrust(*link.peer, "word of having returned a message that it was not lent");
  }
  lent.back()->scratch[0] = message->scratch[0];
  lent[message->scratch[0]] = lent.back();
  lent.pop_back();
  pool_.give(*message);
}

/// Of a process that is no more.
void Messenger::take_all_back(Link& link) noexcept {
  for (Message* message : link.loans.lent) pool_.give(*message);
  link.loans.lent.clear();
}

}  // namespace brant::am
