#include <algorithm>
#include <exception>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "brant/core/runtime.h"
#include "brant/notify/notifier.h"
#include "core/engine.h"
#include "ops/partitioned/parts.h"

namespace brant {
namespace {

/// A head that says that a message was given up and found no room is tried again so much later.
constexpr auto kTryAgain = std::chrono::milliseconds(1);

}  // namespace

/// One message at a time: the operation of the user is what it owns as an OpOwner.
struct PartitionedSend::Sending final : OpOwner, Timer {
  /// A part waits for its bell, and then belongs to a run.
  struct Part {
    Sending* self = nullptr;
    std::uint32_t number = 0;
    bool ready = false;
    bool sent = false;
    Op wait;
  };
  /// While a message is under way: parts that are not ready wait for nothing that would tell of the peer's death.
  struct Watch final : PeerOp {
    Sending* self = nullptr;
  };
  /// Its head, and its bytes.
  struct Run {
    PartHead head;
    Op head_sent;
    Op sent;
  };

  Sending(Runtime& runtime, Channel channel_in, const PartitionedOptions& options_in, Notifier* notifier)
      : engine(runtime.worker().engine()),
        peer(engine.peers().connect(channel_in.peer())),
        channel(std::move(channel_in)),
        options(options_in),
        parts(std::make_unique<Part[]>(options_in.parts)),
        runs(std::make_unique<Run[]>(options_in.parts + 1)) {
    watch.self = this;
    watch.lost = [](PeerOp& of) noexcept { static_cast<Watch&>(of).self->give_up(Status::peer_lost); };
    for (std::uint32_t i = 0; i < options.parts; ++i) {
      parts[i].self = this;
      parts[i].number = i;
      if (notifier != nullptr) bells.push_back(notifier->make());
    }
    cancel = [](OpOwner& owner) noexcept { static_cast<Sending&>(owner).give_up(Status::canceled); };
    fire = [](Timer& timer) noexcept { static_cast<Sending&>(timer).say_given_up(); };
  }
  ~Sending() {
    peer.remove_outstanding(watch);
    give_up(Status::canceled);  // who receives hears of it, as of a small message that is on its way
    engine.timers().clear(*this);
    if (active && observed()) engine.completions().finish(*this, {Status::canceled, 0});
  }

  Status begin(ConstBuffer from, std::uint64_t of, Op& op, std::chrono::nanoseconds patience) noexcept {
    if (active || (any && static_cast<std::int64_t>(of - epoch) <= 0)) return Status::invalid_argument;
    if (from.data == nullptr && from.bytes != 0) return Status::invalid_argument;
    if (peer.lost) return Status::peer_lost;
    source = from;
    epoch = of;
    active = any = true;
    given_up = source_free_told = false;
    outcome = {Status::ok, 0};
    unsent = options.parts;
    used = in_flight = unfree = 0;
    wants_delivered = op.delivered.fire != nullptr;
    own(engine.completions(), op);
    peer.add_outstanding(watch);
    for (std::uint32_t i = 0; i < options.parts; ++i) parts[i].ready = parts[i].sent = false;
    if (bells.empty()) return Status::in_progress;
    for (std::uint32_t i = 0; i < options.parts && !given_up; ++i) {
      parts[i].wait.delivered = {&Sending::on_bell, &parts[i]};
      const Status status = bells[i].post_when(parts[i].wait, epoch, patience);
      if (status != Status::in_progress) on_bell_now(parts[i], status);
    }
    return Status::in_progress;
  }

  Status make_ready(std::uint32_t number) noexcept {
    if (!active || number >= options.parts) return Status::invalid_argument;
    if (given_up || parts[number].ready) return Status::ok;
    parts[number].wait.detach();
    take_ready(parts[number]);
    return Status::ok;
  }

  static void on_bell(void* part, const OpResult& result) noexcept {
    auto& of = *static_cast<Part*>(part);
    of.self->on_bell_now(of, result.status);
  }
  void on_bell_now(Part& part, Status status) noexcept {
    if (given_up) return;
    if (status == Status::ok) return take_ready(part);
    tell_unready(part, status);
    give_up(status);
  }

