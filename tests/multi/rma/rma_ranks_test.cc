// Runs as every rank of a job (`brant run -n N`): puts and gets between real processes over the real network. The same
// program serves host memory, the emulated device and CUDA: BRANT_GPU decides.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "core/engine.h"
#include "multi/rma/ring.h"
#include "port/memory.h"
#include "support/effort.h"
#include "support/job_runtime.h"
#include "support/shapes.h"

namespace brant {
namespace {

using test::fill;
using test::image_of;
using test::job;
using test::kinds;
using test::partner;
using test::Ring;
using test::wait_for;

std::byte expected(std::size_t index, int from, int to) {
  const auto seed = static_cast<std::size_t>(from * 29 + to * 101);
  return static_cast<std::byte>((index * 131 + (index >> 9) * 7 + seed) & 0xff);
}

std::vector<std::byte> image(std::size_t bytes, int from, int to) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = expected(i, from, to);
  return data;
}

TEST(RmaRanks, bytes_go_from_every_shape_into_every_other_in_all_kinds_of_memory) {
  for (const std::size_t scale : {std::size_t{1}, std::size_t{313}}) {
    const test::ShapeZoo zoo(scale);
    const std::size_t room = test::ShapeZoo::room(scale);
    const int self = job().rank().value;
    const std::vector<std::byte> before = image(room, 1, 2), source = image(room, self, partner());
    for (const MemoryKind there : kinds()) {
      Ring ring;
      const Memory memory = job().allocate(there, room);
      const Segment segment = expose(job(), memory);
      const std::vector<SegmentTicket> tickets = ring.exchange(segment.ticket());
      RemoteSegment target(job(), Rank{partner()}, tickets[static_cast<std::size_t>(partner())]);
      const int writer = (self + job().size() - 1) % job().size();
      for (const MemoryKind here : kinds()) {
        const Memory local = job().allocate(here, room);
        fill(local, source);
        for (std::size_t i = 0; i < zoo.shapes().size(); i += test::effort<std::size_t>(1, 2)) {
          const auto &from = zoo.shapes()[i], &to = zoo.shapes()[(i + 4) % zoo.shapes().size()];
          SCOPED_TRACE(std::string(memory_kind_name(here)) + " " + from.name + " to " +
                       std::string(memory_kind_name(there)) + " " + to.name);
          const TransferShapes shapes{from.shape, to.shape};
          RmaOptions options;
          options.shapes = &shapes;
          fill(memory, before);
          ring.barrier();
          wait_for(target.put(0, local, options));
          ring.barrier();
          const auto after = [&](const std::vector<std::byte>& put) { return test::moved(before, 0, put, 0, shapes); };
          EXPECT_EQ(image_of(memory), after(image(room, writer, self)));
          wait_for(target.get(0, local, options));
          EXPECT_EQ(image_of(local), test::moved(source, 0, after(source), 0, shapes));
          ring.barrier();
          fill(local, source);
        }
      }
      target.close();
      ring.barrier();
    }
  }
}

/// Every rank puts a slice of its own into every rank's segment, itself included; all compare; then every rank gets
/// what the others put elsewhere.
void all_to_all(MemoryKind there, MemoryKind here, std::size_t bytes, Path path) {
  const int ranks = job().size(), self = job().rank().value;
  const Memory memory = job().allocate(there, static_cast<std::size_t>(ranks) * bytes);
  fill(memory, std::vector<std::byte>(memory.bytes()));
  Ring ring;
  const Segment segment = expose(job(), memory);
  const std::vector<SegmentTicket> tickets = ring.exchange(segment.ticket());
  {
    std::vector<RemoteSegment> remote;
    std::vector<Memory> sources;
    for (int rank = 0; rank < ranks; ++rank) {
      remote.emplace_back(job(), Rank{rank}, tickets[static_cast<std::size_t>(rank)]);
      sources.push_back(job().allocate(here, bytes));
      fill(sources.back(), image(bytes, self, rank));
    }
    // All ranks decide alike, so all leave out alike.
    const bool serves = std::all_of(remote.begin(), remote.end(), [&](const RemoteSegment& each) {
      return each.path_of(here, bytes, RmaDirection::put, {.path = path}).ok();
    });
    if (serves) {
      std::vector<std::unique_ptr<Operation>> puts;
      for (int rank = 0; rank < ranks; ++rank) {
        puts.emplace_back(new Operation(remote[static_cast<std::size_t>(rank)].put(
            static_cast<std::uint64_t>(self) * bytes, sources[static_cast<std::size_t>(rank)], {.path = path})));
      }
      for (const auto& put : puts) wait_for(*put);
    }
    ring.barrier();
    if (serves) {
      const std::vector<std::byte> whole = image_of(memory);
      for (int rank = 0; rank < ranks; ++rank) {
        const auto wanted = image(bytes, rank, self);
        EXPECT_EQ(std::memcmp(whole.data() + static_cast<std::size_t>(rank) * bytes, wanted.data(), bytes), 0)
            << "what rank " << rank << " put";
      }
    }
    for (int rank = 0; rank < ranks; ++rank) {
      RemoteSegment& from = remote[static_cast<std::size_t>(rank)];
      if (!serves || !from.path_of(here, bytes, RmaDirection::get, {.path = path})) continue;
      const int slice = (rank + 1) % ranks;
      const Memory& landing = sources[static_cast<std::size_t>(rank)];
      fill(landing, std::vector<std::byte>(bytes));
      Operation get = from.get(static_cast<std::uint64_t>(slice) * bytes, landing, {.path = path});
      wait_for(get);
      EXPECT_EQ(std::memcmp(image_of(landing).data(), image(bytes, slice, rank).data(), bytes), 0)
          << "what rank " << rank << " has of " << slice;
    }
    ring.barrier();
  }
  ring.barrier();  // nobody uses the segment any more
}

TEST(RmaRanks, every_kind_and_path_arrives_whole_from_all_at_all) {
  for (const MemoryKind there : kinds()) {
    for (const MemoryKind here : kinds()) {
      for (const Path path : {Path::automatic, Path::shm, Path::ucx, Path::copy_engine, Path::courier, Path::staged}) {
        for (const std::size_t bytes :
             {std::size_t{8}, std::size_t{65'536}, test::effort<std::size_t>(3'145'733, 1'048'581)}) {
          SCOPED_TRACE(std::string(memory_kind_name(here)) + " to " + std::string(memory_kind_name(there)) + " by " +
                       std::string(path_name(path)) + ", " + std::to_string(bytes));
          all_to_all(there, here, bytes, path);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(RmaRanks, forced_paths_are_the_ones_taken) {
  const Counters& counters = job().worker().engine().counters();
  const auto sent = [&](Path path) { return counters.path(path).sends.read(); };
  const std::uint64_t shm = sent(Path::shm), ucx = sent(Path::ucx);
  all_to_all(MemoryKind::host, MemoryKind::host, 100'000, Path::shm);
  EXPECT_GE(sent(Path::shm), shm + static_cast<std::uint64_t>(job().size()));
  all_to_all(MemoryKind::host, MemoryKind::host, 100'000, Path::ucx);
  EXPECT_GE(sent(Path::ucx), ucx + static_cast<std::uint64_t>(job().size()));
}

TEST(RmaRanks, memory_of_the_heap_goes_over_the_network) {
  std::vector<std::byte> memory(500'000, std::byte{0});
  Ring ring;
  const Segment segment = expose(job(), std::span(memory));
  const std::vector<SegmentTicket> tickets = ring.exchange(segment.ticket());
  const int next = (job().rank().value + 1) % job().size();
  RemoteSegment there(job(), Rank{next}, tickets[static_cast<std::size_t>(next)]);
  EXPECT_EQ(*there.path_of(MemoryKind::host, 8, RmaDirection::put), Path::ucx);
  const auto sent = image(memory.size(), job().rank().value, next);
  std::vector<std::unique_ptr<Operation>> puts;
  constexpr std::size_t kParts = 50, kPart = 10'000;
  for (std::size_t part = 0; part < kParts; ++part) {
    puts.emplace_back(
        new Operation(there.put(part * kPart, ConstBuffer(sent.data() + part * kPart, kPart, MemoryKind::host))));
  }
  for (const auto& put : puts) wait_for(*put);
  ring.barrier();
  EXPECT_TRUE(memory ==
              image(memory.size(), (job().rank().value + job().size() - 1) % job().size(), job().rank().value));
  std::vector<std::byte> back(memory.size());
  Operation get = there.get(0, std::span(back));
  wait_for(get);
  EXPECT_TRUE(back == sent);
  ring.barrier();
}

TEST(RmaRanks, a_put_needs_nothing_of_a_busy_owner_on_one_host) {
  const Memory memory = job().allocate(MemoryKind::host, 1 << 20);
  Ring ring;
  const Segment segment = expose(job(), memory);
  const std::vector<SegmentTicket> tickets = ring.exchange(segment.ticket());
  RemoteSegment there(job(), Rank{partner()}, tickets[static_cast<std::size_t>(partner())]);
  ring.barrier();
  // Rank 0 makes no progress until it sees the bytes.
  const auto* word = static_cast<volatile std::uint64_t*>(memory.data());
  if (job().rank().value == 0) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (*word != 42 && std::chrono::steady_clock::now() < until) {
    }
    EXPECT_EQ(*word, 42u);
  } else if (partner() == 0) {
    const std::uint64_t value = 42;
    Operation put = there.put(0, ConstBuffer(&value, sizeof(value), MemoryKind::host));
    wait_for(put);
  }
  ring.barrier();
}

}  // namespace
}  // namespace brant
