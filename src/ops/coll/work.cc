#include "ops/coll/work.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace brant::coll {
namespace {

using Kind = CollectiveKind;

constexpr std::size_t kUserElementMax = 4096;

bool reduces(Kind kind) noexcept {
  return kind == Kind::reduce || kind == Kind::allreduce || kind == Kind::reduce_scatter || kind == Kind::scan ||
         kind == Kind::exscan;
}

/// Two ranges that share bytes, and are not one and the same place.
bool overlap(const void* a, std::uint64_t a_bytes, const void* b, std::uint64_t b_bytes) noexcept {
  const auto from = reinterpret_cast<std::uintptr_t>(a), to = reinterpret_cast<std::uintptr_t>(b);
  return a_bytes != 0 && b_bytes != 0 && from < to + b_bytes && to < from + a_bytes;
}

std::uint64_t sum_of(std::span<const std::uint64_t> sizes) noexcept {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
}

/// The arguments of one call, looked at piece by piece.
class Arguments {
 public:
  Arguments(const Collective& call, const Members& members, Work& work, std::string& why) noexcept
      : call_(call), members_(members), work_(work), why_(why) {}

  Status look() {
    work_.kind = call_.kind;
    work_.in = static_cast<const std::byte*>(call_.in.data);
    work_.out = static_cast<std::byte*>(call_.out.data);
    work_.result_bytes = call_.out.bytes;
    work_.in_bytes = call_.in.bytes;
    work_.out_bytes = call_.out.bytes;
    if (call_.kind == Kind::none || static_cast<unsigned>(call_.kind) >= kCollectiveKindCount)
      return refuse("it says no collective: make it by barrier(), allreduce() and their like");
    if (call_.root < 0 || call_.root >= static_cast<int>(members_.count))
      return refuse(fmt::format("rank {} is not in the team of {}", call_.root, members_.count));
    work_.root = static_cast<unsigned>(call_.root);
    if (const Status status = look_at_elements(); status != Status::ok) return status;
    if (const Status status = look_at_sizes(); status != Status::ok) return status;
    if (const std::uint64_t odd = odd_size(); odd != 0)
      return refuse(fmt::format("{} bytes are no whole number of elements of {} bytes", odd, work_.element));
    if (work_.bytes > kBytesMax / members_.count) return refuse(fmt::format("{} bytes are too many", work_.bytes));
    // Of blocks that differ all know the sum, or nobody does.
    std::uint64_t told = work_.uneven ? 0 : work_.bytes;
    if (!work_.uneven && !work_.blocks.empty()) told = sum_of(work_.blocks);
    if (!work_.uneven && !work_.in_blocks.empty()) told = sum_of(work_.in_blocks);
    work_.words = words_of(work_.kind, call_.type, call_.op, told, call_.root);
    return Status::ok;
  }

 private:
  Status refuse(std::string text) {
    why_ = fmt::format("{}: {}", collective_name(call_.kind), text);
    return Status::invalid_argument;
  }

  Status look_at_elements() {
    if (!reduces(call_.kind)) return Status::ok;
    if (!can_reduce(call_.type, call_.op)) {
      return refuse(
          fmt::format("elements of type {} have no {}", data_type_name(call_.type), reduce_op_name(call_.op)));
    }
    const bool prefix = call_.kind == Kind::scan || call_.kind == Kind::exscan;
    if (prefix && call_.op == ReduceOp::average)
      return refuse("there is no average of the first members: take the sum");
    if (call_.op == ReduceOp::user) {
      const UserReduce* user = call_.user;
      if (user == nullptr || user->combine == nullptr || user->element_bytes == 0 ||
          user->element_bytes > kUserElementMax) {
        return refuse(fmt::format("a function of the program needs a UserReduce with elements of 1 to {} bytes",
                                  kUserElementMax));
      }
    }
    work_.folding = {call_.type, call_.op, call_.user};
    work_.element = work_.folding.element_bytes();
    return Status::ok;
  }

  Status look_at_sizes() {
    switch (call_.kind) {
      case Kind::barrier: work_.in_bytes = work_.out_bytes = work_.result_bytes = 0; return Status::ok;
      case Kind::broadcast:
        work_.in = work_.out;
        work_.in_bytes = 0;
        return vector_of(call_.out.bytes);
      case Kind::allreduce:
      case Kind::scan:
      case Kind::exscan: return vector_in_and_out();
      case Kind::reduce: return self_is_root() ? vector_in_and_out() : vector_given();
      case Kind::allgather: return gathered();
      case Kind::gather: return gathered_at_root();
      case Kind::scatter: return scattered();
      case Kind::reduce_scatter: return reduced_and_scattered();
      case Kind::alltoall: return exchanged();
      case Kind::neighbour_allgather:
      case Kind::neighbour_alltoall: return exchanged_with_neighbours();
      case Kind::none: break;
    }
    return Status::invalid_argument;
  }

