#include "port/link/shared_memory/shared_memory_links.h"

#include <cstring>
#include <new>
#include <utility>

#include "base/log.h"
#include "port/link/shared_memory/open.h"

namespace brant::port::peer {
namespace {

// Room that the producer is not told of yet: it copies the next piece while this process copies the one before.
constexpr std::size_t kOwedBytesMax = std::size_t{16} << 10;
constexpr unsigned kDrainLimit = 64;  // records of one peer in one poll: the others get their turn
constexpr unsigned kDrainSome = 8;    // records of one service in between

const char* attach_cure(Status status) noexcept {
  switch (status) {
    case Status::not_supported:
      return "the processes must share a pid namespace and a user (docker: --pid=host or --pid=container:NAME)";
    case Status::limit_reached: return "raise ulimit -n";
    case Status::version_mismatch: return "start all processes with one installation of brant";
    default: return "see /proc/PID/fd of the two processes";
  }
}

}  // namespace

bool SetAside::keep(const RingRecord& record) noexcept {
  if (count_ == kRecordsMax || record.payload.size() > kBytesMax - bytes_) return false;
  try {
    Record kept{{}, {record.payload.begin(), record.payload.end()}};
    std::memcpy(kept.header.data(), record.header, kept.header.size());
    records_[record.service].push_back(std::move(kept));
  } catch (const std::bad_alloc&) {
    return false;
  }
  ++count_;
  bytes_ += record.payload.size();
  return true;
}

void SetAside::pop(unsigned service) noexcept {
  bytes_ -= records_[service].front().payload.size();
  --count_;
  records_[service].pop_front();
}

SharedMemoryLink::SharedMemoryLink(SharedMemoryLinks& links, int rank, Inbox inbox, std::uint32_t own_place,
                                   RingMemory& incoming, bool fenced) noexcept
    : links_(links),
      rank_(rank),
      inbox_(std::move(inbox)),
      outgoing_memory_(inbox_.ring(own_place)),
      incoming_memory_(incoming),
      outgoing_(outgoing_memory_, fenced),
      incoming_(incoming) {
  inbox_.ring(own_place).attached.yes.store(1, std::memory_order_release);
}

bool SharedMemoryLink::post(unsigned service, std::span<const std::byte> header,
                            std::span<const std::byte> payload) noexcept {
  if (!kept_.empty() || !outgoing_.push(service, header, payload)) return false;
  inbox_.ring_if_asleep();
  return true;
}

bool SharedMemoryLink::post_control(unsigned service, std::span<const std::byte> header) noexcept {
  if (post(service, header, {})) return true;
  Kept kept{service, static_cast<std::uint32_t>(header.size()), {}};
  std::memcpy(kept.header.data(), header.data(), header.size());
  try {
    kept_.push_back(kept);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

unsigned SharedMemoryLink::poll(unsigned service) noexcept {
  return dropped ? 0 : links_.drain(*this, kDrainSome, service);
}

unsigned SharedMemoryLink::post_kept() noexcept {
  unsigned posted = 0;
  while (!kept_.empty()) {
    const Kept& kept = kept_.front();
    if (!outgoing_.push(kept.service, std::span(kept.header).first(kept.bytes), {})) break;
    kept_.pop_front();
    ++posted;
  }
  if (posted != 0) inbox_.ring_if_asleep();
  return posted;
}

SharedMemoryLinks::SharedMemoryLinks(Inbox own, const InboxAddress& address) noexcept
    : own_(std::move(own)), address_(address) {}

std::span<const std::byte> SharedMemoryLinks::address() const noexcept {
  return std::as_bytes(std::span(&address_, 1));
}

SharedMemoryLink* SharedMemoryLinks::find(int rank) noexcept {
  for (const auto& link : links_) {
    if (link->rank() == rank && !link->dropped) return link.get();
  }
  return nullptr;
}

Status SharedMemoryLinks::attach(int rank, unsigned own_place, unsigned its_place,
                                 std::span<const std::byte> address) noexcept {
  Status status = Status::no_memory;
  try {
    status = attach_checked(rank, own_place, its_place, address);
  } catch (const std::bad_alloc&) {
  }
  if (status != Status::ok) {
    log::info("no shared memory with rank {}: {}; messages go through the network library. Cure: {}", rank,
              status_text(status), attach_cure(status));
  }
  return status;
}

Status SharedMemoryLinks::attach_checked(int rank, unsigned own_place, unsigned its_place,
                                         std::span<const std::byte> packed) {
  InboxAddress address;
  if (packed.size() != sizeof(address)) return Status::version_mismatch;
  std::memcpy(&address, packed.data(), sizeof(address));
  if (its_place >= own_.places() || own_place >= address.places) return Status::not_supported;
  Result<Inbox> inbox = Inbox::open(address);
  if (!inbox) return inbox.status();
  const bool fenced = !own_.orders_barriers() || !inbox->orders_barriers();
  links_.push_back(
      std::make_unique<SharedMemoryLink>(*this, rank, std::move(*inbox), own_place, own_.ring(its_place), fenced));
  return Status::ok;
}

Link* SharedMemoryLinks::link(int rank) noexcept {
  SharedMemoryLink* link = find(rank);
  return link != nullptr && link->both_attached() ? link : nullptr;
}

void SharedMemoryLinks::drop(int rank) noexcept {
  if (SharedMemoryLink* link = find(rank)) link->dropped = true;
}

void SharedMemoryLinks::set_handler(unsigned service, LinkHandler handler, void* context) noexcept {
  services_[service % kServices] = {handler, context};
}

unsigned SharedMemoryLinks::drain(SharedMemoryLink& link, unsigned most, unsigned only) noexcept {
  if (std::exchange(draining_, true)) return 0;
  unsigned seen = link.aside.empty() ? 0 : deliver_aside(link);
  RingConsumer& incoming = link.incoming();
  while (seen < most && !link.broken) {
    const Slot* slot = incoming.front();
    if (slot == nullptr || (only != kAnyService && slot->service != only)) break;
    const RingRecord record = incoming.read(*slot);
    if (!record.sound) [[unlikely]] {
      give_up(link);
      break;
    }
    const Service& service = services_[record.service];
    if (service.handler == nullptr || (!link.aside.empty() && link.aside.has(record.service))) [[unlikely]] {
      link.stalled = !set_aside(link, record);
      if (link.stalled) break;
    } else {
      service.handler(service.context, {link.rank(), record.header, record.payload});
    }
    incoming.pop(record);
    if (incoming.owes() >= kOwedBytesMax) incoming.publish();
    ++seen;
  }
  if (seen != 0) incoming.publish();
  draining_ = false;
  return seen;
}

bool SharedMemoryLinks::can_deliver_aside(const SharedMemoryLink& link) const noexcept {
  for (unsigned service = 0; service < kServices; ++service) {
    if (link.aside.has(service) && services_[service].handler != nullptr) return true;
  }
  return false;
}

unsigned SharedMemoryLinks::deliver_aside(SharedMemoryLink& link) noexcept {
  unsigned delivered = 0;
  for (unsigned service = 0; service < kServices; ++service) {
    while (link.aside.has(service) && services_[service].handler != nullptr) {
      const SetAside::Record& record = link.aside.front(service);
      services_[service].handler(services_[service].context, {link.rank(), record.header.data(), record.payload});
      link.aside.pop(service);
      ++delivered;
    }
  }
  if (delivered != 0) link.stalled = false;
  return delivered;
}

bool SharedMemoryLinks::set_aside(SharedMemoryLink& link, const RingRecord& record) noexcept {
  if (link.aside.keep(record)) return true;
  if (!link.stalled) {
    log::error(
        "rank {} has posted more than {} records or {} bytes for services that nobody runs here (one is service {}): "
        "it waits until that is claimed. Open channels and make Chares on all ranks before the messages come",
        link.rank(), SetAside::kRecordsMax, SetAside::kBytesMax, record.service);
  }
  return false;
}

void SharedMemoryLinks::give_up(SharedMemoryLink& link) noexcept {
  link.broken = true;
  if (fault_handler_ != nullptr) fault_handler_(fault_context_, link.rank());
}

unsigned SharedMemoryLinks::poll() noexcept {
  if (armed_) {
    armed_ = false;
    own_.wake_up();
  }
  unsigned events = 0;
  for (const auto& link : links_) {
    if (link->dropped) continue;
    link->end_row();
    events += drain(*link, kDrainLimit);
    if (link->has_kept()) events += link->post_kept();
  }
  return events;
}

bool SharedMemoryLinks::arm() noexcept {
  own_.fall_asleep();
  armed_ = true;
  for (const auto& link : links_) {
    if (link->dropped) continue;
    if (link->has_kept() || can_deliver_aside(*link)) return false;
    if (!link->stalled && !link->broken && !link->incoming().empty_for_sure()) return false;
  }
  return true;
}

}  // namespace brant::port::peer

namespace brant::port {

std::unique_ptr<Links> open_links(std::uint32_t places) noexcept {
  Result<peer::Inbox> own = peer::Inbox::create(places);
  if (!own) {
    log::info("no shared memory for the processes of this host: {}", status_text(own.status()));
    return nullptr;
  }
  const Result<peer::InboxAddress> address = own->address();
  if (!address) {
    log::info("no shared memory for the processes of this host: {} (is /proc mounted?)", status_text(address.status()));
    return nullptr;
  }
  return std::make_unique<peer::SharedMemoryLinks>(std::move(*own), *address);
}

}  // namespace brant::port
