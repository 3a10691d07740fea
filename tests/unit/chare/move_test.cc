// Elements that move, within one process: what goes wrong on the way, and what other processes may have written.
#include <cstring>
#include <deque>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "models/chare/core.h"
#include "unit/chare/program.h"

namespace brant {
namespace {

using detail::Envelope;
using detail::MessageKind;
using test::JobOptions;
using test::Program;

const detail::Handover& nomad_handover();
const detail::Handover& careless_handover();

class Nomad : public Chare<Nomad, Index<1>> {
 public:
  Nomad() = default;
  explicit Nomad(int hits) : hits_(hits) {}

  void hit() { ++hits_; }
  int hits() { return hits_; }
  void land(DeviceData, int) { ++hits_; }
  Buffer post(Post<&Nomad::land>, const DeviceMeta& meta, int) {
    landings_.push_back(chares().runtime().allocate(MemoryKind::host, meta.bytes));
    return landings_.back();
  }
  Task<void> land_and_stay(DeviceData, int) {
    if (std::exchange(stays_, true)) co_return;
    co_await never_.future();
  }
  Buffer post(Post<&Nomad::land_and_stay>, const DeviceMeta& meta, int) {
    landings_.push_back(chares().runtime().allocate(MemoryKind::host, meta.bytes));
    return landings_.back();
  }
  [[nodiscard]] bool stays() const noexcept { return stays_; }
  void go(int to) { chares().core().moving().move(*this, to, nomad_handover()); }
  void go_without_luggage(int to) { chares().core().moving().move(*this, to, careless_handover()); }

  static std::vector<std::byte> pack(ChareBase& chare) {
    std::vector<std::byte> bytes(sizeof(int));
    WriteArchive write(bytes.data());
    write(static_cast<Nomad&>(chare).hits_);
    return bytes;
  }
  static std::vector<std::byte> lose(ChareBase&) { throw std::runtime_error("the luggage is lost"); }

