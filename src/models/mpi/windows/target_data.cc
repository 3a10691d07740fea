#include "models/mpi/windows/target_data.h"

#include <algorithm>

#include "models/mpi/types/walk.h"
#include "models/mpi/windows/window.h"

namespace brant::mpi {

namespace {

__extension__ using Wide = __int128;

/// Collects the runs that a walk meets.
class RunCollector {
 public:
  void run(std::int64_t at, std::uint64_t bytes, std::uint16_t /*basic*/) {
    if (!found.empty() && found.back().offset + static_cast<std::int64_t>(found.back().bytes) == at) {
      found.back().bytes += bytes;
    } else {
      found.push_back({at, bytes});
    }
  }
  void loop(std::int64_t at, const Layout& item, std::uint64_t count, std::int64_t stride) {
    for (std::uint64_t i = 0; i < count; ++i) run(at + static_cast<std::int64_t>(i) * stride, item.bytes, 0);
  }
  void runs(std::int64_t base, const Layout& list, std::size_t first, std::size_t last) {
    std::uint64_t start = first == 0 ? 0 : list.runs[first - 1].end;
    for (std::size_t i = first; i < last; ++i) {
      run(base + list.runs[i].offset, list.runs[i].end - start, 0);
      start = list.runs[i].end;
    }
  }

  std::vector<WindowRun> found;
};

}  // namespace

TargetData::TargetData(Window& window, int member, MPI_Aint displacement, MPI_Count count, MPI_Datatype type)
    : member_(member), count_(count), type_(&datatype_of(type)) {
  require(count >= 0, MPI_ERR_COUNT, "the target's count {} is negative", count);
  require(type_->committed(), MPI_ERR_TYPE, "the target's datatype {} is not committed: call MPI_Type_commit first",
          type_->name());
  const Count bytes = type_->bytes_of(count);
  require(bytes >= 0, MPI_ERR_COUNT, "{} elements of {} bytes are more than memory has", count, type_->size());
  bytes_ = static_cast<std::size_t>(bytes);
  if (window.is_dynamic()) {
    offset_ = displacement;
    return;
  }
  const WindowPart& part = window.part(member);
  require(displacement >= 0, MPI_ERR_DISP, "the displacement {} is negative", displacement);
  const Wide offset = Wide{displacement} * part.disp_unit;
  const Wide further = Wide{std::max<Count>(count, 1) - 1} * type_->extent();
  const Wide first = offset + type_->true_lb() + std::min<Wide>(further, 0);
  const Wide end = offset + type_->true_lb() + type_->true_extent() + std::max<Wide>(further, 0);
  require(bytes_ == 0 || (first >= 0 && end <= part.bytes), MPI_ERR_RMA_RANGE,
          "{} elements of {} at displacement {} (of {} bytes each) are outside the {} bytes of rank {}", count,
          type_->name(), displacement, part.disp_unit, part.bytes, member);
  if (bytes_ != 0) offset_ = static_cast<std::int64_t>(offset);
}

std::vector<WindowRun> TargetData::runs(std::size_t begin, std::size_t end) const {
  if (contiguous()) return {{offset_ + static_cast<std::int64_t>(begin), end - begin}};
  RunCollector collector;
  const Placed& placed = type_->layout();
  walk_loop(*placed.layout, offset_ + placed.offset, type_->extent(), begin, end, collector);
  return std::move(collector.found);
}

/// An element begins where so many whole elements have been packed before.
std::vector<WindowRun> TargetData::elements(std::size_t begin, std::size_t end, std::size_t element_bytes) const {
  std::vector<WindowRun> found;
  std::size_t position = begin;
  for (const WindowRun& run : runs(begin, end)) {
    const std::size_t behind = position % element_bytes;
    for (std::size_t at = behind == 0 ? 0 : element_bytes - behind; at < run.bytes; at += element_bytes)
      found.push_back({run.offset + static_cast<std::int64_t>(at), element_bytes});
    position += run.bytes;
  }
  return found;
}

}  // namespace brant::mpi
