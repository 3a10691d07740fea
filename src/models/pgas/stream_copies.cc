#include "base/log.h"
#include "models/pgas/space_state.h"

/// What streams of the device do in the global space: copies and words between memory that it reaches.
namespace brant {
namespace {

Status refuse(const char* what, GlobalPtr<const std::byte> at, const char* why) noexcept {
  log::error("{} at {} on a stream: {}", what, describe(at), why);
  return Status::not_supported;
}

constexpr const char* kNotReached =
    "this process's device does not reach it. Wait for `reach` first; memory of a process of this host is needed that "
    "both devices map";

}  // namespace

Status SpaceState::enqueue_copy(StreamHandle stream, GlobalPtr<const std::byte> there, void* local, std::size_t bytes,
                                bool is_put) noexcept {
  port::Streams* const streams = engine_.device().streams();
  if (stream == nullptr || (local == nullptr && bytes != 0)) return Status::invalid_argument;
  if (streams == nullptr) return refuse("a copy", there, "this process has no device with streams");
  void* const address = device_address(there, bytes);
  if (address == nullptr) return refuse("a copy", there, kNotReached);
  MemoryKind kind = MemoryKind::detect;
  const Status known = engine_.memory_kinds().resolve(local, bytes, kind);
  if (known != Status::ok || bytes == 0) return known;
  return is_put ? streams->copy(address, local, bytes, stream) : streams->copy(local, address, bytes, stream);
}

Status SpaceState::enqueue_word(StreamHandle stream, GlobalPtr<std::uint64_t> flag, std::uint64_t value,
                                bool is_wait) noexcept {
  port::Streams* const streams = engine_.device().streams();
  if (stream == nullptr) return Status::invalid_argument;
  if (streams == nullptr || !engine_.device().capabilities().stream_words)
    return refuse("a word", flag, "this process's device has no stream memory operations");
  void* const address = device_address(flag, sizeof(value));
  if (address == nullptr) return refuse("a word", flag, kNotReached);
  if (reinterpret_cast<std::uintptr_t>(address) % sizeof(value) != 0) return Status::invalid_argument;
  auto* const word = static_cast<std::uint64_t*>(address);
  if (!is_wait) return streams->write_value(word, value, stream);
  return engine_.stream_waits().enqueue(stream, [&](port::Streams& to) noexcept {
    return to.wait_value(port::StreamWord::Act::wait_at_least, word, value, stream);
  });
}

Status GlobalSpace::enqueue_put(StreamHandle stream, GlobalPtr<std::byte> to, ConstBuffer from) noexcept {
  return state_->enqueue_copy(stream, to, const_cast<void*>(from.data), from.bytes, true);
}
Status GlobalSpace::enqueue_get(StreamHandle stream, GlobalPtr<const std::byte> from, Buffer to) noexcept {
  return state_->enqueue_copy(stream, from, to.data, to.bytes, false);
}
Status GlobalSpace::enqueue_set(StreamHandle stream, GlobalPtr<std::uint64_t> flag, std::uint64_t value) noexcept {
  return state_->enqueue_word(stream, flag, value, false);
}
Status GlobalSpace::enqueue_wait(StreamHandle stream, GlobalPtr<std::uint64_t> flag, std::uint64_t value) noexcept {
  return state_->enqueue_word(stream, flag, value, true);
}

}  // namespace brant
