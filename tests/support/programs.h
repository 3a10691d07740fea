#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>

/// Programs that are no job together: each is a process of its own, forked before anything of brant runs.
namespace brant::test {

inline constexpr int kLimitSeconds = 60;  // nobody waits for ever for a program that hangs

/// Texts from one program to another. Each is a packet of its own: where two programs take letters of one kind, neither
/// reads a part of the other's.
class Letters {
 public:
  Letters() {
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends_) != 0) throw std::runtime_error("socketpair");
    // Nobody waits for ever: the program that should write a letter may have failed.
    const timeval limit{kLimitSeconds, 0};
    if (::setsockopt(ends_[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0)
      throw std::runtime_error("setsockopt");
  }
  Letters(const Letters&) = delete;
  Letters& operator=(const Letters&) = delete;
  ~Letters() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

  void put(const std::string& text) const {
    if (text.empty() || text.size() > kLongest ||
        ::send(ends_[1], text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
      throw std::runtime_error("a letter could not be written");
  }
  [[nodiscard]] std::string take() const {
    std::string text(kLongest, '\0');
    const ssize_t got = ::recv(ends_[0], text.data(), text.size(), 0);
    if (got <= 0) throw std::runtime_error("no letter came");
    text.resize(static_cast<std::size_t>(got));
    return text;
  }

 private:
  static constexpr std::size_t kLongest = 4096;

  int ends_[2];
};

/// In a program: ends it as failed.
inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

class Program {
 public:
  explicit Program(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::alarm(kLimitSeconds);
#ifdef __SANITIZE_ADDRESS__
    // UCX tries cma by reading a record of the other process over its own, at the same address. Forked processes have
    // one there, and then the sanitizer looks at what the record says now.
    ::setenv("UCX_TLS", "^cma,sysv,tcp", 0);
#endif
    int code = 0;
    try {
      body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "program %d: %s\n", ::getpid(), error.what());
      code = 1;
    }
    std::fflush(nullptr);
    ::_exit(code);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (pid_ <= 0) return;
    kill();
    static_cast<void>(wait());
  }

  void kill() const { ::kill(pid_, SIGKILL); }
  /// Its exit code, or the negative number of the signal that ended it.
  int wait() {
    int status = 0;
    if (::waitpid(std::exchange(pid_, 0), &status, 0) < 0) return -1000;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

}  // namespace brant::test
