// The other process of the wire tests: opens a UCX wire, connects to the test, and does what it is told.
//   wire_peer FD PEER_ERRORS
#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

#include "brant/base/status.h"
#include "multi/wire/peer_protocol.h"
#include "port/wire/ucx/open.h"

namespace brant::port::test {
namespace {

class Peer {
 public:
  Peer(int fd, const UcxOptions& options) : fd_(fd), wire_(open_ucx_wire(options)) {
    wire_->set_am_handler(kEchoId, &Peer::on_echo_am, this);
    wire_->set_am_handler(kNewsId, &Peer::on_news, this);
  }

  bool meet() {
    std::vector<std::byte> theirs;
    const std::vector<std::byte> mine(wire_->address().begin(), wire_->address().end());
    if (!write_blob(fd_, mine) || !read_blob(fd_, theirs)) return false;
    const Result<WireEndpoint*> endpoint = wire_->connect(theirs);
    if (!endpoint) return false;
    test_ = *endpoint;
    return true;
  }

  int run() {
    while (!quit_) {
      const bool idle = wire_->progress() == 0 && wire_->deliver(16) == 0;
      wait_for_work(idle);
      if (!take_command()) return 1;
    }
    return 0;
  }

 private:
  struct Job;
  struct Transfer : WireOp {
    Peer* peer = nullptr;
    Job* job = nullptr;
    std::vector<std::byte> bytes;
    bool back = false;  ///< An echo on its way back.
  };
  struct Job {
    Command command;
    std::uint64_t left = 0;
    std::uint64_t failures = 0;
    std::deque<Transfer> transfers;
  };
  struct AmSend : WireOp {
    std::vector<std::byte> header, payload;
  };

  /// Commands come rarely: looked for when idle, or every some rounds. While asleep: wire and socket together.
  void wait_for_work(bool idle) {
    readable_ = false;
    ++rounds_;
    if (stopped_ || (asleep_ && idle && wire_->arm())) {
      pollfd events[2] = {{fd_, POLLIN, 0}, {stopped_ ? -1 : wire_->event_fd(), POLLIN, 0}};
      ::poll(events, 2, -1);
      readable_ = events[0].revents != 0;
    } else if (idle || rounds_ % 64 == 0) {
      pollfd event{fd_, POLLIN, 0};
      readable_ = ::poll(&event, 1, 0) > 0;
    }
  }

  bool take_command() {
    if (!readable_) return true;
    Command command;
    if (!read_all(fd_, &command, sizeof command)) return false;
    switch (command.verb) {
      case Verb::echo:
      case Verb::send:
      case Verb::receive: start(command); break;
      case Verb::send_am: send_am(command); break;
      case Verb::segment: make_segment(command); break;
      case Verb::stop: stopped_ = true; break;
      case Verb::sleep: asleep_ = true; break;
      case Verb::quit: quit_ = true; break;
    }
    Answer answer;
    answer.verb = static_cast<std::uint32_t>(command.verb);
    return command.verb == Verb::segment || write_all(fd_, &answer, sizeof answer);
  }

  void start(const Command& command) {
    Job& job = jobs_.emplace_back();
    job.command = command;
    job.left = command.count;
    for (std::uint64_t i = 0; i < command.count; ++i) {
      Transfer& transfer = job.transfers.emplace_back();
      transfer.peer = this;
      transfer.job = &job;
      transfer.bytes.assign(command.bytes, static_cast<std::byte>(i));
      transfer.on_complete = &Peer::on_done;
      post(transfer, command.verb == Verb::send, command.tag, command.bytes);
    }
  }

  void post(Transfer& transfer, bool is_send, std::uint64_t tag, std::size_t bytes) noexcept {
    const Status status =
        is_send
            ? wire_->tag_send(test_, tag, ConstBuffer{transfer.bytes.data(), bytes, MemoryKind::host}, transfer)
            : wire_->tag_recv(tag, ~std::uint64_t{0}, Buffer{transfer.bytes.data(), bytes, MemoryKind::host}, transfer);
    if (status == Status::in_progress) return;
    transfer.status = status;
    on_done(transfer);
  }

