#include <algorithm>
#include <array>
#include <deque>
#include <optional>

#include <fmt/format.h>

#include "exchange.h"

namespace heat {
namespace {

/// Faces over channels, one to each neighbour. Receives are posted a step ahead, into the ghosts of the other parity:
/// what a quicker neighbour sends finds its place.
class Messages final : public Exchange {
 public:
  Messages(brant::Runtime& runtime, const Block& block, std::int64_t steps)
      : runtime_(runtime), block_(block), steps_(steps) {
    const int self = runtime.rank().value;
    for (int side = 0; side < kFaces; ++side) {
      const std::optional<int> neighbour = block.neighbour(side);
      if (!neighbour) continue;
      // The channel between two blocks has the number of the lower one, and the axis.
      const brant::ChannelId id{static_cast<std::uint32_t>(std::min(self, *neighbour) * 3 + axis_of(side))};
      links_.emplace_back(side, brant::Channel::open(runtime, brant::Rank{*neighbour}, id));
      receive(links_.back(), 0);
    }
  }

  void begin(std::int64_t step) override {
    for (Link& link : links_) finish(link, link.outgoing[parity_of(step)], "send to");
  }

  void send(std::int64_t step) override {
    for (Link& link : links_) {
      if (step + 1 < steps_) receive(link, step + 1);
      std::optional<brant::Operation>& sent = link.outgoing[parity_of(step)];
      sent.emplace(brant::Moment::source_free,
                   [&](brant::Op& op) noexcept { return link.channel.post_send(block_.face(link.side, step), op); });
      if (sent->done()) require(link, sent->result(), "send to");  // else its ghosts may never come
    }
  }

  void wait(std::int64_t step) override {
    for (Link& link : links_) finish(link, link.incoming[parity_of(step)], "receive from");
  }

  void end() override {
    for (std::int64_t parity = 0; parity < 2; ++parity) begin(parity);
  }

 private:
  struct Link {
    Link(int side_in, brant::Channel channel_in) noexcept : side(side_in), channel(std::move(channel_in)) {}
    int side;
    brant::Channel channel;
    std::array<std::optional<brant::Operation>, kParities> incoming;
    std::array<std::optional<brant::Operation>, kParities> outgoing;
  };

  void receive(Link& link, std::int64_t step) {
    link.incoming[parity_of(step)].emplace(brant::Moment::delivered, [&](brant::Op& op) noexcept {
      return link.channel.post_recv(block_.landing(link.side, step), op);
    });
  }

  void finish(const Link& link, std::optional<brant::Operation>& operation, const char* what) {
    if (!operation) return;
    require(link, runtime_.wait_for(kPatience, *operation), what);
    operation.reset();
  }

  void require(const Link& link, const brant::OpResult& result, const char* what) const {
    if (result.ok()) return;
    result.or_throw(fmt::format("could not {} rank {} a face of {} bytes of {} memory", what, link.channel.peer().value,
                                block_.face(link.side, 0).bytes, brant::memory_kind_name(block_.kind())));
  }

  brant::Runtime& runtime_;
  const Block& block_;
  std::int64_t steps_;
  std::deque<Link> links_;
};

}  // namespace

std::unique_ptr<Exchange> make_messages(brant::Runtime& runtime, const Block& block, std::int64_t steps) {
  return std::make_unique<Messages>(runtime, block, steps);
}

}  // namespace heat
