#include "models/mpi/windows/served_accesses.h"

#include <cstring>
#include <new>
#include <utility>

#include "models/mpi/process.h"
#include "models/mpi/types/reduce.h"
#include "models/mpi/windows/accumulation.h"
#include "models/mpi/windows/window_messenger.h"

namespace brant::mpi {

// What a message says
// -------------------------------------------------------------------------------------------------------------------

namespace {

constexpr std::uint64_t kElementMost = 32;

const Datatype* element_of(std::uint16_t number) noexcept {
  const bool in_table = number >= kFirstType && number < kFirstType + kTypeNumbers;
  if (!in_table || basic_type(static_cast<std::uint16_t>(number - kFirstType)).number == 0) return nullptr;
  return &predefined_type(number);
}

bool runs_have(std::span<const WindowRun> runs, std::uint64_t bytes) noexcept {
  for (const WindowRun& run : runs) {
    if (run.bytes > bytes) return false;
    bytes -= run.bytes;
  }
  return bytes == 0;
}

}  // namespace

bool ServedAccess::read(const am::Message& message) noexcept {
  if (message.bytes < sizeof head) return false;
  std::memcpy(&head, message.data, sizeof head);
  std::uint64_t rest = message.bytes - sizeof head;
  if (head.runs > rest / sizeof(WindowRun)) return false;
  rest -= head.runs * sizeof(WindowRun);
  runs = {reinterpret_cast<const WindowRun*>(message.data + sizeof head), head.runs};
  data = message.data + sizeof head + head.runs * sizeof(WindowRun);
  if (head.data_bytes != rest || !runs_have(runs, head.bytes)) return false;
  switch (head.kind) {
    case AccessKind::put: return rest == head.bytes;
    case AccessKind::get: return rest == 0;
    case AccessKind::compare_and_swap: return head.runs == 1 && head.bytes <= kElementMost && rest == 2 * head.bytes;
    case AccessKind::accumulate:
    case AccessKind::get_accumulate: break;
    default: return false;
  }
  op = find_op(op_handle(head.operation));
  element = element_of(head.element);
  if (op == nullptr || element == nullptr || !op->predefined() || element->size() <= 0) return false;
  if (check_reduce(*op, *element, ReduceUse::accumulate).error != ErrorClass::success) return false;
  const Accumulation how(*op, *element);
  for (const WindowRun& run : runs) {
    if (how.has_gaps() ? run.bytes != how.size() : run.bytes % how.size() != 0) return false;
  }
  return rest == head.bytes;
}

std::uint64_t ServedAccess::memory_bytes(const WindowRun& run) const noexcept {
  if (element == nullptr) return run.bytes;
  const Accumulation how(*op, *element);
  return how.has_gaps() ? how.memory_bytes() : run.bytes;
}

// Serving
// -------------------------------------------------------------------------------------------------------------------

ServedAccesses::~ServedAccesses() = default;

void ServedAccesses::release(am::Message& message) noexcept { messenger_.release(message); }

void ServedAccesses::take(am::Message& message) noexcept {
  waiting_.push_back(message);
  serve_waiting();
}

void ServedAccesses::serve_waiting() noexcept {
  if (serving_) return;
  serving_ = true;
  while (device_ == nullptr && !waiting_.empty()) {
    am::Message& message = *waiting_.pop_front();
    if (serve(message)) release(message);
  }
  serving_ = false;
}

/// An origin hears of it with its answer, or with that of its next `flush`.
void ServedAccesses::refuse(const am::Message& message, int error) noexcept {
  const auto header = message.header<WindowHeader>();
  if (header.ticket != 0) return messenger_.answer(Rank{message.peer}, header.ticket, error);
  int& kept = messenger_.find(header)->peer(header.source).served_error;
  if (kept == MPI_SUCCESS) kept = error;
}

bool ServedAccesses::serve(am::Message& message) noexcept {
  const auto header = message.header<WindowHeader>();
  Window* const window = messenger_.find(header);
  if (window == nullptr) return true;
  if (header.word == WindowWord::flush) {
    const int error = std::exchange(window->peer(header.source).served_error, MPI_SUCCESS);
    messenger_.answer(Rank{message.peer}, header.ticket, error);
    return true;
  }
  ServedAccess access;
  if (!access.read(message)) {
    refuse(message, MPI_ERR_INTERN);
    return true;
  }
  try {
    std::vector<OwnPlace> places;
    places.reserve(access.runs.size());
    bool all_host = true;
    for (const WindowRun& run : access.runs) {
      const auto place = window->own_place(run.offset, access.memory_bytes(run));
      if (!place) {
        refuse(message, MPI_ERR_RMA_RANGE);
        return true;
      }
      all_host = all_host && place->host != nullptr;
      places.push_back(*place);
    }
    if (!all_host) {
      start_device(message, access, std::move(places));
      return false;
    }
    if (!access.gives_back()) {
      serve_in_host(access, places, nullptr);
      return true;
    }
    am::Message& reply = messenger_.make(access.head.bytes);
    serve_in_host(access, places, reply.data);
    messenger_.send(Rank{message.peer}, {.word = WindowWord::answer, .ticket = header.ticket}, reply);
  } catch (const std::bad_alloc&) {
    refuse(message, MPI_ERR_NO_MEM);
  } catch (const Error& error) {
    refuse(message, error_class_of(error.status()));
  }
  return true;
}

/// One run of an access that changes what is there.
void ServedAccesses::combine(const ServedAccess& access, const WindowRun& run, std::byte* place, const std::byte*& in,
                             std::byte*& back) const noexcept {
  if (access.head.kind == AccessKind::compare_and_swap) {
    compare_and_swap(place, in, in + run.bytes, back, run.bytes);
  } else {
    Accumulation(*access.op, *access.element).apply(place, in, back, run.bytes);
  }
  in += run.bytes;
  if (back != nullptr) back += run.bytes;
}

void ServedAccesses::serve_in_host(const ServedAccess& access, std::span<const OwnPlace> places,
                                   std::byte* back) const noexcept {
  const std::byte* in = access.data;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const WindowRun& run = access.runs[i];
    std::byte* const place = places[i].host;
    if (access.head.kind == AccessKind::put) {
      std::memcpy(place, in, run.bytes);
      in += run.bytes;
    } else if (access.head.kind == AccessKind::get) {
      std::memcpy(back, place, run.bytes);
      back += run.bytes;
    } else {
      combine(access, run, place, in, back);
    }
  }
}

