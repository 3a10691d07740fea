#include <algorithm>
#include <deque>
#include <optional>

#include <fmt/format.h>

#include "models.h"
#include "together.h"

namespace jacobi {
namespace {

/// Faces over channels: one to each neighbour. What is in flight uses the block's memory.
class ChannelHalo final : public Halo {
 public:
  ChannelHalo(brant::Runtime& runtime, brant::Team& team, const Block& block, const Decomposition& cut, int rank,
              brant::Path path)
      : team_(team), block_(block) {
    for (int side = 0; side < kSides; ++side) {
      const std::optional<int> neighbour = cut.neighbour(rank, side);
      if (!neighbour) continue;
      // The channel between two blocks has the number of the lower one, and the axis.
      const brant::ChannelId id{static_cast<std::uint32_t>(std::min(rank, *neighbour) * 3 + axis_of(side))};
      links_.emplace_back(side, brant::Channel::open(runtime, brant::Rank{*neighbour}, id, {.path = path}));
    }
  }

  void receive_ghosts() override {
    for (Link& link : links_) {
      const brant::Buffer ghosts = block_.message_in(link.side);
      link.incoming.emplace(brant::Moment::delivered,
                            [&](brant::Op& op) noexcept { return link.channel.post_recv(ghosts, op); });
    }
  }

  void send_faces() override {
    for (Link& link : links_) {
      const brant::ConstBuffer face = block_.message_out(link.side);
      link.outgoing.emplace(brant::Moment::source_free,
                            [&](brant::Op& op) noexcept { return link.channel.post_send(face, op); });
      if (link.outgoing->done()) require(link, link.outgoing->result(), "send to");  // else its ghosts may never come
    }
  }

  brant::Task<void> finish() override {
    for (Link& link : links_) {
      require(link, co_await *link.incoming, "receive from");
      require(link, co_await *link.outgoing, "send to");
    }
  }

  brant::Task<double> largest_of_all(double own) override { return largest_in(team_, own); }

  [[nodiscard]] std::size_t message_bytes() const override { return block_.message_bytes(); }

 private:
  struct Link {
    Link(int side_in, brant::Channel channel_in) noexcept : side(side_in), channel(std::move(channel_in)) {}
    int side;
    brant::Channel channel;
    std::optional<brant::Operation> incoming;
    std::optional<brant::Operation> outgoing;
  };

  void require(const Link& link, const brant::OpResult& result, const char* what) const {
    if (result.ok()) return;
    result.or_throw(fmt::format("could not {} rank {} a face of {} bytes of {} memory", what, link.channel.peer().value,
                                block_.message_out(link.side).bytes, brant::memory_kind_name(block_.kind())));
  }

  brant::Team& team_;
  const Block& block_;
  std::deque<Link> links_;
};

}  // namespace

std::vector<Solution> solve_with_channels(brant::Runtime& runtime, brant::Team& team, Share& share, const Plan& plan,
                                          brant::Path path) {
  ChannelHalo halo(runtime, team, *share.blocks[0], share.cut, share.first, path);
  return {runtime.run(solve(*share.blocks[0], *share.stencils[0], halo, plan))};
}

}  // namespace jacobi
