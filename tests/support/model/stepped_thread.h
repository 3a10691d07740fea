#pragma once

#include <cstdint>

#include "port/simt.h"
#include "support/model/scheduler.h"

namespace brant::test::model {

/// Code for GPUs as a thread of the model (port/simt.h): every access is a step of the scheduler. A block is one
/// thread, so what it keeps in shared memory needs no steps where it is read for all lanes or written.
class SteppedThread : public simt::BlockOfOne {
 public:
  static constexpr unsigned kLooksPerCheck = 1;

  /// Any time may pass whenever somebody looks at the clock.
  SteppedThread(Scheduler& scheduler, std::uint64_t& clock_ns) : scheduler_(scheduler), clock_ns_(clock_ns) {}

  /// Accesses are no steps while nobody else is there.
  bool alone = false;

  [[nodiscard]] unsigned block() const { return 0; }
  [[nodiscard]] unsigned blocks() const { return 1; }
  bool last_block(std::uint64_t*) { return true; }

  std::uint64_t load_relaxed(const std::uint64_t* from) const { return alone ? *from : scheduler_.load(from); }
  std::uint64_t load_acquire(const std::uint64_t* from) const { return load_relaxed(from); }
  simt::Pair load_pair_acquire(const std::uint64_t* from) const {
    simt::Pair pair{};
    pair.first = load_relaxed(from);
    pair.second = load_relaxed(from + 1);
    return pair;
  }
  void store_relaxed(std::uint64_t* to, std::uint64_t value) {
    alone ? void(*to = value) : scheduler_.store(to, value);
  }
  void store_release(std::uint64_t* to, std::uint64_t value) {
    fence_system();
    store_relaxed(to, value);
  }
  void fence_system() { scheduler_.fence(); }
  /// One access of 16 bytes: loads are one here, stores two, which nobody sees in another order.
  simt::Pair load_line(const std::uint64_t* from) const {
    simt::Pair pair{};
    pair.first = load_relaxed(from);
    pair.second = scheduler_.peek(from + 1);
    return pair;
  }
  void store_line(std::uint64_t* to, simt::Pair pair) {
    store_relaxed(to + 1, pair.second);
    fence_system();
    store_relaxed(to, pair.first);
  }

  std::uint64_t load_acquire_device(const std::uint64_t* from) const { return load_relaxed(from); }
  simt::Pair load_pair_relaxed_device(const std::uint64_t* from) const { return load_pair_acquire(from); }
  std::uint64_t add_device(std::uint64_t* to, std::uint64_t value) { return scheduler_.add(to, value); }
  std::uint64_t add_acq_rel_device(std::uint64_t* to, std::uint64_t value) {
    fence_device();
    return add_device(to, value);
  }
  void store_release_device(std::uint64_t* to, std::uint64_t value) { store_release(to, value); }
  void fence_device() { fence_system(); }

  std::uint64_t load_shared(const std::uint64_t* from) const { return load_relaxed(from); }
  simt::Pair load_pair_shared(const std::uint64_t* from) const { return load_pair_acquire(from); }
  /// No steps: what a block keeps for itself is changed under its lock or by a claim, which fails if it was old.
  std::uint64_t load_shared_uniform(const std::uint64_t* from) const { return *from; }
  void store_shared(std::uint64_t* to, std::uint64_t value) { *to = value; }
  bool claim(std::uint64_t* word, std::uint64_t from, std::uint64_t to) {
    const bool same = scheduler_.load(word) == from;
    if (same) *word = to;  // no step in between
    return same;
  }
  void lock(std::uint64_t* word) {
    while (scheduler_.load(word) != 0) scheduler_.pause();
    *word = 1;  // no step in between
  }
  void unlock(std::uint64_t* word) { scheduler_.add(word, ~std::uint64_t{0}); }
  void fence_block() { fence_system(); }

  std::uint64_t now_ns() {
    if (scheduler_.choose(2) == 1) clock_ns_ += 1000;
    return clock_ns_;
  }
  void pause() { scheduler_.pause(); }
  void rest() { scheduler_.pause(); }
  template <typename T>
  T* reach(T* pointer) const {
    return pointer;
  }

 protected:
  Scheduler& scheduler_;

 private:
  std::uint64_t& clock_ns_;
};

}  // namespace brant::test::model
