#include "models/mpi/types/layout.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace brant::mpi {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();

/// Of `count` items at distances of `stride`: widens the bounds of one to those of all. False: it does not fit.
bool widen(std::int64_t& low, std::int64_t& high, std::uint64_t count, std::int64_t stride) {
  std::int64_t reach = 0;
  if (count > kMost || __builtin_mul_overflow(static_cast<std::int64_t>(count - 1), stride, &reach)) return false;
  return !__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
}

bool fits(const Placed& placed) {
  std::int64_t bound = 0;
  return !__builtin_add_overflow(placed.offset, placed.layout->low, &bound) &&
         !__builtin_add_overflow(placed.offset, placed.layout->high, &bound);
}

MaybePlaced placed_if_fits(std::int64_t offset, LayoutRef layout) {
  Placed placed{offset, std::move(layout)};
  if (!fits(placed)) return std::nullopt;
  return placed;
}

/// Two loops of which the outer one goes on where the inner one ends are one.
bool continues(const Layout& item, std::int64_t stride) {
  std::int64_t length = 0;
  return item.form == Layout::Form::loop &&
         !__builtin_mul_overflow(static_cast<std::int64_t>(item.count), item.stride, &length) && length == stride;
}

}  // namespace

std::uint64_t Placed::bytes() const noexcept { return layout == nullptr ? 0 : layout->bytes; }
std::int64_t Placed::low() const noexcept { return layout == nullptr ? offset : offset + layout->low; }
std::int64_t Placed::high() const noexcept { return layout == nullptr ? offset : offset + layout->high; }

MaybePlaced make_run(std::uint64_t bytes, std::uint16_t basic) {
  if (bytes == 0) return Placed{};
  if (bytes > kMost) return std::nullopt;
  auto run = std::make_shared<Layout>();
  run->basic = basic;
  run->bytes = bytes;
  run->high = static_cast<std::int64_t>(bytes);
  return Placed{0, std::move(run)};
}

MaybePlaced make_loop(const Placed& item, std::uint64_t count, std::int64_t stride) {
  if (count == 0 || item.empty()) return Placed{};
  if (count == 1) return item;
  const Layout& inner = *item.layout;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(inner.bytes, count, &bytes) || bytes > kMost) return std::nullopt;
  if (inner.form == Layout::Form::run && stride == static_cast<std::int64_t>(inner.bytes)) {
    MaybePlaced run = make_run(bytes, inner.basic);
    return placed_if_fits(item.offset, std::move(run->layout));
  }
  if (continues(inner, stride)) return make_loop({item.offset, inner.item}, inner.count * count, inner.stride);
  if (inner.depth >= kDepthMost) return std::nullopt;
  auto loop = std::make_shared<Layout>();
  loop->form = Layout::Form::loop;
  loop->basic = inner.basic;
  loop->depth = inner.depth + 1;
  loop->bytes = bytes;
  loop->low = inner.low;
  loop->high = inner.high;
  if (!widen(loop->low, loop->high, count, stride)) return std::nullopt;
  loop->pieces = inner.pieces * count;  // at most `bytes`
  loop->count = count;
  loop->stride = stride;
  loop->item = item.layout;
  return placed_if_fits(item.offset, std::move(loop));
}

MaybePlaced moved(const Placed& item, std::int64_t offset) {
  if (item.empty()) return Placed{};
  std::int64_t sum = 0;
  if (__builtin_add_overflow(item.offset, offset, &sum)) return std::nullopt;
  return placed_if_fits(sum, item.layout);
}

void LayoutList::add(const Placed& item) {
  if (item.empty()) return;
  const Layout& layout = *item.layout;
  if (layout.form == Layout::Form::run) return add_run(item.offset, layout.bytes, layout.basic);
  entries_.push_back({item.offset, layout.bytes, layout.basic, item.layout});
}

void LayoutList::add_run(std::int64_t offset, std::uint64_t bytes, std::uint16_t basic) {
  if (join_ == Join::all) basic = 0;
  if (!entries_.empty()) {
    Entry& last = entries_.back();
    if (last.layout == nullptr && last.basic == basic &&
        last.offset + static_cast<std::int64_t>(last.bytes) == offset) {
      last.bytes += bytes;
      return;
    }
  }
  entries_.push_back({offset, bytes, basic, nullptr});
}

