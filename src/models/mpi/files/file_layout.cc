#include "models/mpi/files/file_layout.h"

#include <algorithm>

namespace brant::mpi {

namespace {

/// Where the last run of a layout begins, if none begins before the one in front of it.
std::optional<std::int64_t> last_start(const Layout& layout) noexcept {
  switch (layout.form) {
    case Layout::Form::run: return 0;
    case Layout::Form::loop: {
      const auto within = last_start(*layout.item);
      if (!within || layout.stride < *within) return std::nullopt;
      return static_cast<std::int64_t>(layout.count - 1) * layout.stride + *within;
    }
    case Layout::Form::runs:
      if (!std::ranges::is_sorted(layout.runs, {}, &Layout::Run::offset)) return std::nullopt;
      return layout.runs.back().offset;
    case Layout::Form::items: break;
  }
  std::int64_t last = 0;
  for (const Layout::Item& item : layout.items) {
    const auto within = last_start(*item.layout);
    if (!within || item.offset < last) return std::nullopt;
    last = item.offset + *within;
  }
  return last;
}

/// The runs of a layout, whose starts ascend, do not overlap.
bool lies_apart(const Layout& layout) noexcept {
  switch (layout.form) {
    case Layout::Form::run: return true;
    case Layout::Form::loop: return layout.stride >= layout.item->high && lies_apart(*layout.item);
    case Layout::Form::runs:
      for (std::size_t i = 1; i < layout.runs.size(); ++i) {
        const std::uint64_t start = i == 1 ? 0 : layout.runs[i - 2].end;
        const auto bytes = static_cast<std::int64_t>(layout.runs[i - 1].end - start);
        if (layout.runs[i].offset - layout.runs[i - 1].offset < bytes) return false;
      }
      return true;
    case Layout::Form::items: break;
  }
  std::int64_t end = 0;
  return std::ranges::all_of(layout.items, [&](const Layout::Item& item) {
    const bool apart = item.offset >= end && lies_apart(*item.layout);
    end = item.offset + item.layout->high;
    return apart;
  });
}

/// The last entry of a list that begins before an offset above 0.
template <typename Entry>
std::size_t last_before(const std::vector<Entry>& list, std::int64_t offset) noexcept {
  const auto behind = std::ranges::lower_bound(list, offset, {}, &Entry::offset);
  return static_cast<std::size_t>(behind - list.begin()) - 1;
}

template <typename Entry>
std::uint64_t begin_of(const std::vector<Entry>& list, std::size_t index) noexcept {
  return index == 0 ? 0 : list[index - 1].end;
}

/// Bytes of a layout up to an offset, of which its last run that begins before it has the last.
std::uint64_t bytes_up_to(const Layout& layout, std::int64_t offset) noexcept;

/// The same of `count` items at distances of `stride`.
std::uint64_t bytes_of_loop(const Layout& item, std::uint64_t count, std::int64_t stride,
                            std::int64_t offset) noexcept {
  std::uint64_t index = count - 1;
  if (stride > 0) index = std::min(index, static_cast<std::uint64_t>((offset - 1) / stride));
  return index * item.bytes + bytes_up_to(item, offset - static_cast<std::int64_t>(index) * stride);
}

std::uint64_t bytes_up_to(const Layout& layout, std::int64_t offset) noexcept {
  if (offset <= 0) return 0;
  switch (layout.form) {
    case Layout::Form::run: return std::min(layout.bytes, static_cast<std::uint64_t>(offset));
    case Layout::Form::loop: return bytes_of_loop(*layout.item, layout.count, layout.stride, offset);
    case Layout::Form::runs: {
      const std::size_t index = last_before(layout.runs, offset);
      const std::uint64_t begin = begin_of(layout.runs, index);
      const auto within = static_cast<std::uint64_t>(offset - layout.runs[index].offset);
      return begin + std::min(within, layout.runs[index].end - begin);
    }
    case Layout::Form::items: break;
  }
  const std::size_t index = last_before(layout.items, offset);
  return begin_of(layout.items, index) + bytes_up_to(*layout.items[index].layout, offset - layout.items[index].offset);
}

}  // namespace

FileLayout::FileLayout(std::int64_t displacement, const Datatype& filetype) noexcept
    : displacement_(displacement), extent_(filetype.extent()), placed_(filetype.layout()) {
  in_one_run_ = !empty() && placed_.layout->form == Layout::Form::run &&
                extent_ == static_cast<std::int64_t>(placed_.layout->bytes);
}

const char* FileLayout::unfit(const Datatype& filetype) noexcept {
  const Placed& placed = filetype.layout();
  if (placed.empty()) return nullptr;
  if (placed.low() < 0) return "some of its bytes lie before its start";
  const auto last = last_start(*placed.layout);
  if (!last) return "its displacements are not in ascending order";
  if (filetype.extent() <= 0) return "its extent is not positive, so that one does not follow another";
  if (filetype.extent() < *last) return "its extent is so small that the next one would begin before its last bytes";
  return nullptr;
}

bool FileLayout::ascends() const noexcept {
  return empty() || (extent_ >= placed_.layout->high && lies_apart(*placed_.layout));
}

std::uint64_t FileLayout::run_bytes() const noexcept {
  if (empty()) return 0;
  return in_one_run_ ? std::uint64_t{INT64_MAX} : placed_.layout->bytes / placed_.layout->pieces;
}

bool FileLayout::reaches(std::uint64_t position) const noexcept {
  if (empty()) return true;
  const std::uint64_t items = position / placed_.layout->bytes + 1;
  std::int64_t reach = 0;
  return items <= static_cast<std::uint64_t>(INT64_MAX) &&
         !__builtin_mul_overflow(static_cast<std::int64_t>(items), extent_, &reach) &&
         !__builtin_add_overflow(reach, displacement_, &reach) &&
         !__builtin_add_overflow(reach, std::max<std::int64_t>(placed_.high(), 0), &reach);
}

std::int64_t FileLayout::offset_of(std::uint64_t position) const {
  std::int64_t found = displacement_;
  for_each_run(position, position + 1, [&](std::int64_t offset, std::uint64_t) { found = offset; });
  return found;
}

std::uint64_t FileLayout::position_at(std::int64_t offset) const noexcept {
  const std::int64_t behind = offset - start();
  if (empty() || behind <= 0) return 0;
  if (in_one_run_) return static_cast<std::uint64_t>(behind);
  return bytes_of_loop(*placed_.layout, UINT64_MAX, extent_, behind);
}

}  // namespace brant::mpi
