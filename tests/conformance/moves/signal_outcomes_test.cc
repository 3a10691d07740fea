// Every signal that a move can carry, with every outcome, between ends of one process, of one host and of two hosts: it
// says once that the bytes are there, if they are, and never otherwise; and then the memory of both ends is free.
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/core/device.h"
#include "brant/core/stream.h"
#include "brant/notify.h"
#include "brant/ops/channel.h"
#include "brant/partitioned/partitioned.h"
#include "conformance/moves/allocation_sweep.h"
#include "support/environment.h"

namespace brant {
namespace {

using test::Fails;
using test::JobOptions;
using test::pattern;
using test::ScarceJob;
using test::ScarceMemory;
using test::Space;
using test::tells_of_memory;

enum class Locality { own_process, own_host, other_host };
enum class Outcome { done, truncated, canceled, closed, lost, no_memory };
enum class Signal {
  operation,     ///< The sinks of who posted it.
  record,        ///< The sender hears that it has landed: a record of the link, or a message.
  engine_word,   ///< A word that the copy engine sets behind the bytes.
  courier_word,  ///< The same by the kernel that copies.
  bell,          ///< A part leaves when its bell is rung, and the receiver hears of that part.
};

constexpr const char* name_of(Locality locality) {
  constexpr std::array kNames = {"own_process", "own_host", "other_host"};
  return kNames[static_cast<std::size_t>(locality)];
}
constexpr const char* name_of(Outcome outcome) {
  constexpr std::array kNames = {"done", "truncated", "canceled", "closed", "lost", "no_memory"};
  return kNames[static_cast<std::size_t>(outcome)];
}
constexpr const char* name_of(Signal signal) {
  constexpr std::array kNames = {"operation", "record", "engine_word", "courier_word", "bell"};
  return kNames[static_cast<std::size_t>(signal)];
}

struct Case {
  Signal signal;
  Outcome outcome;
  Locality locality;
};

bool is_of_device(Signal signal) { return signal == Signal::engine_word || signal == Signal::courier_word; }

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Signal signal :
       {Signal::operation, Signal::record, Signal::engine_word, Signal::courier_word, Signal::bell}) {
    for (const Outcome outcome :
         {Outcome::done, Outcome::truncated, Outcome::canceled, Outcome::closed, Outcome::lost, Outcome::no_memory}) {
      for (const Locality locality : {Locality::own_process, Locality::own_host, Locality::other_host}) {
        if (is_of_device(signal) && locality != Locality::own_host) continue;         // words are for who maps them
        if (outcome == Outcome::lost && locality == Locality::own_process) continue;  // they die together
        cases.push_back({signal, outcome, locality});
      }
    }
  }
  return cases;
}

/// How often a moment was told, and what of.
struct Told {
  Completion sink() noexcept {
    return {[](void* self, const OpResult& result) noexcept { static_cast<Told*>(self)->note(result.status); }, this};
  }
  void note(Status now) noexcept {
    ++times;
    status = now;
  }
  int times = 0;
  Status status = Status::in_progress;
};

/// Starts an operation; what the post says at once is told of each of its moments.
template <typename Post>
void start(Op& op, std::initializer_list<Told*> moments, Post&& post) {
  const Status status = post(op);
  if (status == Status::in_progress) return;
  for (Told* told : moments) told->note(status);
}

JobOptions options_of(const Case& of) {
  JobOptions options;
  options.ranks = of.locality == Locality::own_process ? 1 : 2;
  options.gpu = GpuChoice::emulated;
  options.links = of.locality == Locality::own_host;
  if (of.signal == Signal::engine_word) options.runtime.path = Path::copy_engine;
  if (of.signal == Signal::courier_word) options.runtime.path = Path::courier;
  return options;
}

/// What one move tells its two ends.
class Scene {
 public:
  explicit Scene(const Case& of)
      : case_(of),
        engine_words_("BRANT_COPY_SIGNAL", of.signal == Signal::engine_word ? "1" : "0"),
        couriers_("BRANT_COURIER", of.signal == Signal::courier_word ? "1" : "0"),
        job_(options_of(of)),
        receiver_(of.locality == Locality::own_process ? 0 : 1),
        source_(job_->rank(0), kind(), kBytes),
        landing_(job_->rank(receiver_), kind(), kBytes) {
    source_.fill(pattern(kBytes, 5));
    if (of.signal == Signal::bell) {
      notifier_.emplace(job_->rank(0));
      ringing_.emplace(job_->rank(0).device().create_stream());
      parts_out_.emplace(job_->rank(0), left(), PartitionedOptions{.parts = 1, .bytes_min = 0}, &*notifier_);
      parts_in_.emplace(job_->rank(receiver_), right(), PartitionedOptions{.parts = 1, .bytes_min = 0});
    } else {
      left_.emplace(left());
      right_.emplace(right());
    }
    job_->run(20);
  }

  void play() {
    switch (case_.outcome) {
      case Outcome::done:
        receive(kBytes);
        send();
        break;
      case Outcome::truncated:
        receive(kBytes / 2);
        send();
        break;
      case Outcome::canceled:
        receive(kBytes);
        job_->run(20);
        receive_op_.cancel();
        break;
      case Outcome::closed:
        receive(kBytes);
        job_->run(20);
        close_right();
        break;
      case Outcome::lost:
        receive(kBytes);
        job_->run(20);
        job_.part_wholly();
        break;
      case Outcome::no_memory: {
        ScarceMemory scarce(1, Fails::from_then_on);
        receive(kBytes);
        send();
        job_->run(200);
        break;
      }
    }
    EXPECT_TRUE(job_.run_until([this] { return landed_.times != 0; })) << "the receiver is never told";
    if (sends_ && landed_.status != Status::no_memory) {
      EXPECT_TRUE(job_.run_until([this] { return is_told_to_sender(); })) << "the sender is never told";
    }
    job_->run(50);
  }