  static void on_done(WireOp& op) noexcept {
    auto& transfer = static_cast<Transfer&>(op);
    Job& job = *transfer.job;
    if (transfer.status != Status::ok) ++job.failures;
    if (job.command.verb == Verb::echo && !transfer.back && transfer.status == Status::ok) {
      transfer.back = true;
      transfer.peer->post(transfer, true, job.command.tag | kBackTag, transfer.WireOp::bytes);
      return;
    }
    if (--job.left > 0) return;
    Answer answer;
    answer.verb = static_cast<std::uint32_t>(job.command.verb);
    answer.finished = 1;
    answer.failures = job.failures;
    write_all(transfer.peer->fd_, &answer, sizeof answer);
  }

  void send_am(const Command& command) {
    for (std::uint64_t i = 0; i < command.count; ++i) {
      AmSend& am = am_sends_.emplace_back();
      am.payload.assign(command.bytes, static_cast<std::byte>(i));
      if (wire_->am_send(test_, kNewsId, {}, ConstBuffer{am.payload.data(), am.payload.size(), MemoryKind::host}, am) !=
          Status::in_progress)
        continue;
    }
  }

  static void on_echo_am(void* context, AmMessage& message) noexcept {
    auto& peer = *static_cast<Peer*>(context);
    AmSend& am = peer.am_sends_.emplace_back();
    am.header.assign(message.header.begin(), message.header.end());
    am.payload.resize(message.bytes);
    if (message.data != nullptr) {
      std::copy(message.data, message.data + message.bytes, am.payload.begin());
      peer.send_back(am);
      return;
    }
    struct Landing : WireOp {
      Peer* peer;
      AmSend* am;
    };
    auto* landing = new Landing;  // deleted when it has landed
    landing->peer = &peer;
    landing->am = &am;
    landing->on_complete = [](WireOp& op) noexcept {
      auto* landed = static_cast<Landing*>(&op);
      landed->peer->send_back(*landed->am);
      delete landed;
    };
    const Status status =
        peer.wire_->am_receive(message, Buffer{am.payload.data(), am.payload.size(), MemoryKind::host}, *landing);
    if (status == Status::in_progress) return;
    landing->on_complete(*landing);
  }

  void send_back(AmSend& am) noexcept {
    am.on_complete = [](WireOp&) noexcept {};
    const Status status = wire_->am_send(test_, kEchoId, am.header,
                                         ConstBuffer{am.payload.data(), am.payload.size(), MemoryKind::host}, am);
    if (status != Status::ok && status != Status::in_progress)
      std::fprintf(stderr, "wire_peer: echo failed: %s\n", status_name(status).data());
  }

  static void on_news(void*, AmMessage&) noexcept {}

  void make_segment(const Command& command) {
    RemoteMemory& memory = *wire_->remote_memory();
    ordinary_.emplace_back(command.bytes);
    const Result<WireSegment*> segment =
        command.tag == 1 ? memory.register_memory(Buffer{ordinary_.back().data(), command.bytes, MemoryKind::host})
                         : memory.allocate_shared(command.bytes);
    Answer answer;
    answer.verb = static_cast<std::uint32_t>(Verb::segment);
    if (!segment) return void(write_all(fd_, &answer, sizeof answer));
    const auto key = memory.pack_key(*segment);
    answer.address = reinterpret_cast<std::uintptr_t>(memory.memory_of(*segment).data);
    answer.blob_bytes = key->size();
    write_all(fd_, &answer, sizeof answer);
    write_all(fd_, key->data(), key->size());
  }

  int fd_;
  std::unique_ptr<Wire> wire_;
  WireEndpoint* test_ = nullptr;
  bool quit_ = false, stopped_ = false, asleep_ = false, readable_ = false;
  unsigned rounds_ = 0;
  std::deque<Job> jobs_;
  std::deque<AmSend> am_sends_;
  std::deque<std::vector<std::byte>> ordinary_;
};

}  // namespace
}  // namespace brant::port::test

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  brant::port::UcxOptions options;
  options.peer_errors_on_same_host = std::atoi(argv[2]) != 0;
  try {
    brant::port::test::Peer peer(std::atoi(argv[1]), options);
    return peer.meet() ? peer.run() : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "wire_peer: %s\n", error.what());
    return 3;
  }
}
