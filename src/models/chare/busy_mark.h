#pragma once

#include <utility>

namespace brant::detail {

/// Marks a chare while one of its methods is on the stack.
class BusyMark {
 public:
  explicit BusyMark(bool& mark) noexcept : mark_(mark), before_(std::exchange(mark, true)) {}
  ~BusyMark() { mark_ = before_; }
  BusyMark(const BusyMark&) = delete;
  BusyMark& operator=(const BusyMark&) = delete;

 private:
  bool& mark_;
  bool before_;
};

/// Counts how deep something is on the stack.
class CountMark {
 public:
  explicit CountMark(unsigned& count) noexcept : count_(count) { ++count_; }
  ~CountMark() { --count_; }
  CountMark(const CountMark&) = delete;
  CountMark& operator=(const CountMark&) = delete;

 private:
  unsigned& count_;
};

}  // namespace brant::detail
