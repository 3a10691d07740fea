// What two processes have mapped of each other: once, as long as it is used, no longer than it lives, and so much.
#include <gtest/gtest.h>

#include "base/progress_scope.h"
#include "brant/ops/rma.h"
#include "unit/mapping/mapping_pair.h"

namespace brant {
namespace {

using test::MappingPair;

TEST(Mapping, an_allocation_is_told_of_and_mapped_once) {
  MappingPair pair;
  const Memory memory = pair.allocate();
  const ExportedPlace first = pair.describe(memory);
  const Result<ExportedPlace> inside = pair.exports().describe(memory.as<std::byte>() + 100);
  ASSERT_TRUE(inside.ok());
  EXPECT_EQ(inside->buffer_id, first.buffer_id);
  EXPECT_EQ(inside->offset, 100u);
  for (int time = 0; time < 100; ++time) {
    const MappedMemory whole = pair.take(first), part = pair.take(*inside, 10);
    ASSERT_NE(whole.address, nullptr);
    EXPECT_EQ(part.address, whole.address + 100);
  }
  EXPECT_EQ(pair.device().imported, 1u);
  EXPECT_EQ(pair.device().closed, 0u);
  EXPECT_EQ(pair.table(0).mapped(), 1u);
}

TEST(Mapping, nothing_is_given_out_beyond_an_allocation_or_to_a_CPU_that_does_not_reach_it) {
  MappingPair pair;
  const Memory memory = pair.allocate();
  const ExportedPlace place = pair.describe(memory);
  Imports& imports = pair.imports();
  EXPECT_EQ(imports.take(place.buffer_id, 0, MappingPair::kBytes + 1, Reach::device).address, nullptr);
  EXPECT_EQ(imports.take(place.buffer_id, MappingPair::kBytes, 1, Reach::device).address, nullptr);
  EXPECT_EQ(imports.take(place.buffer_id, ~std::uint64_t{0}, 1, Reach::device).address, nullptr);
  EXPECT_EQ(imports.take(place.buffer_id, 0, 1, Reach::cpu).address, nullptr);
  EXPECT_EQ(imports.take(place.buffer_id + 1, 0, 1, Reach::device).address, nullptr);
  EXPECT_NE(imports.take(place.buffer_id, MappingPair::kBytes, 0, Reach::device).address, nullptr);
}

TEST(Mapping, what_its_owner_has_freed_is_unmapped_soon_but_not_in_progress) {
  MappingPair pair;
  ExportedPlace place;
  {
    const Memory memory = pair.allocate();
    place = pair.describe(memory);
    EXPECT_NE(pair.take(place).address, nullptr);
  }
  ASSERT_TRUE(pair.run_until([&] { return pair.table(0).closing(); }));
  EXPECT_EQ(pair.exports().count(), 0u);
  EXPECT_EQ(pair.take(place).address, nullptr);
  pair.job().run(100);
  EXPECT_EQ(pair.device().closed, 0u) << "within progress";
  pair.job().rank(0).tidy();
  EXPECT_EQ(pair.device().closed, 1u);
  EXPECT_EQ(pair.table(0).mapped(), 0u);
  EXPECT_EQ(pair.imports().known(), 0u);
}

TEST(Mapping, a_wait_that_finds_nothing_to_do_unmaps_what_was_freed) {
  MappingPair pair;
  pair.describe(pair.allocate());
  ASSERT_TRUE(pair.run_until([&] { return pair.table(0).closing(); }));
  Worker& worker = pair.job().rank(0).worker();
  pair.engine(0).deferrals().note_waiting_kernels(+1);
  EXPECT_EQ(worker.wait_until([] { return false; }, std::chrono::milliseconds(100)), Status::timed_out);
  EXPECT_EQ(pair.device().closed, 0u) << "a kernel may wait for this process";
  pair.engine(0).deferrals().note_waiting_kernels(-1);
  EXPECT_EQ(worker.wait_until([&] { return pair.device().closed == 1; }, std::chrono::seconds(30)), Status::ok);
}

TEST(Mapping, what_is_used_stays_mapped_when_its_owner_frees_it) {
  MappingPair pair;
  ExportedPlace place;
  std::optional<MappedMemory> used;
  {
    const Memory memory = pair.allocate();
    place = pair.describe(memory);
    used.emplace(pair.take(place));
    ASSERT_NE(used->address, nullptr);
  }
  ASSERT_TRUE(pair.run_until([&] { return pair.take(place).address == nullptr; }));
  pair.job().rank(0).tidy();
  EXPECT_EQ(pair.device().closed, 0u);
  used.reset();
  EXPECT_TRUE(pair.table(0).closing());
  pair.job().rank(0).tidy();
  EXPECT_EQ(pair.device().closed, 1u);
}

TEST(Mapping, an_address_that_comes_again_is_another_allocation) {
  MappingPair pair;
  for (unsigned round = 0; round < 20; ++round) {
    const Memory memory = pair.allocate();
    const ExportedPlace place = pair.describe(memory);
    const MappedMemory mapped = pair.take(place);
    ASSERT_NE(mapped.address, nullptr) << round;
    EXPECT_EQ(pair.device().imported, round + 1);
    EXPECT_EQ(pair.exports().count(), 1u) << "the one before was withdrawn first, since it shared a block";
  }
  pair.job().rank(0).tidy();
  EXPECT_EQ(pair.table(0).mapped(), 1u);
}

TEST(Mapping, what_freed_memory_is_in_the_way_of_is_mapped_once_that_is_closed) {
  MappingPair pair;
  pair.describe(pair.allocate());
  pair.device().imports = Status::device_failed;  // as CUDA says while an old piece of the block is mapped
  const Memory memory = pair.allocate();
  const ExportedPlace place = pair.describe(memory);
  EXPECT_EQ(pair.take(place).address, nullptr);
  pair.device().imports = Status::ok;
  EXPECT_EQ(pair.take(place).address, nullptr) << "nothing has changed: the device is not asked for every message";
  pair.job().rank(0).tidy();
  EXPECT_NE(pair.take(place).address, nullptr);
}

TEST(Mapping, the_network_gets_nothing_in_the_block_of_what_was_freed_and_is_mapped_still) {
  MappingPair pair;
  const auto network_may_map = [&](const Memory& memory) {
    const std::uint64_t buffer_id = pair.engine(1).device().query(memory.data())->buffer_id;
    pair.job().run(20);
    return pair.exports().network_may_map(memory.data(), buffer_id);
  };
  std::optional<Memory> first = pair.allocate();
  EXPECT_TRUE(network_may_map(*first)) << "nothing was ever mapped";
  std::optional<MappedMemory> used = pair.take(pair.describe(*first));
  EXPECT_TRUE(network_may_map(*first)) << "it is itself that is mapped";
  first.reset();
  const Memory second = pair.allocate();
  EXPECT_FALSE(network_may_map(second)) << "the peer has not heard that the first one was freed";
  EXPECT_FALSE(network_may_map(second));
  pair.job().rank(0).tidy();
  EXPECT_FALSE(network_may_map(second)) << "the peer uses it still";
  used.reset();
  EXPECT_FALSE(network_may_map(second)) << "it is not unmapped in progress";
  pair.job().rank(0).tidy();
  EXPECT_TRUE(network_may_map(second));
  EXPECT_EQ(pair.table(0).mapped(), 0u);
}

TEST(Mapping, what_a_ticket_of_freed_memory_has_mapped_is_in_the_way) {
  MappingPair pair;
  std::optional<Memory> first = pair.allocate();
  const auto record = pair.engine(1).device().export_allocation(first->data());
  ASSERT_TRUE(record.ok());
  const auto address = reinterpret_cast<std::uint64_t>(first->data());
  std::optional<Result<MappedMemory>> used(pair.imports().open(*record, MappingPair::kBytes, address));
  ASSERT_TRUE(used->ok());
  first.reset();  // before its owner has heard that it is mapped
  pair.job().run(20);
  const Memory second = pair.allocate();
  const std::uint64_t buffer_id = pair.engine(1).device().query(second.data())->buffer_id;
  EXPECT_FALSE(pair.exports().network_may_map(second.data(), buffer_id));
  // Opened once more: that answers nothing.
  used.emplace(pair.imports().open(*record, MappingPair::kBytes, address));
  pair.job().run(20);
  EXPECT_FALSE(pair.exports().network_may_map(second.data(), buffer_id));
  used.reset();
  pair.job().run(20);
  pair.job().rank(0).tidy();
  pair.job().run(20);
  EXPECT_TRUE(pair.exports().network_may_map(second.data(), buffer_id));
}

TEST(Mapping, its_owner_tells_of_what_is_in_the_way_of_what_a_ticket_names) {
  MappingPair pair;
  const auto record_of = [&](const Memory& memory) {
    return *pair.engine(1).device().export_allocation(memory.data());
  };
  const auto open = [&](const Memory& memory) {
    const auto address = reinterpret_cast<std::uint64_t>(memory.data());
    return pair.imports().open(record_of(memory), MappingPair::kBytes, address).status();
  };
  std::optional<Memory> first = pair.allocate();
  const std::uint64_t first_id = record_of(*first).buffer_id;
  ASSERT_EQ(open(*first), Status::ok);
  pair.job().run(20);
  EXPECT_TRUE(pair.imports().has_heard(first_id));
  first.reset();
  const Memory second = pair.allocate();
  const std::uint64_t buffer_id = record_of(second).buffer_id;
  pair.device().imports = Status::in_progress;  // as CUDA says while an old piece of the block is mapped
  EXPECT_EQ(open(second), Status::in_progress) << "its owner may know of something in the way";
  EXPECT_TRUE(pair.imports().is_hindered(buffer_id));
  EXPECT_FALSE(pair.imports().has_heard(buffer_id));
  pair.job().run(20);
  EXPECT_TRUE(pair.imports().has_heard(buffer_id));
  EXPECT_EQ(open(second), Status::in_progress) << "the first one is to be unmapped";
  pair.job().rank(0).tidy();
  EXPECT_EQ(open(second), Status::not_supported) << "nothing of ours is in the way: it is the network library's";
  EXPECT_FALSE(pair.imports().is_hindered(buffer_id));
  pair.device().imports = Status::ok;
  EXPECT_EQ(pair.table(0).mapped(), 0u);
}

TEST(Mapping, what_a_peer_never_mapped_is_in_nobodys_way) {
  MappingPair pair;
  pair.device().imports = Status::not_supported;
  pair.describe(pair.allocate());
  const Memory second = pair.allocate();
  const std::uint64_t buffer_id = pair.engine(1).device().query(second.data())->buffer_id;
  EXPECT_FALSE(pair.exports().network_may_map(second.data(), buffer_id)) << "it may have";
  pair.job().run(20);
  EXPECT_TRUE(pair.exports().network_may_map(second.data(), buffer_id));
}

TEST(Mapping, of_a_peer_that_is_gone_nothing_is_in_the_way) {
  MappingPair pair;
  pair.describe(pair.allocate());
  const Memory second = pair.allocate();
  const std::uint64_t buffer_id = pair.engine(1).device().query(second.data())->buffer_id;
  Exports& exports = pair.exports();
  EXPECT_FALSE(exports.network_may_map(second.data(), buffer_id));
  pair.engine(1).peers().suspect(pair.engine(1).peers().connect(Rank{0}));
  pair.job().rank(1).worker().progress();
  EXPECT_TRUE(exports.network_may_map(second.data(), buffer_id));
}

TEST(Mapping, an_answer_that_nobody_waits_for_changes_nothing) {
  MappingPair pair;
  const Memory memory = pair.allocate();
  const ExportedPlace place = pair.describe(memory);
  for (unsigned time = 0; time < 3; ++time) pair.exports().on_closed(place.buffer_id, 7);
  pair.imports().on_withdrawn(place.buffer_id);  // which its owner did not say
  pair.job().rank(0).tidy();
  pair.job().run(20);
  EXPECT_EQ(pair.exports().count(), 1u);
  EXPECT_EQ(pair.table(0).mapped(), 0u);
}

TEST(Mapping, what_cannot_be_mapped_is_tried_once) {
  MappingPair pair;
  pair.device().imports = Status::not_supported;
  const Memory memory = pair.allocate();
  const ExportedPlace place = pair.describe(memory);
  pair.device().imports = Status::ok;
  EXPECT_EQ(pair.take(place).address, nullptr);
  EXPECT_EQ(pair.device().imported, 0u);
}

TEST(Mapping, what_nobody_uses_makes_room_for_others_and_is_mapped_again_when_it_is_needed) {
  MappingPair pair;
  MappingTable table(pair.engine(0), {.mapped = 2, .idle = std::chrono::milliseconds(0)});
  Imports& imports = table.with(pair.engine(0).peers().connect(Rank{1})).imports;
  const auto take = [&](const ExportedPlace& place) {
    return imports.take(place.buffer_id, place.offset, 1, Reach::device);
  };
  std::vector<Memory> memory;
  std::vector<ExportedPlace> places;
  for (int i = 0; i < 3; ++i) {
    memory.push_back(pair.allocate());
    places.push_back(pair.describe(memory.back()));
  }
  const MappedMemory used = take(places[0]);
  ASSERT_NE(used.address, nullptr);
  EXPECT_EQ(take(places[2]).address, nullptr) << "no room yet";
  pair.job().rank(0).tidy();
  EXPECT_NE(take(places[2]).address, nullptr);
  EXPECT_EQ(table.mapped(), 2u);
  EXPECT_EQ(take(places[0]).address, used.address) << "what is used stays";
  EXPECT_EQ(take(places[1]).address, nullptr);
  pair.job().rank(0).tidy();
  EXPECT_NE(take(places[1]).address, nullptr);
  EXPECT_EQ(table.mapped(), 2u);
}

TEST(Mapping, if_all_are_used_further_ones_go_other_ways) {
  MappingPair pair;
  MappingTable table(pair.engine(0), {.mapped = 1, .idle = std::chrono::milliseconds(0)});
  Imports& imports = table.with(pair.engine(0).peers().connect(Rank{1})).imports;
  const Memory first = pair.allocate(), second = pair.allocate();
  const ExportedPlace place = pair.describe(first), other = pair.describe(second);
  const MappedMemory used = imports.take(place.buffer_id, 0, 1, Reach::device);
  ASSERT_NE(used.address, nullptr);
  for (int time = 0; time < 3; ++time) {
    EXPECT_EQ(imports.take(other.buffer_id, 0, 1, Reach::device).address, nullptr);
    pair.job().rank(0).tidy();
  }
  EXPECT_EQ(table.mapped(), 1u);
}

TEST(Mapping, of_a_peer_that_is_gone_nothing_stays_but_what_is_used) {
  MappingPair pair;
  const Memory first = pair.allocate(), second = pair.allocate();
  const ExportedPlace place = pair.describe(first);
  pair.describe(second);
  std::optional<MappedMemory> used(pair.take(place));
  ASSERT_NE(used->address, nullptr);
  pair.engine(0).peers().suspect(pair.engine(0).peers().connect(Rank{1}));
  for (int round = 0; round < 10; ++round) pair.job().rank(0).worker().progress();
  EXPECT_EQ(pair.device().closed, 0u) << "within progress";
  pair.job().rank(0).tidy();
  EXPECT_EQ(pair.device().closed, 1u);
  used.reset();
  pair.job().rank(0).tidy();
  EXPECT_EQ(pair.device().closed, 2u);
  EXPECT_EQ(pair.table(0).mapped(), 0u);
}

TEST(Mapping, host_memory_is_unmapped_at_once) {
  MappingPair pair(GpuChoice::none);
  {
    const Memory memory = pair.job().rank(1).allocate(MemoryKind::host, 1 << 20);
    const ExportedPlace place = pair.describe(memory);
    EXPECT_NE(pair.imports().take(place.buffer_id, 0, 1, Reach::cpu).address, nullptr);
  }
  EXPECT_TRUE(pair.run_until([&] { return pair.table(0).mapped() == 0; }));
}

// Segments
// -----------------------------------------------------------------------------------------------------------------

TEST(Mapping, host_memory_is_registered_once_a_device_is_to_reach_it_and_then_unmapped_outside_progress) {
  MappingPair pair;
  Memory memory = pair.job().rank(1).allocate(MemoryKind::host, 65536);
  const ExportedPlace place = pair.describe(memory);
  port::Device& device = pair.engine(0).device();
  const std::byte* const here = pair.imports().take(place.buffer_id, place.offset, 65536, Reach::cpu).address;
  ASSERT_NE(here, nullptr);
  EXPECT_FALSE(device.query(here).ok()) << "to a CPU it need not be";
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(pair.take(place, 65536).address, here);
    const Result<port::PointerInfo> info = device.query(here);
    ASSERT_TRUE(info.ok());
    EXPECT_EQ(info->kind, MemoryKind::pinned);
  }
  memory = Memory();
  ASSERT_TRUE(pair.run_until([&] { return pair.table(0).closing(); }));
  EXPECT_EQ(pair.device().closed, 0u) << "within progress";
  EXPECT_TRUE(device.query(here).ok());
  pair.job().rank(0).tidy();
  EXPECT_EQ(pair.device().closed, 1u);
  EXPECT_FALSE(device.query(here).ok());
  EXPECT_EQ(pair.table(0).mapped(), 0u);
}

TEST(Mapping, a_segment_and_messages_share_one_mapping) {
  MappingPair pair;
  const Memory memory = pair.allocate();
  Segment segment = expose(pair.job().rank(1), memory);
  for (int time = 0; time < 3; ++time) {
    const RemoteSegment there(pair.job().rank(0), Rank{1}, segment.ticket());
    pair.job().run(10);
    const ExportedPlace place = pair.describe(memory);
    EXPECT_NE(pair.take(place).address, nullptr);
  }
  EXPECT_EQ(pair.device().imported, 1u);
  EXPECT_EQ(pair.table(0).mapped(), 1u);
}

TEST(Mapping, a_segment_that_was_freed_is_unmapped_soon_after_its_remote_end_is_closed) {
  MappingPair pair;
  std::optional<Memory> memory(pair.allocate());
  Segment segment = expose(pair.job().rank(1), *memory);
  RemoteSegment there(pair.job().rank(0), Rank{1}, segment.ticket());
  pair.job().run(10);
  EXPECT_EQ(pair.exports().count(), 1u) << "its owner knows that it is mapped";
  segment.close();
  memory.reset();
  ASSERT_TRUE(pair.run_until([&] { return pair.exports().count() == 0; }));
  pair.job().run(10);
  EXPECT_FALSE(pair.table(0).closing()) << "it is open";
  there.close();
  pair.job().rank(0).tidy();
  EXPECT_EQ(pair.device().closed, 1u);
}

TEST(Mapping, an_old_ticket_keeps_nothing_mapped) {
  MappingPair pair;
  const SegmentTicket ticket = [&] {
    const Memory memory = pair.allocate();
    Segment segment = expose(pair.job().rank(1), memory);
    return segment.ticket();
  }();
  try {
    RemoteSegment there(pair.job().rank(0), Rank{1}, ticket);
    pair.job().run(10);  // its owner says that it is no more
    there.close();
  } catch (const Error& refused) {
    EXPECT_NE(refused.status(), Status::ok) << "the emulated device knows at once";
  }
  pair.job().rank(0).tidy();
  EXPECT_EQ(pair.table(0).mapped(), 0u);
}

// What may wait for the device
// ----------------------------------------------------------------------------------------------

TEST(Mapping, a_call_that_may_wait_for_the_device_ends_a_debug_build_if_it_is_made_in_progress) {
#ifdef NDEBUG
  GTEST_SKIP() << "debug builds look";
#else
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        MappingPair pair;
        const Memory memory = pair.allocate();
        const ProgressScope scope;
        static_cast<void>(pair.engine(1).device().free(memory.data()));
      },
      "within progress");
#endif
}

}  // namespace
}  // namespace brant
