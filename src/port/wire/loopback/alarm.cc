#include "port/wire/loopback/alarm.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace brant::port::loopback {

Alarm::Alarm() noexcept : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

Alarm::~Alarm() {
  if (fd_ >= 0) ::close(fd_);
}

bool Alarm::arm() noexcept {
  if (fd_ < 0) return false;
  std::uint64_t count = 0;
  if (::read(fd_, &count, sizeof count) < 0) count = 0;  // not readable: nothing to take back
  armed_ = true;
  return true;
}

void Alarm::ring() noexcept {
  if (!armed_) return;
  armed_ = false;
  const std::uint64_t one = 1;
  if (::write(fd_, &one, sizeof one) < 0) return;  // only when it is readable already
}

}  // namespace brant::port::loopback
