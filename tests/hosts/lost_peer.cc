// One of two ranks on different hosts, while a test breaks something between them:
//   lost_peer SCENE LIMIT_S
// It has operations under way until one of them fails, then waits for the others. Prints "under way" when both ranks
// talk, and at the end what became of the operations. Ends with 0 if all of them ended in time and at least one as
// peer_lost, 1 otherwise. With the scene `steady` nothing may fail: after LIMIT_S without a loss it prints "steady" and
// goes on, for the sake of the other rank, until it is ended.
#include <chrono>
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
                             {"flood", 8, 8, 2'000'000},
                             {"small", 8, 8, 64},
                             {"steady", 8, 8, 64}};

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

int play(const Scene& scene, std::chrono::duration<double> limit) {
  Runtime runtime;
  const int self = runtime.rank().value;
  const Rank peer{1 - self};
  Channel channel = Channel::open(runtime, peer, ChannelId{1});
  int word = self, got = -1;
  Operation receive = channel.recv(Buffer(&got, sizeof got));
  Operation send = channel.send(ConstBuffer(&word, sizeof word));
  if (runtime.worker().wait_until([&] { return receive.done() && send.done(); }, std::chrono::seconds(20)) !=
      Status::ok)
    return 2;
  say(fmt::format("rank {} under way", self));

  Traffic traffic(channel, scene);
  traffic.start();
  const auto begin = Clock::now();
  const bool steady = scene.name == "steady";
  auto failed = [&] { return traffic.lost() + traffic.other() > 0; };
  const auto spent = [&] { return Clock::now() - begin > limit; };
  bool told = false;
  while (!failed() && (steady || !spent())) {
    static_cast<void>(runtime.worker().wait_until(failed, std::chrono::milliseconds(1)));
    traffic.go_on();
    if (steady && spent() && !told) {
      told = true;
      say(fmt::format("rank {} steady after {} operations", self, traffic.done()));
    }
  }
  const double first = std::chrono::duration<double>(Clock::now() - begin).count();
  static_cast<void>(runtime.worker().wait_until([&] { return traffic.pending() == 0; }, std::chrono::seconds(1)));
  say(fmt::format("rank {}: {} ended well, {} as peer_lost, {} otherwise, {} pending, first after {:.2f} s", self,
                  traffic.done(), traffic.lost(), traffic.other(), traffic.pending(), first));
  say(fmt::format("rank {}: {}", self, words_of_loss(runtime, peer)));
  std::_Exit(traffic.lost() > 0 && traffic.other() == 0 && traffic.pending() == 0 ? 0 : 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  for (const Scene& scene : kScenes) {
    if (scene.name == argv[1]) return play(scene, std::chrono::duration<double>(std::atof(argv[2])));
  }
  return 64;
}
