#include "models/halo/line_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/engine.h"
#include "models/halo/require.h"

namespace brant::halo {
namespace {

constexpr Word kWord = sizeof(Word);

/// Of a word of an exchange.
Word line_at(const std::byte* landing, std::size_t words, std::size_t turn, std::size_t word) noexcept {
  return reinterpret_cast<Word>(landing) + (turn * words + word) * sizeof(notify::Line);
}

void require_aligned(Word address, const Neighbour& neighbour) {
  if (address % kWord == 0) return;
  throw Error(Status::invalid_argument,
              fmt::format("halo: cells for rank {} lie at address {:#x}: let fields of cells of whole words begin at "
                          "multiples of {} bytes",
                          neighbour.rank, address, kWord));
}

}  // namespace

void clear_lines(Runtime& runtime, Memory& landing) {
  const std::vector<std::byte> zeros(landing.bytes());
  runtime.copy(landing, std::span<const std::byte>(zeros));
}

void LineTable::begin() noexcept {
  for (std::size_t turn = 0; turn < kLineTurns; ++turn) {
    sends_[turn].clear();
    takes_[turn].clear();
  }
}

void LineTable::add(const Neighbour& neighbour, const Copies& copies, const Phase& sends, const Phase& takes,
                    std::span<std::byte* const> bases) {
  const std::vector<CopyUnit> sent = copies.units_of(sends, kWord, bases);
  const std::vector<CopyUnit> taken = copies.units_of(takes, kWord, bases);
  const std::size_t words = neighbour.words_in_lines;
  const auto* const here = static_cast<const std::byte*>(neighbour.landing.data());
  for (std::size_t word = 0; word < words; ++word) {
    require_aligned(sent[word].from, neighbour);
    require_aligned(taken[word].to, neighbour);
    for (std::size_t turn = 0; turn < kLineTurns; ++turn) {
      sends_[turn].push_back({sent[word].from, line_at(neighbour.far_landing.address, words, turn, word)});
      takes_[turn].push_back({line_at(here, words, turn, word), taken[word].to});
    }
  }
}

LineSlots LineTable::upload(Runtime& runtime) {
  LineSlots slots;
  slots.count = sends_[0].size();
  if (slots.count == 0) return slots;
  std::vector<CopyUnit> all;
  for (const auto* list : {&sends_[0], &sends_[1], &takes_[0], &takes_[1]}) {
    all.insert(all.end(), list->begin(), list->end());
  }
  const std::size_t bytes = all.size() * sizeof(CopyUnit);
  if (on_device_.bytes() < bytes) on_device_ = runtime.allocate(runtime.device_kind(), bytes);
  runtime.copy(on_device_.part(0, bytes), std::span<const CopyUnit>(all));
  slots.sends = on_device_.as<const CopyUnit>();
  slots.takes = slots.sends + kLineTurns * slots.count;
  begin();
  return slots;
}

bool LineTable::have_come(Runtime& runtime, const Neighbour& neighbour, Word epoch) {
  std::vector<notify::Line> lines(neighbour.words_in_lines);
  const std::size_t bytes = lines.size() * sizeof(notify::Line);
  const auto* const from = static_cast<const std::byte*>(neighbour.landing.data()) + epoch % kLineTurns * bytes;
  runtime.copy(Buffer(lines.data(), bytes, MemoryKind::host), ConstBuffer(from, bytes, runtime.device_kind()));
  return std::ranges::all_of(lines, [&](const notify::Line& line) { return notify::reached(line.epoch, epoch); });
}

}  // namespace brant::halo