  void take_ready(Part& part) noexcept {
    part.ready = true;
    std::uint32_t first = part.number, end = part.number + 1;
    while (first > 0 && waits_to_go(first - 1)) --first;
    while (end < options.parts && waits_to_go(end)) ++end;
    const bool may_grow = (first > 0 && !parts[first - 1].sent) || (end < options.parts && !parts[end].sent);
    const PartRange range = run_range(source.bytes, options.parts, first, end - first);
    if (may_grow && range.bytes < options.bytes_min) return;
    send_run(first, end - first, range);
  }
  [[nodiscard]] bool waits_to_go(std::uint32_t number) const noexcept {
    return parts[number].ready && !parts[number].sent;
  }

  void send_run(std::uint32_t first, std::uint32_t count, const PartRange& range) noexcept {
    for (std::uint32_t i = first; i < first + count; ++i) parts[i].sent = true;
    unsent -= count;
    Run& run = runs[used];
    run.head = {epoch, source.bytes, options.parts, first, count, Status::ok};
    const Status announced = send_head(run);
    if (announced != Status::ok) {
      unsent += count;
      return give_up(announced);
    }
    ++used;
    ++runs_sent;
    const ConstBuffer bytes(static_cast<const std::byte*>(source.data) + range.offset, range.bytes, source.kind);
    run.sent.source_free = {&Sending::on_free, this};
    if (wants_delivered) run.sent.delivered = {&Sending::on_delivered, this};
    const Status status = channel.post_send(bytes, run.sent);
    outcome.bytes += range.bytes;
    if (status == Status::in_progress) {
      ++unfree;
      in_flight += wants_delivered ? 2 : 1;
    } else if (status != Status::ok) {
      // The other end waits for the bytes behind that head: it gets a message that is too short.
      run.sent.source_free = {&Sending::on_free, this};
      if (channel.post_send(ConstBuffer{}, run.sent) == Status::in_progress) {
        ++unfree;
        ++in_flight;
      }
      return give_up(status);
    }
    end_if_done();
  }
  /// ok: it is on its way.
  Status send_head(Run& run) noexcept {
    run.head_sent.source_free = {&Sending::on_head, this};
    const Status status = channel.post_send(ConstBuffer(&run.head, sizeof(run.head), MemoryKind::host), run.head_sent);
    if (status != Status::in_progress) return status;
    ++in_flight;
    return Status::ok;
  }

  static void on_head(void* self, const OpResult& result) noexcept {
    static_cast<Sending*>(self)->ended(result.status);
  }
  static void on_free(void* self, const OpResult& result) noexcept {
    auto& sending = *static_cast<Sending*>(self);
    --sending.unfree;
    sending.ended(result.status);
  }
  static void on_delivered(void* self, const OpResult& result) noexcept {
    static_cast<Sending*>(self)->ended(result.status);
  }
  void ended(Status status) noexcept {
    --in_flight;
    if (status != Status::ok) give_up(status);
    end_if_done();
  }

  /// Parts that have not gone do not go any more.
  void give_up(Status status) noexcept {
    if (!active || given_up) return;
    given_up = true;
    outcome.join({status, 0});
    for (std::uint32_t i = 0; i < options.parts; ++i) parts[i].wait.detach();
    if (unsent != 0) {
      owes_word = true;
      say_given_up();
    }
    end_if_done();
  }
  /// To the other end, which waits for parts.
  void say_given_up() noexcept {
    if (!owes_word) return;
    Run& run = runs[options.parts];
    run.head = {epoch, source.bytes, options.parts, 0, 0, outcome.status};
    const Status status = send_head(run);
    owes_word = status == Status::limit_reached || status == Status::no_memory;
    if (owes_word) {
      try {
        engine.timers().set(*this, Clock::now() + kTryAgain);
      } catch (const std::bad_alloc&) {
        log::error("no memory for a timer: the other end of channel {} does not hear that a message was given up",
                   channel.id().value);
        owes_word = false;
      }
    }
    unsent = 0;
    end_if_done();
  }

