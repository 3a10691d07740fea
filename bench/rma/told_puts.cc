#include "bench/rma/told_puts.h"

#include <fmt/format.h>

namespace brant::bench {
namespace {

/// Apart from the channels of a Session.
constexpr ChannelId kTellings{0x3000000u};

}  // namespace

ToldPuts::ToldPuts(Runtime& runtime, Rank partner, std::size_t window)
    : runtime_(runtime), channel_(Channel::open(runtime, partner, kTellings)), tellings_(window) {
  for (std::size_t i = 0; i < window; ++i) slots_.emplace_back().puts = this;
}

void ToldPuts::put(RemoteSegment& there, std::uint64_t offset, ConstBuffer source, const RmaOptions& options) noexcept {
  Slot& slot = slots_[used_++];
  slot.put.delivered = {&ToldPuts::put_ended, &slot};
  const Status posted = there.post_put(offset, source, slot.put, options);
  if (posted != Status::in_progress) tell(slot, posted);
}

void ToldPuts::put_ended(void* slot, const OpResult& result) noexcept {
  auto& self = *static_cast<Slot*>(slot);
  self.puts->tell(self, result.status);
}

void ToldPuts::tell(Slot& slot, Status put) noexcept {
  if (put != Status::ok) return end(put);
  slot.tell.source_free = {&ToldPuts::tell_ended, &slot};
  const Status posted = channel_.post_send({token_.data(), token_.size(), MemoryKind::host}, slot.tell);
  if (posted != Status::in_progress) end(posted);
}

void ToldPuts::tell_ended(void* slot, const OpResult& result) noexcept {
  static_cast<Slot*>(slot)->puts->end(result.status);
}

void ToldPuts::end(Status status) noexcept {
  ++ended_;
  if (outcome_ == Status::ok) outcome_ = status;
}

void ToldPuts::require(const OpResult& result, const char* what) const {
  if (result.ok()) return;
  throw Error(result.status, fmt::format("rank {} could not {} rank {}: {}", runtime_.rank().value, what,
                                         channel_.peer().value, status_text(result.status)));
}

void ToldPuts::finish() {
  static_cast<void>(runtime_.worker().wait_until([&]() noexcept { return ended_ == used_ || outcome_ != Status::ok; }));
  require({outcome_, 0}, "put and tell");
  used_ = ended_ = 0;
  require(runtime_.wait(channel_.recv({token_.data(), token_.size(), MemoryKind::host})), "get an answer of");
}

void ToldPuts::take(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    tellings_.add(Moment::delivered, [&](Op& op) noexcept {
      return channel_.post_recv({token_.data(), token_.size(), MemoryKind::host}, op);
    });
  }
  const OpResult result = runtime_.wait(tellings_.drain());
  if (!result.ok()) tellings_.withdraw();
  require(result, "hear of puts of");
}

void ToldPuts::acknowledge() {
  require(runtime_.wait(channel_.send({token_.data(), token_.size(), MemoryKind::host})), "answer");
}

}  // namespace brant::bench
