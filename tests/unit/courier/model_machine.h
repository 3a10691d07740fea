#pragma once

#include <cstdint>

#include "ops/courier/desk.h"
#include "support/model/stepped_thread.h"

namespace brant::test::model {

/// Faults put in on purpose, to see that they are found.
struct Faults {
  bool no_fence = false;          ///< The release fence in front of flags is missing.
  bool half_an_entry = false;     ///< Only the first word of each pair is looked at for its tag.
  bool look_after_leave = false;  ///< The dispatcher looks once more after it has written what it did not take.
  bool count_once = false;        ///< A split order is reported by the first group that is done with its part.
  bool no_claim = false;          ///< Two dispatchers may take the same order.
  bool no_second_fence = false;   ///< The last group of a split order signals without a fence after it counted.
};

/// A thread of the courier's kernel in the model, with faults. A copy moves the first word of each page.
class ModelMachine : public SteppedThread {
 public:
  static constexpr unsigned kLooksPerClock = 1;
  static constexpr std::uint32_t kPage = 4096;

  ModelMachine(Scheduler& scheduler, const Faults& faults, std::uint64_t& clock_ns, unsigned& copies)
      : SteppedThread(scheduler, clock_ns), faults_(faults), copies_(copies) {}

  /// Not subject to count_once.
  const std::uint64_t* exact = nullptr;

  simt::Pair load_pair_acquire(const std::uint64_t* from) const {
    simt::Pair pair = SteppedThread::load_pair_acquire(from);
    if (faults_.half_an_entry) {
      pair.second = (pair.second & courier::kPayloadMask) | (pair.first & ~courier::kPayloadMask);
    }
    return pair;
  }
  simt::Pair load_pair_relaxed_device(const std::uint64_t* from) const { return load_pair_acquire(from); }
  simt::Pair load_pair_shared(const std::uint64_t* from) const { return load_pair_acquire(from); }
  bool claim(std::uint64_t* word, std::uint64_t from, std::uint64_t to) {
    if (!faults_.no_claim) return SteppedThread::claim(word, from, to);
    static_cast<void>(scheduler_.load(word));
    *word = to;
    return true;
  }
  std::uint64_t add_device(std::uint64_t* to, std::uint64_t value) {
    const std::uint64_t before = SteppedThread::add_device(to, value);
    return faults_.count_once && to != exact ? before + value : before;
  }
  void fence_system() {
    if (!faults_.no_fence) SteppedThread::fence_system();
  }

  void fence_counted() {
    if (!faults_.no_second_fence) fence_system();
  }
  /// Parts have nothing in front of them here: what is copied was there before the model's threads.
  void fence_parts() {}

  [[nodiscard]] bool leads() const { return true; }
  void group_sync() {}
  bool faulted() const { return false; }

  void copy_by_warp(std::uint64_t to, std::uint64_t from, std::uint32_t bytes) {
    if (bytes == 0) return;
    scheduler_.expect(to != 0 && from != 0, "half an order was taken");
    ++copies_;
    for (std::uint32_t at = 0; at < bytes; at += kPage)
      store_relaxed(word_at(to + at), load_relaxed(word_at(from + at)));
  }
  void copy_by_group(const courier::PartRing::Entry* parts, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      copy_by_warp(parts[i].words[courier::OrderWords::to], parts[i].words[courier::OrderWords::from],
                   courier::bytes_of(parts[i]));
    }
  }

 private:
  static std::uint64_t* word_at(std::uint64_t address) { return reinterpret_cast<std::uint64_t*>(address); }

  const Faults& faults_;
  unsigned& copies_;
};

}  // namespace brant::test::model
