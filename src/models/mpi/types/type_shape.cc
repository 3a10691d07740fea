#include "models/mpi/types/type_shape.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/mpi/types/walk.h"

namespace brant::mpi {
namespace {

/// Runs with offsets behind the buffer; those that turn out to lie together are one. Takes no more than there is room
/// for.
class RunCollector {
 public:
  struct Run {
    std::int64_t offset;
    std::uint64_t bytes;
  };

  [[nodiscard]] const std::vector<Run>& collected() const noexcept { return runs_; }
  [[nodiscard]] bool full() const noexcept { return full_; }

  void run(std::int64_t at, std::uint64_t bytes, std::uint16_t /*basic*/) {
    if (full_) return;
    if (!runs_.empty() && runs_.back().offset + static_cast<std::int64_t>(runs_.back().bytes) == at) {
      runs_.back().bytes += bytes;
    } else if (runs_.size() < TypeShape::kRunsMost) {
      runs_.push_back({at, bytes});
    } else {
      full_ = true;
    }
  }
  void loop(std::int64_t at, const Layout& item, std::uint64_t count, std::int64_t stride) {
    for (std::uint64_t i = 0; i < count && !full_; ++i) run(at + static_cast<std::int64_t>(i) * stride, item.bytes, 0);
  }
  void runs(std::int64_t base, const Layout& list, std::size_t first, std::size_t last) {
    std::uint64_t start = first == 0 ? 0 : list.runs[first - 1].end;
    for (std::size_t i = first; i < last && !full_; ++i) {
      run(base + list.runs[i].offset, list.runs[i].end - start, 0);
      start = list.runs[i].end;
    }
  }

 private:
  std::vector<Run> runs_;
  bool full_ = false;
};

}  // namespace

bool TypeShape::be_strided(const Datatype& type, Count count) {
  const Placed& placed = type.layout();
  std::array<ShapeDim, Shape::kDimsMax + 1> dims;
  std::size_t used = dims.size();  // filled from the end, so that the innermost one comes first
  const auto outer = [&](std::uint64_t items, std::int64_t stride) {
    if (used == 0) return false;
    dims[--used] = {static_cast<std::size_t>(items), static_cast<std::ptrdiff_t>(stride)};
    return true;
  };
  if (!outer(static_cast<std::uint64_t>(count), type.extent())) return false;
  const Layout* layout = placed.layout.get();
  for (; layout->form == Layout::Form::loop; layout = layout->item.get()) {
    if (!outer(layout->count, layout->stride)) return false;
  }
  if (layout->form != Layout::Form::run) return false;
  std::int64_t before = 0;  // bytes before the first run
  for (std::size_t i = used; i < dims.size(); ++i) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(static_cast<std::int64_t>(dims[i].count - 1), dims[i].stride, &reach)) return false;
    if (reach < 0 && __builtin_sub_overflow(before, reach, &before)) return false;
  }
  Result<Shape> shape = Shape::strided(static_cast<std::size_t>(before), layout->bytes, std::span(dims).subspan(used));
  if (!shape.ok() || __builtin_sub_overflow(placed.offset, before, &first_)) return false;
  shape_ = *shape;
  return true;
}

bool TypeShape::be_list(const Datatype& type, Count begin, Count end) {
  const Placed& placed = type.layout();
  // So many bytes at a time as have some 64 K runs, so that it does not walk on and on when the list is full.
  const std::uint64_t step = placed.bytes() / placed.layout->pieces + 1 > std::uint64_t{1} << 40
                                 ? placed.bytes()
                                 : (placed.bytes() / placed.layout->pieces + 1) << 16;
  RunCollector collector;
  for (auto at = static_cast<std::uint64_t>(begin); at < static_cast<std::uint64_t>(end) && !collector.full();) {
    const std::uint64_t to = at + std::min(step, static_cast<std::uint64_t>(end) - at);
    walk_loop(*placed.layout, placed.offset, type.extent(), at, to, collector);
    at = to;
  }
  const auto lowest = std::min_element(collector.collected().begin(), collector.collected().end(),
                                       [](const auto& a, const auto& b) { return a.offset < b.offset; });
  first_ = lowest->offset;
  runs_.reserve(collector.collected().size());
  for (const auto& run : collector.collected()) {
    runs_.push_back({static_cast<std::size_t>(run.offset) - static_cast<std::size_t>(first_), run.bytes});
  }
  const Result<Shape> shape = runs_.size() == 1 ? Shape::contiguous(runs_[0].bytes) : Shape::indexed(runs_);
  if (shape.ok()) shape_ = *shape;
  return shape.ok();
}

std::optional<TypeShape> TypeShape::of(const Datatype& type, Count count, Count begin, Count end) {
  TypeShape result;
  if (begin >= end) return result;
  const bool whole = begin == 0 && end == type.bytes_of(count);
  if (whole && result.be_strided(type, count)) return result;
  if (!result.be_list(type, begin, end)) return std::nullopt;
  return result;
}

}  // namespace brant::mpi
