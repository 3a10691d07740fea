#include "litmus.h"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>

namespace brant::bench {
namespace {

constexpr std::size_t kImages = 16;  ///< Values that follow one another; a stale word has the one before.

std::uint64_t image_of(std::size_t round) { return round % kImages; }

constexpr std::size_t kControls = 20;

/// The flags of this test, among those of both processes.
struct Words {
  std::uint64_t& arrived;  ///< Rank 1 polls it: the bytes of this round are there.
  std::uint64_t& fetched;  ///< Rank 1 polls it: its own courier has fetched them.
  std::uint64_t& checked;  ///< Rank 0 polls it.
  std::uint64_t& stale;

  explicit Words(Shared& shared)
      : arrived(shared.flags[1][0]), fetched(shared.flags[1][16]), checked(shared.flags[0][0]), stale(shared.stale) {}
};

void order_rounds(const Litmus& litmus, Pair& pair, Courier& courier, Buffers& buffers) {
  Words words(pair.shared());
  void* to = litmus.landing == Litmus::Landing::host ? static_cast<void*>(pair.shared().landing) : buffers.remote;
  const auto bytes = static_cast<std::uint32_t>(litmus.bytes);
  for (std::size_t round = 1; round <= litmus.rounds; ++round) {
    const auto value = static_cast<std::uint32_t>(round);
    const std::byte* from = buffers.source + image_of(round) * litmus.bytes;
    if (litmus.flag == Litmus::Flag::with_the_bytes) {
      post(courier, {to, from, bytes, value, &words.arrived});
      wait_for(courier, words.checked, round);
    } else {
      post(courier, {nullptr, nullptr, 0, value, &words.arrived});
      wait_for(courier, words.checked, round);
      post(courier, {to, from, bytes, value, nullptr});
    }
    // The next round's bytes must not meet this one's.
    while (courier.done() < courier.posted()) courier.poll();
  }
}

bool has_stale_word(const Shared& shared, const Litmus& litmus, std::size_t round) {
  bool stale = false;
  for (std::size_t i = 0; i < litmus.bytes / sizeof(std::uint64_t); ++i) {
    const std::uint64_t& word = shared.landing[i];
    stale |= std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_relaxed) != image_of(round);
  }
  return stale;
}

void check_rounds(const Litmus& litmus, Pair& pair, Courier& courier, Buffers& buffers) {
  Words words(pair.shared());
  const auto bytes = static_cast<std::uint32_t>(litmus.bytes);
  for (std::size_t round = 1; round <= litmus.rounds; ++round) {
    wait_for(courier, words.arrived, round);
    if (litmus.landing == Litmus::Landing::device) {
      post(courier, {pair.shared().landing, buffers.landing, bytes, static_cast<std::uint32_t>(round), &words.fetched});
      wait_for(courier, words.fetched, round);
    }
    if (has_stale_word(pair.shared(), litmus, round)) ++words.stale;
    std::atomic_ref(words.checked).store(round, std::memory_order_release);
  }
}

}  // namespace

Litmus::Found Litmus::run(Pair& pair, Courier& courier, Buffers& buffers) const {
  const bool orders = pair.rank() == 0;
  Shared& shared = pair.shared();
  if (orders) {
    for (std::size_t image = 0; image < kImages; ++image) buffers.fill_source(image * bytes, bytes, image);
    std::fill_n(&shared.landing[0], bytes / sizeof(std::uint64_t), image_of(0));
    for (auto& flags : shared.flags) std::fill_n(&flags[0], Shared::kFlags, 0);
    shared.stale = 0;
  }
  buffers.poison(bytes);
  pair.meet();
  orders ? order_rounds(*this, pair, courier, buffers) : check_rounds(*this, pair, courier, buffers);
  pair.meet();
  const Found found{rounds, static_cast<std::size_t>(shared.stale)};
  pair.meet();  // the next run counts anew
  return found;
}

bool measure_litmus(Pair& pair, Courier& courier, Buffers& buffers, std::size_t rounds, Rows& rows) {
  bool good = true;
  for (const auto landing : {Litmus::Landing::host, Litmus::Landing::device}) {
    for (const std::size_t bytes : {std::size_t{32} << 10, std::size_t{256} << 10, std::size_t{1} << 20}) {
      const char* name = landing == Litmus::Landing::host ? "host" : "device";
      const auto found = Litmus{landing, Litmus::Flag::with_the_bytes, bytes, rounds}.run(pair, courier, buffers);
      const auto control = Litmus{landing, Litmus::Flag::too_soon, bytes, kControls}.run(pair, courier, buffers);
      rows.litmus(name, bytes, found.rounds, found.stale);
      rows.litmus(fmt::format("{} control", name), bytes, control.rounds, control.stale);
      good &= found.stale == 0 && control.stale == control.rounds;
    }
  }
  return good;
}

}  // namespace brant::bench
