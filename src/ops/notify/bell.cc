#include "brant/notify/bell.h"

#include <algorithm>

#include "brant/core/runtime.h"
#include "brant/notify/notifier.h"
#include "brant/notify/persistent_kernel.h"
#include "core/told_at_once.h"
#include "ops/notify/table.h"
#include "ops/notify/ticket.h"

namespace brant {
namespace {

template <typename Post>
Status post_to(Op& op, Post&& post) noexcept {
  if (op.pending()) [[unlikely]]
    return refuse_pending_op();
  op.result = {Status::ok, 0};
  return told_at_once(post(), op);
}

}  // namespace

// Bell
// -------------------------------------------------------------------------------------------------------------------

void Bell::close() noexcept {
  if (board_ != nullptr) std::exchange(board_, nullptr)->close(slot_);
}

std::uint32_t Bell::number() const noexcept { return slot_; }

notify::DeviceBell Bell::device() const noexcept {
  if (board_ == nullptr) return {};
  return {board_->word_of(slot_), slot_};
}

std::uint64_t Bell::epoch() const noexcept { return board_ == nullptr ? 0 : board_->epoch_of(slot_); }

Status Bell::ring(std::uint64_t epoch) noexcept {
  return board_ == nullptr ? Status::invalid_argument : board_->ring(slot_, epoch);
}

Status Bell::post_when(Op& op, std::uint64_t epoch, std::chrono::nanoseconds patience) noexcept {
  return post_to(op, [&]() noexcept {
    return board_ == nullptr ? Status::invalid_argument : board_->post_when(op, slot_, epoch, patience);
  });
}

Status Bell::enqueue_ring(StreamHandle stream, std::uint64_t epoch) noexcept {
  if (board_ == nullptr) return Status::invalid_argument;
  return board_->at_stream(slot_, port::StreamWord::Act::write, epoch, stream);
}

Status Bell::enqueue_wait(StreamHandle stream, std::uint64_t epoch) noexcept {
  if (board_ == nullptr) return Status::invalid_argument;
  return board_->at_stream(slot_, port::StreamWord::Act::wait_at_least, epoch, stream);
}

BellTicket Bell::ticket() const {
  if (board_ == nullptr || board_->options_of(slot_).rung_by != RungBy::peer) {
    throw Error(Status::invalid_argument, "a ticket is for a bell that a peer rings: make it with RungBy::peer");
  }
  Engine& engine = board_->engine();
  TicketOfBell content;
  content.rank = engine.job().rank;
  content.pid = engine.peers().mine().pid;
  content.number = slot_;
  content.address = reinterpret_cast<std::uint64_t>(board_->word_of(slot_));
  content.record = Exports::record_of(engine.device(), board_->word_of(slot_))
                       .or_throw("other processes cannot map the memory of a bell");
  return pack_ticket(content);
}

// Notifier
// -------------------------------------------------------------------------------------------------------------------

Notifier::Notifier(Runtime& runtime, const NotifierOptions& options)
    : board_(&runtime.worker().engine().service<NotifyTable>().open(options)) {}

Bell Notifier::make(const BellOptions& options) {
  if (board_ == nullptr) throw Error(Status::invalid_argument, "this notifier is closed");
  return {*board_, board_->make(options)};
}

notify::FanIn Notifier::fan_in(std::uint32_t arrivals) {
  if (board_ == nullptr) throw Error(Status::invalid_argument, "this notifier is closed");
  return board_->fan_in(arrivals);
}

void Notifier::close() noexcept {
  if (board_ != nullptr) std::exchange(board_, nullptr)->close_all();
}

// PersistentKernel
// -------------------------------------------------------------------------------------------------------------------

unsigned PersistentKernel::room_for(Notifier& notifier, port::Kernel* kernel, const LaunchShape& shape) {
  return notifier.board().table().room_for(kernel, shape);
}

PersistentKernel PersistentKernel::start(Notifier& notifier, port::Kernel* kernel, const LaunchShape& shape,
                                         const PersistentOptions& options, std::uint64_t largest_fan_in,
                                         std::span<void* const> arguments) {
  BellBoard& board = notifier.board();
  PersistentKernel started(&board.table().add(board));
  started.kernel_->launch(kernel, shape, options, largest_fan_in, arguments);
  return started;
}

Status PersistentKernel::post_started(Op& op) noexcept {
  return post_to(op,
                 [&]() noexcept { return kernel_ == nullptr ? Status::invalid_argument : kernel_->post_started(op); });
}

Status PersistentKernel::post_ended(Op& op) noexcept {
  return post_to(op,
                 [&]() noexcept { return kernel_ == nullptr ? Status::invalid_argument : kernel_->post_ended(op); });
}

Status PersistentKernel::submit(const notify::Item& item) noexcept {
  return kernel_ == nullptr ? Status::invalid_argument : kernel_->submit(item);
}

std::uint64_t PersistentKernel::submitted() const noexcept { return kernel_ == nullptr ? 0 : kernel_->submitted(); }
std::uint64_t PersistentKernel::done() const noexcept { return kernel_ == nullptr ? 0 : kernel_->done(); }

void PersistentKernel::quit() noexcept {
  if (kernel_ != nullptr) kernel_->quit();
}

void PersistentKernel::abort() noexcept {
  if (kernel_ != nullptr) kernel_->abort();
}

void PersistentKernel::close() noexcept {
  if (kernel_ == nullptr) return;
  ResidentKernel& kernel = *std::exchange(kernel_, nullptr);
  kernel.close();
  if (!kernel.left()) kernel.table().drop(kernel);
}

}  // namespace brant
