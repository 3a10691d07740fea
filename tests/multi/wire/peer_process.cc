#include "multi/wire/peer_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "brant/base/status.h"
#include "support/beside_this_test.h"

namespace brant::port::test {
PeerProcess::PeerProcess(Wire& wire, bool peer_errors) : wire_(wire) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(Status::io_error, "socketpair failed");
  socket_.reset(ends[0]);
  const std::string program = brant::test::beside_this_test("wire_peer");
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[1], 3);
    ::execl(program.c_str(), program.c_str(), "3", peer_errors ? "1" : "0", nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  const std::vector<std::byte> mine(wire.address().begin(), wire.address().end());
  if (pid_ < 0 || !read_blob(socket_.get(), address_) || !write_blob(socket_.get(), mine))
    throw Error(Status::io_error, program + " did not start");
  const Result<WireEndpoint*> endpoint = wire.connect(address_);
  if (!endpoint) throw Error(endpoint.status(), "connect to the peer process failed");
  endpoint_ = *endpoint;
}

PeerProcess::~PeerProcess() { kill(); }

std::optional<Answer> PeerProcess::next_answer(std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  pollfd event{socket_.get(), POLLIN, 0};
  for (unsigned round = 0; std::chrono::steady_clock::now() < until; ++round) {
    wire_.progress();
    wire_.deliver(16);
    if (round % 64 != 0 || ::poll(&event, 1, 0) <= 0) continue;
    Answer answer;
    if (!read_all(socket_.get(), &answer, sizeof answer)) return std::nullopt;
    return answer;
  }
  return std::nullopt;
}

bool PeerProcess::tell(const Command& command) {
  if (!write_all(socket_.get(), &command, sizeof command)) return false;
  while (const auto answer = next_answer(std::chrono::seconds(20))) {
    if (answer->finished == 0) return answer->verb == static_cast<std::uint32_t>(command.verb);
    early_.push_back(*answer);
  }
  return false;
}

std::optional<std::uint64_t> PeerProcess::finished(std::chrono::milliseconds limit) {
  if (!early_.empty()) {
    const std::uint64_t failures = early_.front().failures;
    early_.erase(early_.begin());
    return failures;
  }
  const auto answer = next_answer(limit);
  if (!answer || answer->finished == 0) return std::nullopt;
  return answer->failures;
}

std::optional<PeerProcess::Segment> PeerProcess::segment(std::uint64_t bytes, bool ordinary) {
  const Command command{Verb::segment, 0, ordinary ? 1u : 0u, bytes, 1};
  if (!write_all(socket_.get(), &command, sizeof command)) return std::nullopt;
  const auto answer = next_answer(std::chrono::seconds(20));
  if (!answer || answer->blob_bytes == 0) return std::nullopt;
  Segment out{answer->address, std::vector<std::byte>(answer->blob_bytes)};
  if (!read_all(socket_.get(), out.key.data(), out.key.size())) return std::nullopt;
  return out;
}

void PeerProcess::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void PeerProcess::freeze() const {
  if (pid_ > 0) ::kill(pid_, SIGSTOP);
}

int PeerProcess::quit() {
  if (pid_ <= 0 || !tell({Verb::quit, 0, 0, 0, 0})) return -1;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  int status = 0;
  while (std::chrono::steady_clock::now() < until) {
    wire_.progress();
    wire_.deliver(16);
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
  }
  return -1;
}

}  // namespace brant::port::test