  /// A size that is no whole number of elements; 0: there is none.
  [[nodiscard]] std::uint64_t odd_size() const noexcept {
    if (work_.bytes % work_.element != 0) return work_.bytes;
    for (const std::uint64_t bytes : work_.in_blocks) {
      if (bytes % work_.element != 0) return bytes;
    }
    return 0;
  }

  [[nodiscard]] bool is_of_neighbours() const noexcept {
    return call_.kind == Kind::neighbour_allgather || call_.kind == Kind::neighbour_alltoall;
  }

  /// Takes over a list of sizes, `count` of them, which `all` bytes in `what` are the sum of.
  Status sizes_of(std::span<const std::uint64_t> given, std::size_t count, std::uint64_t all, const char* what,
                  std::span<const std::uint64_t>& sizes) {
    if (given.size() != count)
      return refuse(
          fmt::format("{} sizes of blocks for {} {}", given.size(), count, is_of_neighbours() ? "edges" : "members"));
    std::uint64_t sum = 0;
    for (const std::uint64_t bytes : given) {
      if (bytes > kBytesMax / members_.count) return refuse(fmt::format("a block of {} bytes is too large", bytes));
      work_.bytes = std::max(work_.bytes, bytes);
      sum += bytes;
    }
    if (sum != all) return refuse(fmt::format("the blocks have {} bytes in all, and `{}` has {}", sum, what, all));
    sizes = given;
    return Status::ok;
  }

  [[nodiscard]] bool self_is_root() const noexcept { return work_.is_root(members_); }

  Status vector_of(std::uint64_t bytes) {
    work_.bytes = bytes;
    return Status::ok;
  }
  Status vector_given() {
    work_.out = nullptr;
    work_.out_bytes = work_.result_bytes = 0;
    return vector_of(call_.in.bytes);
  }
  /// As many bytes go in as come out, or the call is in place.
  Status vector_in_and_out() {
    if (call_.in.data == nullptr && call_.in.bytes == 0)
      work_.in = work_.out;
    else if (call_.in.bytes != call_.out.bytes)
      return refuse(fmt::format("{} bytes go in and {} come out: they are as many", call_.in.bytes, call_.out.bytes));
    if (work_.in != work_.out && overlap(work_.in, call_.out.bytes, work_.out, call_.out.bytes))
      return refuse("`in` and `out` overlap: give memory apart, or the same for both");
    return vector_of(call_.out.bytes);
  }

  /// One block of each member goes into `out`, by rank.
  Status gathered() {
    const std::uint64_t count = members_.count;
    if (call_.block_bytes.empty()) {
      if (call_.out.bytes % count != 0)
        return refuse(fmt::format("{} bytes are not one block for each of {} members", call_.out.bytes, count));
      work_.bytes = call_.out.bytes / count;
    } else if (const Status status = sizes_of(call_.block_bytes, members_.count, call_.out.bytes, "out", work_.blocks);
               status != Status::ok) {
      return status;
    }
    std::byte* const own = work_.out == nullptr ? nullptr : work_.out + work_.block_offset(members_.self);
    if (call_.in.data == nullptr && call_.in.bytes == 0)
      work_.in = own;
    else if (call_.in.bytes != work_.block_bytes(members_.self))
      return refuse(fmt::format("`in` has {} bytes, and the block of this member {}", call_.in.bytes,
                                work_.block_bytes(members_.self)));
    if (work_.in != own && overlap(work_.in, call_.in.bytes, work_.out, call_.out.bytes))
      return refuse("`in` lies in `out`, and not where the block of this member belongs");
    return Status::ok;
  }

  /// The root alone may know that blocks differ: `uneven` says it at all.
  Status gathered_at_root() {
    work_.uneven = call_.uneven;
    if (!self_is_root()) return vector_given();
    return gathered();
  }

  Status scattered() {
    const std::uint64_t count = members_.count;
    work_.uneven = call_.uneven;
    if (!self_is_root()) {
      work_.in = nullptr;
      work_.in_bytes = 0;
      return vector_of(call_.out.bytes);
    }
    const bool in_place = call_.out.data == nullptr && call_.out.bytes == 0;
    if (!call_.in_block_bytes.empty()) {
      const Status status = sizes_of(call_.in_block_bytes, members_.count, call_.in.bytes, "in", work_.in_blocks);
      if (status != Status::ok) return status;
    } else if (call_.in.bytes % count != 0) {
      return refuse(fmt::format("{} bytes are not one block for each of {} members", call_.in.bytes, count));
    } else {
      work_.bytes = call_.in.bytes / count;
    }
    if (!in_place && call_.out.bytes != work_.in_block_bytes(members_.self)) {
      return refuse(fmt::format("`out` has {} bytes, and the block of this member {}", call_.out.bytes,
                                work_.in_block_bytes(members_.self)));
    }
    if (overlap(work_.in, call_.in.bytes, work_.out, call_.out.bytes))
      return refuse("`out` lies in `in`: leave it null where the root's own block may stay where it is");
    return Status::ok;
  }

