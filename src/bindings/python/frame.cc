#include "bindings/python/frame.h"

#include <cstring>
#include <string>
#include <utility>

namespace brant::python {
namespace {

constexpr std::size_t kShapeBytes = sizeof(std::int64_t);

/// Descriptions begin at multiples of 8.
std::size_t rounded(std::size_t bytes) noexcept { return (bytes + 7) / 8 * 8; }

/// What the shape says, against what the peer says beside it.
bool fits(const Item& item) noexcept {
  std::uint64_t bytes = item.header.item_bytes;
  for (const Py_ssize_t count : item.shape) {
    if (count < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(count), &bytes)) return false;
  }
  return bytes == item.header.bytes;
}

bool is_known(const ItemHeader& header) noexcept {
  return header.type >= ItemType::array && header.type <= ItemType::apart && header.order <= Order::fortran &&
         static_cast<int>(header.kind) < kMemoryKindCount;
}

}  // namespace

std::string Item::describe() const {
  if (!is_array(header.type))
    return std::to_string(header.bytes) + (header.type == ItemType::bytes ? " bytes" : " bytes of an object");
  std::string text = "an array of " + std::string(format) + " of shape (";
  for (std::size_t dim = 0; dim < shape.size(); ++dim) text += (dim == 0 ? "" : ", ") + std::to_string(shape[dim]);
  return text + ")";
}

std::size_t description_bytes(const ItemHeader& header) noexcept {
  return sizeof(ItemHeader) + header.dims * kShapeBytes + rounded(header.format_bytes);
}

std::byte* write_description(const ItemHeader& header, std::string_view format, std::span<const Py_ssize_t> shape,
                             std::byte* to) noexcept {
  std::memcpy(to, &header, sizeof header);
  to += sizeof header;
  if (!shape.empty()) std::memcpy(to, shape.data(), shape.size_bytes());
  to += shape.size_bytes();
  if (!format.empty()) std::memcpy(to, format.data(), format.size());
  return to + rounded(header.format_bytes);
}

bool read_items(std::span<const std::byte> description, std::size_t count, std::vector<Item>& items) {
  if (count > description.size() / sizeof(ItemHeader)) return false;
  items.resize(count);
  for (Item& item : items) {
    if (description.size() < sizeof(ItemHeader)) return false;
    std::memcpy(&item.header, description.data(), sizeof(ItemHeader));
    if (!is_known(item.header) || description.size() < description_bytes(item.header)) return false;
    item.shape.resize(item.header.dims);
    const std::byte* at = description.data() + sizeof(ItemHeader);
    if (item.header.dims != 0) std::memcpy(item.shape.data(), at, item.header.dims * kShapeBytes);
    at += item.header.dims * kShapeBytes;
    item.format = {reinterpret_cast<const char*>(at), item.header.format_bytes};
    if (is_array(item.header.type) && (!fits(item) || has_objects(item.format))) return false;
    description = description.subspan(description_bytes(item.header));
  }
  return description.empty();
}

FramePool& FramePool::get() {
  static FramePool* const only = new FramePool;  // as Process
  return *only;
}

std::unique_ptr<std::byte[]> FramePool::take() {
  if (free_.empty()) return std::make_unique_for_overwrite<std::byte[]>(kFrameBytes);
  std::unique_ptr<std::byte[]> frame = std::move(free_.back());
  free_.pop_back();
  return frame;
}

void FramePool::give_back(std::unique_ptr<std::byte[]> frame) {
  if (frame != nullptr && free_.size() < kKept) free_.push_back(std::move(frame));
}

}  // namespace brant::python
