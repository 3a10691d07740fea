#include "conformance/memory/memory_peer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "conformance/memory/memory_fixture.h"

namespace brant::test {

struct MemoryPeer::Request {
  enum class Kind : std::uint32_t {
    allocate,
    free,
    holds,
    import_and_write,
    import_file_and_write
  } kind = Kind::allocate;
  std::uint32_t number = 0;
  std::uint32_t seed = 0;
  MemoryKind memory = MemoryKind::detect;  ///< detect: the device's own.
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
  port::ExportRecord record;
};

struct MemoryPeer::Answer {
  Status status = Status::internal;
  std::uint32_t holds = 0;
  port::ExportRecord record;
};

namespace {

constexpr const char* kSocketVariable = "BRANT_TEST_PEER_SOCKET";
constexpr const char* kDeviceVariable = "BRANT_TEST_PEER_DEVICE";

/// The peer's side of the conversation.
class Servant {
 public:
  explicit Servant(port::Device& device) : device_(device) {
    for (const MemoryKind kind : {MemoryKind::cuda, MemoryKind::emulated}) {
      if (device.capabilities().offers(kind)) kind_ = kind;
    }
  }

  /// `file` came with the request; -1: none did.
  MemoryPeer::Answer answer(const MemoryPeer::Request& request, int file) {
    using Kind = MemoryPeer::Request::Kind;
    MemoryPeer::Answer answer;
    switch (request.kind) {
      case Kind::allocate: answer.status = allocate(request, answer.record); break;
      case Kind::free: answer.status = device_.free(pieces_.at(request.number).pointer); break;
      case Kind::holds: answer.status = holds(request, answer.holds); break;
      case Kind::import_and_write: answer.status = write_to(device_.import_allocation(request.record), request); break;
      case Kind::import_file_and_write:
        answer.status = write_to(device_.import_file(request.record, file), request);
        break;
    }
    return answer;
  }

 private:
  struct Held {
    void* pointer = nullptr;
    std::size_t bytes = 0;
  };

  Status transfer(void* destination, const void* source, std::size_t bytes) {
    if (device_.streams() == nullptr) {
      std::memcpy(destination, source, bytes);
      return Status::ok;
    }
    const StreamScope stream(device_);
    const Status copied = device_.streams()->copy(destination, source, bytes, stream);
    return copied == Status::ok ? device_.streams()->synchronize(stream) : copied;
  }
  Status allocate(const MemoryPeer::Request& request, port::ExportRecord& record) {
    const Result<void*> pointer =
        device_.allocate(request.memory == MemoryKind::detect ? kind_ : request.memory, request.bytes);
    if (!pointer) return pointer.status();
    pieces_.push_back({*pointer, request.bytes});
    const Bytes content = pattern(request.bytes, request.seed);
    if (const Status status = transfer(*pointer, content.data(), content.size()); status != Status::ok) return status;
    const Result<port::ExportRecord> made =
        device_.export_allocation(static_cast<std::byte*>(*pointer) + request.offset);
    if (made) record = *made;
    return made.status();
  }
  Status holds(const MemoryPeer::Request& request, std::uint32_t& same) {
    const Held& held = pieces_.at(request.number);
    Bytes got(held.bytes);
    const Status status = transfer(got.data(), held.pointer, held.bytes);
    same = got == pattern(held.bytes, request.seed) ? 1 : 0;
    return status;
  }
  Status write_to(Result<void*> imported, const MemoryPeer::Request& request) {
    if (!imported) return imported.status();
    const Bytes content = pattern(request.record.bytes - request.record.offset, request.seed);
    const Status status = transfer(*imported, content.data(), content.size());
    return status == Status::ok ? device_.close_import(*imported) : status;
  }

  port::Device& device_;
  MemoryKind kind_ = MemoryKind::pinned;
  std::vector<Held> pieces_;
};

/// One request, and the file that came with it, if one did.
bool receive(int socket, MemoryPeer::Request& request, UniqueFd& file) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{&request, sizeof(request)};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != static_cast<ssize_t>(sizeof(request))) return false;
  file.reset();
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return true;
  int number = -1;
  std::memcpy(&number, CMSG_DATA(header), sizeof(number));
  file.reset(number);
  return true;
}

