#include <algorithm>
#include <utility>

#include "models/mpi/shared/shared_step.h"
#include "ops/coll/fold.h"

/// Members are combined in the order of their ranks. Where the processes have that order too, each combines its own
/// members, and the team combines those results. Else the team moves what all give, and each combines it.
namespace brant::mpi {
namespace {

using coll::Folding;
using coll::Work;

/// What is moved of all members at once, where each process gets what all give.
constexpr std::uint64_t kGatheredBytes = std::uint64_t{8} << 20;

/// Elements whose combination does not depend on the order or on brackets, to the last bit.
bool is_exact(DataType type, ReduceOp op) noexcept {
  if (op == ReduceOp::user || op == ReduceOp::average) return false;
  switch (type) {
    case DataType::f16:
    case DataType::bf16:
    case DataType::f32:
    case DataType::f64:
    case DataType::f32_i32:
    case DataType::f64_i64:
    case DataType::bytes: return false;
    default: return true;
  }
}

/// What all members give together is so little that moving it costs hardly more than moving the result.
constexpr std::uint64_t kLittleBytes = std::uint64_t{64} << 10;

/// A process may combine its own members first. An average has to know of all; and with little of it, the bits do not
/// depend on who shares a process.
bool combines_apart(const SharedStep& step, const Folding& how) noexcept {
  if (step.placement.alone() || is_exact(how.type, how.op)) return true;
  if (step.call.common().bytes * step.placement.members() <= kLittleBytes) return false;
  return step.placement.in_order() && how.op != ReduceOp::average;
}

Collective with_user(Collective call, const Folding& how) noexcept {
  call.user = how.user;
  return call;
}

/// Combines `count` elements from `offset` on of what the members here give.
void fold_here(const SharedStep& step, std::uint64_t offset, std::byte* out, std::uint64_t count) {
  std::vector<const void*>& inputs = step.room.inputs;
  inputs.clear();
  for (std::size_t i = 0; i < step.here(); ++i) inputs.push_back(step.call.work(i).in + offset);
  coll::fold(step.call.common().folding, inputs, out, count);
}

// What all give, for all or one
// -------------------------------------------------------------------------------------------------------------------

/// A vector of which all give one of this size, which goes in pieces: those of all members have room at a time.
class Pieces {
 public:
  Pieces(std::uint64_t bytes, std::size_t element, unsigned members) noexcept
      : bytes_(bytes), piece_(std::max<std::uint64_t>(kGatheredBytes / members / element, 1) * element) {}

  [[nodiscard]] bool has(std::uint64_t number) const noexcept { return offset(number) < bytes_; }
  [[nodiscard]] std::uint64_t offset(std::uint64_t number) const noexcept { return number * piece_; }
  [[nodiscard]] std::uint64_t size(std::uint64_t number) const noexcept {
    return std::min(piece_, bytes_ - offset(number));
  }

