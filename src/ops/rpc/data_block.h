#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "brant/ops/lane/data_arguments.h"
#include "ops/am/message.h"

/// In front of the arguments of a call that has data: a DataHeader and a DataMeta for each.
namespace brant::remote {

constexpr std::size_t data_block_bytes(std::size_t count) noexcept {
  return count == 0 ? 0 : sizeof(detail::DataHeader) + count * sizeof(lane::DataMeta);
}
static_assert(data_block_bytes(1) % 16 == 0 && data_block_bytes(2) % 16 == 0, "arguments stay aligned");

inline detail::DataHeader data_header(const am::Message& message) noexcept {
  detail::DataHeader header;
  std::memcpy(&header, message.data, sizeof(header));
  return header;
}
inline void set_data_header(am::Message& message, const detail::DataHeader& header) noexcept {
  std::memcpy(message.data, &header, sizeof(header));
}
inline lane::DataMeta* data_metas(const am::Message& message) noexcept {
  return reinterpret_cast<lane::DataMeta*>(message.data + sizeof(detail::DataHeader));
}

template <typename T>
T* place_as(const detail::DataHeader& header) noexcept {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(header.place));
}
template <typename T>
std::uint64_t place_of(T* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace brant::remote
