#include "models/mpi/dynamic/fd_talk.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>

#include "models/mpi/process.h"

namespace brant::mpi {

namespace {

/// The name and zeros behind it. Both ends send so much and read so much: nothing is left in the socket.
using Frame = std::array<char, MPI_MAX_PORT_NAME>;
constexpr auto kLookAtSocket = std::chrono::milliseconds(5);

/// Moves some of the bytes: how many; 0 for none now.
template <typename Step>
std::size_t step(int fd, const Step& move) {
  const ssize_t done = move();
  if (done > 0) return static_cast<std::size_t>(done);
  const int error = errno;
  if (done < 0 && (error == EAGAIN || error == EWOULDBLOCK || error == EINTR)) return 0;
  require(done == 0 || error != ENOTSOCK, MPI_ERR_ARG, "the descriptor {} is no socket", fd);
  require(done == 0 || error != EBADF, MPI_ERR_ARG, "the descriptor {} is not open", fd);
  fail(MPI_ERR_OTHER, "the other end of the socket {} was closed before both processes had called MPI_Comm_join{}{}",
       fd, done < 0 ? ": " : "", done < 0 ? std::strerror(error) : "");
}

}  // namespace

bool is_open_socket(int fd) noexcept {
  char byte = 0;
  const ssize_t got = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

std::string swap_names(int fd, std::string_view given) {
  Frame out{};
  Frame in{};
  std::memcpy(out.data(), given.data(), given.size());
  std::size_t sent = 0;
  std::size_t got = 0;
  while (sent < out.size() || got < in.size()) {
    const std::size_t before = sent + got;
    if (sent < out.size())
      sent += step(fd, [&] { return ::send(fd, out.data() + sent, out.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL); });
    if (got < in.size()) got += step(fd, [&] { return ::recv(fd, in.data() + got, in.size() - got, MSG_DONTWAIT); });
    if (sent + got == before)
      static_cast<void>(process()->runtime().worker().wait_until([]() noexcept { return false; }, kLookAtSocket));
  }
  in.back() = 0;
  return in.data();
}

}  // namespace brant::mpi