// Memory of a device
// -------------------------------------------------------------------------------------------------------------------

void ServedAccesses::start_device(am::Message& message, const ServedAccess& access, std::vector<OwnPlace> places) {
  auto device = std::make_unique<DeviceAccess>();
  device->access = access;
  device->places = std::move(places);
  device->ops = std::make_unique<brant::Op[]>(access.runs.size());
  std::uint64_t bytes = 0;
  device->starts.reserve(access.runs.size());
  for (const WindowRun& run : access.runs) {
    device->starts.push_back(bytes);
    bytes += access.memory_bytes(run);
  }
  device->image = std::make_unique<std::byte[]>(bytes);
  if (access.gives_back()) device->reply = &messenger_.make(access.head.bytes);
  device->message = &message;
  device_ = std::move(device);
  const bool puts = access.head.kind == AccessKind::put;
  if (puts) std::memcpy(device_->image.get(), access.data, bytes);
  move_device(puts);
}

/// Copies all runs to the device, or from it.
void ServedAccesses::move_device(bool writes) noexcept {
  DeviceAccess& device = *device_;
  device.writes = writes;
  device.under_way = 1;
  for (std::size_t i = 0; i < device.places.size(); ++i) {
    const OwnPlace& place = device.places[i];
    std::byte* const image = device.image.get() + device.starts[i];
    const std::uint64_t bytes = device.access.memory_bytes(device.access.runs[i]);
    if (place.host != nullptr) {
      std::memcpy(writes ? place.host : image, writes ? image : place.host, bytes);
      continue;
    }
    brant::Op& op = device.ops[i];
    op.delivered = {[](void* self, const OpResult& result) noexcept {
                      auto& served = *static_cast<ServedAccesses*>(self);
                      if (!result.ok()) served.device_->error = error_class_of(result.status);
                      served.go_on_device();
                    },
                    this};
    const Status status = writes ? place.segment->post_put(place.offset, {image, bytes, MemoryKind::host}, op)
                                 : place.segment->post_get(place.offset, {image, bytes, MemoryKind::host}, op);
    if (status == Status::in_progress) {
      ++device.under_way;
    } else if (status != Status::ok) {
      device.error = error_class_of(status);
    }
  }
  go_on_device();
}

/// A copy has ended: after the last one come the changes, or the end.
void ServedAccesses::go_on_device() noexcept {
  DeviceAccess& device = *device_;
  if (--device.under_way != 0) return;
  const ServedAccess& access = device.access;
  std::byte* back = device.reply != nullptr ? device.reply->data : nullptr;
  if (device.writes || device.error != MPI_SUCCESS) return end_device();
  if (back != nullptr && access.head.kind == AccessKind::get) {
    std::memcpy(back, device.image.get(), access.head.bytes);
    return end_device();
  }
  const std::byte* in = access.data;
  for (std::size_t i = 0; i < access.runs.size(); ++i)
    combine(access, access.runs[i], device.image.get() + device.starts[i], in, back);
  move_device(true);
}

void ServedAccesses::end_device() noexcept {
  const std::unique_ptr<DeviceAccess> device = std::move(device_);
  am::Message& message = *device->message;
  const auto header = message.header<WindowHeader>();
  if (device->error != MPI_SUCCESS) refuse(message, device->error);
  if (device->reply != nullptr && device->error == MPI_SUCCESS) {
    messenger_.send(Rank{message.peer}, {.word = WindowWord::answer, .ticket = header.ticket}, *device->reply);
  } else if (device->reply != nullptr) {
    release(*device->reply);
  }
  release(message);
  serve_waiting();
}

}  // namespace brant::mpi
