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
    if (work_.bytes % work_.element != 0)
      return refuse(fmt::format("{} bytes are no whole number of elements of {} bytes", work_.bytes, work_.element));
    if (work_.bytes > kBytesMax / members_.count) return refuse(fmt::format("{} bytes are too many", work_.bytes));
    const std::uint64_t told = work_.blocks.empty()
                                   ? work_.bytes
                                   : std::accumulate(work_.blocks.begin(), work_.blocks.end(), std::uint64_t{0});
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
      case Kind::gather:
        if (!self_is_root()) return vector_given();
        return gathered();
      case Kind::scatter: return scattered();
      case Kind::reduce_scatter: return reduced_and_scattered();
      case Kind::alltoall: return exchanged();
      case Kind::none: break;
    }
    return Status::invalid_argument;
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
    if (!call_.block_bytes.empty() && call_.block_bytes.size() != count)
      return refuse(fmt::format("{} sizes of blocks for {} members", call_.block_bytes.size(), count));
    work_.blocks = call_.block_bytes;
    std::uint64_t all = 0;
    if (work_.blocks.empty()) {
      if (call_.out.bytes % count != 0)
        return refuse(fmt::format("{} bytes are not one block for each of {} members", call_.out.bytes, count));
      work_.bytes = call_.out.bytes / count;
      all = call_.out.bytes;
    } else {
      for (const std::uint64_t bytes : work_.blocks) {
        if (bytes > kBytesMax / count) return refuse(fmt::format("a block of {} bytes is too large", bytes));
        work_.bytes = std::max(work_.bytes, bytes);
        all += bytes;
      }
      if (call_.out.bytes != all)
        return refuse(fmt::format("the blocks have {} bytes in all, and `out` has {}", all, call_.out.bytes));
    }
    std::byte* const own = work_.out == nullptr ? nullptr : work_.out + work_.block_offset(members_.self);
    if (call_.in.data == nullptr && call_.in.bytes == 0)
      work_.in = own;
    else if (call_.in.bytes != work_.block_bytes(members_.self))
      return refuse(fmt::format("`in` has {} bytes, and the block of this member {}", call_.in.bytes,
                                work_.block_bytes(members_.self)));
    if (work_.in != own && overlap(work_.in, call_.in.bytes, work_.out, all))
      return refuse("`in` lies in `out`, and not where the block of this member belongs");
    return Status::ok;
  }

  Status scattered() {
    const std::uint64_t count = members_.count;
    if (!self_is_root()) {
      work_.in = nullptr;
      work_.in_bytes = 0;
      return vector_of(call_.out.bytes);
    }
    const bool in_place = call_.out.data == nullptr && call_.out.bytes == 0 && call_.in.bytes % count == 0;
    const std::uint64_t block = in_place ? call_.in.bytes / count : call_.out.bytes;
    if (call_.in.bytes != block * count) {
      return refuse(
          fmt::format("`in` has {} bytes, and {} blocks of {} have {}", call_.in.bytes, count, block, block * count));
    }
    if (overlap(work_.in, call_.in.bytes, work_.out, call_.out.bytes))
      return refuse("`out` lies in `in`: leave it null where the root's own block may stay where it is");
    return vector_of(block);
  }

  Status reduced_and_scattered() {
    const std::uint64_t count = members_.count;
    if (call_.in.data == nullptr && call_.in.bytes == 0) {
      if (call_.out.bytes % count != 0)
        return refuse(fmt::format("{} bytes are not one block for each of {} members", call_.out.bytes, count));
      work_.in = work_.out;
      work_.result_bytes = call_.out.bytes / count;
      return vector_of(call_.out.bytes / count);
    }
    if (call_.in.bytes != call_.out.bytes * count) {
      return refuse(fmt::format("`in` has {} bytes, and {} blocks of {} have {}", call_.in.bytes, count,
                                call_.out.bytes, call_.out.bytes * count));
    }
    if (overlap(work_.in, call_.in.bytes, work_.out, call_.out.bytes))
      return refuse("`in` and `out` overlap: give memory apart, or leave `in` null");
    return vector_of(call_.out.bytes);
  }

  Status exchanged() {
    const std::uint64_t count = members_.count;
    if (call_.in.bytes != call_.out.bytes || call_.in.bytes % count != 0) {
      return refuse(fmt::format("{} bytes go in and {} come out: they are as many, one block for each of {} members",
                                call_.in.bytes, call_.out.bytes, count));
    }
    if (overlap(work_.in, call_.in.bytes, work_.out, call_.out.bytes))
      return refuse("`in` and `out` overlap: give memory apart");
    return vector_of(call_.in.bytes / count);
  }

  const Collective& call_;
  const Members& members_;
  Work& work_;
  std::string& why_;
};

}  // namespace

std::uint64_t Work::block_offset(unsigned member) const noexcept {
  if (blocks.empty()) return bytes * member;
  return std::accumulate(blocks.begin(), blocks.begin() + member, std::uint64_t{0});
}

Status make_work(const Collective& call, const Members& members, Work& work, std::string& why) {
  return Arguments(call, members, work, why).look();
}

}  // namespace brant::coll
