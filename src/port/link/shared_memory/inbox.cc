#include "port/link/shared_memory/inbox.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <new>
#include <utility>

#include "port/link/shared_memory/process_barrier.h"

namespace brant::port::peer {
namespace {

constexpr std::size_t kHeadBytes = 4096;
static_assert(sizeof(InboxHead) <= kHeadBytes && sizeof(RingMemory) % 4096 == 0);

std::size_t bytes_for(std::uint32_t places) noexcept { return kHeadBytes + std::size_t{places} * sizeof(RingMemory); }

}  // namespace

Result<Inbox> Inbox::create(std::uint32_t places) noexcept {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return Status::limit_reached;
  UniqueFd listening(ends[0]);
  UniqueFd ringing(ends[1]);
  Result<MappedFile> memory = MappedFile::create("brant-inbox", bytes_for(places));
  if (!memory) return memory.status();
  Inbox inbox(std::move(*memory), places);  // fresh pages are zero: awake, and every ring empty
  inbox.listening_end_ = std::move(listening);
  inbox.ringing_end_ = std::move(ringing);
  inbox.head().barriers.store(take_part_in_process_barriers() ? 1 : 0, std::memory_order_relaxed);
  return inbox;
}

Result<Inbox> Inbox::open(const InboxAddress& address) noexcept {
  Result<MappedFile> memory = MappedFile::open(address.file);
  if (!memory) return memory.status();
  if (memory->bytes().size() != whole_pages(bytes_for(address.places))) return Status::version_mismatch;
  Inbox inbox(std::move(*memory), address.places);
  std::array<char, 48> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/fd/%d", address.file.owner.pid, address.bell);
  // Open for reading too: a pipe that has lost its last reader would end the process that rings it with SIGPIPE.
  inbox.ringing_end_ = UniqueFd(::open(path.data(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!inbox.ringing_end_) return Status::not_supported;
  return inbox;
}

Result<InboxAddress> Inbox::address() const noexcept {
  const Result<MemoryFileRecord> file = memory_.record();
  if (!file) return file.status();
  return InboxAddress{*file, places_, ringing_end_.get()};
}

RingMemory& Inbox::ring(std::uint32_t place) const noexcept {
  auto* base = memory_.bytes().data() + kHeadBytes + std::size_t{place} * sizeof(RingMemory);
  return *std::launder(reinterpret_cast<RingMemory*>(base));
}

void Inbox::fall_asleep() noexcept {
  head().asleep.store(1, std::memory_order_seq_cst);
  if (orders_barriers()) process_barrier();
}

void Inbox::wake_up() noexcept {
  head().asleep.store(0, std::memory_order_relaxed);
  std::array<char, 64> rings{};
  while (::read(listening_end_.get(), rings.data(), rings.size()) == static_cast<ssize_t>(rings.size())) {
  }
}

void Inbox::ring_bell() noexcept {
  if (head().asleep.exchange(0, std::memory_order_seq_cst) == 0) return;  // another peer rang already
  const char ring = 1;
  if (::write(ringing_end_.get(), &ring, 1) < 0) return;  // a full pipe wakes as well
}

}  // namespace brant::port::peer
