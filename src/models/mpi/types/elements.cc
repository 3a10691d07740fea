#include "models/mpi/types/elements.h"

#include <algorithm>
#include <cstdint>

#include "models/mpi/types/basic_types.h"

namespace brant::mpi {
namespace {

/// Elements in the first `bytes` of a layout, which are no more than it has. `whole`: becomes false if the last one is
/// cut.
std::uint64_t elements_of(const Layout& layout, std::uint64_t bytes, bool& whole) noexcept {
  switch (layout.form) {
    case Layout::Form::run:
    case Layout::Form::runs: {
      const std::uint64_t each = basic_type(layout.basic).bytes;
      whole = whole && bytes % each == 0;
      return bytes / each;
    }
    case Layout::Form::loop: {
      const std::uint64_t items = bytes / layout.item->bytes;
      std::uint64_t all = items == 0 ? 0 : elements_of(*layout.item, layout.item->bytes, whole) * items;
      const std::uint64_t rest = bytes - items * layout.item->bytes;
      if (rest != 0) all += elements_of(*layout.item, rest, whole);
      return all;
    }
    case Layout::Form::items: break;
  }
  std::uint64_t all = 0;
  std::uint64_t start = 0;
  for (const Layout::Item& item : layout.items) {
    if (start >= bytes) break;
    all += elements_of(*item.layout, std::min(item.end, bytes) - start, whole);
    start = item.end;
  }
  return all;
}

}  // namespace

Count items_in(const Datatype& type, Count bytes) noexcept {
  if (bytes == 0) return 0;
  if (type.size() == 0 || bytes % type.size() != 0) return kUndefined;
  return bytes / type.size();
}

Count elements_in(const Datatype& type, Count bytes) noexcept {
  if (bytes == 0) return 0;
  if (type.size() == 0) return kUndefined;
  const Layout& layout = *type.told_layout().layout;
  const auto items = static_cast<std::uint64_t>(bytes / type.size());
  const auto rest = static_cast<std::uint64_t>(bytes % type.size());
  bool whole = true;
  std::uint64_t all = items == 0 ? 0 : elements_of(layout, layout.bytes, whole) * items;
  if (rest != 0) all += elements_of(layout, rest, whole);
  return whole ? static_cast<Count>(all) : kUndefined;
}

}  // namespace brant::mpi
