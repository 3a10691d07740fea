// Rank 1 of a job whose rank 0 is Python (test_forged_pickles.py):
//   forged_pickle PICKLE_IN_HEX SEAL_IN_HEX
// It writes what a channel of Python writes (src/bindings/python/frame.h), with a pickle and a seal of its own choice,
// and an honest message of bytes behind it.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "brant/brant.h"

namespace {

using namespace brant;

constexpr std::uint8_t kBytes = 2, kObject = 3;
constexpr std::uint16_t kContent = 1;

struct Frame {
  std::uint32_t magic = 0x31707962;
  std::uint16_t flags = kContent;
  std::uint16_t version = 1;
  std::uint32_t items = 1;
  std::uint32_t description_bytes = 0;
};

struct Item {
  std::uint8_t type = 0;
  std::uint8_t order = 0;
  MemoryKind kind = MemoryKind::host;
  std::uint8_t dims = 0;
  std::uint16_t format_bytes = 0;
  std::uint16_t buffers = 0;
  std::uint64_t item_bytes = 1;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(Frame) == 16 && sizeof(Item) == 24);

std::vector<std::byte> bytes_of(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(at, 2)), nullptr, 16)));
  return bytes;
}

template <typename Part>
void add(std::vector<std::byte>& to, const Part& part) {
  const auto bytes = std::as_bytes(std::span(&part, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

std::vector<std::byte> message(std::uint8_t type, const std::vector<std::byte>& seal,
                               const std::vector<std::byte>& content) {
  const std::size_t seal_room = (seal.size() + 7) / 8 * 8;
  std::vector<std::byte> whole;
  add(whole, Frame{.description_bytes = static_cast<std::uint32_t>(sizeof(Item) + seal_room)});
  add(whole, Item{.type = type, .format_bytes = static_cast<std::uint16_t>(seal.size()), .bytes = content.size()});
  whole.insert(whole.end(), seal.begin(), seal.end());
  whole.resize(sizeof(Frame) + sizeof(Item) + seal_room);
  whole.insert(whole.end(), content.begin(), content.end());
  return whole;
}

void send(Runtime& runtime, Channel& channel, const std::vector<std::byte>& what) {
  Operation sending = channel.send(ConstBuffer(what.data(), what.size()));
  if (runtime.worker().wait_until([&] { return sending.done(); }, std::chrono::seconds(20)) != Status::ok)
    throw std::runtime_error("rank 0 does not receive");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  Runtime runtime;
  Channel channel = Channel::open(runtime, Rank{0}, ChannelId{1});
  send(runtime, channel, message(kObject, bytes_of(arguments[2]), bytes_of(arguments[1])));
  send(runtime, channel, message(kBytes, {}, bytes_of("6f6b")));  // "ok"
}
