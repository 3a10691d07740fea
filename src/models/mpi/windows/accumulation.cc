#include "models/mpi/windows/accumulation.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "models/mpi/types/pack.h"
#include "models/mpi/types/reduce.h"

namespace brant::mpi {

namespace {

constexpr std::uint16_t kReplace = 0x3c;
constexpr std::uint16_t kNoOp = 0x3d;

/// Elements are copied to and from a block of this size, which is aligned for all of them.
constexpr std::size_t kBlockBytes = 1024;
struct alignas(64) Block {
  std::array<std::byte, kBlockBytes> bytes;
  [[nodiscard]] std::byte* data() noexcept { return bytes.data(); }
};

template <typename Word>
std::atomic_ref<Word> word_at(std::byte* place) noexcept {
  return std::atomic_ref<Word>(*reinterpret_cast<Word*>(place));
}

template <typename Word>
void swap_word(std::byte* place, const std::byte* expected, const std::byte* desired, std::byte* before) noexcept {
  Word wanted;
  Word next;
  std::memcpy(&wanted, expected, sizeof(Word));
  std::memcpy(&next, desired, sizeof(Word));
  word_at<Word>(place).compare_exchange_strong(wanted, next);
  std::memcpy(before, &wanted, sizeof(Word));
}

bool is_aligned(const std::byte* place, std::size_t bytes) noexcept {
  return reinterpret_cast<std::uintptr_t>(place) % bytes == 0;
}

}  // namespace

Accumulation::Accumulation(const Op& op, const Datatype& element) noexcept
    : op_(op),
      element_(element),
      size_(static_cast<std::size_t>(element.size())),
      memory_bytes_(static_cast<std::size_t>(element.true_extent())),
      has_gaps_(element.extent() != element.size()),
      is_word_((size_ == 4 || size_ == 8) && !has_gaps_) {}

void Accumulation::apply(std::byte* place, const std::byte* in, std::byte* before, std::size_t bytes) const noexcept {
  const std::size_t count = bytes / size_;
  if (!in_words(place)) return apply_plain(place, in, before, count);
  if (size_ == 4) return apply_words<std::uint32_t>(place, in, before, count);
  apply_words<std::uint64_t>(place, in, before, count);
}

/// A block of words is combined at once; those that others have changed meanwhile are combined again.
template <typename Word>
void Accumulation::apply_words(std::byte* place, const std::byte* in, std::byte* before,
                               std::size_t count) const noexcept {
  constexpr std::size_t kWords = kBlockBytes / sizeof(Word);
  std::array<Word, kWords> old;
  std::array<Word, kWords> operand;
  std::array<Word, kWords> next;
  for (std::size_t done = 0; done < count; done += kWords) {
    const std::size_t some = std::min(kWords, count - done);
    std::byte* const words = place + done * sizeof(Word);
    for (std::size_t i = 0; i < some; ++i) old[i] = word_at<Word>(words + i * sizeof(Word)).load();
    if (op_.number() != kNoOp) {
      std::memcpy(operand.data(), in + done * sizeof(Word), some * sizeof(Word));
      next = op_.number() == kReplace ? operand : old;
      if (op_.number() != kReplace) reduce_local(op_, operand.data(), next.data(), static_cast<Count>(some), element_);
      for (std::size_t i = 0; i < some; ++i) {
        while (!word_at<Word>(words + i * sizeof(Word)).compare_exchange_weak(old[i], next[i])) {
          if (op_.number() == kReplace) continue;
          next[i] = old[i];
          reduce_local(op_, &operand[i], &next[i], 1, element_);
        }
      }
    }
    if (before != nullptr) std::memcpy(before + done * sizeof(Word), old.data(), some * sizeof(Word));
  }
}

void Accumulation::apply_plain(std::byte* place, const std::byte* in, std::byte* before,
                               std::size_t count) const noexcept {
  const std::size_t per_block = has_gaps() ? 1 : kBlockBytes / size_;
  Block there;
  Block operand;
  for (std::size_t done = 0; done < count; done += per_block) {
    const auto some = static_cast<Count>(std::min(per_block, count - done));
    const std::size_t bytes = static_cast<std::size_t>(some) * size_;
    const std::size_t memory = has_gaps() ? memory_bytes_ : bytes;
    std::memcpy(there.data(), place, memory);
    if (before != nullptr) pack(there.data(), some, element_, 0, {before + done * size_, bytes});
    if (op_.number() != kNoOp) {
      if (has_gaps()) std::memcpy(operand.data(), there.data(), memory);
      unpack({in + done * size_, bytes}, 0, operand.data(), some, element_);
      if (op_.number() == kReplace) {
        std::memcpy(there.data(), operand.data(), memory);
      } else {
        reduce_local(op_, operand.data(), there.data(), some, element_);
      }
      std::memcpy(place, there.data(), memory);
    }
    place += memory;
  }
}

void compare_and_swap(std::byte* place, const std::byte* expected, const std::byte* desired, std::byte* before,
                      std::size_t bytes) noexcept {
  if (bytes == 4 && is_aligned(place, 4)) return swap_word<std::uint32_t>(place, expected, desired, before);
  if (bytes == 8 && is_aligned(place, 8)) return swap_word<std::uint64_t>(place, expected, desired, before);
  std::memcpy(before, place, bytes);
  if (std::memcmp(before, expected, bytes) == 0) std::memcpy(place, desired, bytes);
}

}  // namespace brant::mpi
