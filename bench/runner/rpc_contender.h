#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/runner/contender.h"
#include "bench/runner/images.h"
#include "bench/runner/path_counts.h"
#include "bench/runner/session.h"
#include "brant/brant.h"
#include "brant/ops/rpc.h"

namespace brant::bench {

/// brant's remote calls: the side that leads calls a function of its partner, and times from the call until the answer
/// of 8 bytes is here; so nothing is halved. The partner only runs what is called. A payload in host memory is an
/// ordinary argument, one in any other memory goes as data beside the message.
class RpcContender final : public Contender {
 public:
  /// Collective. Throws Error.
  RpcContender(Session& session, const Options& options);
  ~RpcContender() override;

  [[nodiscard]] std::string peer() const override { return {}; }
  [[nodiscard]] std::string path() const override { return path_; }
  void check(std::size_t bytes, std::size_t times) override;
  void ping_pong(std::size_t bytes, std::span<double> us) override { windows(bytes, 1, us); }
  void windows(std::size_t bytes, std::size_t window, std::span<double> window_us) override;

 private:
  using Answer = Future<std::uint64_t>;

  [[nodiscard]] bool by_message() const noexcept { return options_.memory == MemoryKind::host; }
  /// The next call, with room or without: then what was called first is answered first.
  Answer call(Buffer payload);
  [[nodiscard]] Result<Answer> try_call(Buffer payload) const;
  std::uint64_t answer_of(Answer& answer);
  void expect_taken(std::uint64_t taken, std::size_t bytes) const;
  void call_window(Buffer payload, std::size_t window);
  Task<void> await_each(Buffer payload, std::span<double> us);
  void note_path(const PathCounts::Sends& before, std::size_t bytes);

  Session& session_;
  const Options& options_;
  const PathCounts counts_;
  Images images_;
  const Rpc rpc_;
  std::vector<Answer> answers_;  ///< Of the calls of a window; the first `answered_` are here.
  std::size_t answered_ = 0;
  std::string path_ = "auto";
};

}  // namespace brant::bench
