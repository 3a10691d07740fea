#include "models/halo/transfers.h"

#include <fmt/format.h>

#include "models/halo/until.h"

namespace brant::halo {

Transfer& Transfers::add(std::span<const Link> links, std::size_t bytes, bool is_send) {
  Transfer& transfer = all_.emplace_back();
  transfer.links = links;
  transfer.rank = links[0].rank;
  transfer.is_send = is_send;
  transfer.owner = this;
  transfer.bytes = bytes;
  transfer.channel = &channel_to(transfer.rank, is_send);
  return transfer;
}

Channel& Transfers::channel_to(int rank, bool is_send) {
  const int own = layout_.rank();
  if (auto known = channels_.find(rank); known != channels_.end()) {
    return rank == own && !is_send ? own_landing_ : known->second;
  }
  // Two processes use the sum of their ranks: at one process no two others have the same.
  const HaloOptions& options = layout_.options();
  const auto sum = static_cast<std::uint32_t>((std::int64_t{own} + rank) % layout_.ranks());
  const ChannelId id{options.first_channel.value + sum};
  const auto open = [&] { return Channel::open(runtime_, Rank{rank}, id, {.path = options.path}); };
  Channel& channel = channels_.emplace(rank, open()).first->second;
  if (rank != own) return channel;
  own_landing_ = open();
  return is_send ? channel : own_landing_;
}

void Transfers::require_open() const {
  if (given_up_) {
    throw Error(Status::canceled, "halo: an exchange was abandoned under way, and its channels are closed");
  }
}

Completion Transfers::sink_of(Transfer& transfer) noexcept {
  return {[](void* self, const OpResult& outcome) noexcept {
            auto& own = *static_cast<Transfer*>(self);
            Transfers& owner = *own.owner;
            --owner.pending_;
            owner.note(own, outcome);
            if (own.then.fire != nullptr) return own.then.fire(own.then.self, outcome);
            if (owner.pending_ == 0 || !outcome.ok()) owner.waiter_.resume();
          },
          &transfer};
}

template <typename... As>
void Transfers::post_as(Transfer& transfer, const As&... as) noexcept {
  (transfer.is_send ? transfer.op.source_free : transfer.op.delivered) = sink_of(transfer);
  posted(transfer, transfer.is_send ? transfer.channel->post_send(as..., transfer.op)
                                    : transfer.channel->post_recv(as..., transfer.op));
}

void Transfers::post(Transfer& transfer, Buffer buffer) noexcept { post_as(transfer, buffer); }

void Transfers::post(Transfer& transfer, Buffer buffer, const Shape& shape) noexcept {
  post_as(transfer, buffer, shape);
}

void Transfers::posted(Transfer& transfer, Status status) noexcept {
  if (status == Status::in_progress) {
    ++pending_;
  } else {
    const OpResult outcome{status, transfer.op.result.bytes};
    note(transfer, outcome);
    if (transfer.then.fire != nullptr) transfer.then.fire(transfer.then.self, outcome);
  }
}

void Transfers::note(Transfer& transfer, const OpResult& outcome) noexcept {
  if (failed_ != nullptr) return;
  const bool short_message = outcome.ok() && !transfer.is_send && outcome.bytes != transfer.bytes;
  if (outcome.ok() && !short_message) return;
  failed_ = &transfer;
  why_ = short_message ? Status::invalid_argument : outcome.status;
}

Task<void> Transfers::ended() {
  co_await Until{waiter_, [this] { return pending_ == 0 || failed_ != nullptr; }};
  if (failed_ != nullptr) throw_failure();
}

void Transfers::give_up() noexcept {
  for (Transfer& transfer : all_) {
    if (transfer.op.pending()) transfer.op.detach();
    transfer.channel = nullptr;
  }
  pending_ = 0;
  given_up_ = true;
  channels_.clear();
  own_landing_.close();
}

void Transfers::throw_failure() const {
  const Message& first = failed_->links.front().message;
  const Message& last = failed_->links.back().message;
  const char* const done = failed_->is_send ? "sent to" : "received from";
  if (failed_->links.size() == 1) {
    throw_error(why_, fmt::format("halo: the {} bytes from block {} to block {} could not be {} rank {}",
                                  failed_->bytes, first.from, first.to, done, failed_->rank));
  }
  throw_error(why_, fmt::format("halo: the {} bytes from block {} to block {}, on to those from block {} to block {}, "
                                "could not be {} rank {}",
                                failed_->bytes, first.from, first.to, last.from, last.to, done, failed_->rank));
}

}  // namespace brant::halo
