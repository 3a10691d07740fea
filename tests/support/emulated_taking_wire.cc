#include "support/emulated_taking_wire.h"

#include <memory>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace brant::test {
namespace {

class EmulatedTakingWire final : public port::Wire {
 public:
  EmulatedTakingWire(std::unique_ptr<port::Wire> inner, port::Device& device, DeviceMemoryTaken taken)
      : inner_(std::move(inner)),
        device_(device),
        taken_(std::move(taken)),
        capabilities_(inner_->capabilities()),
        stream_(*device_.streams()->create_stream(port::StreamPriority::normal)) {
    capabilities_.kinds |= 1u << static_cast<unsigned>(MemoryKind::emulated);
  }

  ~EmulatedTakingWire() override { device_.streams()->destroy_stream(stream_); }

  [[nodiscard]] const port::WireCapabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] std::span<const std::byte> address() const noexcept override { return inner_->address(); }
  Result<port::WireEndpoint*> connect(std::span<const std::byte> address) noexcept override {
    return inner_->connect(address);
  }
  void disconnect(port::WireEndpoint* endpoint) noexcept override { inner_->disconnect(endpoint); }
  void set_failure_handler(port::FailureHandler handler, void* context) noexcept override {
    inner_->set_failure_handler(handler, context);
  }

  Status tag_send(port::WireEndpoint* endpoint, std::uint64_t tag, ConstBuffer source,
                  port::WireOp& op) noexcept override {
    if (source.kind != MemoryKind::emulated) return inner_->tag_send(endpoint, tag, source, op);
    if (taken_) taken_(source.data);
    Carried* const carried = make(op, source.bytes, {});
    if (carried == nullptr) return Status::no_memory;
    if (copy(carried->bytes.data(), source.data, source.bytes) != Status::ok) return finish(Status::no_memory, carried);
    return finish(
        inner_->tag_send(endpoint, tag, ConstBuffer(carried->bytes.data(), source.bytes, MemoryKind::host), *carried),
        carried);
  }
  Status tag_recv(std::uint64_t tag, std::uint64_t mask, Buffer landing, port::WireOp& op) noexcept override {
    if (landing.kind != MemoryKind::emulated) return inner_->tag_recv(tag, mask, landing, op);
    if (taken_) taken_(landing.data);
    Carried* const carried = make(op, landing.bytes, landing);
    if (carried == nullptr) return Status::no_memory;
    return finish(inner_->tag_recv(tag, mask, Buffer(carried->bytes.data(), landing.bytes, MemoryKind::host), *carried),
                  carried);
  }
  void cancel(port::WireOp& op) noexcept override { inner_->cancel(inner_of(op)); }
  void abandon(port::WireOp& op) noexcept override { inner_->abandon(inner_of(op)); }
  void take_back(port::WireOp& op) noexcept override { inner_->take_back(inner_of(op)); }
  unsigned drop_unread(std::uint64_t tag, std::uint64_t mask) noexcept override {
    return inner_->drop_unread(tag, mask);
  }

  Status am_send(port::WireEndpoint* endpoint, unsigned id, std::span<const std::byte> header, ConstBuffer payload,
                 port::WireOp& op) noexcept override {
    return inner_->am_send(endpoint, id, header, payload, op);
  }
  void set_am_handler(unsigned id, port::AmHandler handler, void* context) noexcept override {
    inner_->set_am_handler(id, handler, context);
  }
  Status am_receive(port::AmMessage& message, Buffer landing, port::WireOp& op) noexcept override {
    return inner_->am_receive(message, landing, op);
  }
  void am_discard(port::AmMessage& message) noexcept override { inner_->am_discard(message); }
  unsigned progress() noexcept override { return inner_->progress(); }
  unsigned deliver(unsigned limit) noexcept override { return inner_->deliver(limit); }
  [[nodiscard]] int event_fd() const noexcept override { return inner_->event_fd(); }
  bool arm() noexcept override { return inner_->arm(); }
  port::RemoteMemory* remote_memory() noexcept override { return inner_->remote_memory(); }

 private:
  /// The host side of one operation on device memory.
  struct Carried : port::WireOp {
    Carried(EmulatedTakingWire& wire_in, port::WireOp& outer_in, std::size_t size, Buffer landing_in)
        : wire(wire_in), outer(outer_in), bytes(size + 1), landing(landing_in) {
      on_complete = [](port::WireOp& op) noexcept {
        auto* self = static_cast<Carried*>(&op);
        port::WireOp& outer_op = self->outer;
        self->hand_over();
        outer_op.on_complete(outer_op);
      };
      wire.carried_[&outer] = this;
    }
    void hand_over() {
      if (status == Status::ok && landing.data != nullptr) {
        status = wire.copy(landing.data, bytes.data(), WireOp::bytes);
      }
      outer.status = status;
      outer.bytes = WireOp::bytes;
      outer.tag = tag;
      wire.carried_.erase(&outer);
      delete this;
    }

    EmulatedTakingWire& wire;
    port::WireOp& outer;
    std::vector<std::byte> bytes;
    Buffer landing;
  };

  port::WireOp& inner_of(port::WireOp& op) noexcept {
    const auto found = carried_.find(&op);
    return found == carried_.end() ? op : *found->second;
  }

  Carried* make(port::WireOp& op, std::size_t bytes, Buffer landing) noexcept {
    try {
      return new Carried(*this, op, bytes, landing);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  static Status finish(Status status, Carried* carried) noexcept {
    if (status == Status::in_progress) return status;
    carried->status = status;
    carried->hand_over();
    return status;
  }

  Status copy(void* destination, const void* source, std::size_t bytes) noexcept {
    if (bytes == 0) return Status::ok;
    const Status copied = device_.streams()->copy(destination, source, bytes, stream_);
    return copied == Status::ok ? device_.streams()->synchronize(stream_) : copied;
  }

  std::unordered_map<port::WireOp*, Carried*> carried_;
  std::unique_ptr<port::Wire> inner_;
  port::Device& device_;
  const DeviceMemoryTaken taken_;
  port::WireCapabilities capabilities_;
  port::Stream* const stream_;  ///< For its copies, which must not fail where memory is short.
};

}  // namespace

std::unique_ptr<port::Wire> make_emulated_taking(std::unique_ptr<port::Wire> inner, port::Device& device,
                                                 DeviceMemoryTaken taken) {
  return std::make_unique<EmulatedTakingWire>(std::move(inner), device, std::move(taken));
}

}  // namespace brant::test
