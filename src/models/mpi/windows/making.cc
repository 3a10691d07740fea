#include "models/mpi/windows/making.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "models/mpi/allocated_memory.h"
#include "models/mpi/checks/same_call.h"
#include "models/mpi/communicators.h"
#include "models/mpi/process.h"
#include "models/mpi/windows/synchronisation.h"
#include "models/mpi/windows/window_messenger.h"

namespace brant::mpi {

namespace {

void require_spec(const WindowSpec& spec) {
  require(spec.bytes >= 0, MPI_ERR_SIZE, "the size {} is negative", spec.bytes);
  require(spec.disp_unit > 0, MPI_ERR_DISP, "the displacement unit {} is not positive", spec.disp_unit);
}

/// Messages find it from now on: a member may be ready before this one.
Window& open_window(Communicator& parent, int flavor) {
  require_same_call(parent);
  RankState& rank = current_rank();
  auto window = std::make_unique<Window>(rank, make_communicator(rank, parent.members, {parent.context}), flavor);
  window->communicator.session = parent.session;
  return rank.process.windows().add(std::move(window));
}

/// Throws if any member has failed.
void require_all(std::span<const WindowOffer> offers, const char* what) {
  for (std::size_t i = 0; i < offers.size(); ++i)
    require(offers[i].error == MPI_SUCCESS, offers[i].error, "{} of rank {} cannot be used", what, i);
}

using MaybeError = std::optional<CallError>;

std::int32_t class_of(const MaybeError& error) noexcept { return error ? error->error_class() : kSuccess; }

/// All tell each other. This member's own error has more to say than what the others hear of it.
void require_all(Window& window, const MaybeError& error, const char* what) {
  std::vector<WindowOffer> offers(static_cast<std::size_t>(window.size()));
  const WindowOffer own{.error = class_of(error)};
  gather_from_all(window.communicator, &own, offers.data(), sizeof own);
  if (error) throw CallError(*error);
  require_all(offers, what);
}

WindowOffer offer_of(const Window& window) {
  WindowOffer offer{
      .bytes = window.bytes, .disp_unit = window.disp_unit, .base = reinterpret_cast<std::uintptr_t>(window.base)};
  if (window.segment.is_open()) {
    const SegmentTicket ticket = window.segment.ticket();
    offer.ticket_bytes = static_cast<std::uint32_t>(ticket.bytes().size());
    std::memcpy(offer.ticket, ticket.bytes().data(), offer.ticket_bytes);
  }
  return offer;
}

/// Tells the others of this rank's memory, and hears of theirs.
void tell_of_memory(Window& window, const MaybeError& error) {
  std::vector<WindowOffer> offers(static_cast<std::size_t>(window.size()));
  WindowOffer own = offer_of(window);
  own.error = class_of(error);
  gather_from_all(window.communicator, &own, offers.data(), sizeof own);
  if (error) throw CallError(*error);
  require_all(offers, "the memory");
  for (int member = 0; member < window.size(); ++member) {
    const WindowOffer& offer = offers[static_cast<std::size_t>(member)];
    WindowPart& part = window.part(member);
    part.bytes = offer.bytes;
    part.disp_unit = offer.disp_unit;
    part.ticket =
        SegmentTicket(std::span(offer.ticket, std::min<std::size_t>(offer.ticket_bytes, sizeof offer.ticket)));
  }
}

/// Makes a window by `body`, which gets it; it goes where that fails.
template <typename Body>
Window& made_window(Communicator& parent, int flavor, const WindowSpec& spec, const Body& body) {
  require_spec(spec);
  Window& window = open_window(parent, flavor);
  window.disp_unit = static_cast<int>(spec.disp_unit);
  window.bytes = spec.bytes;
  try {
    body(window);
  } catch (...) {
    delete_window(window);
    throw;
  }
  return window;
}

/// This rank's memory, which its CPU reaches directly if it is the host's.
void expose_own(Window& window) {
  if (window.bytes == 0) return;
  Buffer memory(window.base, static_cast<std::size_t>(window.bytes), MemoryKind::detect);
  window.segment = expose(window.rank.process.runtime(), memory);
  if (host_accessible(window.segment.memory().kind))
    window.part(window.communicator.rank).mapped = static_cast<std::byte*>(window.base);
}

}  // namespace

Window& make_window(Communicator& communicator, void* base, const WindowSpec& spec) {
  return made_window(communicator, MPI_WIN_FLAVOR_CREATE, spec, [&](Window& window) {
    window.base = base;
    tell_of_memory(window, error_in([&] {
                     require(base != nullptr || spec.bytes == 0, MPI_ERR_BASE, "the memory of {} bytes is null",
                             spec.bytes);
                     expose_own(window);
                   }));
  });
}

Window& make_allocated_window(Communicator& communicator, const WindowSpec& spec) {
  return made_window(communicator, MPI_WIN_FLAVOR_ALLOCATE, spec, [&](Window& window) {
    tell_of_memory(window, error_in([&] {
                     if (window.bytes == 0) return;
                     const MemoryKind kind = kind_of_hint(spec.memory);
                     const std::size_t room = std::max(static_cast<std::size_t>(window.bytes), kMappedMin);
                     window.memory = window.rank.process.runtime().allocate(kind, room);
                     window.base = window.memory.data();
                     expose_own(window);
                   }));
  });
}

namespace {

/// All members' memory is the first one's, which the others map.
void share_memory(Window& window, std::size_t all_bytes) {
  Runtime& runtime = window.rank.process.runtime();
  tell_of_memory(window, error_in([&] {
                   if (window.communicator.rank != 0) return;
                   window.memory = runtime.allocate(MemoryKind::host, std::max(all_bytes, kMappedMin));
                   window.segment = expose(runtime, window.memory);
                 }));
  const MaybeError error = error_in([&] {
    window.shared = RemoteSegment(runtime, window.process_of(0), window.part(0).ticket);
    // What takes a while to be mapped is so when the first get of it has ended.
    std::byte first{};
    Operation get = window.shared.get(0, Buffer(&first, 1, MemoryKind::host));
    window.rank.wait([&] { return get.done(); });
    require(get.result().ok() && window.shared.host_pointer() != nullptr, MPI_ERR_RMA_SHARED,
            "the memory of rank 0 cannot be mapped");
  });
  require_all(window, error, "the way to the memory of rank 0");
}

}  // namespace

Window& make_shared_window(Communicator& communicator, const WindowSpec& spec) {
  return made_window(communicator, MPI_WIN_FLAVOR_SHARED, spec, [&](Window& window) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(window.size()));
    const std::int64_t own = spec.bytes;
    gather_from_all(window.communicator, &own, sizes.data(), sizeof own);
    std::int64_t all = 0;
    for (const std::int64_t each : sizes) all += each;
    if (all == 0) return tell_of_memory(window, std::nullopt);
    share_memory(window, static_cast<std::size_t>(all));
    std::uint64_t offset = 0;
    for (int member = 0; member < window.size(); ++member) {
      WindowPart& part = window.part(member);
      part.offset = offset;
      part.mapped = static_cast<std::byte*>(window.shared.host_pointer()) + offset;
      offset += static_cast<std::uint64_t>(part.bytes);
    }
    window.base = window.part(window.communicator.rank).mapped;
  });
}

