#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "brant/core/runtime.h"
#include "core/engine.h"
#include "ops/partitioned/parts.h"

namespace brant {

/// One message at a time: the operation of the user is what it owns as an OpOwner. Heads and runs come in the order of
/// the channel: the receive of a run is posted when its head has come, and that of the next head behind it.
struct PartitionedReceive::Receiving final : OpOwner {
  /// Somebody may wait for it.
  struct Part final : OpOwner {
    Receiving* self = nullptr;
    bool told = false;  ///< By a head.
    bool here = false;
  };
  struct Run {
    Receiving* self = nullptr;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::size_t bytes = 0;
    Op come;
  };

  Receiving(Runtime& runtime, Channel channel_in, const PartitionedOptions& options_in)
      : engine(runtime.worker().engine()),
        channel(std::move(channel_in)),
        options(options_in),
        parts(std::make_unique<Part[]>(options_in.parts)),
        runs(std::make_unique<Run[]>(options_in.parts)) {
    for (std::uint32_t i = 0; i < options.parts; ++i) {
      parts[i].self = runs[i].self = this;
      parts[i].cancel = [](OpOwner& owner) noexcept {
        auto& part = static_cast<Part&>(owner);
        part.self->engine.completions().finish(part, {Status::canceled, 0});
      };
    }
    cancel = [](OpOwner& owner) noexcept { static_cast<Receiving&>(owner).withdraw(); };
  }
  ~Receiving() {
    if (active) end(Status::canceled);
  }

  Status begin(Buffer to, std::uint64_t of, Op& op) noexcept {
    if (active || broken || (to.data == nullptr && to.bytes != 0)) return Status::invalid_argument;
    landing = to;
    epoch = of;
    outcome = {Status::ok, 0};
    drops = false;
    left = options.parts;
    used = in_flight = 0;
    for (std::uint32_t i = 0; i < options.parts; ++i) parts[i].told = parts[i].here = false;
    const Status status = post_head();
    if (status != Status::ok && status != Status::in_progress) return status;
    active = any = true;
    own(engine.completions(), op);
    if (status == Status::ok) {
      take_head(head_come.result);
      go_on();
    }
    return Status::in_progress;
  }

  Status post_head() noexcept {
    head_come.delivered = {[](void* self, const OpResult& result) noexcept {
                             auto& receiving = *static_cast<Receiving*>(self);
                             receiving.take_head(result);
                             receiving.go_on();
                           },
                           this};
    return channel.post_recv(Buffer(&head, sizeof(head), MemoryKind::host), head_come);
  }
  /// The next heads, as long as they have come already.
  void go_on() noexcept {
    while (active && left != 0 && !head_come.pending() && !dropped.pending()) {
      const Status status = post_head();
      if (status == Status::in_progress) return;
      status == Status::ok ? take_head(head_come.result) : fail(status);
    }
    end_if_done();
  }

  void take_head(const OpResult& result) noexcept {
    if (!result.ok()) return fail(result.status);
    const bool sound = result.bytes == sizeof(head) && head.parts != 0 && head.parts <= PartitionedOptions::kPartsMax &&
                       head.first < head.parts && head.count <= head.parts - head.first;
    if (!sound || tells_again()) {
      broken = true;
      log::error(
          "channel {} from rank {} brought a message that is no part of one: its other end must be a "
          "PartitionedSend",
          channel.id().value, channel.peer().value);
      return fail(Status::invalid_argument);
    }
    if (head.count == 0) {
      log_given_up();
      return fail(Status::peer_rejected);
    }
    if (!drops) look_at_head();
    receive_run();
  }
  /// Of a part that an earlier head of this message told of.
  [[nodiscard]] bool tells_again() noexcept {
    if (head.parts != options.parts) return false;  // it is dropped anyway
    bool again = false;
    for (std::uint32_t i = head.first; i < head.first + head.count; ++i)
      again = std::exchange(parts[i].told, true) || again;
    return again;
  }
  /// A message that does not fit is dropped, run by run: the next one may.
  void look_at_head() noexcept {
    if (used == 0) left = head.parts;
    Status status = Status::ok;
    if (head.parts != options.parts || head.epoch != epoch) status = Status::peer_rejected;
    if (head.bytes > landing.bytes) status = Status::truncated;
    if (status == Status::ok) return;
    drops = true;
    outcome.join({status, 0});
    try {
      log::error(
          "message {} of {} bytes in {} parts came from rank {} on channel {} for one of {} bytes in {} parts "
          "with epoch {}: it is dropped",
          head.epoch, head.bytes, head.parts, channel.peer().value, channel.id().value, landing.bytes, options.parts,
          epoch);
    } catch (const std::exception&) {
      log::error("a message in parts did not fit");
    }
  }

