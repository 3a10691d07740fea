#include "models/halo/copies.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace brant::halo {
namespace {

/// So many units of all copies are written out one by one: 256 KB of cells of 8 bytes, as much as goes in strips.
constexpr Word kListedUnits = Word{32} * 1024;

std::size_t aligned(std::size_t bytes) noexcept { return (bytes + 255) / 256 * 256; }

/// The largest of 16, 8, 4, 2 and 1 that divides it.
Word alignment_of(Word value) noexcept { return Word{1} << std::min(std::countr_zero(value | 16), 4); }

/// Rows as long as one cell of a usual size are stores, and not calls.
void copy_row(std::byte* to, const std::byte* from, Word bytes) noexcept {
  switch (bytes) {
    case 4: std::memcpy(to, from, 4); return;
    case 8: std::memcpy(to, from, 8); return;
    case 16: std::memcpy(to, from, 16); return;
    default: std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

void copy_box(const CopyBox& box, const std::byte* from, std::byte* to) noexcept {
  const Word variables = box.bytes / (box.row_bytes * box.rows * box.planes);
  for (Word v = 0; v < variables; ++v) {
    for (Word z = 0; z < box.planes; ++z) {
      const std::byte* source = from + box.from.first + v * box.from.variable + z * box.from.plane;
      std::byte* target = to + box.to.first + v * box.to.variable + z * box.to.plane;
      for (Word y = 0; y < box.rows; ++y) {
        copy_row(target, source, box.row_bytes);
        source += box.from.row;
        target += box.to.row;
      }
    }
  }
}

}  // namespace

CopyEnd Copies::end_in_field(const FieldStrides& strides, const Box& box, std::size_t base) noexcept {
  const auto word = [](std::int64_t bytes) { return static_cast<Word>(bytes); };
  return {base, word(strides.first_of(box)), word(strides.row), word(strides.plane), word(strides.variable)};
}

CopyEnd Copies::end_packed(const FieldStrides& strides, const Box& box, std::size_t base, std::size_t offset) noexcept {
  const auto wide = [&](std::size_t d) { return static_cast<Word>(box.high[d] - box.low[d]); };
  const Word row = wide(0) * strides.cell;
  const Word plane = row * wide(1);
  return {base, offset, row, plane, plane * wide(2)};
}

void Copies::add(const CopyEnd& from, const CopyEnd& to, const Box& box, std::size_t cell_bytes,
                 std::size_t variables) {
  CopyBox copy{from, to};
  copy.row_bytes = static_cast<Word>(box.high[0] - box.low[0]) * cell_bytes;
  copy.rows = static_cast<Word>(box.high[1] - box.low[1]);
  copy.planes = static_cast<Word>(box.high[2] - box.low[2]);
  copy.bytes = copy.row_bytes * copy.rows * copy.planes * variables;
  Word all = copy.row_bytes;
  for (const CopyEnd* end : {&from, &to}) all |= end->first | end->row | end->plane | end->variable;
  copy.unit = alignment_of(all);
  for (Word begin = 0; begin < copy.bytes; begin += kChunkBytes) chunks_.push_back({boxes_.size(), begin});
  boxes_.push_back(copy);
}

void Copies::add_within(const Layout& layout, const Link& link) {
  const auto to = static_cast<std::size_t>(link.message.to - layout.first_block());
  for (const Region& region : link.message.regions) {
    add(end_in_field(layout.strides_of(link.message.from), region.from, link.field),
        end_in_field(layout.strides_of(link.message.to), region.to, to), region.from, layout.options().cell_bytes,
        layout.options().variables);
  }
}

Phase Copies::end_phase() noexcept {
  const Phase phase{ended_, chunks_.size()};
  ended_ = phase.last;
  return phase;
}

void Copies::run_on_cpu(const Phase& phase, std::span<std::byte* const> bases) const noexcept {
  for (Word chunk = phase.first; chunk < phase.last; ++chunk) {
    if (chunks_[chunk].begin != 0) continue;  // a box at a time
    const CopyBox& box = boxes_[chunks_[chunk].box];
    copy_box(box, bases[box.from.base], bases[box.to.base]);
  }
}

void Copies::upload(Runtime& runtime, std::size_t bases) {
  kernel_ = load_copy_kernel(runtime.device());
  const std::size_t boxes_bytes = aligned(boxes_.size() * sizeof(CopyBox));
  const std::size_t chunks_bytes = aligned(chunks_.size() * sizeof(CopyChunk));
  const std::size_t bases_bytes = aligned(bases * sizeof(Word));
  on_device_ =
      runtime.allocate(runtime.device_kind(), std::max<std::size_t>(boxes_bytes + chunks_bytes + bases_bytes, 1));
  new_bases_ = runtime.allocate(MemoryKind::pinned, std::max<std::size_t>(bases_bytes, 1));
  auto* const start = static_cast<std::byte*>(on_device_.data());
  if (!boxes_.empty()) {
    runtime.copy(on_device_.part(0, boxes_.size() * sizeof(CopyBox)), std::span<const CopyBox>(boxes_));
    runtime.copy(on_device_.part(boxes_bytes, chunks_.size() * sizeof(CopyChunk)), std::span<const CopyChunk>(chunks_));
  }
  table_.boxes = reinterpret_cast<const CopyBox*>(start);
  table_.chunks = reinterpret_cast<const CopyChunk*>(start + boxes_bytes);
  table_.bases = reinterpret_cast<const Word*>(start + boxes_bytes + chunks_bytes);
  bases_.clear();
  bases_.reserve(bases);
}

Status Copies::set_bases(std::span<std::byte* const> bases, Stream& stream) noexcept {
  if (has_bases(bases)) return Status::ok;
  Word all = 16;
  for (std::size_t i = 0; i < bases.size(); ++i) {
    const auto address = reinterpret_cast<Word>(bases[i]);
    new_bases_.as<Word>()[i] = address;
    all |= address;
  }
  table_.unit_max = alignment_of(all);
  const std::size_t bytes = bases.size() * sizeof(Word);
  const auto offset = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(table_.bases) -
                                               static_cast<const std::byte*>(on_device_.data()));
  const Status status = stream.copy(on_device_.part(offset, bytes), new_bases_.part(0, bytes));
  if (status == Status::ok) bases_.assign(bases.begin(), bases.end());
  return status;
}

Word Copies::bytes_in(const CopyChunk& chunk) const noexcept {
  return std::min(kChunkBytes, boxes_[chunk.box].bytes - chunk.begin);
}

Word Copies::bytes_of(const Phase& phase) const noexcept {
  Word bytes = 0;
  for (Word chunk = phase.first; chunk < phase.last; ++chunk) bytes += bytes_in(chunks_[chunk]);
  return bytes;
}

CopyRange Copies::range_of(const Phase& phase) const noexcept {
  if (table_.units == nullptr) return {phase.first, phase.last};
  return {units_before_[phase.first], units_before_[phase.last], 1};
}

void Copies::write_units(const CopyChunk& chunk, Word unit, std::span<std::byte* const> bases,
                         CopyUnit* to) const noexcept {
  const CopyBox& box = boxes_[chunk.box];
  const auto address = [&](const CopyEnd& end, Word x, Word y, Word z, Word variable) {
    return reinterpret_cast<Word>(bases[end.base]) + end.first + x + y * end.row + z * end.plane +
           variable * end.variable;
  };
  const Word bytes = bytes_in(chunk);
  for (Word done = 0; done < bytes; done += unit) {
    const Word at = chunk.begin + done;
    const Word row = at / box.row_bytes;
    const Word plane = row / box.rows;
    const Word variable = plane / box.planes;
    const Word x = at % box.row_bytes;
    const Word y = row % box.rows;
    const Word z = plane % box.planes;
    *to++ = {address(box.from, x, y, z, variable), address(box.to, x, y, z, variable)};
  }
}

std::vector<CopyUnit> Copies::units_of(const Phase& phase, Word unit, std::span<std::byte* const> bases) const {
  std::vector<CopyUnit> units(bytes_of(phase) / unit);
  CopyUnit* to = units.data();
  for (Word number = phase.first; number < phase.last; ++number) {
    const CopyChunk& chunk = chunks_[number];
    write_units(chunk, unit, bases, to);
    to += bytes_in(chunk) / unit;
  }
  return units;
}

void Copies::list_units(Runtime& runtime, std::size_t turns) {
  table_.units = nullptr;
  constexpr Word kUnitMin = 8;  // smaller ones are not worth an entry, where others would be larger
  Word unit = table_.unit_max;
  Word largest = 1;
  for (const CopyBox& box : boxes_) {
    unit = std::min(unit, box.unit);
    largest = std::max(largest, std::min(box.unit, table_.unit_max));
  }
  if (unit < kUnitMin && largest > unit) return;
  units_before_.assign(1, 0);
  for (const CopyChunk& chunk : chunks_) units_before_.push_back(units_before_.back() + bytes_in(chunk) / unit);
  const Word each = units_before_.back();
  if (each == 0 || each > kListedUnits) return;
  std::vector<CopyUnit> units(turns * each);
  const std::size_t bases_of_turn = bases_.size() / turns;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    const auto bases = std::span(bases_).subspan(turn * bases_of_turn, bases_of_turn);
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      write_units(chunks_[i], unit, bases, &units[turn * each + units_before_[i]]);
    }
  }
  const std::size_t bytes = units.size() * sizeof(CopyUnit);
  if (units_.bytes() < bytes) units_ = runtime.allocate(runtime.device_kind(), bytes);
  runtime.copy(units_.part(0, bytes), std::span<const CopyUnit>(units));
  table_.units = units_.as<const CopyUnit>();
  table_.unit_bytes = unit;
}

Status Copies::launch(const Phase& phase, Stream& stream) const noexcept {
  if (phase.empty()) return Status::ok;
  LaunchShape shape;
  shape.grid[0] = static_cast<unsigned>(std::min<Word>(phase.last - phase.first, 1u << 20));
  shape.block[0] = kChunkThreads;
  return kernel_->launch(shape, stream, table_, phase.first, phase.last);
}

}  // namespace brant::halo
