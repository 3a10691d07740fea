#include "ops/stream/bases.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/log.h"
#include "ops/stream/end.h"

namespace brant {

Result<stream_steps::Receive> StreamBases::describe(Buffer landing) noexcept {
  Engine& engine = end_.engine();
  const Status status = engine.memory_kinds().resolve(landing.data, landing.bytes, landing.kind);
  if (status != Status::ok) return status;
  if (landing.kind != engine.peers().mutual_kind(end_.peer())) return Status::wrong_kind;
  const Result<ExportedPlace> place = end_.mappings().exports.describe(landing.data);
  if (!place) return place.status();
  if (landing.bytes > place->bytes) {
    log::error(
        "stream channel {} to rank {}: a landing of {} bytes lies in several allocations of the driver (mapped side by "
        "side, as PyTorch's expandable_segments are), and others map one of them: land in memory of "
        "Runtime::allocate or of cudaMalloc, or use a Channel",
        end_.id().value, end_.peer().rank.value, landing.bytes);
    return Status::not_supported;
  }
  const Result<std::uint64_t> number = number_of(place->buffer_id, landing.data);
  if (!number) return number.status();
  return stream_steps::Receive{static_cast<std::byte*>(landing.data), landing.bytes, *number, place->offset};
}

Result<std::uint64_t> StreamBases::number_of(std::uint64_t buffer_id, const void* place) noexcept {
  const auto known = std::find_if(own_.begin(), own_.end(), [&](const Own& own) { return own.buffer_id == buffer_id; });
  if (known != own_.end()) return static_cast<std::uint64_t>(known - own_.begin());
  if (own_.size() == StreamMailbox::kBases) {
    log::error("stream channel {} to rank {}: receives land in more than {} allocations: use fewer, larger ones",
               end_.id().value, end_.peer().rank.value, StreamMailbox::kBases);
    return Status::limit_reached;
  }
  try {
    own_.push_back({buffer_id, place});
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  StreamMessage message = end_.message(StreamMessage::Kind::base, end_.meeting().other());
  message.number = static_cast<std::uint16_t>(own_.size() - 1);
  message.buffer_id = buffer_id;
  end_.post(message);
  return message.number;
}

void StreamBases::on_base(const StreamMessage& message) noexcept { map(message); }

void StreamBases::poll() noexcept {
  for (std::size_t left = awaited_.size(); left != 0; --left) {
    const StreamMessage message = awaited_.front();
    awaited_.erase(awaited_.begin());
    map(message);
  }
}

void StreamBases::map(const StreamMessage& message) noexcept {
  MappedMemory mapped = end_.mappings().imports.take(message.buffer_id, 0, 0, Reach::device);
  const bool awaited = mapped.address == nullptr && end_.mappings().imports.awaits(message.buffer_id);
  if (awaited && await(message)) return;
  mapped_[message.number] = std::move(mapped.lease);
  std::uint64_t base = reinterpret_cast<std::uint64_t>(mapped.address);
  if (base == 0) {  // freed by now, perhaps: small messages do without
    StreamMessage answer = end_.message(StreamMessage::Kind::unmapped, message.opening);
    answer.number = message.number;
    end_.post(answer);
    base = StreamMailbox::kUnmapped;
  }
  const Status written = end_.memory().write_base(message.number, base);
  if (written != Status::ok) end_.fail(written);
}

/// False: there is no memory to remember it.
bool StreamBases::await(const StreamMessage& message) noexcept {
  try {
    awaited_.push_back(message);
  } catch (const std::bad_alloc&) {
    return false;
  }
  end_.poll_later();
  return true;
}

void StreamBases::on_unmapped(unsigned number) noexcept {
  if (number >= own_.size()) return;
  const Own& own = own_[number];
  const Result<port::PointerInfo> now = end_.engine().device().query(own.place);
  if (!now || now->buffer_id != own.buffer_id) return;  // freed: nobody waits for it
  log::error(
      "stream channel {}: rank {} cannot map an allocation of {} bytes that receives land in: allocate 2 MB or more, "
      "of which the driver makes a block of its own",
      end_.id().value, end_.peer().rank.value, now->bytes);
  end_.fail(Status::not_supported);
}

void StreamBases::let_go() noexcept {
  give_up();
  for (MappingLease& lease : mapped_) lease = {};
}

}  // namespace brant
