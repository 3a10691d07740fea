// Opening, connecting, dying and closing: the control half of LoopbackWire, and the network.
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <utility>

#include "port/wire/loopback/loopback_memory.h"
#include "port/wire/loopback/loopback_wire.h"

namespace brant::port {
namespace loopback {
namespace {

constexpr std::uint64_t kAddressMagic = 0x6c6f6f706272616e;

struct Address {
  std::uint64_t magic = kAddressMagic;
  std::uint64_t fabric = 0;
  std::uint64_t index = 0;
  std::uint64_t check = 0;

  [[nodiscard]] std::uint64_t sum() const noexcept { return (magic ^ fabric * 31 ^ index * 131) * 0x9e3779b97f4a7c15u; }
};

}  // namespace

LoopbackWire::LoopbackWire(Fabric& fabric, std::unique_ptr<Fabric> owned)
    : owned_(std::move(owned)),
      fabric_(fabric),
      receives_(fabric.options().requests_max),
      memory_(std::make_unique<LoopbackMemory>(*this)) {
  const LoopbackOptions& options = fabric.options();
  const auto bit = [](MemoryKind kind) { return 1u << static_cast<unsigned>(kind); };
  event_fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  capabilities_.name = "loopback";
  capabilities_.version = "in this process";
  capabilities_.active_messages = true;
  capabilities_.remote_memory = true;
  capabilities_.can_sleep = event_fd_ >= 0;
  capabilities_.reports_truncation_to_sender = options.reports_truncation_to_sender;
  capabilities_.kinds =
      bit(MemoryKind::host) | bit(MemoryKind::pinned) | bit(MemoryKind::cuda_managed) | options.extra_kinds;
  capabilities_.am_header_bytes_max = options.am_header_bytes_max;
  capabilities_.am_eager_bytes_max = options.am_eager_bytes_max;
  index_ = fabric.add(*this);
  Address address;
  address.fabric = fabric.id();
  address.index = index_;
  address.check = address.sum();
  address_.resize(sizeof(Address));
  std::memcpy(address_.data(), &address, sizeof(Address));
}

LoopbackWire::~LoopbackWire() {
  kill();
  for (const auto& endpoint : endpoints_) {
    while (Message* message = endpoint->pending.pop_front()) {
      message->op = nullptr;
      fabric_.give(*message);
    }
  }
  fabric_.remove(index_);
  if (event_fd_ >= 0) ::close(event_fd_);
}

Result<WireEndpoint*> LoopbackWire::connect(std::span<const std::byte> address) noexcept {
  Address parsed;
  if (address.size() != sizeof(Address)) return Status::invalid_argument;
  std::memcpy(&parsed, address.data(), sizeof(Address));
  if (parsed.magic != kAddressMagic || parsed.check != parsed.sum() || parsed.fabric != fabric_.id())
    return Status::invalid_argument;
  if (fabric_.wire(parsed.index) == nullptr) return Status::peer_lost;
  try {
    endpoints_.push_back(std::make_unique<Endpoint>());
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  Endpoint& endpoint = *endpoints_.back();
  endpoint.wire = this;
  endpoint.peer = parsed.index;
  return reinterpret_cast<WireEndpoint*>(&endpoint);
}

void LoopbackWire::sender_gone(Message& message) noexcept {
  if (message.where == Place::waiting) {
    message.source_gone = true;  // the user holds the descriptor and will come with it
    return;
  }
  unlink(message);
  fabric_.give(message);
}

void LoopbackWire::disconnect(WireEndpoint* endpoint) noexcept {
  Endpoint* mine = checked(endpoint);
  if (mine == nullptr) return;
  mine->closed = true;
  while (Message* message = mine->pending.front()) {
    end_at_sender(*message, Status::canceled);
    if (message->to != nullptr) {
      message->to->sender_gone(*message);
    } else {
      fabric_.give(*message);
    }
  }
  memory_->cancel(*mine);
}

/// For the receiver of a sender that died: what had fully arrived stays, what would have to be fetched is gone.
void LoopbackWire::forget_messages_from(const LoopbackWire& sender) noexcept {
  for (const Place place : {Place::arriving, Place::unexpected, Place::inbox, Place::waiting}) {
    Message* following = nullptr;
    for (Message* message = list_of(place).front(); message != nullptr; message = following) {
      following = Messages::next(*message);
      const bool lost = message->from == &sender && (!message->eager || place == Place::arriving);
      if (!lost) continue;
      if (message->eager) --eager_held_;
      if (message->op != nullptr) unpend(*message);
      message->op = nullptr;
      sender_gone(*message);
    }
  }
}

/// For the dead: senders that wait for it go on waiting, until they disconnect.
void LoopbackWire::drop_what_came() noexcept {
  for (const Place place : {Place::arriving, Place::unexpected, Place::inbox, Place::waiting}) {
    while (Message* message = list_of(place).front()) {
      unlink(*message);
      message->to = nullptr;
      if (message == in_handler_) {
        released_in_handler_ = message->op == nullptr;
      } else if (message->op == nullptr) {
        fabric_.give(*message);
      }
    }
  }
  eager_held_ = 0;
}

void LoopbackWire::kill() noexcept {
  if (std::exchange(dead_, true)) return;
  for (LoopbackWire* wire : fabric_.wires()) {
    if (wire != nullptr) wire->forget_messages_from(*this);
  }
  drop_what_came();
  while (Receive* receive = posted_.pop_front()) receives_.give(*receive);
  while (completed_.pop() != nullptr) {
  }
}

void LoopbackWire::wake() noexcept {
  if (!armed_) return;
  armed_ = false;
  const std::uint64_t one = 1;
  if (::write(event_fd_, &one, sizeof one) < 0) return;  // only when it is readable already
}

bool LoopbackWire::arm() noexcept {
  if (event_fd_ < 0 || dead_) return false;
  if (!completed_.empty() || !inbox_.empty() || !arriving_.empty() || !memory_->idle()) return false;
  std::uint64_t count = 0;
  if (::read(event_fd_, &count, sizeof count) < 0) count = 0;  // not readable: nothing to take back
  armed_ = true;
  return true;
}

RemoteMemory* LoopbackWire::remote_memory() noexcept { return memory_.get(); }

}  // namespace loopback

LoopbackNetwork::LoopbackNetwork(const LoopbackOptions& options)
    : fabric_(std::make_unique<loopback::Fabric>(options)) {}
LoopbackNetwork::~LoopbackNetwork() = default;

std::unique_ptr<Wire> LoopbackNetwork::open_wire() {
  return std::make_unique<loopback::LoopbackWire>(*fabric_, nullptr);
}

void LoopbackNetwork::kill(std::size_t wire_index) noexcept {
  if (loopback::LoopbackWire* wire = fabric_->wire(wire_index)) wire->kill();
}

std::unique_ptr<Wire> open_loopback_wire(const LoopbackOptions& options) {
  auto fabric = std::make_unique<loopback::Fabric>(options);
  loopback::Fabric& shared = *fabric;
  return std::make_unique<loopback::LoopbackWire>(shared, std::move(fabric));
}

}  // namespace brant::port
