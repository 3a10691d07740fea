#include "cli/run/spawner.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "port/boot/launcher/spawn_plan.h"

namespace brant::run {

void Spawner::tell(std::string_view text) noexcept {
  if (line_) static_cast<void>(::send(line_.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
}

void Spawner::on_readable() noexcept {
  std::array<char, 64> words;
  while (line_) {
    const ssize_t got = ::recv(line_.get(), words.data(), words.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) {
      died_ = !left_;
      return line_.reset();
    }
    for (ssize_t i = 0; i < got; ++i) {
      met_ = met_ || words[static_cast<std::size_t>(i)] == port::launcher::kMet;
      left_ = left_ || words[static_cast<std::size_t>(i)] == port::launcher::kLeft;
    }
  }
}

}  // namespace brant::run
