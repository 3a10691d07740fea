#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "brant/base/buffer.h"
#include "brant/coll/reduce_op.h"

/// What members of a team do together, as plain descriptions; a `Team` carries them out:
///
///     team.run(allreduce(std::span(partial), std::span(total), ReduceOp::sum)).or_throw("no sum");   // waits
///     OpResult sum = co_await team.start(allreduce(Buffer(data, bytes), DataType::f32, ReduceOp::sum));
///
/// All members of a team call the same collectives in the same order, with the same sizes, types, ops and roots. A
/// member that calls something else is named in an error at all of them.
namespace brant {

enum class CollectiveKind : std::uint8_t {
  none = 0,
  barrier,
  broadcast,
  reduce,
  allreduce,
  allgather,
  reduce_scatter,
  alltoall,
  gather,
  scatter,
  scan,
  exscan,
  neighbour_allgather,
  neighbour_alltoall,
};
inline constexpr unsigned kCollectiveKindCount = 14;

/// "allreduce", "reduce_scatter".
BRANT_API std::string_view collective_name(CollectiveKind kind) noexcept;

/// Edges of a graph of the team's members at one of them: whom it gets blocks from, and whom it gives blocks to, by
/// ranks of the team. Each edge stands in the lists of both its ends, as often as there are edges between the two; then
/// the first of them in one list is the first in the other. A member may be its own neighbour, or have none.
struct Neighbours {
  std::span<const std::int32_t> sources;
  std::span<const std::int32_t> destinations;
};

/// One call, to be handed to a team. Trivially copyable; it owns nothing. The functions below make them.
struct Collective {
  CollectiveKind kind = CollectiveKind::none;
  DataType type = DataType::bytes;
  ReduceOp op = ReduceOp::none;
  std::int32_t root = 0;  ///< A rank of the team, where one has one.
  ConstBuffer in;         ///< What this member gives. Null: in place.
  Buffer out;             ///< What it gets.
  /// For ReduceOp::user. It stays the caller's until the call has ended.
  const UserReduce* user = nullptr;
  /// Where blocks differ: bytes of each block in `out`, by the member that gives it, and of each in `in`, by the member
  /// that gets it (of a neighbourhood: by edge); they lie one behind the other. They stay the caller's until the call
  /// has ended. Empty: all are equal.
  std::span<const std::uint64_t> block_bytes = {};
  std::span<const std::uint64_t> in_block_bytes = {};
  /// Blocks differ and not all members know all sizes. The same at all members.
  bool uneven = false;
  /// Of a neighbourhood: this member's lists. They stay the caller's until the call has ended.
  Neighbours neighbours = {};
};
static_assert(std::is_trivially_copyable_v<Collective>);

/// Nobody goes on before all have come.
inline Collective barrier() noexcept { return {.kind = CollectiveKind::barrier, .in = {}, .out = {}}; }

/// `data` of the root, for all.
inline Collective broadcast(Buffer data, int root) noexcept {
  return {.kind = CollectiveKind::broadcast, .root = root, .in = {}, .out = data};
}

/// Element by element the combination of what all give, for all. `in` and `out` have the same size and may be the same
/// memory.
inline Collective allreduce(ConstBuffer in, Buffer out, DataType type, ReduceOp op) noexcept {
  return {.kind = CollectiveKind::allreduce, .type = type, .op = op, .in = in, .out = out};
}
/// The same in place.
inline Collective allreduce(Buffer data, DataType type, ReduceOp op) noexcept {
  return allreduce(data, data, type, op);
}
/// The same of typed elements.
template <typename In, typename T>
Collective allreduce(std::span<In> in, std::span<T> out, ReduceOp op) noexcept {
  static_assert(std::is_same_v<std::remove_const_t<In>, T>, "allreduce: give and get elements of one type");
  static_assert(kDataTypeOf<T> != DataType::bytes, "allreduce: name the DataType of these elements");
  return allreduce(ConstBuffer(in, MemoryKind::host), Buffer(out, MemoryKind::host), kDataTypeOf<T>, op);
}
/// With a function of the program.
inline Collective allreduce(ConstBuffer in, Buffer out, const UserReduce& function) noexcept {
  Collective call = allreduce(in, out, DataType::bytes, ReduceOp::user);
  call.user = &function;
  return call;
}

/// The same for the root alone. `out` counts at the root only. (`brant::reduce` are the reductions of chares.)
inline Collective reduce_to(ConstBuffer in, Buffer out, DataType type, ReduceOp op, int root) noexcept {
  return {.kind = CollectiveKind::reduce, .type = type, .op = op, .root = root, .in = in, .out = out};
}

/// The blocks of all, by rank, for all: `out` has as many times the size of `in` as the team has members. In place:
/// `in` is this member's block of `out`, or null.
inline Collective allgather(ConstBuffer in, Buffer out) noexcept {
  return {.kind = CollectiveKind::allgather, .in = in, .out = out};
}
/// With blocks of different sizes, which all know.
inline Collective allgather(ConstBuffer in, Buffer out, std::span<const std::uint64_t> block_bytes) noexcept {
  return {.kind = CollectiveKind::allgather, .in = in, .out = out, .block_bytes = block_bytes};
}

/// Of the combination of what all give, which has as many blocks as the team has members, each gets its own: `in` has
/// as many times the size of `out`. In place: `in` null, and `out` as long as all blocks, the first of which is the
/// result.
inline Collective reduce_scatter(ConstBuffer in, Buffer out, DataType type, ReduceOp op) noexcept {
  return {.kind = CollectiveKind::reduce_scatter, .type = type, .op = op, .in = in, .out = out};
}

/// The same with blocks of different sizes, which all know: the sum of `block_bytes` goes in.
inline Collective reduce_scatter(ConstBuffer in, Buffer out, std::span<const std::uint64_t> block_bytes, DataType type,
                                 ReduceOp op) noexcept {
  Collective call = reduce_scatter(in, out, type, op);
  call.in_block_bytes = block_bytes;
  return call;
}

/// Block j of member i becomes block i of member j. `in` and `out` have the same size, a multiple of the number of
/// members. In place: `in` null.
inline Collective alltoall(ConstBuffer in, Buffer out) noexcept {
  return {.kind = CollectiveKind::alltoall, .in = in, .out = out};
}

/// The same with blocks of different sizes: `in_block_bytes[j]` go to member j, and `block_bytes[i]` come from member
/// i, which gives as many. In place: `in` null, and `in_block_bytes` empty; two members give each other as many bytes.
inline Collective alltoallv(ConstBuffer in, std::span<const std::uint64_t> in_block_bytes, Buffer out,
                            std::span<const std::uint64_t> block_bytes) noexcept {
  Collective call = alltoall(in, out);
  call.in_block_bytes = in_block_bytes;
  call.block_bytes = block_bytes;
  call.uneven = true;
  return call;
}

/// The blocks of all, by rank, for the root alone. `out` counts at the root only.
inline Collective gather(ConstBuffer in, Buffer out, int root) noexcept {
  return {.kind = CollectiveKind::gather, .root = root, .in = in, .out = out};
}

/// The same with blocks of different sizes, of which the root knows all: `block_bytes` counts there only. All members
/// call this one.
inline Collective gatherv(ConstBuffer in, Buffer out, std::span<const std::uint64_t> block_bytes, int root) noexcept {
  Collective call = gather(in, out, root);
  call.block_bytes = block_bytes;
  call.uneven = true;
  return call;
}

/// Block i of the root's `in` for member i. `in` counts at the root only.
inline Collective scatter(ConstBuffer in, Buffer out, int root) noexcept {
  return {.kind = CollectiveKind::scatter, .root = root, .in = in, .out = out};
}

/// The same with blocks of different sizes, of which the root knows all: `in_block_bytes` counts there only. All
/// members call this one.
inline Collective scatterv(ConstBuffer in, std::span<const std::uint64_t> in_block_bytes, Buffer out,
                           int root) noexcept {
  Collective call = scatter(in, out, root);
  call.in_block_bytes = in_block_bytes;
  call.uneven = true;
  return call;
}

/// The combination of what this member and those of lower ranks give.
inline Collective scan(ConstBuffer in, Buffer out, DataType type, ReduceOp op) noexcept {
  return {.kind = CollectiveKind::scan, .type = type, .op = op, .in = in, .out = out};
}
/// The same without this member. At rank 0 `out` is left as it is.
inline Collective exscan(ConstBuffer in, Buffer out, DataType type, ReduceOp op) noexcept {
  return {.kind = CollectiveKind::exscan, .type = type, .op = op, .in = in, .out = out};
}

/// What each neighbour gives, for those whom it gives to: `in` goes to every destination, and `out` has a block of that
/// size for each source, in the order of the list. Waits for neighbours alone. As many bytes along each edge at both
/// ends.
inline Collective neighbour_allgather(ConstBuffer in, Buffer out, Neighbours neighbours) noexcept {
  return {.kind = CollectiveKind::neighbour_allgather, .in = in, .out = out, .neighbours = neighbours};
}
/// The same with blocks of different sizes: `block_bytes`, by source.
inline Collective neighbour_allgatherv(ConstBuffer in, Buffer out, std::span<const std::uint64_t> block_bytes,
                                       Neighbours neighbours) noexcept {
  Collective call = neighbour_allgather(in, out, neighbours);
  call.block_bytes = block_bytes;
  call.uneven = true;
  return call;
}

/// Block i of `in` goes to the i-th destination, and block j of `out` comes from the j-th source. All blocks have one
/// size. Waits for neighbours alone.
inline Collective neighbour_alltoall(ConstBuffer in, Buffer out, Neighbours neighbours) noexcept {
  return {.kind = CollectiveKind::neighbour_alltoall, .in = in, .out = out, .neighbours = neighbours};
}
/// The same with blocks of different sizes: `in_block_bytes` by destination, `block_bytes` by source.
inline Collective neighbour_alltoallv(ConstBuffer in, std::span<const std::uint64_t> in_block_bytes, Buffer out,
                                      std::span<const std::uint64_t> block_bytes, Neighbours neighbours) noexcept {
  Collective call = neighbour_alltoall(in, out, neighbours);
  call.in_block_bytes = in_block_bytes;
  call.block_bytes = block_bytes;
  call.uneven = true;
  return call;
}

}  // namespace brant
