#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "bindings/python/view.h"
#include "brant/brant.h"

/// What travels between two channels of Python. A *message* (what one `send` was given) is a list of items: arrays,
/// bytes, pickled objects and the buffers that belong to those. Its first transfer is a *frame* of at most kFrameBytes:
/// a header, the descriptions of the items, and the content if there is room for all of it. Else the descriptions go in
/// the next transfer, if they had no room, and the content of each item in one of its own, from where it is to where it
/// shall be. Both ends are processes of one job and of one machine type: numbers are in its byte order.
namespace brant::python {

/// Below the size up to which a message leaves without its receive.
inline constexpr std::size_t kFrameBytes = 8000;

enum class ItemType : std::uint8_t {
  array = 1,
  bytes = 2,   ///< An object of Python's type bytes.
  object = 3,  ///< A pickle, with its own buffers in the items that follow.
  buffer = 4,  ///< Of the pickle before.
  apart = 5,   ///< An array in memory of a device, whose content comes beside the call of a chare.
};

struct FrameHeader {
  static constexpr std::uint32_t kMagic = 0x31707962;  // "byp1"
  static constexpr std::uint16_t kContent = 1;         ///< The content is in the frame.
  static constexpr std::uint16_t kEnd = 4;             ///< The other end was closed: there is nothing more.
  static constexpr std::uint16_t kApart = 2;           ///< The descriptions come in a transfer of their own.

  std::uint32_t magic = kMagic;
  std::uint16_t flags = 0;
  std::uint16_t version = 1;
  std::uint32_t items = 0;  ///< With kEnd: which opening of the channel has ended.
  std::uint32_t description_bytes = 0;
};

[[nodiscard]] constexpr bool is_array(ItemType type) noexcept {
  return type == ItemType::array || type == ItemType::apart;
}

struct ItemHeader {
  ItemType type = ItemType::array;
  Order order = Order::c;
  MemoryKind kind = MemoryKind::host;
  std::uint8_t dims = 0;
  std::uint16_t format_bytes = 0;
  std::uint16_t buffers = 0;  ///< Of an object: how many items behind it are its own.
  std::uint64_t item_bytes = 1;
  std::uint64_t bytes = 0;
};

/// One item as it was read: views into the description.
struct Item {
  ItemHeader header;
  std::string_view format;
  std::vector<Py_ssize_t> shape;
  bool any_type = false;  ///< Bytes from C++, which land in an array of any type.

  [[nodiscard]] std::string describe() const;
};

std::size_t description_bytes(const ItemHeader& header) noexcept;
/// Writes the description at `to` and returns where it ends.
std::byte* write_description(const ItemHeader& header, std::string_view format, std::span<const Py_ssize_t> shape,
                             std::byte* to) noexcept;

/// Reads what a peer wrote. False where it contradicts itself.
bool read_items(std::span<const std::byte> description, std::size_t count, std::vector<Item>& items);

/// Memory for frames, kept for the next ones.
class FramePool {
 public:
  static FramePool& get();
  std::unique_ptr<std::byte[]> take();
  void give_back(std::unique_ptr<std::byte[]> frame);

 private:
  static constexpr std::size_t kKept = 64;
  std::vector<std::unique_ptr<std::byte[]>> free_;
};

}  // namespace brant::python
