#pragma once

#include <cstdint>

#include "bench/runner/contender.h"
#include "bench/runner/images.h"
#include "bench/runner/path_counts.h"
#include "bench/runner/session.h"
#include "brant/brant.h"
#include "brant/pgas.h"

namespace brant::bench {

/// brant's puts with remote completion: behind the bytes a word is set which the target's CPU looks at. A round trip is
/// one of them each way. No message takes part.
class ToldPutContender final : public Contender {
 public:
  /// Collective. Throws Error.
  ToldPutContender(Session& session, const Options& options);

  [[nodiscard]] std::string peer() const override { return {}; }
  [[nodiscard]] std::string path() const override { return path_; }
  void check(std::size_t bytes, std::size_t times) override;
  void ping_pong(std::size_t bytes, std::span<double> round_trip_us) override;
  /// Each put of a window is told of, and all of them together are answered by one more.
  void windows(std::size_t bytes, std::size_t window, std::span<double> window_us) override;

 private:
  void meet();
  /// Puts, and tells of it by the next epoch.
  void put(ConstBuffer from);
  /// The other one has told of its next put.
  void await_put();
  void note_path(ConstBuffer from);
  void put_window(ConstBuffer from, std::size_t window);
  void await_window(std::size_t window);
  template <typename Come>
  void await(Come&& come);
  void require(const OpResult& result, const char* what) const;

  Session& session_;
  const PathCounts counts_;
  Images images_;
  GlobalSpace space_;
  GlobalSegment landing_;
  GlobalSegment flags_;
  GlobalPtr<std::uint64_t> own_flag_;  ///< Behind it one for each put of a window.
  GlobalPtr<std::byte> there_;
  GlobalPtr<std::uint64_t> flag_there_;
  Window puts_;
  const Path forced_;
  std::uint64_t told_ = 0;   ///< So many puts of this process.
  std::uint64_t heard_ = 0;  ///< Of the other one.
  std::uint64_t windows_ = 0;
  std::string path_ = "auto";
};

}  // namespace brant::bench
