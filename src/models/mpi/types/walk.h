#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "models/mpi/types/layout.h"

namespace brant::mpi {

/// Walks along the bytes `begin` to `end` of what a layout packs to, in their order. `base`: where the layout lies, an
/// offset or an address. What it meets it tells to `visit`:
///
///     void run(std::int64_t at, std::uint64_t bytes, std::uint16_t basic);
///     void loop(std::int64_t at, const Layout& run, std::uint64_t count, std::int64_t stride);  // whole runs
///     void runs(std::int64_t base, const Layout& list, std::size_t first, std::size_t last);    // whole runs
///
/// It starts at any byte at the cost of a division for each loop and a search in each list above it, and remembers
/// nothing: who goes on later gives the position.
template <typename Visit>
void walk(const Layout& layout, std::int64_t base, std::uint64_t begin, std::uint64_t end, Visit& visit);

/// The same of `item`, as often as `end` says, at distances of `stride`.
template <typename Visit>
void walk_loop(const Layout& item, std::int64_t base, std::int64_t stride, std::uint64_t begin, std::uint64_t end,
               Visit& visit) {
  std::uint64_t index = begin == 0 ? 0 : begin / item.bytes;
  const auto at = [&] { return base + static_cast<std::int64_t>(index) * stride; };
  if (const std::uint64_t within = begin - index * item.bytes; within != 0) {
    const std::uint64_t some = std::min(item.bytes - within, end - begin);
    walk(item, at(), within, within + some, visit);
    begin += some;
    ++index;
  }
  const std::uint64_t whole = (end - begin) / item.bytes;
  if (item.form == Layout::Form::run) {
    if (whole != 0) visit.loop(at(), item, whole, stride);
    index += whole;
  } else {
    for (std::uint64_t i = 0; i < whole; ++i, ++index) walk(item, at(), 0, item.bytes, visit);
  }
  begin += whole * item.bytes;
  if (begin < end) walk(item, at(), 0, end - begin, visit);
}

/// The first entry of a list of which bytes come behind `position`.
template <typename Entry>
std::size_t entry_at(const std::vector<Entry>& list, std::uint64_t position) {
  if (position == 0) return 0;
  const auto found = std::upper_bound(list.begin(), list.end(), position,
                                      [](std::uint64_t at, const Entry& entry) { return at < entry.end; });
  return static_cast<std::size_t>(found - list.begin());
}

template <typename Visit>
void walk_runs(const Layout& list, std::int64_t base, std::uint64_t begin, std::uint64_t end, Visit& visit) {
  std::size_t index = entry_at(list.runs, begin);
  const std::uint64_t start = index == 0 ? 0 : list.runs[index - 1].end;
  if (begin != start || end < list.runs[index].end) {
    const Layout::Run& run = list.runs[index];
    const std::uint64_t some = std::min(run.end, end) - begin;
    visit.run(base + run.offset + static_cast<std::int64_t>(begin - start), some, list.basic);
    begin += some;
    ++index;
  }
  if (begin >= end) return;
  std::size_t last = end == list.bytes ? list.runs.size() : entry_at(list.runs, end);
  if (last > index) visit.runs(base, list, index, last);
  begin = last == 0 ? 0 : list.runs[last - 1].end;
  if (begin < end) visit.run(base + list.runs[last].offset, end - begin, list.basic);
}

template <typename Visit>
void walk_list(const Layout& list, std::int64_t base, std::uint64_t begin, std::uint64_t end, Visit& visit) {
  std::size_t index = entry_at(list.items, begin);
  std::uint64_t start = index == 0 ? 0 : list.items[index - 1].end;
  for (; begin < end; ++index) {
    const Layout::Item& item = list.items[index];
    const std::uint64_t to = std::min(item.end, end);
    walk(*item.layout, base + item.offset, begin - start, to - start, visit);
    begin = start = to;
  }
}

template <typename Visit>
void walk(const Layout& layout, std::int64_t base, std::uint64_t begin, std::uint64_t end, Visit& visit) {
  switch (layout.form) {
    case Layout::Form::run: return visit.run(base + static_cast<std::int64_t>(begin), end - begin, layout.basic);
    case Layout::Form::loop: return walk_loop(*layout.item, base, layout.stride, begin, end, visit);
    case Layout::Form::runs: return walk_runs(layout, base, begin, end, visit);
    case Layout::Form::items: return walk_list(layout, base, begin, end, visit);
  }
}

}  // namespace brant::mpi
