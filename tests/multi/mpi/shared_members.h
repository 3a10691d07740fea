#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "brant/core/runtime.h"
#include "models/mpi/shared/shared_team.h"
#include "multi/coll/relocated.h"
#include "ops/coll/fold.h"
#include "ops/coll/half.h"

namespace brant::test {

using Bytes = std::vector<std::byte>;
using Sizes = std::vector<std::uint64_t>;

/// What a member gives and is to get. Every process knows it of all members, and posts the calls of its own.
struct SharedMember {
  Bytes in, out, expected;
  Sizes gives, gets;
  std::vector<std::int32_t> sources, destinations;
  Collective call;

  Buffer whole_out() { return {out.data(), out.size(), MemoryKind::host}; }
  ConstBuffer whole_in() { return {in.data(), in.size(), MemoryKind::host}; }
  Neighbours edges() { return {sources, destinations}; }
  /// Memory that no size says anything of is not null: that would be a call in place.
  void reserve() {
    in.reserve(64);
    out.reserve(64);
  }
};
using SharedMemberList = std::vector<SharedMember>;

/// The members of a communicator in several processes.
class SharedMembers {
 public:
  SharedMembers(Runtime& runtime, const std::vector<unsigned>& process_of, unsigned own, Team processes)
      : team(runtime, process_of, own, std::move(processes)), placement(process_of, own), runtime_(runtime) {}

  /// Lets the members here post their calls in any order, and waits for all. Where there is a device, buffers lie in
  /// memory of all kinds.
  void carry_out(SharedMemberList& members, const std::string& what) {
    std::vector<unsigned> order(placement.ranks_here().begin(), placement.ranks_here().end());
    std::shuffle(order.begin(), order.end(), random_);
    const std::vector<std::unique_ptr<Relocated>> moved = relocate(members, order);
    std::vector<std::unique_ptr<Operation>> operations;
    operations.reserve(order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      operations.push_back(start(order[i], moved.empty() ? members[order[i]].call : moved[i]->call()));
    for (const auto& operation : operations) {
      const OpResult result = runtime_.wait_for(std::chrono::seconds(60), *operation);
      ASSERT_TRUE(result.ok()) << what << ": " << status_name(result.status) << " " << team.fault();
    }
    for (const auto& one : moved) one->bring_back();
    for (const unsigned rank : order)
      ASSERT_EQ(members[rank].out, members[rank].expected) << what << ", member " << rank << " of " << members.size();
  }
  std::unique_ptr<Operation> start(unsigned rank, const Collective& call) {
    return std::make_unique<Operation>(Moment::delivered, [&](Op& op) noexcept { return team.post(rank, call, op); });
  }

  mpi::SharedTeam team;
  const mpi::Placement placement;

 private:
  /// Empty: everything stays where it is, in host memory.
  std::vector<std::unique_ptr<Relocated>> relocate(SharedMemberList& members, const std::vector<unsigned>& order) {
    std::vector<std::unique_ptr<Relocated>> moved;
    const MemoryKind device = runtime_.device_kind();
    if (device == MemoryKind::host) return moved;
    const MemoryKind kinds[] = {MemoryKind::host, device, MemoryKind::pinned, device};
    for (const unsigned rank : order) {
      const MemoryKind in = kinds[random_() % 4], out = kinds[random_() % 4];
      moved.push_back(std::make_unique<Relocated>(runtime_, members[rank].call, in, out));
    }
    return moved;
  }

  Runtime& runtime_;
  std::mt19937 random_{7};
};

inline Bytes some_bytes(std::uint64_t seed, std::uint64_t bytes) {
  Bytes block(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < block.size(); ++i)
    block[i] = static_cast<std::byte>((seed * 2654435761u + i * 40503u) >> 7);
  return block;
}
inline void append(Bytes& to, const Bytes& from) { to.insert(to.end(), from.begin(), from.end()); }

// Elements that are combined
// -------------------------------------------------------------------------------------------------------------------

/// Products of matrices of two by two: their order matters.
struct Matrix {
  std::uint32_t a, b, c, d;
};
inline void multiply(void*, void* accumulated, const void* next, std::uint64_t count) noexcept {
  for (std::uint64_t i = 0; i < count; ++i) {
    Matrix x, y;
    std::memcpy(&x, static_cast<const std::byte*>(accumulated) + i * sizeof(x), sizeof(x));
    std::memcpy(&y, static_cast<const std::byte*>(next) + i * sizeof(y), sizeof(y));
    const Matrix z{x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c, x.c * y.b + x.d * y.d};
    std::memcpy(static_cast<std::byte*>(accumulated) + i * sizeof(z), &z, sizeof(z));
  }
}
inline const UserReduce kMultiply{&multiply, nullptr, sizeof(Matrix)};

inline const coll::Folding kFoldings[] = {
    {DataType::i32, ReduceOp::sum, nullptr},           {DataType::f64, ReduceOp::sum, nullptr},
    {DataType::f16, ReduceOp::sum, nullptr},           {DataType::f32, ReduceOp::max, nullptr},
    {DataType::i64_i64, ReduceOp::min_place, nullptr}, {DataType::u8, ReduceOp::bit_xor, nullptr},
    {DataType::i32, ReduceOp::average, nullptr},       {DataType::bytes, ReduceOp::user, &kMultiply},
};

/// `exact`: sums of them do not depend on brackets.
inline Bytes elements(const coll::Folding& how, unsigned member, std::uint64_t count, bool exact) {
  Bytes bytes;
  std::mt19937 random(member * 977 + 5);
  const auto add = [&](auto value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof(value));
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto number = static_cast<int>(random() % 23) - 11;
    const double real = exact ? number : number + static_cast<double>(random() % 1000) / 977;
    switch (how.type) {
      case DataType::i32: add(static_cast<std::int32_t>(number)); break;
      case DataType::f64: add(real); break;
      case DataType::f32: add(static_cast<float>(real)); break;
      case DataType::f16: add(coll::to_f16(static_cast<float>(real))); break;
      case DataType::u8: add(static_cast<std::uint8_t>(number)); break;
      case DataType::i64_i64:
        add(std::int64_t{number % 3});
        add(static_cast<std::int64_t>(member));
        break;
      default: add(Matrix{static_cast<std::uint32_t>(random()), member, static_cast<std::uint32_t>(i) + 1, 3}); break;
    }
  }
  return bytes;
}

/// The combination of members [0, `count`), from byte `offset` on.
inline Bytes combination(const coll::Folding& how, const SharedMemberList& members, std::size_t count,
                         std::uint64_t offset, std::uint64_t bytes) {
  std::vector<const void*> inputs;
  inputs.reserve(count);
  for (std::size_t m = 0; m < count; ++m) inputs.push_back(members[m].in.data() + offset);
  Bytes out(static_cast<std::size_t>(bytes));
  coll::fold(how, inputs, out.data(), bytes / how.element_bytes());
  return out;
}

}  // namespace brant::test
