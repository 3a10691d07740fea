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
};
inline constexpr unsigned kCollectiveKindCount = 12;

/// "allreduce", "reduce_scatter".
BRANT_API std::string_view collective_name(CollectiveKind kind) noexcept;

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
  /// Of an allgather of blocks of different sizes: bytes of each member's block, the same at all; they lie one behind
  /// the other in `out`. Stays the caller's until the call has ended. Empty: all are as long as `in`.
  std::span<const std::uint64_t> block_bytes;
};
static_assert(std::is_trivially_copyable_v<Collective>);

/// Nobody goes on before all have come.
inline Collective barrier() noexcept {
  return {.kind = CollectiveKind::barrier, .in = {}, .out = {}, .block_bytes = {}};
}

/// `data` of the root, for all.
inline Collective broadcast(Buffer data, int root) noexcept {
  return {.kind = CollectiveKind::broadcast, .root = root, .in = {}, .out = data, .block_bytes = {}};
}

/// Element by element the combination of what all give, for all. `in` and `out` have the same size and may be the same
/// memory.
inline Collective allreduce(ConstBuffer in, Buffer out, DataType type, ReduceOp op) noexcept {
  return {.kind = CollectiveKind::allreduce, .type = type, .op = op, .in = in, .out = out, .block_bytes = {}};
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
  return {
      .kind = CollectiveKind::reduce, .type = type, .op = op, .root = root, .in = in, .out = out, .block_bytes = {}};
}

/// The blocks of all, by rank, for all: `out` has as many times the size of `in` as the team has members. In place:
/// `in` is this member's block of `out`, or null.
inline Collective allgather(ConstBuffer in, Buffer out) noexcept {
  return {.kind = CollectiveKind::allgather, .in = in, .out = out, .block_bytes = {}};
}
/// With blocks of different sizes, which all know.
inline Collective allgather(ConstBuffer in, Buffer out, std::span<const std::uint64_t> block_bytes) noexcept {
  return {.kind = CollectiveKind::allgather, .in = in, .out = out, .block_bytes = block_bytes};
}

/// Of the combination of what all give, which has as many blocks as the team has members, each gets its own: `in` has
/// as many times the size of `out`. In place: `in` null, and `out` as long as all blocks, the first of which is the
/// result.
inline Collective reduce_scatter(ConstBuffer in, Buffer out, DataType type, ReduceOp op) noexcept {
  return {.kind = CollectiveKind::reduce_scatter, .type = type, .op = op, .in = in, .out = out, .block_bytes = {}};
}

/// Block j of member i becomes block i of member j. `in` and `out` have the same size, a multiple of the number of
/// members, and are not the same memory.
inline Collective alltoall(ConstBuffer in, Buffer out) noexcept {
  return {.kind = CollectiveKind::alltoall, .in = in, .out = out, .block_bytes = {}};
}

/// The blocks of all, by rank, for the root alone. `out` counts at the root only.
inline Collective gather(ConstBuffer in, Buffer out, int root) noexcept {
  return {.kind = CollectiveKind::gather, .root = root, .in = in, .out = out, .block_bytes = {}};
}

/// Block i of the root's `in` for member i. `in` counts at the root only.
inline Collective scatter(ConstBuffer in, Buffer out, int root) noexcept {
  return {.kind = CollectiveKind::scatter, .root = root, .in = in, .out = out, .block_bytes = {}};
}

/// The combination of what this member and those of lower ranks give.
inline Collective scan(ConstBuffer in, Buffer out, DataType type, ReduceOp op) noexcept {
  return {.kind = CollectiveKind::scan, .type = type, .op = op, .in = in, .out = out, .block_bytes = {}};
}
/// The same without this member. At rank 0 `out` is left as it is.
inline Collective exscan(ConstBuffer in, Buffer out, DataType type, ReduceOp op) noexcept {
  return {.kind = CollectiveKind::exscan, .type = type, .op = op, .in = in, .out = out, .block_bytes = {}};
}

}  // namespace brant
