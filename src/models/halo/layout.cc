#include "models/halo/layout.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include <fmt/format.h>

namespace brant::halo {
namespace {

constexpr std::size_t kRoomMax = std::size_t{1} << 20;  ///< Keeps what it is multiplied with within 64 bits.

}  // namespace

Layout::Layout(const HaloOptions& options, int rank, int ranks)
    : options_(options),
      cut_{options.grid, options.divide, options.periodic, options.ghost},
      rank_(rank),
      ranks_(ranks) {
  cut_.require_sense();
  if (options.variables == 0 || options.cell_bytes == 0) {
    throw Error(Status::invalid_argument, "halo: no variables, or cells of no bytes: give each at least one");
  }
  if (options.row_step == 0 || options.row_step > kRoomMax || options.lead > kRoomMax) {
    throw Error(
        Status::invalid_argument,
        fmt::format("halo: rows a multiple of {} cells apart, {} cells behind the begin of the field: take 1 to "
                    "{}, and at most that",
                    options.row_step, options.lead, kRoomMax));
  }
  if (cut_.blocks() % ranks != 0) {
    throw Error(Status::invalid_argument,
                fmt::format("halo: divided by {} x {} x {} the grid has {} blocks, which {} processes cannot share "
                            "equally: make it a multiple of them",
                            options.divide[0], options.divide[1], options.divide[2], cut_.blocks(), ranks));
  }
  count_ = cut_.blocks() / ranks;
  first_ = count_ * rank;
  std::vector<Message> sends;
  std::vector<Message> receives;
  for (int block = first_; block < first_ + count_; ++block) {
    BlockPlan plan = plan_block(cut_, block);
    std::move(plan.sends.begin(), plan.sends.end(), std::back_inserter(sends));
    std::move(plan.receives.begin(), plan.receives.end(), std::back_inserter(receives));
  }
  add(receives_, std::move(receives), false);
  add(sends_, std::move(sends), true);
}

void Layout::add(std::vector<Link>& links, std::vector<Message> messages, bool is_send) {
  for (Message& message : messages) {
    const int other = is_send ? message.to : message.from;
    const int own = is_send ? message.from : message.to;
    const std::size_t bytes = static_cast<std::size_t>(message.cells()) * options_.variables * options_.cell_bytes;
    links.push_back({std::move(message), rank_of(other), static_cast<std::size_t>(own - first_), bytes});
  }
  const auto key = [this](const Link& link) {
    // From the ranks above this one around to itself, which comes last.
    return std::tuple((link.rank - rank_ - 1 + ranks_) % ranks_, link.message.from, link.message.to);
  };
  std::sort(links.begin(), links.end(), [&](const Link& a, const Link& b) { return key(a) < key(b); });
}

int Layout::checked(int i) const {
  if (i >= 0 && i < count_) return i;
  throw Error(Status::invalid_argument,
              fmt::format("halo: this process has no block {} of its own, it has {}", i, count_));
}

Cells Layout::array_of(int i) const { return cut_.array_of(first_ + checked(i)); }

std::size_t Layout::field_bytes(int i) const {
  const auto array = static_cast<std::size_t>(strides_of(first_ + checked(i)).variable);
  return options_.lead * options_.cell_bytes + array * options_.variables;
}

FieldStrides Layout::strides_of(int block) const noexcept {
  const Cells array = cut_.array_of(block);
  FieldStrides strides;
  const auto cell = static_cast<std::int64_t>(options_.cell_bytes);
  const auto step = static_cast<std::int64_t>(options_.row_step);
  strides.cell = options_.cell_bytes;
  strides.lead = static_cast<std::int64_t>(options_.lead) * cell;
  strides.row = (array[0] + step - 1) / step * step * cell;
  strides.plane = array[1] * strides.row;
  strides.variable = array[2] * strides.plane;
  return strides;
}

void Layout::require_fields(std::span<const Buffer> fields) const {
  if (fields.size() != static_cast<std::size_t>(count_)) {
    throw Error(Status::invalid_argument,
                fmt::format("halo: {} fields for the {} blocks of this process: give one each", fields.size(), count_));
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (const std::size_t needed = field_bytes(static_cast<int>(i)); fields[i].bytes < needed) {
      throw Error(Status::invalid_argument,
                  fmt::format("halo: the field of block {} has {} bytes of {} memory, and its array takes {}: see "
                              "field_bytes",
                              first_ + static_cast<int>(i), fields[i].bytes, memory_kind_name(fields[i].kind), needed));
    }
    if (fields[i].kind != fields[0].kind) {
      throw Error(Status::wrong_kind,
                  fmt::format("halo: the field of block {} is {} memory and that of block {} {}: use one kind for all",
                              first_ + static_cast<int>(i), memory_kind_name(fields[i].kind), first_,
                              memory_kind_name(fields[0].kind)));
    }
  }
}

}  // namespace brant::halo
