#include "cli/run/terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <array>

namespace brant::run {

std::pair<UniqueFd, UniqueFd> open_terminal(int like) noexcept {
  UniqueFd ours(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 64> name{};
  if (!ours || ::grantpt(ours.get()) != 0 || ::unlockpt(ours.get()) != 0) return {};
  if (::ptsname_r(ours.get(), name.data(), name.size()) != 0) return {};
  UniqueFd theirs(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios mode{};
  if (!theirs || ::tcgetattr(theirs.get(), &mode) != 0) return {};
  ::cfmakeraw(&mode);
  winsize size{};
  if (::tcsetattr(theirs.get(), TCSANOW, &mode) != 0) return {};
  if (::ioctl(like, TIOCGWINSZ, &size) == 0) ::ioctl(theirs.get(), TIOCSWINSZ, &size);
  return {std::move(ours), std::move(theirs)};
}

}  // namespace brant::run
