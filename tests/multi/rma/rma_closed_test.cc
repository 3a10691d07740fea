// Runs as two ranks, each a host of its own: an owner closes a segment, and gives its memory back, while the other rank
// puts into it or gets from it over the network. The owner lives, and the other one is told.
#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "support/job_runtime.h"
#include "support/own_host.h"

namespace brant {
namespace {

using test::job;

const bool g_own_host = test::become_own_host();  // before the runtime is opened: nothing is mapped

constexpr std::size_t kBytes = 8 << 20;
constexpr std::size_t kPutBytes = 16 << 10;  // larger ones must have ended before the segment is closed
constexpr auto kPatience = std::chrono::seconds(20);

/// Memory that is gone for good once it is given back.
class Pages {
 public:
  Pages() : data_(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { give_back(); }
  void give_back() noexcept {
    if (data_ != nullptr) ::munmap(data_, kBytes);
    data_ = nullptr;
  }
  [[nodiscard]] Buffer view() const noexcept { return {data_, kBytes, MemoryKind::host}; }

 private:
  void* data_;
};

Status wait_for(const Operation& operation) {
  const Status waited = job().worker().wait_until([&] { return operation.done(); }, kPatience);
  return waited == Status::ok ? operation.result().status : waited;
}

void own(Channel& other) {
  Pages pages;
  std::memset(pages.view().data, 7, kBytes);
  Segment segment = expose(job(), pages.view());
  SegmentTicket ticket = segment.ticket();
  EXPECT_EQ(wait_for(other.send(ConstBuffer(&ticket, sizeof ticket, MemoryKind::host))), Status::ok);
  std::uint64_t word = 0;
  Operation has_begun = other.recv(Buffer(&word, sizeof word, MemoryKind::host));
  EXPECT_EQ(wait_for(has_begun), Status::ok);
  for (int i = 0; i < 20; ++i) static_cast<void>(job().worker().progress());
  segment.close();
  pages.give_back();
  // Serves what the other one still asks for, until that says what it was told.
  EXPECT_EQ(wait_for(other.recv(Buffer(&word, sizeof word, MemoryKind::host))), Status::ok);
  EXPECT_EQ(static_cast<Status>(word), Status::peer_rejected) << status_name(static_cast<Status>(word));
}

/// Puts into it or gets all of it, several at a time, until one fails.
void use(Channel& other, RmaDirection direction) {
  SegmentTicket ticket;
  EXPECT_EQ(wait_for(other.recv(Buffer(&ticket, sizeof ticket, MemoryKind::host))), Status::ok);
  RemoteSegment there(job(), Rank{0}, ticket);
  std::vector<std::byte> local(kBytes, std::byte{9});
  const Buffer whole(local.data(), direction == RmaDirection::put ? kPutBytes : kBytes, MemoryKind::host);
  const auto start = [&] { return direction == RmaDirection::put ? there.put(0, whole) : there.get(0, whole); };
  EXPECT_EQ(wait_for(start()), Status::ok);
  EXPECT_EQ(local, std::vector<std::byte>(kBytes, direction == RmaDirection::get ? std::byte{7} : std::byte{9}));
  std::uint64_t word = 1;
  Operation told = other.send(ConstBuffer(&word, sizeof word, MemoryKind::host));
  Status last = Status::ok;
  while (last == Status::ok) {
    std::vector<std::unique_ptr<Operation>> some;
    for (int i = 0; i < 4; ++i) some.emplace_back(new Operation(start()));
    for (const auto& one : some) {
      const Status status = wait_for(*one);
      if (status != Status::ok) last = status;
    }
  }
  EXPECT_EQ(wait_for(told), Status::ok);
  word = static_cast<std::uint64_t>(last);
  EXPECT_EQ(wait_for(other.send(ConstBuffer(&word, sizeof word, MemoryKind::host))), Status::ok);
}

void play(RmaDirection direction) {
  Channel other = Channel::open(job(), Rank{1 - job().rank().value}, ChannelId{1});
  for (int round = 0; round < 5; ++round) job().rank() == Rank{0} ? own(other) : use(other, direction);
}

TEST(RmaClosed, an_owner_lives_that_closes_a_segment_under_a_get) {
  if (!g_own_host) GTEST_SKIP() << "this machine does not allow hosts of its own to a process";
  play(RmaDirection::get);
}

TEST(RmaClosed, an_owner_lives_that_closes_a_segment_under_a_put) {
  if (!g_own_host) GTEST_SKIP() << "this machine does not allow hosts of its own to a process";
  play(RmaDirection::put);
}

}  // namespace
}  // namespace brant
