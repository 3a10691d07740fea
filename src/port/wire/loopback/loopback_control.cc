// Opening, connecting, dying and closing: the control half of LoopbackWire, and the network.
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

WireCapabilities capabilities_of(const LoopbackOptions& options, const Alarm& alarm) {
  const auto bit = [](MemoryKind kind) { return 1u << static_cast<unsigned>(kind); };
  WireCapabilities capabilities;
  capabilities.name = "loopback";
  capabilities.version = "in this process";
  capabilities.active_messages = true;
  capabilities.remote_memory = true;
  capabilities.can_sleep = alarm.fd() >= 0;
  capabilities.reports_truncation_to_sender = options.reports_truncation_to_sender;
  capabilities.kinds =
      bit(MemoryKind::host) | bit(MemoryKind::pinned) | bit(MemoryKind::cuda_managed) | options.extra_kinds;
  capabilities.am_header_bytes_max = options.am_header_bytes_max;
  capabilities.am_eager_bytes_max = options.am_eager_bytes_max;
  return capabilities;
}

}  // namespace

LoopbackWire::LoopbackWire(Fabric& fabric, std::unique_ptr<Fabric> owned)
    : owned_(std::move(owned)),
      fabric_(fabric),
      capabilities_(capabilities_of(fabric.options(), alarm_)),
      operations_(capabilities_, fabric.options().requests_max, alarm_),
      arrivals_(fabric),
      receives_(fabric.options().requests_max),
      memory_(std::make_unique<LoopbackMemory>(*this)) {
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

void LoopbackWire::disconnect(WireEndpoint* endpoint) noexcept {
  Endpoint* mine = checked(endpoint);
  if (mine == nullptr) return;
  mine->closed = true;
  while (Message* message = mine->pending.front()) {
    end_at_sender(*message, Status::canceled);
    if (message->to != nullptr) {
      message->to->arrivals_.sender_gone(*message);
    } else {
      fabric_.give(*message);
    }
  }
  memory_->cancel(*mine);
}

void LoopbackWire::kill() noexcept {
  if (dead()) return;
  operations_.end();
  for (LoopbackWire* wire : fabric_.wires()) {
    if (wire != nullptr) wire->arrivals_.forget_from(*this);
  }
  arrivals_.drop_all();
  receives_.withdraw_all();
}

bool LoopbackWire::arm() noexcept {
  if (dead() || operations_.any_done() || !memory_->idle()) return false;
  return arrivals_.none(Place::inbox) && arrivals_.none(Place::arriving) && alarm_.arm();
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