  Status reduced_and_scattered() {
    const std::uint64_t count = members_.count;
    const bool in_place = call_.in.data == nullptr && call_.in.bytes == 0;
    const std::uint64_t all = in_place ? call_.out.bytes : call_.in.bytes;
    if (!call_.in_block_bytes.empty()) {
      const Status status =
          sizes_of(call_.in_block_bytes, members_.count, all, in_place ? "out" : "in", work_.in_blocks);
      if (status != Status::ok) return status;
    } else if (all % count != 0) {
      return refuse(fmt::format("{} bytes are not one block for each of {} members", all, count));
    } else {
      work_.bytes = all / count;
    }
    work_.result_bytes = work_.in_block_bytes(members_.self);
    if (in_place) {
      work_.in = work_.out;
      return Status::ok;
    }
    if (call_.out.bytes != work_.result_bytes) {
      return refuse(
          fmt::format("`out` has {} bytes, and the block of this member {}", call_.out.bytes, work_.result_bytes));
    }
    if (overlap(work_.in, call_.in.bytes, work_.out, call_.out.bytes))
      return refuse("`in` and `out` overlap: give memory apart, or leave `in` null");
    return Status::ok;
  }

  Status exchanged() {
    const std::uint64_t count = members_.count;
    const bool in_place = call_.in.data == nullptr && call_.in.bytes == 0;
    const std::uint64_t in_bytes = in_place ? call_.out.bytes : call_.in.bytes;
    work_.uneven = call_.uneven;
    if (in_place) work_.in = work_.out;
    if (call_.uneven) {
      const auto given = in_place ? call_.block_bytes : call_.in_block_bytes;
      Status status = sizes_of(given, members_.count, in_bytes, "in", work_.in_blocks);
      if (status == Status::ok)
        status = sizes_of(call_.block_bytes, members_.count, call_.out.bytes, "out", work_.blocks);
      if (status != Status::ok) return status;
      if (work_.in_blocks[members_.self] != work_.blocks[members_.self])
        return refuse("the block that this member gives itself has two sizes");
    } else if (in_bytes != call_.out.bytes || in_bytes % count != 0) {
      return refuse(fmt::format("{} bytes go in and {} come out: they are as many, one block for each of {} members",
                                in_bytes, call_.out.bytes, count));
    } else {
      work_.bytes = in_bytes / count;
    }
    if (work_.in != work_.out && overlap(work_.in, in_bytes, work_.out, call_.out.bytes))
      return refuse("`in` and `out` overlap: give memory apart, or leave `in` null");
    return Status::ok;
  }

  Status exchanged_with_neighbours() {
    const Neighbours& edges = call_.neighbours;
    for (const auto list : {edges.sources, edges.destinations}) {
      for (const std::int32_t rank : list) {
        if (rank < 0 || rank >= static_cast<std::int32_t>(members_.count))
          return refuse(fmt::format("the neighbour {} is not in the team of {}", rank, members_.count));
      }
    }
    work_.neighbours = edges;
    work_.uneven = call_.uneven;
    if (overlap(work_.in, call_.in.bytes, work_.out, call_.out.bytes) || (work_.in == work_.out && call_.in.bytes != 0))
      return refuse("`in` and `out` overlap: give memory apart");
    const bool one_for_each = call_.kind == Kind::neighbour_alltoall;
    if (call_.uneven) {
      Status status = sizes_of(call_.block_bytes, edges.sources.size(), call_.out.bytes, "out", work_.blocks);
      if (status == Status::ok && one_for_each)
        status = sizes_of(call_.in_block_bytes, edges.destinations.size(), call_.in.bytes, "in", work_.in_blocks);
      if (!one_for_each) work_.bytes = std::max(work_.bytes, call_.in.bytes);
      return status;
    }
    const std::uint64_t gets = edges.sources.size(), gives = one_for_each ? edges.destinations.size() : 1;
    work_.bytes = gives != 0 ? call_.in.bytes / gives : call_.out.bytes / std::max<std::uint64_t>(gets, 1);
    if (work_.bytes * gives != call_.in.bytes || work_.bytes * gets != call_.out.bytes) {
      return refuse(
          fmt::format("{} bytes go in and {} come out, and each of {} sources and {} destinations has a block "
                      "of one size",
                      call_.in.bytes, call_.out.bytes, gets, edges.destinations.size()));
    }
    return Status::ok;
  }

  const Collective& call_;
  const Members& members_;
  Work& work_;
  std::string& why_;
};

}  // namespace

std::uint64_t Work::block_offset(std::size_t member) const noexcept {
  return blocks.empty() ? bytes * member : sum_of(blocks.first(member));
}
std::uint64_t Work::in_block_offset(std::size_t member) const noexcept {
  return in_blocks.empty() ? bytes * member : sum_of(in_blocks.first(member));
}

Status make_work(const Collective& call, const Members& members, Work& work, std::string& why) {
  return Arguments(call, members, work, why).look();
}

}  // namespace brant::coll
