#include "base/file_box.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

namespace brant {
namespace {

constexpr int kSort = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;
constexpr int kBacklog = 64;

constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(int));

socklen_t length_of(const FileBox::Name& name) noexcept {
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + ::strnlen(name.data(), name.size()));
}

sockaddr_un address_of(const FileBox::Name& name) noexcept {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return address;
}

Status status_of(int error) noexcept {
  switch (error) {
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case ETOOMANYREFS: return Status::limit_reached;
    case ENOMEM:
    case ENOBUFS: return Status::no_memory;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE: return Status::not_found;
    default: return Status::io_error;
  }
}

/// The process at the other end, if it is of this user; else 0.
pid_t peer_of(int socket) noexcept {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  const bool known = ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0;
  return known && credentials.uid == ::geteuid() ? credentials.pid : 0;
}

}  // namespace

Result<FileBox> FileBox::open() noexcept {
  UniqueFd socket(::socket(AF_UNIX, kSort, 0));
  if (!socket) return status_of(errno);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // Without a name the kernel gives it one that is free.
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address.sun_family)) != 0 ||
      ::listen(socket.get(), kBacklog) != 0)
    return status_of(errno);
  socklen_t size = sizeof(address);
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return status_of(errno);
  const std::size_t letters = size - offsetof(sockaddr_un, sun_path) - 1;
  Name name = {};
  if (letters > name.size()) return Status::io_error;
  std::memcpy(name.data(), address.sun_path + 1, letters);
  return FileBox(std::move(socket), name);
}

Status FileBox::hand_over(const Name& name, pid_t owner, std::uint64_t number, int file) noexcept {
  const UniqueFd socket(::socket(AF_UNIX, kSort, 0));
  if (!socket) return status_of(errno);
  const sockaddr_un address = address_of(name);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length_of(name)) != 0)
    return status_of(errno);
  // The name may be another's by now.
  if (peer_of(socket.get()) != owner) return Status::not_found;
  iovec bytes{&number, sizeof(number)};
  alignas(cmsghdr) std::array<std::byte, kControlBytes> control = {};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(file));
  std::memcpy(CMSG_DATA(header), &file, sizeof(file));
  return ::sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(number) ? Status::ok
                                                                                          : status_of(errno);
}

Result<UniqueFd> FileBox::take(pid_t from, std::uint64_t number) noexcept {
  const Status received = receive();
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const Kept& kept) { return kept.from == from && kept.number == number; });
  if (found == kept_.end()) return received == Status::ok ? Status::not_found : received;
  UniqueFd file = std::move(found->file);
  kept_.erase(found);
  if (!file) return Status::limit_reached;
  return file;
}

void FileBox::discard(pid_t from) noexcept {
  static_cast<void>(receive());
  std::erase_if(kept_, [&](const Kept& kept) { return kept.from == from; });
}

/// Takes in all that has come.
Status FileBox::receive() noexcept {
  // Whoever connects without end is looked at again the next time.
  for (int turn = 0; turn < 2 * kBacklog; ++turn) {
    const UniqueFd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection) {
      if (const pid_t from = peer_of(connection.get()); from != 0) keep(connection.get(), from);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    return errno == EAGAIN ? Status::ok : status_of(errno);
  }
  return Status::ok;
}

/// Whoever hands a file over has sent it before he says so: one whose connection is empty has sent nothing.
void FileBox::keep(int connection, pid_t from) noexcept {
  Kept kept{.from = from, .number = 0, .file = {}};
  iovec bytes{&kept.number, sizeof(kept.number)};
  alignas(cmsghdr) std::array<std::byte, kControlBytes> control = {};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_LEN(sizeof(int));  // for one: the kernel closes what there is no room for
  const ssize_t got = ::recvmsg(connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  const cmsghdr* const header = got < 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len >= CMSG_LEN(sizeof(int))) {
    int file = -1;
    std::memcpy(&file, CMSG_DATA(header), sizeof(file));
    kept.file.reset(file);
  }
  if (got != sizeof(kept.number)) return;
  try {
    if (kept_.size() >= kKeptMax) kept_.erase(kept_.begin());
    kept_.push_back(std::move(kept));
  } catch (const std::bad_alloc&) {
    return;  // as one that did not come
  }
}

}  // namespace brant
