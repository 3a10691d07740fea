#include <algorithm>
#include <array>

#include "brant/coll/collectives.h"
#include "brant/coll/reduce_op.h"
#include "brant/coll/way.h"

namespace brant {
namespace {

struct TypeFacts {
  std::string_view name;
  std::size_t bytes;
  enum class Sort { opaque, integer, real, boolean, pair } sort;
};
using Sort = TypeFacts::Sort;
constexpr std::array<TypeFacts, kDataTypeCount> kTypes = {{{"bytes", 1, Sort::opaque},
                                                           {"i8", 1, Sort::integer},
                                                           {"u8", 1, Sort::integer},
                                                           {"i16", 2, Sort::integer},
                                                           {"u16", 2, Sort::integer},
                                                           {"i32", 4, Sort::integer},
                                                           {"u32", 4, Sort::integer},
                                                           {"i64", 8, Sort::integer},
                                                           {"u64", 8, Sort::integer},
                                                           {"f16", 2, Sort::real},
                                                           {"bf16", 2, Sort::real},
                                                           {"f32", 4, Sort::real},
                                                           {"f64", 8, Sort::real},
                                                           {"boolean", 1, Sort::boolean},
                                                           {"i32_i32", 8, Sort::pair},
                                                           {"i64_i64", 16, Sort::pair},
                                                           {"f32_i32", 8, Sort::pair},
                                                           {"f64_i64", 16, Sort::pair}}};
constexpr std::array<std::string_view, kReduceOpCount> kOps = {
    "none",        "sum",     "prod",   "min",     "max",       "average",   "logical_and", "logical_or",
    "logical_xor", "bit_and", "bit_or", "bit_xor", "min_place", "max_place", "user"};
constexpr std::array<std::string_view, kCollectiveKindCount> kKinds = {
    "none",     "barrier", "broadcast", "reduce", "allreduce", "allgather",           "reduce_scatter",
    "alltoall", "gather",  "scatter",   "scan",   "exscan",    "neighbour_allgather", "neighbour_alltoall"};

constexpr std::array<std::string_view, kTeamWayCount> kTeamWays = {"automatic", "messages", "lines", "slots",
                                                                   "slices",    "reads",    "hosts"};
constexpr std::array<std::string_view, kStreamWayCount> kStreamWays = {"automatic", "lines", "slots", "slices"};

/// Of words that another process wrote, too.
template <std::size_t Count, typename Value>
std::string_view name_in(const std::array<std::string_view, Count>& names, Value value) noexcept {
  const auto place = static_cast<std::size_t>(value);
  return place < Count ? names[place] : "unknown";
}

template <std::size_t Count, typename Value>
bool find_name(const std::array<std::string_view, Count>& names, std::string_view name, Value& value) noexcept {
  const auto place = std::find(names.begin(), names.end(), name);
  if (place == names.end()) return false;
  value = static_cast<Value>(place - names.begin());
  return true;
}

}  // namespace

std::size_t data_type_bytes(DataType type) noexcept {
  const auto place = static_cast<std::size_t>(type);
  return place < kTypes.size() ? kTypes[place].bytes : 0;
}

std::string_view data_type_name(DataType type) noexcept {
  const auto place = static_cast<std::size_t>(type);
  return place < kTypes.size() ? kTypes[place].name : "unknown";
}

std::string_view reduce_op_name(ReduceOp op) noexcept { return name_in(kOps, op); }
std::string_view collective_name(CollectiveKind kind) noexcept { return name_in(kKinds, kind); }
std::string_view team_way_name(TeamWay way) noexcept { return name_in(kTeamWays, way); }
std::string_view stream_way_name(StreamWay way) noexcept { return name_in(kStreamWays, way); }
bool team_way_from_name(std::string_view name, TeamWay& way) noexcept { return find_name(kTeamWays, name, way); }
bool stream_way_from_name(std::string_view name, StreamWay& way) noexcept { return find_name(kStreamWays, name, way); }

bool can_reduce(DataType type, ReduceOp op) noexcept {
  if (static_cast<std::size_t>(type) >= kTypes.size()) return false;
  const Sort sort = kTypes[static_cast<std::size_t>(type)].sort;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::prod:
    case ReduceOp::average: return sort == Sort::integer || sort == Sort::real;
    case ReduceOp::min:
    case ReduceOp::max: return sort == Sort::integer || sort == Sort::real || sort == Sort::boolean;
    case ReduceOp::logical_and:
    case ReduceOp::logical_or:
    case ReduceOp::logical_xor:
    case ReduceOp::bit_and:
    case ReduceOp::bit_or:
    case ReduceOp::bit_xor: return sort == Sort::integer || sort == Sort::boolean;
    case ReduceOp::min_place:
    case ReduceOp::max_place: return sort == Sort::pair;
    case ReduceOp::user: return true;
    case ReduceOp::none: return false;
  }
  return false;
}

}  // namespace brant