 private:
  std::deque<Memory> landings_;
  Promise<> never_;
  bool stays_ = false;
  int hits_ = 0;
};

using ConstructorOfMoved = detail::ConstructorOf<Nomad, int>;

const detail::Handover& nomad_handover() {
  static const detail::Handover how{&ConstructorOfMoved::get(), &Nomad::pack};
  return how;
}
const detail::Handover& careless_handover() {
  static const detail::Handover how{&ConstructorOfMoved::get(), &Nomad::lose};
  return how;
}

// What another process may have written
// -------------------------------------------------------------------------------------------------------------------

std::uint64_t bad_records(Program& program, int rank) {
  return program.rank(rank).core().context().engine.counters().bad_records.read();
}

void send_forged(Chares& chares, int to, const Envelope& envelope, std::span<const std::byte> payload) {
  detail::Core& core = chares.core();
  am::Message& message = core.messages().make(envelope, payload.size());
  if (!payload.empty()) std::memcpy(message.data, payload.data(), payload.size());
  ++core.activity().wire_sent;
  ASSERT_EQ(core.context().messenger.send(Rank{to}, am::ServiceId::chare, message), Status::ok);
}

Task<void> forge_key(Chares& chares, const Placement& placement, std::uint64_t key, MessageKind kind) {
  const auto nomads = create_array<Nomad>(chares, 2, placement);
  nomads[0].call<&Nomad::go>(1);  // places exist from here on
  co_await chares.quiescence();
  Envelope envelope;
  envelope.kind = kind;
  envelope.collection = nomads.collection();
  envelope.flags = Envelope::kDirect;
  envelope.key = key;
  const std::vector<std::byte> passport(sizeof(int) + sizeof(detail::PassportTail));
  if (kind == MessageKind::moved) {
    envelope.number = detail::number_of(ConstructorOfMoved::get());
    send_forged(chares, 1, envelope, passport);
  } else {
    envelope.number = detail::number_of(detail::EntryOf<Nomad, &Nomad::hit>::get());
    send_forged(chares, 1, envelope, {});
  }
  co_await chares.until_exit();
}
TEST(Moves, keys_outside_the_array_are_no_messages_of_this_job) {
  for (const Placement& placement : {Placement::block(), Placement::round_robin()}) {
    for (const MessageKind kind : {MessageKind::call, MessageKind::moved}) {
      for (const std::uint64_t key : {std::uint64_t{2}, ~std::uint64_t{0}, std::uint64_t{1} << 32}) {
        Program program(test::ranks(2));
        testing::internal::CaptureStderr();
        program.rank(0).start(forge_key(program.rank(0), placement, key, kind));
        program.run_on(2000);
        EXPECT_NE(testing::internal::GetCapturedStderr().find("a message to an element that moved, which contradicts"),
                  std::string::npos);
        EXPECT_EQ(bad_records(program, 1), 1u) << key;
        EXPECT_NE(program.rank(1).failure().find("rank 1 lost rank 0"), std::string::npos) << program.failure();
      }
    }
  }
}

/// A call whose data waits here for its array, of whose element it then turns out that it lives elsewhere.
Task<void> forge_early_data(Chares& chares) {
  detail::Core& core = chares.core();
  const auto first = create_array<Nomad>(chares, 2, Placement::block());
  co_await chares.quiescence();
  const std::vector<std::byte> source(100'000);
  const std::uint64_t number = core.context().lanes.next_number(1);
  Envelope call;
  call.kind = MessageKind::call;
  call.collection = first.collection() + 1;
  call.number = detail::number_of(detail::EntryOf<Nomad, &Nomad::land>::get());
  call.flags = Envelope::kDirect | Envelope::kData;
  std::vector<std::byte> payload(sizeof(detail::DataHeader) + sizeof(detail::DataMeta) + sizeof(int));
  const detail::DataHeader header{number, detail::DataState::numbers, 1};
  detail::DataMeta meta{};
  meta.bytes = source.size();
  meta.kind = MemoryKind::host;
  std::memcpy(payload.data(), &header, sizeof header);
  std::memcpy(payload.data() + sizeof header, &meta, sizeof meta);
  ++core.activity().calls_sent;
  send_forged(chares, 1, call, payload);
  detail::DataOrigin* const origin = core.context().lanes.take_origin();
  origin->buffer = ConstBuffer(source.data(), source.size(), MemoryKind::host);
  core.context().lanes.send(1, origin);
  const auto second = create_array<Nomad>(chares, 2, Placement::block());
  EXPECT_EQ(second.collection(), first.collection() + 1);
  int hits = 0;
  while (hits == 0) hits = co_await second[0].ask<&Nomad::hits>();
  EXPECT_EQ(hits, 1);
}
TEST(Moves, data_that_came_before_its_array_is_taken_once) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    JobOptions options = test::ranks(2);
    options.network.seed = seed;
    options.network.delay_max = 40;
    options.network.shuffle_tags = true;
    Program program(options);
    program.rank(0).start(forge_early_data(program.rank(0)));
    EXPECT_EQ(program.run_on(20'000), 0) << program.failure();
  }
}

// Data that is coming
// -------------------------------------------------------------------------------------------------------------------

/// An array goes while data for an element of it is coming that was never inserted.
Task<void> destroy_before_data(Chares& chares) {
  const std::vector<std::byte> source(100'000);
  for (int round = 0; round < 10; ++round) {
    const auto sparse = create_sparse<Nomad>(chares, Placement::round_robin());
    Future<> nobody = sparse[1].ask<&Nomad::land>(
        device(Buffer(const_cast<std::byte*>(source.data()), source.size(), MemoryKind::host)), round);
    sparse.destroy();
    try {
      co_await nobody;
      ADD_FAILURE() << "nobody was called";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::not_found) << error.what();
    }
    co_await chares.quiescence();
  }
  EXPECT_EQ(chares.counts().data_coming, 0u);
}
TEST(Moves, data_for_what_is_destroyed_comes_and_is_dropped) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    JobOptions options = test::reordering(seed, 2);
    options.network.delay_max = 40;
    Program program(options);
    EXPECT_EQ(program.run(destroy_before_data), 0) << program.failure();
    EXPECT_EQ(program.rank(1).counts().data_coming, 0u);
  }
}

/// The element 1 of an array of two, or null.
Nomad* second_of_two(Chares& of) {
  for (const auto& [id, collection] : of.core().collections().all()) {
    if (!collection->dense() || collection->rule().total() != 2) continue;
    return static_cast<Nomad*>(collection->find(detail::ElementKey::of(Index<1>{1})));
  }
  return nullptr;
}

/// Data of two calls is coming into an element that is to move, and to be destroyed. The first call to have its data
/// begins a coroutine, with which nothing moves.
Task<void> land_twice(Chares& chares) {
  const auto nomads = create_array<Nomad>(chares, 2, Placement::block());
  co_await chares.quiescence();
  const std::vector<std::byte> source(200'000);
  const Buffer buffer(const_cast<std::byte*>(source.data()), source.size(), MemoryKind::host);
  for (int i = 0; i < 2; ++i) nomads[1].call<&Nomad::land_and_stay>(device(buffer), i);
  co_await chares.quiescence();
}
TEST(Moves, a_destroy_that_waits_is_not_forgotten_by_a_move) {
  int seen = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    JobOptions options = test::ranks(2);
    options.network.seed = seed;
    options.network.delay_max = 40;
    options.network.shuffle_tags = true;
    Program program(options);
    Chares& there = program.rank(1);
    bool destroyed = false;
    program.rank(0).start(land_twice(program.rank(0)));
    for (int round = 0; round < 100'000 && !there.ended(); ++round) {
      program.rank(0).progress();
      there.progress();
      Nomad* const nomad = second_of_two(there);
      if (nomad != nullptr && !destroyed && there.counts().data_coming == 2) {
        nomad->go(0);
        detail::post_destroy_all(there.core(), detail::Collection::of(*nomad).id());
        destroyed = true;
      } else if (nomad != nullptr && destroyed && nomad->stays() && there.counts().data_coming == 1) {
        ++seen;
        EXPECT_TRUE(detail::Collection::leaving(*nomad).destroyed) << "round " << round << " of seed " << seed;
      }
    }
    static_cast<void>(program.run_on());  // where both came at once, the destroy was faster than one of the calls
  }
  EXPECT_GT(seen, 0) << "no coroutine began while a destroy waited";
}

// A state that cannot be taken along
// -------------------------------------------------------------------------------------------------------------------

Task<void> land_and_hit(Chares& chares) {
  const auto nomads = create_array<Nomad>(chares, 2, Placement::block());
  co_await chares.quiescence();
  const std::vector<std::byte> source(200'000);
  const Buffer buffer(const_cast<std::byte*>(source.data()), source.size(), MemoryKind::host);
  nomads[1].call<&Nomad::land>(device(buffer), 0);
  for (int i = 0; i < 50; ++i) {
    nomads[1].call<&Nomad::hit>();
    co_await yield(chares.runtime().worker());
  }
  co_await chares.until_exit();
}
/// Those that came while it waited for its data are still there when the state turns out to be lost.
TEST(Moves, calls_are_not_lost_with_the_state_of_an_element) {
  int seen = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    JobOptions options = test::ranks(2);
    options.network.seed = seed;
    options.network.delay_max = 40;
    options.network.shuffle_tags = true;
    test::InProcessJob job(options);
    const am::Messenger& messenger = job.rank(1).worker().engine().service<am::Messenger>();
    const std::size_t before = messenger.lent();
    {
      ChareOptions unconnected;
      unconnected.connect = false;
      Chares here(job.rank(0), unconnected), there(job.rank(1), unconnected);
      here.connect();
      there.connect();
      here.start(land_and_hit(here));
      bool goes = false;
      for (int round = 0; round < 5'000 && !(here.ended() && there.ended()); ++round) {
        here.progress();
        there.progress();
        if (goes || there.counts().data_coming != 1) continue;
        second_of_two(there)->go_without_luggage(0);
        goes = true;
      }
      if (!goes) here.exit(0);
      for (int round = 0; round < 5'000 && !(here.ended() && there.ended()); ++round) {
        here.progress();
        there.progress();
      }
      const std::string failure = here.failure() + there.failure();
      EXPECT_EQ(failure.find("the luggage is lost") != std::string::npos, goes) << failure;
      seen += goes ? 1 : 0;
    }
    EXPECT_EQ(messenger.lent(), before) << "seed " << seed;
  }
  EXPECT_GT(seen, 0) << "no data was coming";
}

}  // namespace
}  // namespace brant
