#include "models/halo/exchange.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

namespace brant::halo {

/// Until all parts have ended, or one has failed: then others may wait for a process that has given up as well.
struct Exchange::Ended {
  Exchange& exchange;
  detail::Awaiting waiting = {};

  [[nodiscard]] bool await_ready() const noexcept { return exchange.pending_ == 0 || exchange.failed_ != nullptr; }
  void await_suspend(std::coroutine_handle<> waiter) { exchange.waiter_.admit(waiting, waiter); }
  void await_resume() const noexcept {}
};

Exchange::Exchange(Runtime& runtime, const HaloOptions& options)
    : runtime_(runtime), options_(options), cut_{options.grid, options.divide, options.periodic, options.ghost} {
  cut_.require_sense();
  if (options.variables == 0 || options.cell_bytes == 0) {
    throw Error(Status::invalid_argument, "halo: no variables, or cells of no bytes: give each at least one");
  }
  if (cut_.blocks() % runtime.size() != 0) {
    throw Error(Status::invalid_argument,
                fmt::format("halo: divided by {} x {} x {} the grid has {} blocks, which {} processes cannot share "
                            "equally: make it a multiple of them",
                            options.divide[0], options.divide[1], options.divide[2], cut_.blocks(), runtime.size()));
  }
  count_ = cut_.blocks() / runtime.size();
  first_ = count_ * runtime.rank().value;
  std::vector<Message> sends;
  std::vector<Message> receives;
  for (int block = first_; block < first_ + count_; ++block) {
    BlockPlan plan = plan_block(cut_, block);
    std::move(plan.sends.begin(), plan.sends.end(), std::back_inserter(sends));
    std::move(plan.receives.begin(), plan.receives.end(), std::back_inserter(receives));
  }
  add(receives_, std::move(receives), false);
  add(sends_, std::move(sends), true);
}

/// In the order in which both ends use a channel, by the numbers of the blocks; ranks above this one come first.
void Exchange::add(std::deque<Part>& parts, std::vector<Message> messages, bool is_send) {
  const int own = runtime_.rank().value;
  const auto key = [&](const Message& message) {
    const int rank = rank_of(is_send ? message.to : message.from);
    return std::tuple(rank < own, rank, message.from, message.to);
  };
  std::sort(messages.begin(), messages.end(), [&](const Message& a, const Message& b) { return key(a) < key(b); });
  for (Message& message : messages) {
    Part& part = parts.emplace_back();
    part.message = std::move(message);
    part.is_send = is_send;
    part.owner = this;
    part.field = static_cast<std::size_t>((is_send ? part.message.from : part.message.to) - first_);
    part.channel = &channel_to(rank_of(is_send ? part.message.to : part.message.from), is_send);
    part.shape = shape_of(part);
  }
}

Channel& Exchange::channel_to(int rank, bool is_send) {
  const int own = runtime_.rank().value;
  if (auto known = channels_.find(rank); known != channels_.end()) {
    return rank == own && !is_send ? own_landing_ : known->second;
  }
  // Two processes use the sum of their ranks: at one process no two others have the same.
  const auto sum = static_cast<std::uint32_t>((std::int64_t{own} + rank) % runtime_.size());
  const ChannelId id{options_.first_channel.value + sum};
  const auto open = [&] { return Channel::open(runtime_, Rank{rank}, id, {.path = options_.path}); };
  Channel& channel = channels_.emplace(rank, open()).first->second;
  if (rank != own) return channel;
  own_landing_ = open();
  return is_send ? channel : own_landing_;
}

Shape Exchange::shape_of(Part& part) const {
  const Cells array = cut_.array_of(part.is_send ? part.message.from : part.message.to);
  const auto cell = static_cast<std::int64_t>(options_.cell_bytes);
  const std::int64_t row = array[0] * cell;
  const std::int64_t plane = array[1] * row;
  const std::int64_t variable = array[2] * plane;
  const auto size = [](std::int64_t bytes) { return static_cast<std::size_t>(bytes); };
  std::vector<Box> boxes;
  for (const Region& region : part.message.regions) boxes.push_back(part.is_send ? region.from : region.to);
  if (boxes.size() == 1) {
    const Box& box = boxes[0];
    const std::array<ShapeDim, 3> dims = {{{size(box.high[1] - box.low[1]), row},
                                           {size(box.high[2] - box.low[2]), plane},
                                           {options_.variables, variable}}};
    const std::int64_t first = box.low[0] * cell + box.low[1] * row + box.low[2] * plane;
    return Shape::strided(size(first), size((box.high[0] - box.low[0]) * cell), dims).or_throw("halo: too large a box");
  }
  for (const Box& box : boxes) {
    for (std::int64_t v = 0; v < static_cast<std::int64_t>(options_.variables); ++v) {
      for (std::int64_t z = box.low[2]; z < box.high[2]; ++z) {
        for (std::int64_t y = box.low[1]; y < box.high[1]; ++y) {
          part.runs.push_back(
              {size(v * variable + z * plane + y * row + box.low[0] * cell), size((box.high[0] - box.low[0]) * cell)});
        }
      }
    }
  }
  return Shape::indexed(part.runs).or_throw("halo: too large a list of boxes");
}

Cells Exchange::array_of(int i) const {
  if (i < 0 || i >= count_) {
    throw Error(Status::invalid_argument,
                fmt::format("halo: this process has no block {} of its own, it has {}", i, count_));
  }
  return cut_.array_of(first_ + i);
}

std::size_t Exchange::field_bytes(int i) const {
  const Cells array = array_of(i);
  return static_cast<std::size_t>(array[0] * array[1] * array[2]) * options_.variables * options_.cell_bytes;
}

std::size_t Exchange::message_bytes() const noexcept {
  std::size_t sum = 0;
  for (const Part& part : sends_) sum += part.shape.bytes();
  return sum;
}

void Exchange::require_fields(std::span<const Buffer> fields) const {
  if (running_) throw Error(Status::invalid_argument, "halo: an exchange is under way: await it before the next one");
  if (fields.size() != static_cast<std::size_t>(count_)) {
    throw Error(Status::invalid_argument,
                fmt::format("halo: {} fields for the {} blocks of this process: give one each", fields.size(), count_));
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (const std::size_t needed = field_bytes(static_cast<int>(i)); fields[i].bytes < needed) {
      throw Error(Status::invalid_argument,
                  fmt::format("halo: the field of block {} has {} bytes of {} memory, and its array takes {}: see "
                              "field_bytes",
                              first_ + static_cast<int>(i), fields[i].bytes, memory_kind_name(fields[i].kind), needed));
    }
    if (fields[i].kind != fields[0].kind) {
      throw Error(Status::wrong_kind,
                  fmt::format("halo: the field of block {} is {} memory and that of block {} {}: use one kind for all",
                              first_ + static_cast<int>(i), memory_kind_name(fields[i].kind), first_,
                              memory_kind_name(fields[0].kind)));
    }
  }
}

void Exchange::post(Part& part, Buffer field) noexcept {
  const Completion sink{[](void* self, const OpResult& outcome) noexcept {
                          auto& own = *static_cast<Part*>(self);
                          --own.owner->pending_;
                          own.owner->ended(own, outcome);
                          if (own.owner->pending_ == 0 || !outcome.ok()) own.owner->waiter_.resume();
                        },
                        &part};
  (part.is_send ? part.op.source_free : part.op.delivered) = sink;
  const Status posted = part.is_send ? part.channel->post_send(field, part.shape, part.op)
                                     : part.channel->post_recv(field, part.shape, part.op);
  if (posted == Status::in_progress) {
    ++pending_;
  } else {
    ended(part, {posted, part.op.result.bytes});
  }
}

void Exchange::ended(Part& part, const OpResult& outcome) noexcept {
  if (failed_ != nullptr) return;
  const bool short_message = outcome.ok() && !part.is_send && outcome.bytes != part.shape.bytes();
  if (outcome.ok() && !short_message) return;
  failed_ = &part;
  why_ = short_message ? Status::invalid_argument : outcome.status;
}

void Exchange::give_up() noexcept {
  for (std::deque<Part>* parts : {&receives_, &sends_}) {
    for (Part& part : *parts) {
      if (part.op.pending()) part.op.detach();
    }
  }
  pending_ = 0;
  running_ = false;
  channels_.clear();  // from here on nobody reads the fields any more
  own_landing_.close();
  for (std::deque<Part>* parts : {&receives_, &sends_}) {
    for (Part& part : *parts) part.channel = nullptr;
  }
}

void Exchange::throw_failure() const {
  const Message& message = failed_->message;
  const bool is_send = failed_->is_send;
  throw_error(why_, fmt::format("halo: the {} bytes from block {} to block {} could not be {} rank {}",
                                failed_->shape.bytes(), message.from, message.to, is_send ? "sent to" : "received from",
                                rank_of(is_send ? message.to : message.from)));
}

Task<void> Exchange::run(std::span<const Buffer> fields) {
  require_fields(fields);
  if (failed_ != nullptr) throw_failure();
  struct Running {
    Exchange& exchange;
    ~Running() {
      if (exchange.running_) exchange.give_up();  // it failed, or its coroutine was destroyed
    }
  };
  if (channels_.empty() && !sends_.empty()) {
    throw Error(Status::canceled, "halo: an exchange was abandoned under way, and its channels are closed");
  }
  running_ = true;
  const Running guard{*this};
  for (Part& part : receives_) post(part, fields[part.field]);
  for (Part& part : sends_) post(part, fields[part.field]);
  co_await Ended{*this};
  if (failed_ != nullptr) throw_failure();
  running_ = false;
}

}  // namespace brant::halo

namespace brant {

HaloExchange::HaloExchange(Runtime& runtime, const HaloOptions& options)
    : exchange_(std::make_unique<halo::Exchange>(runtime, options)) {}
HaloExchange::HaloExchange(HaloExchange&&) noexcept = default;
HaloExchange& HaloExchange::operator=(HaloExchange&&) noexcept = default;
HaloExchange::~HaloExchange() = default;

int HaloExchange::first_block() const noexcept { return exchange_->first_block(); }
int HaloExchange::blocks() const noexcept { return exchange_->blocks(); }
std::size_t HaloExchange::field_bytes(int i) const { return exchange_->field_bytes(i); }
std::array<std::int64_t, 3> HaloExchange::array_of(int i) const { return exchange_->array_of(i); }
std::size_t HaloExchange::messages() const noexcept { return exchange_->messages(); }
std::size_t HaloExchange::message_bytes() const noexcept { return exchange_->message_bytes(); }
Task<void> HaloExchange::run(std::span<const Buffer> fields) { return exchange_->run(fields); }

}  // namespace brant
