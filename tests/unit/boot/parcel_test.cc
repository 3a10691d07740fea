// What a process puts into the store of torchrun for one fence, in pieces.
#include "port/boot/tcp_store/parcel.h"

#include <gtest/gtest.h>

namespace brant::port::tcp_store {
namespace {

using Bytes = std::vector<std::byte>;

Bytes some_bytes(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

TEST(Parcel, values_of_every_size_come_back_from_pieces_of_every_size) {
  for (const std::size_t size : {0u, 1u, 11u, 12u, 13u, 64u, 100u}) {
    for (const std::size_t longest : {8u, 16u, 64u, 1000u}) {
      const KeyValues sent{{"a", some_bytes(size)}, {"b", {}}, {"c", some_bytes(3)}};
      const std::vector<Bytes> pieces = pack(sent, longest);
      std::size_t more = 99;
      ASSERT_TRUE(pieces_after(pieces.front(), more));
      EXPECT_EQ(more + 1, pieces.size());
      for (const Bytes& piece : pieces) EXPECT_LE(piece.size(), longest);
      KeyValues got;
      ASSERT_TRUE(unpack(pieces, got)) << size << " bytes, pieces of " << longest;
      EXPECT_EQ(got, sent);
    }
  }
}

TEST(Parcel, nothing_is_one_piece) { EXPECT_EQ(pack({}, 64).size(), 1u); }

TEST(Parcel, a_later_value_replaces_an_earlier_one) {
  KeyValues values{{"a", some_bytes(1)}, {"b", some_bytes(2)}};
  ASSERT_TRUE(unpack(pack({{"a", some_bytes(9)}}, 64), values));
  EXPECT_EQ(values, (KeyValues{{"a", some_bytes(9)}, {"b", some_bytes(2)}}));
}

TEST(Parcel, damaged_ones_are_refused) {
  const std::vector<Bytes> good = pack({{"a", some_bytes(30)}}, 16);
  KeyValues values;
  EXPECT_FALSE(unpack({}, values));
  EXPECT_FALSE(unpack(std::vector<Bytes>{Bytes(3)}, values)) << "no header";
  EXPECT_FALSE(unpack(std::span(good).first(1), values)) << "pieces are missing";
  for (std::size_t cut = 1; cut <= good.back().size(); ++cut) {
    std::vector<Bytes> shorter = good;
    shorter.back().resize(good.back().size() - cut);
    EXPECT_FALSE(unpack(shorter, values)) << cut << " bytes are missing";
  }
  std::vector<Bytes> wrong = good;
  wrong.front()[4] = std::byte{255};
  EXPECT_FALSE(unpack(wrong, values)) << "a key longer than everything";
}

}  // namespace
}  // namespace brant::port::tcp_store
