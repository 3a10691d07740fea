#include "ops/coll/device/retired_streams.h"

#include <utility>

#include "base/log.h"

namespace brant::coll {

RetiredStreams::~RetiredStreams() {
  engine_.deferrals().take_back(*this);
  for (const auto& streams : failed_) streams->abort();
  if (!closed_.empty() || !failed_.empty()) static_cast<void>(engine_.device().streams()->synchronize_all());
}

void RetiredStreams::take(std::unique_ptr<StreamTeam> streams, bool has_failed) {
  streams->abort();
  (has_failed ? failed_ : closed_).push_back(std::move(streams));
  if (!has_failed) engine_.deferrals().defer(*this);
}

void RetiredStreams::run_deferred() noexcept {
  if (closed_.empty()) return;
  if (const Status done = engine_.device().streams()->synchronize_all(); done != Status::ok) {
    log::debug("closed teams keep their device memory for now: {}", status_text(done));
    return;
  }
  closed_.clear();
}

}  // namespace brant::coll