/// False if it did not go.
bool send_request(int socket, const MemoryPeer::Request& request, int file) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{const_cast<MemoryPeer::Request*>(&request), sizeof(request)};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (file >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &file, sizeof(file));
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(request));
}

// Not a test: what the process does that MemoryPeer starts. It ends when the other end of the socket is closed.
TEST(MemoryPeerProcess, serves) {
  const char* socket_text = std::getenv(kSocketVariable);
  const char* device_name = std::getenv(kDeviceVariable);
  if (socket_text == nullptr || device_name == nullptr) return;  // this process is not a peer
  const UniqueFd socket(std::atoi(socket_text));
  std::string reason;
  const std::unique_ptr<port::Device> device = open_subject(device_name, reason);
  ASSERT_NE(device, nullptr) << reason;
  Servant servant(*device);
  MemoryPeer::Request request;
  UniqueFd file;
  while (receive(socket.get(), request, file)) {
    const MemoryPeer::Answer answer = servant.answer(request, file.get());
    ASSERT_EQ(::send(socket.get(), &answer, sizeof(answer), MSG_NOSIGNAL), static_cast<ssize_t>(sizeof(answer)));
  }
}

}  // namespace

MemoryPeer::MemoryPeer(const std::string& device, MemoryKind memory) : memory_(memory) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  socket_.reset(ends[0]);
  const UniqueFd theirs(ends[1]);
  // Everything the child needs is made before the fork: afterwards only calls that are safe in a child of many threads.
  const std::string variables[] = {std::string(kSocketVariable) + "=" + std::to_string(theirs.get()),
                                   std::string(kDeviceVariable) + "=" + device};
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  for (const std::string& variable : variables) environment.push_back(const_cast<char*>(variable.c_str()));
  environment.push_back(nullptr);
  std::string arguments[] = {"memory_peer", "--gtest_filter=MemoryPeerProcess.serves", "--gtest_brief=1"};
  char* argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), nullptr};
  const UniqueFd quiet(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(quiet.get(), STDOUT_FILENO);  // its test report would look like ours
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::fcntl(theirs.get(), F_SETFD, 0);
    ::execve("/proc/self/exe", argv, environment.data());
    ::_exit(127);
  }
}

MemoryPeer::~MemoryPeer() {
  if (pid_ <= 0) return;
  socket_.reset();
  int status = 0;
  ::waitpid(pid_, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the peer ended with " << status;
}

void MemoryPeer::kill() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

MemoryPeer::Answer MemoryPeer::ask(const Request& request, int file) {
  Answer answer;
  pollfd readable{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  if (!send_request(socket_.get(), request, file)) return answer;
  if (::poll(&readable, 1, 20000) != 1) return answer;
  if (::recv(socket_.get(), &answer, sizeof(answer), 0) != static_cast<ssize_t>(sizeof(answer))) return Answer{};
  return answer;
}

Result<port::ExportRecord> MemoryPeer::allocate(std::size_t bytes, unsigned seed, std::size_t offset) {
  const Answer answer = ask({.kind = Request::Kind::allocate,
                             .seed = seed,
                             .memory = memory_,
                             .bytes = bytes,
                             .offset = offset,
                             .record = {}});
  if (answer.status != Status::ok) return answer.status;
  return answer.record;
}

Status MemoryPeer::free(unsigned number) {
  return ask({.kind = Request::Kind::free, .number = number, .record = {}}).status;
}

bool MemoryPeer::holds(unsigned number, unsigned seed) {
  const Answer answer = ask({.kind = Request::Kind::holds, .number = number, .seed = seed, .record = {}});
  return answer.status == Status::ok && answer.holds == 1;
}

Status MemoryPeer::import_file_and_write(const port::ExportRecord& record, int file, unsigned seed) {
  return ask({.kind = Request::Kind::import_file_and_write, .seed = seed, .record = record}, file).status;
}

Status MemoryPeer::import_and_write(const port::ExportRecord& record, unsigned seed) {
  return ask({.kind = Request::Kind::import_and_write, .seed = seed, .record = record}).status;
}

}  // namespace brant::test
