#include <array>
#include <optional>

#include <fmt/format.h>

#include "exchange.h"

namespace heat {
namespace {

/// Faces by put, each into the neighbour's ghosts of the step's parity, with a word set there behind it. The word says
/// the number of the step, plus one.
///
/// Two buffers of ghosts are enough, and nobody waits for all: a neighbour that puts its face of step n + 2 has ended
/// step n + 1, for which it had to have this block's face of that step. That was sent when this block had ended step n,
/// and with it the reading of the ghosts that are now written again. So a neighbour is at most one step ahead, and
/// writes into the other buffer then.
class Puts final : public Exchange {
 public:
  Puts(brant::GlobalSpace& space, const Block& block) : space_(space), block_(block) {}

  void begin(std::int64_t step) override {
    for (int side = 0; side < kFaces; ++side) {
      std::optional<brant::Operation>& put = leaving(side, step);
      if (!put) continue;
      require(side, space_.runtime().wait_for(kPatience, *put));
      put.reset();
    }
  }

  void send(std::int64_t step) override {
    for (int side = 0; side < kFaces; ++side) {
      if (!block_.neighbour(side)) continue;
      std::optional<brant::Operation>& put = leaving(side, step);
      put.emplace(brant::Moment::delivered, [&](brant::Op& op) noexcept {
        const auto number = static_cast<std::uint64_t>(step) + 1;
        return space_.post_put(block_.landing_there(side, step), block_.face(side, step), op,
                               {.at_target = brant::AtTarget::set(block_.arrived_there(side, step), number)});
      });
      if (put->done()) require(side, put->result());
    }
    space_.runtime().worker().progress();  // the words leave now, and not when the inner cells are done
  }

  void wait(std::int64_t step) override {
    const auto landed = [&](int side) {
      return !block_.neighbour(side) || block_.arrived(side, step) == static_cast<std::uint64_t>(step) + 1;
    };
    for (int side = 0; side < kFaces; ++side) {
      const brant::Status status = space_.runtime().worker().wait_until([&] { return landed(side); }, kPatience);
      if (status == brant::Status::ok) continue;
      throw brant::Error(status, fmt::format("rank {} has put no face of step {} for {} s", *block_.neighbour(side),
                                             step, kPatience.count()));
    }
  }

  void end() override {
    for (std::int64_t parity = 0; parity < 2; ++parity) begin(parity);
  }

 private:
  [[nodiscard]] std::optional<brant::Operation>& leaving(int side, std::int64_t step) noexcept {
    return leaving_[static_cast<std::size_t>(side)][parity_of(step)];
  }

  void require(int side, const brant::OpResult& result) const {
    if (result.ok()) return;
    result.or_throw(fmt::format("could not put a face of {} bytes of {} memory to rank {}", block_.face(side, 0).bytes,
                                brant::memory_kind_name(block_.kind()), *block_.neighbour(side)));
  }

  brant::GlobalSpace& space_;
  const Block& block_;
  std::array<std::array<std::optional<brant::Operation>, kParities>, kFaces> leaving_;
};

}  // namespace

const char* name_of(Mode mode) noexcept { return mode == Mode::one_sided ? "one-sided" : "two-sided"; }

std::unique_ptr<Exchange> make_puts(brant::GlobalSpace& space, const Block& block) {
  return std::make_unique<Puts>(space, block);
}

}  // namespace heat
