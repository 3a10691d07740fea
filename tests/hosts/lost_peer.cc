// One of two ranks on different hosts, while a test breaks something between them:
//   lost_peer SCENE LIMIT_S
// It has operations under way until one of them fails, then waits for the others. Prints "under way" when both ranks
// talk, at the end what became of the operations, and how long it took to close everything. Ends with 0 if all of them
// ended in time and at least one as peer_lost, 1 otherwise. With the scene `steady` nothing may fail: after LIMIT_S
// without a loss it prints "steady" and goes on, for the sake of the other rank, until it is ended; with `computes`
// rank 1 makes no progress for LIMIT_S before. With `first` the ranks have not met: they wait for SIGUSR1 before they
// turn to each other. With `ends` they close everything at that signal.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "brant/brant.h"

namespace {

using namespace brant;
using Clock = std::chrono::steady_clock;

struct Scene {
  std::string_view name;
  std::size_t sends;
  std::size_t receives;
  std::size_t bytes;
};
constexpr Scene kScenes[] = {{"receives", 0, 8, 64},  // both wait, nothing is in flight
                             {"flood", 8, 8, 2'000'000}, {"small", 8, 8, 64}, {"steady", 8, 8, 64},
                             {"computes", 8, 8, 64},     {"first", 8, 8, 64}, {"ends", 0, 0, 0}};

/// Operations that are posted again when they succeeded, until one fails.
class Traffic {
 public:
  Traffic(Channel& channel, const Scene& scene) : channel_(channel), slots_(scene.sends + scene.receives) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      slots_[i].traffic = this;
      slots_[i].sends = i < scene.sends;
      slots_[i].bytes.resize(scene.bytes);
    }
  }
  void start() {
    for (Slot& slot : slots_) post(slot);
  }
  /// Posts again what ended well; not from the completion itself.
  void go_on() {
    for (Slot& slot : slots_) {
      if (slot.idle && lost_ + other_ == 0) post(slot);
    }
  }
  [[nodiscard]] std::size_t pending() const { return pending_; }
  [[nodiscard]] std::size_t lost() const { return lost_; }
  [[nodiscard]] std::size_t other() const { return other_; }
  [[nodiscard]] std::size_t done() const { return done_; }

 private:
  struct Slot {
    Op op;
    Traffic* traffic = nullptr;
    bool sends = false;
    bool idle = true;
    std::vector<std::byte> bytes;
  };

  void post(Slot& slot) {
    slot.idle = false;
    const Completion sink{[](void* self, const OpResult& result) noexcept {
                            auto& ended = *static_cast<Slot*>(self);
                            ended.traffic->end(ended, result.status);
                          },
                          &slot};
    (slot.sends ? slot.op.source_free : slot.op.delivered) = sink;
    ++pending_;
    const Status status = slot.sends ? channel_.post_send(std::span(slot.bytes), slot.op)
                                     : channel_.post_recv(std::span(slot.bytes), slot.op);
    if (status != Status::in_progress) end(slot, status);
  }
  void end(Slot& slot, Status status) noexcept {
    --pending_;
    slot.idle = true;
    if (status == Status::ok) ++done_;
    if (status == Status::peer_lost) ++lost_;
    if (status != Status::ok && status != Status::peer_lost) ++other_;
  }

  Channel& channel_;
  std::vector<Slot> slots_;
  std::size_t pending_ = 0, done_ = 0, lost_ = 0, other_ = 0;
};

void say(const std::string& text) {
  std::puts(text.c_str());
  std::fflush(stdout);
}

/// Stands before what is to be closed, and says how long that took.
struct Closing {
  int rank;
  Clock::time_point begin{};
  ~Closing() {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (begin != Clock::time_point{}) say(fmt::format("rank {}: closed in {:.2f} s", rank, seconds));
  }
};

/// What a program sees that turns to the lost rank again, a moment after the first operation failed.
std::string words_of_loss(Runtime& runtime, Rank peer) {
  const auto deadline = Clock::now() + std::chrono::seconds(1);
  try {
    while (Clock::now() < deadline) {
      const Channel another = Channel::open(runtime, peer, ChannelId{9});
      static_cast<void>(runtime.worker().wait_until([] { return false; }, std::chrono::milliseconds(10)));
    }
    return "a new channel could be opened";
  } catch (const Error& error) {
    return error.what();
  }
}

bool meet(Runtime& runtime, Channel& channel) {
  int word = 1, got = -1;
  Operation receive = channel.recv(Buffer(&got, sizeof got));
  Operation send = channel.send(ConstBuffer(&word, sizeof word));
  return runtime.worker().wait_until([&] { return receive.done() && send.done(); }, std::chrono::seconds(20)) ==
         Status::ok;
}

sigset_t call_to_go() {
  sigset_t call;
  sigemptyset(&call);
  sigaddset(&call, SIGUSR1);
  return call;
}

void compute(std::chrono::duration<double> time) {
  for (const auto begin = Clock::now(); Clock::now() - begin < time;) {
  }
}

int play(const Scene& scene, std::chrono::duration<double> limit) {
  const sigset_t call = call_to_go();
  sigprocmask(SIG_BLOCK, &call, nullptr);  // before there are other threads
  Closing closing{0};
  Runtime runtime;
  const int self = closing.rank = runtime.rank().value;
  const Rank peer{1 - self};
  if (scene.name == "first") {
    int number = 0;
    say(fmt::format("rank {} under way", self));
    sigwait(&call, &number);
  }
  Channel channel = Channel::open(runtime, peer, ChannelId{1});
  if (scene.name != "first") {
    if (!meet(runtime, channel)) return 2;
    say(fmt::format("rank {} under way", self));
  }

  if (scene.name == "ends") {
    int number = 0;
    sigwait(&call, &number);
    closing.begin = Clock::now();
    return 0;
  }

  Traffic traffic(channel, scene);
  traffic.start();
  const auto begin = Clock::now();
  const bool computes = scene.name == "computes";
  if (computes && self == 1) compute(limit);
  const bool steady = scene.name == "steady" || computes;
  auto failed = [&] { return traffic.lost() + traffic.other() > 0; };
  const auto spent = [&] { return Clock::now() - begin > limit; };
  bool told = false;
  while (!failed() && (steady || !spent())) {
    static_cast<void>(runtime.worker().wait_until(failed, std::chrono::milliseconds(1)));
    traffic.go_on();
    if (steady && spent() && traffic.done() > 0 && !told) {
      told = true;
      say(fmt::format("rank {} steady after {} operations", self, traffic.done()));
    }
  }
  const double first = std::chrono::duration<double>(Clock::now() - begin).count();
  static_cast<void>(runtime.worker().wait_until([&] { return traffic.pending() == 0; }, std::chrono::seconds(1)));
  say(fmt::format("rank {}: {} ended well, {} as peer_lost, {} otherwise, {} pending, first after {:.2f} s", self,
                  traffic.done(), traffic.lost(), traffic.other(), traffic.pending(), first));
  say(fmt::format("rank {}: {}", self, words_of_loss(runtime, peer)));
  closing.begin = Clock::now();
  return traffic.lost() > 0 && traffic.other() == 0 && traffic.pending() == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  for (const Scene& scene : kScenes) {
    if (scene.name == argv[1]) return play(scene, std::chrono::duration<double>(std::atof(argv[2])));
  }
  return 64;
}