 private:
  std::uint64_t bytes_;
  std::uint64_t piece_;
};

/// The pieces that the members here give, one behind the other.
ConstBuffer put_pieces_together(const SharedStep& step, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t all = bytes * step.here();
  std::byte* const give = step.room.give.take(all);
  for (std::size_t i = 0; i < step.here(); ++i) copy_block(give + i * bytes, step.call.work(i).in + offset, bytes);
  return {give, static_cast<std::size_t>(all), MemoryKind::host};
}

void size_pieces(const SharedStep& step, std::uint64_t bytes) {
  step.room.get_bytes.resize(step.placement.processes());
  for (unsigned process = 0; process < step.placement.processes(); ++process)
    step.room.get_bytes[process] = bytes * step.members_of(process);
}

/// To all processes.
Status gather_pieces(const SharedStep& step, std::uint64_t offset, std::uint64_t bytes) {
  size_pieces(step, bytes);
  const std::uint64_t all = bytes * step.placement.members();
  const Buffer get(step.room.get.take(all), static_cast<std::size_t>(all), MemoryKind::host);
  return step.ask_team(allgather(put_pieces_together(step, offset, bytes), get, step.room.get_bytes));
}

/// To the process of the root.
Status gather_pieces_at(const SharedStep& step, unsigned process, std::uint64_t offset, std::uint64_t bytes) {
  const ConstBuffer give = put_pieces_together(step, offset, bytes);
  if (process != step.placement.own()) return step.ask_team(gatherv(give, {}, {}, static_cast<int>(process)));
  size_pieces(step, bytes);
  const std::uint64_t all = bytes * step.placement.members();
  const Buffer get(step.room.get.take(all), static_cast<std::size_t>(all), MemoryKind::host);
  return step.ask_team(gatherv(give, get, step.room.get_bytes, static_cast<int>(process)));
}

/// What a member gave of pieces that lie process by process.
const std::byte* gathered(const SharedStep& step, unsigned rank, std::uint64_t bytes) noexcept {
  const std::size_t place = step.placement.before(step.placement.process_of(rank)) + step.placement.index_of(rank);
  return step.room.get.data() + place * bytes;
}

void fold_gathered(const SharedStep& step, std::byte* out, std::uint64_t bytes) {
  std::vector<const void*>& inputs = step.room.inputs;
  inputs.clear();
  for (unsigned rank = 0; rank < step.placement.members(); ++rank) inputs.push_back(gathered(step, rank, bytes));
  const Folding& how = step.call.common().folding;
  coll::fold(how, inputs, out, bytes / how.element_bytes());
}

/// Who keeps the result of a reduction in this process; null: nobody does.
std::byte* result_here(const SharedStep& step) noexcept {
  const Work& common = step.call.common();
  if (common.kind == CollectiveKind::allreduce) return common.out;
  if (!step.placement.is_here(common.root)) return nullptr;
  return step.call.work(step.placement.index_of(common.root)).out;
}

void hand_out(const SharedStep& step) noexcept {
  const Work& common = step.call.common();
  if (common.kind != CollectiveKind::allreduce) return;
  for (std::size_t i = 1; i < step.here(); ++i) copy_block(step.call.work(i).out, common.out, common.bytes);
}

Status reduce_gathered(const SharedStep& step) {
  const Work& common = step.call.common();
  const Pieces pieces(common.bytes, common.element, step.placement.members());
  const std::uint64_t number = step.call.exchanges;
  std::byte* const result = result_here(step);
  if (number != 0 && result != nullptr)
    fold_gathered(step, result + pieces.offset(number - 1), pieces.size(number - 1));
  if (pieces.has(number)) {
    if (common.kind == CollectiveKind::allreduce)
      return gather_pieces(step, pieces.offset(number), pieces.size(number));
    return gather_pieces_at(step, step.placement.process_of(common.root), pieces.offset(number), pieces.size(number));
  }
  hand_out(step);
  return Status::ok;
}

}  // namespace

Status carry_on_reduction(const SharedStep& step) {
  const Work& common = step.call.common();
  const Folding& how = common.folding;
  if (!combines_apart(step, how)) return reduce_gathered(step);
  if (step.begins()) {
    std::byte* const result = result_here(step);
    std::byte* const sum = result != nullptr ? result : step.room.give.take(common.bytes);
    fold_here(step, 0, sum, common.bytes / common.element);
    if (!step.placement.alone()) {
      const Buffer both(sum, static_cast<std::size_t>(common.bytes));
      if (common.kind == CollectiveKind::allreduce)
        return step.ask_team(with_user(allreduce(both, how.type, how.op), how));
      const auto process = static_cast<int>(step.placement.process_of(common.root));
      return step.ask_team(
          with_user(reduce_to(both, result != nullptr ? both : Buffer(), how.type, how.op, process), how));
    }
  }
  hand_out(step);
  return Status::ok;
}

// Prefixes
// -------------------------------------------------------------------------------------------------------------------

namespace {

/// What those of lower ranks have come to, member by member.
class Prefix {
 public:
  /// `before`: what members before the first one have come to; null: there are none.
  Prefix(const SharedStep& step, const std::byte* before, std::uint64_t bytes)
      : how_(step.call.common().folding),
        exclusive_(step.call.common().kind == CollectiveKind::exscan),
        bytes_(bytes),
        total_(before),
        next_(step.room.third.take(2 * rounded(bytes))),
        other_(next_ + rounded(bytes)) {}

