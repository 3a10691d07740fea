#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "bench/runner/link.h"
#include "bench/runner/meeting.h"
#include "bench/runner/options.h"
#include "bench/runner/space.h"
#include "brant/brant.h"

namespace brant::bench {

/// The processes of one benchmark: who exchanges with whom, in what memory, and how they meet. Making one is
/// collective.
class Session final : public Meeting {
 public:
  /// Throws Error: a number of processes that does not fit, memory this machine does not have, no network.
  explicit Session(const Options& options);
  /// Of two processes, or up to `ranks_max`, without memory and channel yet: `use` gives them. `name` is the command's,
  /// for the same errors. With `ranks_min` 1 a single process will do, which leads and has no partner.
  Session(const RuntimeOptions& options, const char* name, int ranks_max = 2, int ranks_min = 2);

  /// Exchanges in memory of this kind over a new channel from now on, in messages up to `largest` bytes. Collective.
  /// Throws Error: memory this process does not have.
  void use(MemoryKind memory, Path path, std::size_t largest, Alloc alloc = Alloc::library);

  [[nodiscard]] Runtime& runtime() noexcept { return runtime_; }
  [[nodiscard]] Channel& channel() noexcept { return channel_; }
  [[nodiscard]] int ranks() const noexcept override { return runtime_.size(); }
  [[nodiscard]] int pair() const noexcept { return pair_; }
  /// The process at the other end.
  [[nodiscard]] Rank channel_partner() const noexcept {
    const int half = runtime_.size() / 2;
    return Rank{runtime_.rank().value + (leads_ ? half : -half)};
  }
  /// This process begins round trips and sends the windows; its partner answers.
  [[nodiscard]] bool leads() const noexcept { return leads_; }
  [[nodiscard]] bool reports() const noexcept override { return runtime_.rank().value == 0; }
  [[nodiscard]] Buffer source(std::size_t bytes) const { return source_.part(0, bytes); }
  [[nodiscard]] Buffer landing(std::size_t bytes) const { return landing_.part(0, bytes); }
  /// Memory of the same kind and origin for passes that are not timed, of at least `bytes`; made once if `bytes` stays.
  const Space& scratch(std::size_t bytes);
  [[nodiscard]] Link& partner() noexcept { return *partner_; }

  /// Opens the rival and connects it to the partner's, in place of one that was open. Collective.
  UcxBaseline& open_rival(UcxBaselineUse use = UcxBaselineUse::messages);
  /// What it has registered may be freed then. The partner must have ended with it.
  void close_rival() noexcept;

  /// From now on its waits do not sleep, see Link.
  void stay_awake() noexcept;

  void barrier() override;
  std::vector<double> gather(const std::vector<double>& samples) override;

 private:
  /// Meets the others. What cannot be is refused before: whoever ends first would look dead to those who still connect.
  void connect();

  Runtime runtime_;
  int pair_ = 0;
  unsigned channels_used_ = 0;
  bool leads_ = false;
  MemoryKind memory_ = MemoryKind::host;
  Alloc alloc_ = Alloc::library;
  Space source_;
  Space landing_;
  Space scratch_;
  std::deque<Link> star_;  ///< At rank 0 one to each other rank in order, elsewhere one to rank 0.
  std::optional<Link> partner_;
  Channel channel_;
  std::unique_ptr<UcxBaseline> rival_;
};

}  // namespace brant::bench
