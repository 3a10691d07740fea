#include "models/mpi/dynamic/meeting_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/env.h"
#include "base/unique_fd.h"
#include "core/observe/statistics_folder.h"
#include "models/mpi/call_error.h"

namespace brant::mpi {

namespace {

constexpr std::size_t kTextMax = std::size_t{64} << 10;

/// Written under a name of its own, which nobody reads.
UniqueFd draft(const std::string& file, std::string_view text) {
  UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  while (fd && !text.empty()) {
    const ssize_t done = ::write(fd.get(), text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return {};
    text.remove_prefix(static_cast<std::size_t>(done));
  }
  return fd;
}

}  // namespace

MeetingFolder::MeetingFolder() {
  std::string why;
  if (const std::string_view given = env("BRANT_MPI_PORTS"); !given.empty()) {
    path_ = given;
    of_host_ = false;
    why = make_statistics_folder(path_);
    require(why.empty(), MPI_ERR_OTHER, "the folder for ports, BRANT_MPI_PORTS={}, cannot be used: {}", path_, why);
    return;
  }
  for (const std::string& above : statistics_folders()) {
    why = make_statistics_folder(above);
    if (!why.empty()) continue;
    path_ = above + "/ports";
    why = make_statistics_folder(path_);
    if (why.empty()) return;
  }
  fail(MPI_ERR_OTHER, "there is no folder for ports that this user alone can enter ({}): name one by BRANT_MPI_PORTS",
       why);
}

bool MeetingFolder::write(const std::string& name, std::string_view text) const {
  const std::string file = path_ + "/" + name;
  const std::string unread = path_ + "/." + std::to_string(::getpid()) + "." + name;
  const UniqueFd fd = draft(unread, text);
  const int error = errno;
  require(static_cast<bool>(fd), MPI_ERR_OTHER, "{} cannot be written: {}", unread, std::strerror(error));
  const bool made = ::link(unread.c_str(), file.c_str()) == 0;
  const int why = errno;
  ::unlink(unread.c_str());
  require(made || why == EEXIST, MPI_ERR_OTHER, "{} cannot be made: {}", file, std::strerror(why));
  return made;
}

std::optional<std::string> MeetingFolder::read(const std::string& name) const {
  const UniqueFd fd(::open((path_ + "/" + name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return std::nullopt;
  std::string text;
  std::array<char, 4096> piece;
  while (text.size() < kTextMax) {
    const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return text;
}

bool MeetingFolder::remove(const std::string& name) const noexcept {
  return ::unlink((path_ + "/" + name).c_str()) == 0;
}

}  // namespace brant::mpi
