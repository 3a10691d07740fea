#include "ops/coll/fold.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/coll/element.h"

namespace brant::coll {
namespace {

/// What is accumulated at a time, on the stack: `out` may be one of the inputs.
constexpr std::size_t kBlockBytes = 4096;

template <typename V, typename P>
struct Pair {
  V value;
  P place;
};

/// An element of memory that somebody else knows as what he likes.
template <typename T>
struct [[gnu::may_alias]] Element {
  T value;
};

/// Some elements where they are, or, if they are not aligned there, in `room`: the compiler makes vectors of aligned
/// ones only.
template <typename T>
const Element<T>* aligned(const void* input, std::uint64_t begin, std::size_t some, Element<T>* room) noexcept {
  const std::byte* from = static_cast<const std::byte*>(input) + begin * sizeof(T);
  if (reinterpret_cast<std::uintptr_t>(from) % alignof(T) == 0) return reinterpret_cast<const Element<T>*>(from);
  std::memcpy(static_cast<void*>(room), from, some * sizeof(T));
  return room;
}

/// Where combinations go: to one place or two.
struct Results {
  void* out;
  void* also;

  void store(std::uint64_t offset, const void* from, std::size_t bytes) const noexcept {
    std::memcpy(static_cast<std::byte*>(out) + offset, from, bytes);
    if (also != nullptr) std::memcpy(static_cast<std::byte*>(also) + offset, from, bytes);
  }
};

/// What a block has come to lies apart from all inputs.
template <typename Sort, typename Combine>
void fold_all(std::span<const void* const> inputs, Results results, std::uint64_t count, bool average,
              Combine combine) noexcept {
  using Acc = typename Sort::Acc;
  using Stored = Element<typename Sort::Stored>;
  constexpr std::size_t kBlock = kBlockBytes / sizeof(Acc);
  alignas(64) Acc total[kBlock];
  alignas(64) Stored room[2][kBlock];
  for (std::uint64_t begin = 0; begin < count; begin += kBlock) {
    const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, count - begin));
    const Stored* first = aligned(inputs[0], begin, some, room[0]);
    if (inputs.size() == 1) {
      for (std::size_t i = 0; i < some; ++i) total[i] = Sort::load(first[i].value);
    } else {
      const Stored* second = aligned(inputs[1], begin, some, room[1]);
      for (std::size_t i = 0; i < some; ++i)
        total[i] = combine(Sort::load(first[i].value), Sort::load(second[i].value));
    }
    for (std::size_t k = 2; k < inputs.size(); ++k) {
      const Stored* next = aligned(inputs[k], begin, some, room[0]);
      for (std::size_t i = 0; i < some; ++i) total[i] = combine(total[i], Sort::load(next[i].value));
    }
    if constexpr (std::is_arithmetic_v<Acc>) {
      if (average) {
        for (std::size_t i = 0; i < some; ++i) total[i] = divided(total[i], inputs.size());
      }
    }
    if constexpr (std::is_same_v<Acc, typename Sort::Stored>) {
      results.store(begin * sizeof(Stored), total, some * sizeof(Stored));
    } else {
      for (std::size_t i = 0; i < some; ++i) room[0][i].value = Sort::store(total[i]);
      results.store(begin * sizeof(Stored), room[0], some * sizeof(Stored));
    }
  }
}

template <typename V, typename P>
void fold_places(ReduceOp op, std::span<const void* const> inputs, Results results, std::uint64_t count) noexcept {
  using Both = Pair<V, P>;
  const bool least = op == ReduceOp::min_place;
  fold_all<Plain<Both>>(inputs, results, count, false, [least](const Both& a, const Both& b) {
    if (a.value == b.value) return b.place < a.place ? b : a;
    return (least ? b.value < a.value : a.value < b.value) ? b : a;
  });
}

void fold_by_user(const UserReduce& user, std::span<const void* const> inputs, Results results,
                  std::uint64_t count) noexcept {
  alignas(16) std::byte total[kBlockBytes];
  const std::uint64_t block = kBlockBytes / user.element_bytes;
  for (std::uint64_t begin = 0; begin < count; begin += block) {
    const std::uint64_t some = std::min(block, count - begin);
    const auto bytes = static_cast<std::size_t>(some * user.element_bytes);
    const auto at = static_cast<std::size_t>(begin * user.element_bytes);
    std::memcpy(total, static_cast<const std::byte*>(inputs[0]) + at, bytes);
    for (const void* input : inputs.subspan(1)) {
      user.combine(user.context, total, static_cast<const std::byte*>(input) + at, some);
    }
    results.store(at, total, bytes);
  }
}

}  // namespace

void fold(const Folding& how, std::span<const void* const> inputs, void* out, std::uint64_t count,
          void* also) noexcept {
  if (count == 0 || inputs.empty()) return;
  const Results results{out, also};
  if (how.op == ReduceOp::user) return fold_by_user(*how.user, inputs, results, count);
  const ReduceOp op = how.op;
  const bool numbers = visit_sort(how.type, [&](auto sort) noexcept {
    visit_op<decltype(sort)>(op, [&](auto combine) noexcept {
      fold_all<decltype(sort)>(inputs, results, count, op == ReduceOp::average, combine);
    });
  });
  if (numbers) return;
  switch (how.type) {
    case DataType::i32_i32: return fold_places<std::int32_t, std::int32_t>(op, inputs, results, count);
    case DataType::i64_i64: return fold_places<std::int64_t, std::int64_t>(op, inputs, results, count);
    case DataType::f32_i32: return fold_places<float, std::int32_t>(op, inputs, results, count);
    case DataType::f64_i64: return fold_places<double, std::int64_t>(op, inputs, results, count);
    default: return;
  }
}

}  // namespace brant::coll
