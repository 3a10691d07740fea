#include "port/wire/ucx/ucx_requests.h"

#include <algorithm>
#include <new>

#include "base/log.h"

namespace brant::port::ucx {
namespace {

constexpr std::size_t kAlign = alignof(UcxRequest);
constexpr std::size_t kBlockFirst = 128;
constexpr std::size_t kBlockMost = 4096;

constexpr std::size_t round_up(std::size_t value, std::size_t to) noexcept { return (value + to - 1) / to * to; }

}  // namespace

UcxRequestPool::UcxRequestPool(UcxOperations& operations, std::size_t ucx_bytes, std::size_t requests_max) noexcept
    : operations_(operations), front_bytes_(round_up(ucx_bytes, kAlign)), requests_max_(requests_max) {}

void UcxRequestPool::FreeBlock::operator()(std::byte* memory) const noexcept {
  ::operator delete[](memory, std::align_val_t{kAlign});
}

UcxRequest& UcxRequestPool::at(const Block& block, std::size_t index) const noexcept {
  std::byte* place = block.memory.get() + index * (front_bytes_ + sizeof(UcxRequest)) + front_bytes_;
  return *std::launder(reinterpret_cast<UcxRequest*>(place));
}

UcxRequest* UcxRequestPool::find(std::uint64_t address) const noexcept {
  const std::size_t stride = front_bytes_ + sizeof(UcxRequest);
  for (const Block& block : blocks_) {  // a few
    const std::uint64_t distance = address - reinterpret_cast<std::uintptr_t>(&at(block, 0));
    if (distance < block.count * stride)
      return distance % stride == 0 ? &at(block, static_cast<std::size_t>(distance / stride)) : nullptr;
  }
  return nullptr;
}

bool UcxRequestPool::grow() noexcept {
  const std::size_t count = std::min(std::clamp(requests_, kBlockFirst, kBlockMost), requests_max_ - requests_);
  if (count == 0) return false;
  try {
    const std::size_t stride = front_bytes_ + sizeof(UcxRequest);
    Block block{std::unique_ptr<std::byte, FreeBlock>(
                    static_cast<std::byte*>(::operator new[](count * stride, std::align_val_t{kAlign}))),
                count};
    blocks_.push_back(std::move(block));  // before the first request is lent: this may throw
    for (std::size_t i = 0; i < count; ++i) {
      auto* request = new (blocks_.back().memory.get() + i * stride + front_bytes_) UcxRequest{};
      request->operations = &operations_;
      give(*request);
    }
  } catch (const std::bad_alloc&) {
    log::warn("wire ucx: no memory for more than {} operations in flight", requests_);
    return free_ != nullptr;
  }
  requests_ += count;
  return true;
}

}  // namespace brant::port::ucx
