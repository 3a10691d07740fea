#include "port/boot/tcp_store/parcel.h"

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"

namespace brant::port::tcp_store {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kHeaderBytes = sizeof(std::uint32_t);

Bytes with_count(std::uint32_t count, std::span<const std::byte> rest) {
  ByteWriter writer;
  writer.number(count);
  Bytes bytes = writer.bytes();
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

}  // namespace

std::vector<Bytes> pack(const KeyValues& values, std::size_t longest) {
  const Bytes all = port::pack(values);
  std::span<const std::byte> rest = all;
  const std::size_t first = std::min(rest.size(), longest - kHeaderBytes);
  const std::size_t more = (rest.size() - first + longest - 1) / longest;
  std::vector<Bytes> pieces{with_count(static_cast<std::uint32_t>(more), rest.first(first))};
  for (rest = rest.subspan(first); !rest.empty(); rest = rest.subspan(std::min(rest.size(), longest))) {
    const auto piece = rest.first(std::min(rest.size(), longest));
    pieces.emplace_back(piece.begin(), piece.end());
  }
  return pieces;
}

bool pieces_after(std::span<const std::byte> first, std::size_t& count) {
  ByteReader reader(first);
  count = reader.number<std::uint32_t>();
  return !reader.failed();
}

bool unpack(std::span<const Bytes> pieces, KeyValues& values) {
  std::size_t more = 0;
  if (pieces.empty() || !pieces_after(pieces.front(), more) || more + 1 != pieces.size()) return false;
  Bytes all(pieces.front().begin() + kHeaderBytes, pieces.front().end());
  for (const Bytes& piece : pieces.subspan(1)) all.insert(all.end(), piece.begin(), piece.end());
  return port::unpack(all, values);
}

}  // namespace brant::port::tcp_store
