#include "core/waiter.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant {

Waiter::Waiter() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), alarm_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_ || !alarm_)
    throw Error(Status::io_error, fmt::format("descriptors to sleep on: {}", std::strerror(errno)));
  add(alarm_.get());
}

void Waiter::add(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    throw Error(Status::io_error, fmt::format("epoll_ctl of descriptor {}: {}", fd, std::strerror(errno)));
  }
}

void Waiter::sleep(TimePoint deadline, std::chrono::milliseconds limit) noexcept {
  const TimePoint now = Clock::now();
  if (deadline <= now) return;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::min<Clock::duration>(deadline - now, limit));
  std::array<epoll_event, 8> events{};
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), static_cast<int>(left.count()));
  for (int i = 0; i < count; ++i) {
    if (events[static_cast<std::size_t>(i)].data.fd == alarm_.get()) quieten();
  }
}

void Waiter::quieten() noexcept {
  std::uint64_t rings = 0;
  if (::read(alarm_.get(), &rings, sizeof(rings)) < 0) return;  // EAGAIN: it did not ring
}

void Waiter::wake() noexcept {
  const std::uint64_t one = 1;
  if (::write(alarm_.get(), &one, sizeof(one)) < 0) return;  // full counter: a wake-up is due anyway
}

}  // namespace brant
