#pragma once

#include <cstdint>

#include "ops/courier/desk.h"
#include "ops/courier/one_thread_warp.h"
#include "unit/courier/model/scheduler.h"

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

/// The courier's code as a thread of the model: every access is a step of the scheduler. A copy moves
/// the first word of each page.
class ModelMachine : public courier::OneThreadWarp {
 public:
  static constexpr unsigned kLooksPerClock = 1;
  static constexpr std::uint32_t kPage = 4096;

  ModelMachine(Scheduler& scheduler, const Faults& faults, std::uint64_t& clock_ns, unsigned& copies)
      : scheduler_(scheduler), faults_(faults), clock_ns_(clock_ns), copies_(copies) {}

  /// Accesses are no steps while nobody else is there.
  bool alone = false;
  /// Not subject to count_once.
  const std::uint64_t* exact = nullptr;

  void store(std::uint64_t* to, std::uint64_t value) { alone ? void(*to = value) : scheduler_.store(to, value); }
  std::uint64_t load(const std::uint64_t* from) const { return alone ? *from : scheduler_.load(from); }
  Pair load_pair(const std::uint64_t* from) const {
    Pair pair{};
    pair.first = load(from);
    // Nothing of this entry is there: the second half changes nothing, and half the schedules less.
    pair.second = load(from + 1);
    if (faults_.half_an_entry) {
      pair.second = (pair.second & courier::kPayloadMask) | (pair.first & ~courier::kPayloadMask);
    }
    return pair;
  }
  Pair load_pair_of_device(const std::uint64_t* from) const { return load_pair(from); }
  Pair load_pair_here(const std::uint64_t* from) const { return load_pair(from); }
  std::uint64_t load_here(const std::uint64_t* from) const { return load(from); }
  /// No steps: what a block keeps for itself is changed under its lock or by a claim, which fails if it was old.
  std::uint64_t load_near(const std::uint64_t* from) const { return *from; }
  void store_near(std::uint64_t* to, std::uint64_t value) { *to = value; }
  bool claim(std::uint64_t* word, std::uint64_t from, std::uint64_t to) {
    const bool same = scheduler_.load(word) == from || faults_.no_claim;
    if (same) *word = to;  // no step in between
    return same;
  }
  void lock(std::uint64_t* word) {
    while (scheduler_.load(word) != 0) scheduler_.pause();
    *word = 1;  // no step in between
  }
  void unlock(std::uint64_t* word) { scheduler_.add(word, ~std::uint64_t{0}); }
  std::uint64_t add(std::uint64_t* to, std::uint64_t value) {
    const std::uint64_t before = scheduler_.add(to, value);
    return faults_.count_once && to != exact ? before + value : before;
  }
  void fence_system() {
    if (!faults_.no_fence) scheduler_.fence();
  }

  void fence_counted() {
    if (!faults_.no_second_fence) fence_system();
  }
  /// Parts have nothing in front of them here: what is copied was there before the model's threads.
  void fence_parts() {}

  /// Any time may have passed.
  std::uint64_t now_ns() {
    if (scheduler_.choose(2) == 1) clock_ns_ += 1000;
    return clock_ns_;
  }
  void pause() { scheduler_.pause(); }

  std::uint64_t* word_at(std::uint64_t address) { return reinterpret_cast<std::uint64_t*>(address); }
  bool faulted() const { return false; }

  void copy_by_warp(std::uint64_t to, std::uint64_t from, std::uint32_t bytes) {
    if (bytes == 0) return;
    scheduler_.expect(to != 0 && from != 0, "half an order was taken");
    ++copies_;
    for (std::uint32_t at = 0; at < bytes; at += kPage) store(word_at(to + at), load(word_at(from + at)));
  }
  void copy_by_group(const courier::PartRing::Entry* parts, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      copy_by_warp(parts[i].words[courier::OrderWords::to], parts[i].words[courier::OrderWords::from],
                   courier::bytes_of(parts[i]));
    }
  }

 private:
  Scheduler& scheduler_;
  const Faults& faults_;
  std::uint64_t& clock_ns_;
  unsigned& copies_;
};

}  // namespace brant::test::model
