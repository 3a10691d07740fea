#pragma once

namespace brant::port::loopback {

/// What wakes a process that sleeps on a wire.
class Alarm {
 public:
  Alarm() noexcept;
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm();

  /// -1 if the system has no descriptor left.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// From here on `ring` makes the descriptor readable, once. False: there is none.
  bool arm() noexcept;
  /// Does nothing unless it is armed.
  void ring() noexcept;

 private:
  const int fd_;
  bool armed_ = false;
};

}  // namespace brant::port::loopback
