#include "bench/rma/player.h"

namespace brant::bench {
namespace {

/// UCX without brant: `ucp_put_nbx` and a flush, or `ucp_get_nbx`. It has no put that tells its target.
class UcxPlayer final : public RmaPlayer {
 public:
  UcxPlayer(Session& session, const RmaPlaces& places)
      : session_(session), places_(places), takes_device_(session.runtime().device_kind() != MemoryKind::emulated) {}
  /// What it has registered goes before the memory does.
  ~UcxPlayer() override { session_.close_rival(); }

  [[nodiscard]] std::string peer() const override { return "ucx"; }
  [[nodiscard]] std::string path() const override { return "ucx"; }
  [[nodiscard]] bool plays(const RmaCase& which) const override {
    return which.sync != RmaSync::notify && (takes_device_ || !which.pattern.needs_device());
  }

  /// A rival reaches one memory: another one takes another rival.
  void use(RmaPattern pattern) override {
    mine_ = places_.mine(pattern);
    if (ucx_ != nullptr && remote_ == pattern.remote) return;
    session_.barrier();
    ucx_ = &session_.open_rival(UcxBaselineUse::one_sided);
    remote_ = pattern.remote;
    if (session_.leads()) {
      ucx_->reach(session_.partner().receive_block());
    } else {
      session_.partner().send_block(ucx_->expose(mine_.data, mine_.bytes));
    }
  }

  void measure(const RmaCase& which, std::span<double> us) override {
    if (!session_.leads()) return;
    const auto what = which.puts() ? UcxBaseline::OneSided::put : UcxBaseline::OneSided::get;
    const auto timed = which.sync == RmaSync::inject ? UcxBaseline::Timed::posts : UcxBaseline::Timed::completion;
    ucx_->one_sided(what, mine_.data, which.bytes, which.window, us, timed);
    if (which.sync != RmaSync::inject) return;
    for (double& sample : us) sample /= static_cast<double>(which.window);
  }

 private:
  Session& session_;
  const RmaPlaces& places_;
  const bool takes_device_;  ///< The emulated device is ours alone.
  UcxBaseline* ucx_ = nullptr;
  RmaMemory remote_ = RmaMemory::shared;
  Buffer mine_;
};

}  // namespace

std::unique_ptr<RmaPlayer> make_ucx_player(Session& session, const RmaPlaces& places) {
  return std::make_unique<UcxPlayer>(session, places);
}

}  // namespace brant::bench
