#pragma once

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
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

/// Texts from one program to another.
class Letters {
 public:
  Letters() {
    if (::pipe(ends_) != 0) throw std::runtime_error("pipe");
  }
  Letters(const Letters&) = delete;
  Letters& operator=(const Letters&) = delete;
  ~Letters() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

  void put(const std::string& text) const {
    const auto size = static_cast<std::uint32_t>(text.size());
    std::string whole(reinterpret_cast<const char*>(&size), sizeof(size));
    whole += text;
    // In one piece, as a pipe takes up to PIPE_BUF bytes: others may write too.
    if (whole.size() > PIPE_BUF || ::write(ends_[1], whole.data(), whole.size()) != static_cast<ssize_t>(whole.size()))
      throw std::runtime_error("a letter could not be written");
  }
  /// Waits; not for ever, since a program that should write it may have failed.
  [[nodiscard]] std::string take() const {
    std::uint32_t size = 0;
    take(&size, sizeof(size));
    std::string text(size, '\0');
    take(text.data(), text.size());
    return text;
  }

 private:
  void take(void* bytes, std::size_t size) const {
    for (auto* at = static_cast<char*>(bytes); size != 0;) {
      pollfd readable{ends_[0], POLLIN, 0};
      if (::poll(&readable, 1, kLimitSeconds * 1000) != 1) throw std::runtime_error("no letter came");
      const ssize_t got = ::read(ends_[0], at, size);
      if (got <= 0) throw std::runtime_error("a letter could not be read");
      at += got;
      size -= static_cast<std::size_t>(got);
    }
  }

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
