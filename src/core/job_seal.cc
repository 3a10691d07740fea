#include "brant/core/job_seal.h"

#include <algorithm>
#include <utility>

#include "base/hmac.h"
#include "base/log.h"
#include "core/engine.h"
#include "core/job_key.h"

namespace brant {

JobSeal::JobSeal(Runtime& runtime, std::string_view purpose) : runtime_(runtime), purpose_(purpose) {
  const Digest key = job_key_for(runtime.worker().engine().boot(), purpose);
  std::copy_n(key.begin(), bytes_.size(), bytes_.begin());
}

bool JobSeal::fits(std::span<const std::byte> came) noexcept {
  if (equal_in_constant_time(came, bytes_)) return true;
  runtime_.worker().engine().counters().bad_records.add();
  if (!std::exchange(told_, true)) {
    log::error(
        "a message came with {} instead of the seal of this job ({}), and is not read, as all such are: a process that "
        "is not of this job has sent it. Cure: keep strangers off the network of the job (docs/guide/network.md)",
        came.empty() ? "nothing" : "something else", purpose_);
  }
  return false;
}

}  // namespace brant
