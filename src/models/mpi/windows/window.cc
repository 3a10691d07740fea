#include "models/mpi/windows/window.h"

#include "models/mpi/process.h"

namespace brant::mpi {

Window::Window(RankState& rank_in, std::unique_ptr<Communicator> communicator_in, int flavor_in)
    : Object(kKind),
      rank(rank_in),
      communicator(*communicator_in.release()),
      flavor(flavor_in),
      parts(static_cast<std::size_t>(communicator.size())),
      peers(static_cast<std::size_t>(communicator.size())),
      handler(&error_handler_of(MPI_ERRORS_ARE_FATAL)) {}

Window::~Window() {
  while (Transfer* transfer = under_way.front()) delete transfer;
  while (Transfer* transfer = landed.front()) delete transfer;
  drop_handler(*handler);
  drop_communicator(communicator);
}

Rank Window::process_of(int member) const noexcept { return Process::process_of(communicator.id_of(member)); }

/// Requests on a window belong to its communicator. A function of the program takes a window, so its errors are given
/// back there.
void Window::set_handler(ErrorHandler& next) noexcept {
  ++next.users;
  drop_handler(*std::exchange(handler, &next));
  const bool is_function = next.action == ErrorHandler::Action::call;
  communicator.set_handler(is_function ? error_handler_of(MPI_ERRORS_RETURN) : next);
}

RemoteSegment* Window::reach(int member) {
  if (shared.is_open()) return &shared;
  WindowPart& there = part(member);
  if (there.is_out_of_reach) return nullptr;
  if (there.segment.is_open()) return &there.segment;
  try {
    there.segment = RemoteSegment(rank.process.runtime(), process_of(member), there.ticket);
  } catch (const Error& error) {
    if (error.status() != Status::not_supported) throw;
    there.is_out_of_reach = true;
    return nullptr;
  }
  return &there.segment;
}

std::byte* Window::host_pointer(int member) {
  WindowPart& there = part(member);
  if (there.mapped != nullptr || there.bytes == 0 || is_dynamic()) return there.mapped;
  if (const RemoteSegment* segment_in = reach(member); segment_in != nullptr)
    there.mapped = static_cast<std::byte*>(segment_in->host_pointer());
  return there.mapped;
}

std::optional<OwnPlace> Window::own_place(std::int64_t offset, std::uint64_t wanted) {
  if (!is_dynamic()) {
    const auto all = static_cast<std::uint64_t>(bytes);
    if (offset < 0 || static_cast<std::uint64_t>(offset) > all || wanted > all - static_cast<std::uint64_t>(offset))
      return std::nullopt;
    if (std::byte* const host = host_pointer(communicator.rank); host != nullptr)
      return OwnPlace{.host = host + offset};
    return OwnPlace{.host = nullptr, .segment = reach(communicator.rank), .offset = static_cast<std::uint64_t>(offset)};
  }
  const auto address = static_cast<std::uintptr_t>(offset);
  for (const auto& memory_in : attached) {
    const std::uintptr_t within = address - reinterpret_cast<std::uintptr_t>(memory_in->base);
    if (within > memory_in->bytes || wanted > memory_in->bytes - within) continue;
    if (memory_in->segment.is_open()) return OwnPlace{.host = nullptr, .segment = &memory_in->reach, .offset = within};
    return OwnPlace{.host = memory_in->base + within};
  }
  return std::nullopt;
}

void Window::let_go_of_others() noexcept {
  for (WindowPart& each : parts) each.segment.close();
  shared.close();
}

}  // namespace brant::mpi