  /// The next member gives `in`, and gets its result in `out`, which may be the same; null: it is not here.
  void add(const std::byte* in, std::byte* out) noexcept {
    const void* const inputs[] = {total_, in};
    coll::fold(how_, total_ != nullptr ? std::span(inputs) : std::span(inputs).last(1), next_,
               bytes_ / how_.element_bytes());
    const std::byte* const result = exclusive_ ? total_ : next_;
    if (out != nullptr && result != nullptr) copy_block(out, result, bytes_);
    total_ = next_;
    std::swap(next_, other_);
  }

 private:
  static std::uint64_t rounded(std::uint64_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

  const Folding& how_;
  const bool exclusive_;
  const std::uint64_t bytes_;
  const std::byte* total_;
  std::byte* next_;
  std::byte* other_;
};

/// Elements that are rounded each time they are stored: what lower ranks have come to is combined from the start.
bool is_rounded(DataType type) noexcept { return type == DataType::f16 || type == DataType::bf16; }

/// The same of those: from the last member down, since `out` may be what it gives.
void combine_from_the_start(const SharedStep& step) {
  const Work& common = step.call.common();
  const bool exclusive = common.kind == CollectiveKind::exscan;
  std::vector<const void*>& inputs = step.room.inputs;
  inputs.clear();
  for (std::size_t i = 0; i < step.here(); ++i) inputs.push_back(step.call.work(i).in);
  for (std::size_t i = step.here(); i-- > 0;) {
    const std::size_t count = exclusive ? i : i + 1;
    coll::fold(common.folding, std::span(inputs).first(count), step.call.work(i).out, common.bytes / common.element);
  }
}

Status prefixes_of_gathered(const SharedStep& step) {
  const Work& common = step.call.common();
  const Placement& placement = step.placement;
  const Pieces pieces(common.bytes, common.element, placement.members());
  const std::uint64_t number = step.call.exchanges;
  if (number != 0) {
    const std::uint64_t offset = pieces.offset(number - 1), bytes = pieces.size(number - 1);
    Prefix prefix(step, nullptr, bytes);
    for (unsigned rank = 0; rank < placement.members(); ++rank) {
      std::byte* const out = placement.is_here(rank) ? step.call.work(placement.index_of(rank)).out + offset : nullptr;
      prefix.add(gathered(step, rank, bytes), out);
    }
  }
  return pieces.has(number) ? gather_pieces(step, pieces.offset(number), pieces.size(number)) : Status::ok;
}

}  // namespace

Status carry_on_prefixes(const SharedStep& step) {
  const Work& common = step.call.common();
  const Folding& how = common.folding;
  const Placement& placement = step.placement;
  if (placement.alone() && is_rounded(how.type) && how.op != ReduceOp::user) {
    combine_from_the_start(step);
    return Status::ok;
  }
  const bool exact = is_exact(how.type, how.op);
  const bool little = common.bytes * placement.members() <= kLittleBytes;
  if (!placement.in_order() || (little && !exact && !placement.alone())) return prefixes_of_gathered(step);
  const auto size = static_cast<std::size_t>(common.bytes);
  if (step.begins() && !placement.alone()) {
    std::byte* const sum = step.room.give.take(common.bytes);
    fold_here(step, 0, sum, common.bytes / common.element);
    const Buffer before(step.room.get.take(common.bytes), size, MemoryKind::host);
    return step.ask_team(with_user(exscan(ConstBuffer(sum, size, MemoryKind::host), before, how.type, how.op), how));
  }
  Prefix prefix(step, placement.own() == 0 ? nullptr : step.room.get.data(), common.bytes);
  for (std::size_t i = 0; i < step.here(); ++i) prefix.add(step.call.work(i).in, step.call.work(i).out);
  return Status::ok;
}

// reduce_scatter
// -------------------------------------------------------------------------------------------------------------------

namespace {

/// `offsets`: where the block of each member begins in what each gives.
std::uint64_t find_blocks(const SharedStep& step) {
  const Work& common = step.call.common();
  std::vector<std::uint64_t>& offsets = step.room.offsets;
  const unsigned members = step.placement.members();
  offsets.resize(members + std::size_t{1});
  offsets[0] = 0;
  for (unsigned rank = 0; rank < members; ++rank) offsets[rank + 1] = offsets[rank] + common.in_block_bytes(rank);
  return offsets[members];
}

std::uint64_t block_of(const SharedStep& step, unsigned rank) noexcept {
  return step.room.offsets[rank + 1] - step.room.offsets[rank];
}

std::uint64_t blocks_of(const SharedStep& step, unsigned process) noexcept {
  std::uint64_t bytes = 0;
  for (const unsigned rank : step.placement.ranks_of(process)) bytes += block_of(step, rank);
  return bytes;
}

/// Each process gets of all members the blocks that its own members are to have combined.
Status exchange_blocks(const SharedStep& step, std::uint64_t all) {
  SharedRoom& room = step.room;
  const Placement& placement = step.placement;
  const std::uint64_t own = blocks_of(step, placement.own());
  room.give_bytes.resize(placement.processes());
  room.get_bytes.resize(placement.processes());
  std::byte* to = room.give.take(all * step.here());
  std::byte* const give = to;
  for (unsigned process = 0; process < placement.processes(); ++process) {
    room.give_bytes[process] = blocks_of(step, process) * step.here();
    room.get_bytes[process] = own * step.members_of(process);
    for (std::size_t i = 0; i < step.here(); ++i) {
      for (const unsigned rank : placement.ranks_of(process)) {
        copy_block(to, step.call.work(i).in + room.offsets[rank], block_of(step, rank));
        to += block_of(step, rank);
      }
    }
  }
  const std::uint64_t got = own * placement.members();
  return step.ask_team(
      alltoallv(ConstBuffer(give, static_cast<std::size_t>(all * step.here()), MemoryKind::host), room.give_bytes,
                Buffer(room.get.take(got), static_cast<std::size_t>(got), MemoryKind::host), room.get_bytes));
}

void fold_blocks(const SharedStep& step) {
  const Placement& placement = step.placement;
  const Folding& how = step.call.common().folding;
  std::vector<const void*>& inputs = step.room.inputs;
  const std::uint64_t own = blocks_of(step, placement.own());
  std::uint64_t place = 0;
  for (std::size_t i = 0; i < step.here(); ++i) {
    inputs.clear();
    for (unsigned rank = 0; rank < placement.members(); ++rank) inputs.push_back(gathered(step, rank, own) + place);
    const std::uint64_t bytes = block_of(step, placement.ranks_here()[i]);
    coll::fold(how, inputs, step.call.work(i).out, bytes / how.element_bytes());
    place += bytes;
  }
}

}  // namespace

Status carry_on_reduce_scatter(const SharedStep& step) {
  const Work& common = step.call.common();
  const Folding& how = common.folding;
  const Placement& placement = step.placement;
  SharedRoom& room = step.room;
  const std::uint64_t all = find_blocks(step);
  const bool apart = placement.in_order() && combines_apart(step, how);
  if (!apart) {
    if (step.begins()) return exchange_blocks(step, all);
    fold_blocks(step);
    return Status::ok;
  }
  const std::byte* results = room.get.data();
  if (step.begins()) {
    std::byte* const sum = room.give.take(all);
    fold_here(step, 0, sum, all / common.element);
    if (!placement.alone()) {
      room.give_bytes.resize(placement.processes());
      for (unsigned process = 0; process < placement.processes(); ++process)
        room.give_bytes[process] = blocks_of(step, process);
      const auto own = static_cast<std::size_t>(room.give_bytes[placement.own()]);
      return step.ask_team(with_user(
          reduce_scatter(ConstBuffer(sum, static_cast<std::size_t>(all), MemoryKind::host),
                         Buffer(room.get.take(own), own, MemoryKind::host), room.give_bytes, how.type, how.op),
          how));
    }
    results = sum;
  }
  for (std::size_t i = 0; i < step.here(); ++i) {
    const std::uint64_t bytes = block_of(step, placement.ranks_here()[i]);
    copy_block(step.call.work(i).out, results, bytes);
    results += bytes;
  }
  return Status::ok;
}

}  // namespace brant::mpi