  void receive_run() noexcept {
    left -= std::min(left, head.count);
    if (drops) return drop_run();
    Run& run = runs[used++];
    const PartRange range = run_range(head.bytes, options.parts, head.first, head.count);
    run.first = head.first;
    run.count = head.count;
    run.bytes = range.bytes;
    run.come.delivered = {&Receiving::on_run, &run};
    ++in_flight;
    const Buffer to(static_cast<std::byte*>(landing.data) + range.offset, range.bytes, landing.kind);
    const Status status = channel.post_recv(to, run.come);
    if (status == Status::in_progress) return;
    if (status == Status::ok) return take_run(run, run.come.result);
    --in_flight;
    drops = true;
    outcome.join({status, 0});
    drop_run();
  }
  /// It is taken, since the next head lies behind it.
  void drop_run() noexcept {
    dropped.delivered = {[](void* self, const OpResult&) noexcept {
                           auto& receiving = *static_cast<Receiving*>(self);
                           --receiving.in_flight;
                           receiving.go_on();
                         },
                         this};
    ++in_flight;
    const Status status = channel.post_recv(Buffer{}, dropped);
    if (status == Status::in_progress) return;
    --in_flight;
    if (status == Status::ok || status == Status::truncated) return;
    broken = true;
    fail(status);
  }

  static void on_run(void* run, const OpResult& result) noexcept {
    auto& of = *static_cast<Run*>(run);
    of.self->take_run(of, result);
    of.self->end_if_done();
  }
  void take_run(Run& run, const OpResult& result) noexcept {
    --in_flight;
    if (result.ok() && result.bytes == run.bytes) {
      outcome.bytes += run.bytes;
      for (std::uint32_t i = run.first; i < run.first + run.count; ++i) {
        parts[i].here = true;
        engine.completions().finish(parts[i], {Status::ok, part_range(head.bytes, options.parts, i).bytes});
      }
      return;
    }
    // A run that is too short stands for one that its sender could not send.
    outcome.join({result.ok() ? Status::peer_rejected : result.status, 0});
  }

  /// No more of this message comes.
  void fail(Status status) noexcept {
    left = 0;
    outcome.join({status, 0});
  }
  void end_if_done() noexcept {
    if (active && left == 0 && in_flight == 0) end(outcome.status);
  }
  /// Those that wait for parts that have not come hear the same.
  void end(Status status) noexcept {
    active = false;
    outcome.status = status;
    const Status of_parts = status == Status::ok ? Status::internal : status;
    for (std::uint32_t i = 0; i < options.parts; ++i) engine.completions().finish(parts[i], {of_parts, 0});
    engine.completions().finish(*this, outcome);
  }
  /// What the user's landing was for must not be written any more: that is sure once the channel is closed.
  void withdraw() noexcept {
    if (!active) return;
    broken = true;
    head_come.detach();
    dropped.detach();
    for (std::uint32_t i = 0; i < used; ++i) runs[i].come.detach();
    channel.close();
    in_flight = left = 0;
    end(Status::canceled);
  }

  Status wait_for(std::uint32_t number, Op& op) noexcept {
    if (number >= options.parts || !any || parts[number].observed()) return Status::invalid_argument;
    if (parts[number].here) return Status::ok;
    if (!active) return outcome.status == Status::ok ? Status::invalid_argument : outcome.status;
    parts[number].own(engine.completions(), op);
    return Status::in_progress;
  }

  void log_given_up() const noexcept {
    log::error("message {} from rank {} on channel {} was given up by its sender: {}", epoch, channel.peer().value,
               channel.id().value, status_text(head.given_up));
  }

  Engine& engine;
  Channel channel;
  const PartitionedOptions options;
  std::unique_ptr<Part[]> parts;
  // Records of what is under way are withdrawn before the channel goes.
  std::unique_ptr<Run[]> runs;
  PartHead head;
  Op head_come;
  Op dropped;

  // Of the message under way.
  Buffer landing;
  std::uint64_t epoch = 0;
  OpResult outcome;
  std::uint32_t left = 0;       ///< Parts that no head has told of.
  std::uint32_t used = 0;       ///< Runs.
  std::uint32_t in_flight = 0;  ///< Runs whose head has come.
  bool any = false;             ///< There was a message.
  bool active = false;
  bool drops = false;   ///< What comes of it is not what was wanted.
  bool broken = false;  ///< No more messages.
};

PartitionedReceive::PartitionedReceive() noexcept = default;
PartitionedReceive::PartitionedReceive(PartitionedReceive&&) noexcept = default;
PartitionedReceive& PartitionedReceive::operator=(PartitionedReceive&&) noexcept = default;
PartitionedReceive::~PartitionedReceive() = default;

PartitionedReceive::PartitionedReceive(Runtime& runtime, Channel channel, const PartitionedOptions& options) {
  check_partitioned(channel, options);
  receiving_ = std::make_unique<Receiving>(runtime, std::move(channel), options);
}

Status PartitionedReceive::post_receive(Buffer landing, std::uint64_t epoch, Op& op) noexcept {
  return post_parts(op, [&]() noexcept {
    return receiving_ == nullptr ? Status::invalid_argument : receiving_->begin(landing, epoch, op);
  });
}

Status PartitionedReceive::post_when(std::uint32_t part, Op& op) noexcept {
  return post_parts(
      op, [&]() noexcept { return receiving_ == nullptr ? Status::invalid_argument : receiving_->wait_for(part, op); });
}

bool PartitionedReceive::arrived(std::uint32_t part) const noexcept {
  return receiving_ != nullptr && part < receiving_->options.parts && receiving_->parts[part].here;
}

void PartitionedReceive::close() noexcept { receiving_.reset(); }

}  // namespace brant