  void expect_signals() {
    const bool done = case_.outcome == Outcome::done;
    EXPECT_EQ(landed_.times, 1);
    if (case_.outcome == Outcome::no_memory && landed_.status == Status::ok) return expect_landed();
    EXPECT_TRUE(is_expected(landed_.status)) << status_name(landed_.status);
    EXPECT_LE(free_.times, 1);
    EXPECT_LE(heard_.times, 1);
    EXPECT_LE(part_.times, 1);
    if (done) {
      EXPECT_EQ(free_.times, 1);
      EXPECT_EQ(free_.status, Status::ok);
      EXPECT_EQ(heard_.times, hears() ? 1 : 0);
      EXPECT_EQ(part_.times, case_.signal == Signal::bell ? 1 : 0);
      expect_landed();
    }
    // What says that the bytes are there says nothing else, and nobody says it of bytes that are not.
    for (const Told* told : {&heard_, &part_}) {
      if (told->times == 0) continue;
      EXPECT_EQ(told->status == Status::ok, done) << status_name(told->status);
    }
  }

  /// Nothing of the library looks at, or writes into, the memory of either end any more.
  void expect_memory_is_free() {
    const std::vector<std::byte> mark(kBytes, std::byte{0xee});
    source_.fill(mark);
    landing_.fill(mark);
    job_->run(200);
    EXPECT_EQ(landing_.image(), mark);
    left_.reset();
    right_.reset();
    parts_out_.reset();
    parts_in_.reset();
    ringing_.reset();
    notifier_.reset();
    if (case_.outcome != Outcome::lost) job_.expect_nothing_left();
  }

 private:
  static constexpr std::size_t kBytes = 40'000;

  [[nodiscard]] MemoryKind kind() const { return is_of_device(case_.signal) ? MemoryKind::emulated : MemoryKind::host; }
  Channel left() { return Channel::open(job_->rank(0), Rank{receiver_}, ChannelId{7}); }
  Channel right() { return Channel::open(job_->rank(receiver_), Rank{0}, ChannelId{7}); }
  /// The sender asks for more than that its source is free.
  [[nodiscard]] bool hears() const { return case_.signal == Signal::record || is_of_device(case_.signal); }
  [[nodiscard]] bool is_told_to_sender() const { return free_.times != 0 && (!hears() || heard_.times != 0); }

  void receive(std::size_t bytes) {
    receive_op_.delivered = landed_.sink();
    start(receive_op_, {&landed_}, [&](Op& op) {
      return parts_in_ ? parts_in_->post_receive(landing_.part(0, bytes), 1, op)
                       : right_->post_recv(landing_.part(0, bytes), op);
    });
    if (!parts_in_ || landed_.times != 0) return;
    part_op_.delivered = part_.sink();
    start(part_op_, {&part_}, [&](Op& op) { return parts_in_->post_when(0, op); });
  }
  void send() {
    sends_ = true;
    send_op_.source_free = free_.sink();
    if (hears()) send_op_.delivered = heard_.sink();
    if (parts_out_) {
      start(send_op_, {&free_}, [&](Op& op) { return parts_out_->post_send(source_.whole(), 1, op); });
      // A stream rings the bell; without memory for that the CPU says it.
      if (parts_out_->enqueue_ready(*ringing_, 0, 1) != Status::ok) static_cast<void>(parts_out_->ready(0));
      return;
    }
    const auto post = [&](Op& op) { return left_->post_send(source_.whole(), op); };
    if (hears()) {
      start(send_op_, {&free_, &heard_}, post);
    } else {
      start(send_op_, {&free_}, post);
    }
  }
  void close_right() {
    if (parts_in_) {
      parts_in_->close();
    } else {
      right_->close();
    }
  }
  [[nodiscard]] bool is_expected(Status status) const {
    switch (case_.outcome) {
      case Outcome::done: return status == Status::ok;
      case Outcome::truncated:  // parts are agreed upon before a byte goes
        return status == Status::truncated || (case_.signal == Signal::bell && status == Status::peer_rejected);
      case Outcome::canceled:
      case Outcome::closed: return status == Status::canceled;
      case Outcome::lost: return status == Status::peer_lost;
      case Outcome::no_memory: return tells_of_memory(status) || status == Status::canceled;
    }
    return false;
  }
  void expect_landed() { EXPECT_EQ(landing_.image(), pattern(kBytes, 5)); }

  const Case case_;
  const test::ScopedVariable engine_words_, couriers_;
  ScarceJob job_;
  const int receiver_;
  Space source_, landing_;
  std::optional<Notifier> notifier_;
  std::optional<Stream> ringing_;
  std::optional<PartitionedSend> parts_out_;
  std::optional<PartitionedReceive> parts_in_;
  std::optional<Channel> left_, right_;
  Told landed_, free_, heard_, part_;
  bool sends_ = false;
  Op receive_op_, send_op_, part_op_;
};

class SignalOutcomes : public testing::TestWithParam<Case> {};

TEST_P(SignalOutcomes, the_signal_is_told_once_and_of_bytes_that_are_there) {
  Scene scene(GetParam());
  scene.play();
  scene.expect_signals();
  scene.expect_memory_is_free();
}

INSTANTIATE_TEST_SUITE_P(Moves, SignalOutcomes, testing::ValuesIn(all_cases()), [](const auto& one) {
  return std::string(name_of(one.param.signal)) + "_" + name_of(one.param.outcome) + "_" + name_of(one.param.locality);
});

}  // namespace
}  // namespace brant
