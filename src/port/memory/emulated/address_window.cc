#include "port/memory/emulated/address_window.h"

#include <sys/mman.h>
#include <unistd.h>

#include <iterator>
#include <new>
#include <utility>

namespace brant::port::memory {
namespace {

constexpr std::size_t kWindowBytes = std::size_t{256} << 30;
constexpr std::size_t kWindowBytesMin = std::size_t{1} << 30;

std::byte* reserve(std::size_t bytes) noexcept {
  void* range = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return nullptr;
  ::madvise(range, bytes, MADV_DONTDUMP);
  return static_cast<std::byte*>(range);
}

}  // namespace

AddressWindow::AddressWindow() noexcept : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
  for (std::size_t bytes = kWindowBytes; bytes >= kWindowBytesMin; bytes /= 4) {
    device_ = reserve(bytes);
    engine_ = device_ == nullptr ? nullptr : reserve(bytes);
    if (engine_ != nullptr) {
      bytes_ = bytes;
      break;
    }
    if (device_ != nullptr) ::munmap(device_, bytes);
    device_ = nullptr;
  }
  try {
    if (bytes_ != 0) free_.emplace(0, bytes_);
  } catch (const std::bad_alloc&) {
    free_.clear();  // every take says no_memory
  }
}

AddressWindow::~AddressWindow() {
  if (bytes_ == 0) return;
  ::munmap(device_, bytes_);
  ::munmap(engine_, bytes_);
}

Result<std::size_t> AddressWindow::take(std::size_t bytes) noexcept {
  const std::size_t wanted = bytes + page_;  // the page behind is the guard
  const std::lock_guard lock(mutex_);
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    if (range->second < wanted) continue;
    const auto [offset, available] = *range;
    // The node is kept and re-keyed, so that taking cannot fail half-way for want of memory.
    auto node = free_.extract(range);
    if (available > wanted) {
      node.key() = offset + wanted;
      node.mapped() = available - wanted;
      free_.insert(std::move(node));
    }
    return offset;
  }
  return Status::no_memory;
}

void AddressWindow::give_back(std::size_t offset, std::size_t bytes) noexcept {
  const std::size_t size = bytes + page_;
  const std::lock_guard lock(mutex_);
  auto after = free_.lower_bound(offset);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += size;
      if (after != free_.end() && before->first + before->second == after->first) {
        before->second += after->second;
        free_.erase(after);
      }
      return;
    }
  }
  if (after != free_.end() && offset + size == after->first) {
    auto node = free_.extract(after);  // kept, as in `take`
    node.key() = offset;
    node.mapped() += size;
    free_.insert(std::move(node));
    return;
  }
  try {
    free_.emplace_hint(after, offset, size);
  } catch (const std::bad_alloc&) {
    return;  // Address space is lost, not memory: 256 GiB hold out.
  }
}

}  // namespace brant::port::memory
