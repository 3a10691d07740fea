#include "ops/coll/call_words.h"

#include <fmt/format.h>

namespace brant::coll {
namespace {

constexpr unsigned kTypeShift = 48;
constexpr unsigned kKindShift = 56;
constexpr unsigned kOpShift = 24;

bool has_root(CollectiveKind kind) noexcept {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce || kind == CollectiveKind::gather ||
         kind == CollectiveKind::scatter;
}

}  // namespace

CallWords words_of(CollectiveKind kind, DataType type, ReduceOp op, std::uint64_t bytes, std::int32_t root) noexcept {
  const std::uint64_t high = std::uint64_t{static_cast<std::uint8_t>(kind)} << kKindShift |
                             std::uint64_t{static_cast<std::uint8_t>(type)} << kTypeShift | (bytes & kBytesMax);
  const std::uint32_t low = std::uint32_t{static_cast<std::uint8_t>(op)} << kOpShift |
                            (has_root(kind) ? static_cast<std::uint32_t>(root) & kRootMax : 0);
  return {high, low};
}

CollectiveKind kind_of(const CallWords& words) noexcept {
  return static_cast<CollectiveKind>(words.high >> kKindShift);
}
DataType type_of(const CallWords& words) noexcept { return static_cast<DataType>(words.high >> kTypeShift & 0xff); }
ReduceOp op_of(const CallWords& words) noexcept { return static_cast<ReduceOp>(words.low >> kOpShift); }
std::uint64_t bytes_of(const CallWords& words) noexcept { return words.high & kBytesMax; }
std::int32_t root_of(const CallWords& words) noexcept { return static_cast<std::int32_t>(words.low & kRootMax); }

std::string describe(const CallWords& words) {
  const CollectiveKind kind = kind_of(words);
  if (kind == CollectiveKind::barrier) return "barrier";
  std::string text = fmt::format("{} of {} bytes", collective_name(kind), bytes_of(words));
  if (op_of(words) == ReduceOp::user)
    text += " (a function of the program)";
  else if (op_of(words) != ReduceOp::none)
    text += fmt::format(" ({}, {})", data_type_name(type_of(words)), reduce_op_name(op_of(words)));
  if (has_root(kind)) {
    const bool gives = kind == CollectiveKind::broadcast || kind == CollectiveKind::scatter;
    text += fmt::format(" {} rank {}", gives ? "from" : "to", root_of(words));
  }
  return text;
}

}  // namespace brant::coll