bool LayoutList::all_runs() const {
  return std::all_of(entries_.begin(), entries_.end(), [this](const Entry& entry) {
    return entry.layout == nullptr && entry.basic == entries_.front().basic;
  });
}

/// The distance of entries that are all alike, if they are.
std::optional<std::int64_t> LayoutList::regular_stride() const {
  std::int64_t stride = 0;
  if (__builtin_sub_overflow(entries_[1].offset, entries_[0].offset, &stride)) return std::nullopt;
  for (std::size_t i = 1; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const Entry& before = entries_[i - 1];
    std::int64_t next = 0;
    if (entry.layout != before.layout || entry.bytes != before.bytes || entry.basic != before.basic ||
        __builtin_add_overflow(before.offset, stride, &next) || next != entry.offset) {
      return std::nullopt;
    }
  }
  return stride;
}

MaybePlaced LayoutList::as_runs() {
  auto list = std::make_shared<Layout>();
  list->form = Layout::Form::runs;
  list->basic = entries_.front().basic;
  list->depth = 1;
  list->pieces = entries_.size();
  list->runs.reserve(entries_.size());
  list->equal_run = entries_.front().bytes;
  const std::int64_t first = entries_.front().offset;
  for (const Entry& entry : entries_) {
    std::int64_t offset = 0;
    std::int64_t end = 0;
    if (__builtin_sub_overflow(entry.offset, first, &offset) || entry.bytes > kMost - list->bytes ||
        __builtin_add_overflow(offset, static_cast<std::int64_t>(entry.bytes), &end)) {
      return std::nullopt;
    }
    list->bytes += entry.bytes;
    list->low = std::min(list->low, offset);
    list->high = std::max(list->high, end);
    list->runs.push_back({offset, list->bytes});
    if (entry.bytes != list->equal_run) list->equal_run = 0;
  }
  return placed_if_fits(first, std::move(list));
}

MaybePlaced LayoutList::as_items() {
  auto list = std::make_shared<Layout>();
  list->form = Layout::Form::items;
  list->pieces = 0;
  list->items.reserve(entries_.size());
  const std::int64_t first = entries_.front().offset;
  for (Entry& entry : entries_) {
    if (entry.layout == nullptr) entry.layout = make_run(entry.bytes, entry.basic)->layout;
    const Layout& layout = *entry.layout;
    std::int64_t offset = 0;
    std::int64_t low = 0;
    std::int64_t high = 0;
    if (__builtin_sub_overflow(entry.offset, first, &offset) || layout.bytes > kMost - list->bytes ||
        __builtin_add_overflow(offset, layout.low, &low) || __builtin_add_overflow(offset, layout.high, &high)) {
      return std::nullopt;
    }
    list->depth = std::max(list->depth, layout.depth + 1);
    list->bytes += layout.bytes;
    list->pieces += layout.pieces;
    list->low = std::min(list->low, low);
    list->high = std::max(list->high, high);
    list->items.push_back({offset, list->bytes, std::move(entry.layout)});
  }
  if (list->depth > kDepthMost) return std::nullopt;
  return placed_if_fits(first, std::move(list));
}

MaybePlaced LayoutList::finish() {
  if (entries_.empty()) return Placed{};
  Entry& first = entries_.front();
  if (first.layout == nullptr && entries_.size() == 1) {
    MaybePlaced run = make_run(first.bytes, first.basic);
    return placed_if_fits(first.offset, std::move(run->layout));
  }
  if (entries_.size() == 1) return Placed{first.offset, std::move(first.layout)};
  if (const std::optional<std::int64_t> stride = regular_stride()) {
    const LayoutRef item = first.layout != nullptr ? first.layout : make_run(first.bytes, first.basic)->layout;
    return make_loop({first.offset, item}, entries_.size(), *stride);
  }
  return all_runs() ? as_runs() : as_items();
}

}  // namespace brant::mpi