Window& make_dynamic_window(Communicator& communicator) {
  return made_window(communicator, MPI_WIN_FLAVOR_DYNAMIC, {},
                     [](Window& window) { tell_of_memory(window, std::nullopt); });
}

void attach(Window& window, void* base, MPI_Aint bytes) {
  require(window.is_dynamic(), MPI_ERR_RMA_FLAVOR, "the window is not dynamic: its memory does not change");
  require(bytes >= 0, MPI_ERR_SIZE, "the size {} is negative", bytes);
  auto memory = std::make_unique<AttachedMemory>();
  memory->base = static_cast<std::byte*>(base);
  memory->bytes = static_cast<std::size_t>(bytes);
  for (const auto& other : window.attached) {
    const bool apart = memory->base + memory->bytes <= other->base || other->base + other->bytes <= memory->base;
    require(apart || bytes == 0, MPI_ERR_RMA_ATTACH, "the {} bytes at {} overlap memory that is attached already",
            bytes, base);
  }
  if (bytes != 0) {
    Runtime& runtime = window.rank.process.runtime();
    memory->kind = MemoryKind::detect;
    const Status status = window.rank.process.engine().memory_kinds().resolve(base, memory->bytes, memory->kind);
    require(status == Status::ok, MPI_ERR_RMA_ATTACH, "there are no {} bytes of memory at {}: {}", bytes, base,
            status_text(status));
    if (!host_accessible(memory->kind)) {
      memory->segment = expose(runtime, Buffer(base, memory->bytes, memory->kind));
      memory->reach = RemoteSegment(runtime, runtime.rank(), memory->segment.ticket());
    }
  }
  window.attached.push_back(std::move(memory));
}

void detach(Window& window, const void* base) {
  require(window.is_dynamic(), MPI_ERR_RMA_FLAVOR, "the window is not dynamic: its memory does not change");
  const auto found = std::ranges::find_if(window.attached, [base](const auto& each) { return each->base == base; });
  require(found != window.attached.end(), MPI_ERR_RMA_ATTACH, "no memory that begins at {} is attached", base);
  window.attached.erase(found);
}

/// A member frees its memory when all others have let go of it.
void close_window(Window& window) {
  const MaybeError error = error_in([&] { flush_words(window); });
  window.let_go_of_others();
  const Status status = window.communicator.team().run(barrier()).status;
  if (error) throw CallError(*error);
  require(status == Status::ok, error_class_of(status), "a member of the window did not free it: {}",
          status_text(status));
}

void delete_window(Window& window) noexcept { window.rank.process.windows().remove(window); }

}  // namespace brant::mpi