  void end_if_done() noexcept {
    if (!active || unsent != 0 || owes_word) return;
    if (unfree == 0 && !source_free_told && in_flight != 0 && outcome.status == Status::ok) {
      source_free_told = true;
      engine.completions().report(*this, Moment::source_free, outcome);
    }
    if (in_flight != 0) return;
    active = false;
    peer.remove_outstanding(watch);
    engine.completions().finish(*this, outcome);
  }

  void tell_unready(const Part& part, Status status) const noexcept {
    try {
      const PartRange range = part_range(source.bytes, options.parts, part.number);
      log::error(
          "part {} of {} ({} bytes from {} on) of message {} to rank {} on channel {} was not ready: {} (bell {})",
          part.number, options.parts, range.bytes, range.offset, epoch, channel.peer().value, channel.id().value,
          status_text(status), bells[part.number].number());
    } catch (const std::exception&) {
      log::error("part {} of a message was not ready", part.number);
    }
  }

  Engine& engine;
  Peer& peer;
  Watch watch;
  Channel channel;
  const PartitionedOptions options;
  std::vector<Bell> bells;  ///< Of each part; none where the CPU alone says what is ready.
  // Records of what is under way are withdrawn before the bells and the channel go.
  std::unique_ptr<Part[]> parts;
  std::unique_ptr<Run[]> runs;  ///< The last one for the word that a message was given up.
  std::uint64_t runs_sent = 0;

  // Of the message under way.
  ConstBuffer source;
  std::uint64_t epoch = 0;
  OpResult outcome;
  std::uint32_t unsent = 0;     ///< Parts.
  std::uint32_t used = 0;       ///< Runs.
  std::uint32_t in_flight = 0;  ///< Moments that will be told,
  std::uint32_t unfree = 0;     ///< and those among them that are about the source.
  bool any = false;             ///< There was a message: `epoch` is its own.
  bool active = false;
  bool given_up = false;
  bool owes_word = false;
  bool wants_delivered = false;
  bool source_free_told = false;
};

PartitionedSend::PartitionedSend() noexcept = default;
PartitionedSend::PartitionedSend(PartitionedSend&&) noexcept = default;
PartitionedSend& PartitionedSend::operator=(PartitionedSend&&) noexcept = default;
PartitionedSend::~PartitionedSend() = default;

PartitionedSend::PartitionedSend(Runtime& runtime, Channel channel, const PartitionedOptions& options,
                                 Notifier* notifier) {
  check_partitioned(channel, options);
  sending_ = std::make_unique<Sending>(runtime, std::move(channel), options, notifier);
}

notify::DeviceBell PartitionedSend::device(std::uint32_t part) const noexcept {
  if (sending_ == nullptr || part >= sending_->bells.size()) return {};
  return sending_->bells[part].device();
}

Status PartitionedSend::enqueue_ready(StreamHandle stream, std::uint32_t part, std::uint64_t epoch) noexcept {
  if (sending_ == nullptr || part >= sending_->bells.size()) return Status::invalid_argument;
  return sending_->bells[part].enqueue_ring(stream, epoch);
}

Status PartitionedSend::post_send(ConstBuffer source, std::uint64_t epoch, Op& op,
                                  std::chrono::nanoseconds patience) noexcept {
  return post_parts(op, [&]() noexcept {
    return sending_ == nullptr ? Status::invalid_argument : sending_->begin(source, epoch, op, patience);
  });
}

Status PartitionedSend::ready(std::uint32_t part) noexcept {
  return sending_ == nullptr ? Status::invalid_argument : sending_->make_ready(part);
}

std::uint64_t PartitionedSend::runs_sent() const noexcept { return sending_ == nullptr ? 0 : sending_->runs_sent; }
void PartitionedSend::close() noexcept { sending_.reset(); }

}  // namespace brant
